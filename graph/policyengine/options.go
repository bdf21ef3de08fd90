package policyengine

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Grapher has graphs to serve, as a [graphdata.Snapshot] does. It is read-only: its
// answers never change, and it is asked by several goroutines at a time.
//
// A Grapher that also has the methods Revision() string and Nodes() int, as a Snapshot
// does, is asked for them. For a Grapher that does not, all graphs are encoded once to compute both.
type Grapher interface {
	// Graph returns the graph of a channel for an architecture.
	Graph(channel, arch string) *graph.Graph
	// Channels are those that hold a release of an architecture.
	Channels(arch string) []string
	// Arches are the architectures of releases.
	Arches() []string
}

// Metrics receives what happens, in addition to what [Handler.Samples] counts. It is
// called by several goroutines at a time.
type Metrics interface {
	// Request is called when a request has been answered. Path is a path that the
	// handler serves, and "" for any other; kind is an error's, else "".
	Request(path string, code int, kind string, d time.Duration)
	// Snapshot is called when a graph has been set.
	Snapshot(revision string, nodes int, at time.Time)
}

// Options configure a [Handler]. The zero value works: it serves /graph.
type Options struct {
	// Prefix goes before all paths, as in /api/upgrades_info. It has one leading
	// and no trailing slash however it is given.
	Prefix string
	// Mandatory are parameters that a request for a graph must have.
	Mandatory []string
	// DefaultArch is the architecture of requests that name none; empty means
	// amd64.
	DefaultArch string
	// MaxAge is for how long clients may keep an answer; zero means a minute.
	MaxAge time.Duration
	// MaxStale is for how long a graph is served after it was last set; zero means
	// 24 hours. A program that sets a graph once wants [reconcile.Never].
	MaxStale time.Duration
	// MaxCached bounds the answers that are kept encoded, in bytes; zero means
	// 128 MiB.
	MaxCached int64
	// GraphData opens the archive that the graphs were made of, as
	// [graphdata.WriteArchive] writes it, and says when it last changed. What it
	// returns is closed if it has a Close. nil if absent.
	GraphData func() (io.ReadSeeker, time.Time, error)
	// Signatures holds signatures of releases, as sha256/DIGEST/signature-1; nil if
	// absent.
	Signatures fs.FS
	// AllowOrigin is the only origin whose scripts may read answers; empty means
	// that any may, and a value that is not an origin, such as "none", means that
	// none may.
	AllowOrigin string
	// Metrics receives requests and graphs; nil disables it.
	Metrics Metrics
	// Logger gets failures and changes of the graph. It never gets a query, which
	// holds the ID of a cluster. nil: nobody does.
	Logger *slog.Logger
	// Clock is for the age of graphs; nil means the real one.
	Clock clock.PassiveClock
	// Compat negotiates content as the existing service does, by one Accept value
	// byte for byte, and looks for a graph before it looks at the parameters.
	Compat bool
}

// What a request may be.
const (
	maxHead      = 16 << 10 // bytes of its line and header
	maxQuery     = 4 << 10  // bytes
	maxChannel   = 128      // bytes
	maxArch      = 32       // bytes
	maxSignature = 50 << 10 // bytes of a file that is served
	minGzip      = 1 << 10  // bytes of an answer that is worth it
)

const (
	defaultMaxAge    = time.Minute
	defaultMaxStale  = 24 * time.Hour
	defaultMaxCached = 128 << 20
)

// withDefaults returns complete options, or what is wrong with them.
func (o Options) withDefaults() (Options, error) {
	if err := options.NonNegative(o); err != nil {
		return o, err
	}
	o.Prefix = strings.Trim(o.Prefix, "/")
	if o.Prefix != "" {
		o.Prefix = "/" + o.Prefix
	}
	if strings.ContainsAny(o.Prefix, "?#%") {
		return o, errors.New("policyengine.Options: Prefix is not a path")
	}
	o.DefaultArch = cmp.Or(o.DefaultArch, "amd64")
	if !archPattern.MatchString(o.DefaultArch) || len(o.DefaultArch) > maxArch {
		return o, errors.New("policyengine.Options: DefaultArch is not an architecture")
	}
	o.Mandatory = slices.Compact(slices.Sorted(slices.Values(o.Mandatory)))
	o.MaxAge = cmp.Or(o.MaxAge, defaultMaxAge)
	o.MaxStale = cmp.Or(o.MaxStale, defaultMaxStale)
	o.MaxCached = cmp.Or(o.MaxCached, defaultMaxCached)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
