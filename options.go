package clusterupdate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Options say what an [Updater] works with. API and Payloads are required; the
// zero value of every other field works.
type Options struct {
	// API is the cluster. If it also is a [clusterapi.Watcher], changes of the
	// ClusterVersion and of ClusterOperators wake Run at once.
	API clusterapi.ClusterAPI
	// Payloads opens the contents of releases. Contents are trusted to be
	// those of the digest that the release's image names.
	Payloads manifest.PayloadSource
	// Graph answers which updates there are. Nil: updates are not retrieved, and a
	// request must name its image. A source that is a [graph.Upstreamer] is pointed
	// to spec.upstream if that is set. A [graph.Client] whose Transport is
	// [clusterapi.NewTransport] of API goes out by the cluster's proxy and trusts
	// its authorities.
	Graph graph.Source
	// Risks judges the risks of conditional updates. Nil: only risks that
	// always apply are judged, others are Unknown. It is asked through a
	// [risk.Cache], unless it is one.
	Risks graph.RiskMatcher
	// Alerts that fire become risks of every update, where the feature gate
	// ClusterUpdateAcceptRisks is on; they are read whenever updates are
	// judged. Nil: alerts are not risks.
	Alerts risk.AlertSource
	// Verifier decides whether a release image was signed. Nil: it is built from
	// the signature keys and stores of the running payload; if that has none, no
	// image can be verified.
	Verifier signature.Verifier
	// Checks run before a requested release is accepted. Nil: those of the
	// cluster-version operator and the two on the release itself
	// ([preconditions.AtLoad]).
	Checks []preconditions.Check
	// Bypasses set checks aside, each for one image.
	Bypasses []preconditions.Bypass

	// PreflightChecks judge a release that a request of mode Preflight names, together with
	// Checks. Package preconditions/rules has all that the documentation asks for. Nil:
	// Checks alone.
	PreflightChecks []preconditions.Check
	// PreflightPreview adds what it finds to a preflight: what the update from one payload
	// to another would change, say. from is nil if it cannot be read. Its error, and its
	// panic, are findings too. Nil: the checks are all that a preflight looks at.
	PreflightPreview func(ctx context.Context, from, to *manifest.Payload) ([]preconditions.Finding, error)

	// Own is the release that the cluster runs, for as long as the history of the
	// ClusterVersion has none that was completed: from then on the newest one that
	// was. Zero: the newest entry; without any, the initial release of Payloads
	// ([manifest.InitialReleaser]), else [ErrNoRelease]. If the history is empty and
	// ClusterOperators report versions, the status was lost: when all report Own's,
	// the history starts with it as Completed, else nothing is applied until an
	// image is requested.
	Own configv1.Release
	// Profile of the cluster; empty means [manifest.DefaultProfile].
	Profile string
	// ExcludeIdentifier leaves out manifests that exclude it; empty means none.
	ExcludeIdentifier string
	// Architecture of the cluster's release unless the payload declares
	// itself Multi, as Go names it; empty means "amd64".
	Architecture string
	// EnabledCapabilities are always enabled, in addition to those of the spec.
	EnabledCapabilities []string
	// Auto requests the newest recommended update whenever the cluster has
	// finished the one before.
	Auto bool
	// AutoPolicy restricts what Auto may request.
	AutoPolicy graph.AutoPolicy
	// ReasonStyle is how the reason of the condition Upgradeable is worded.
	ReasonStyle preconditions.ReasonStyle
	// Resolve says where else than among the available updates a requested version
	// may be found.
	Resolve clusterversion.ResolveOptions
	// Hooks are what else is done around an update. What keeps one from being done is
	// in [Updater.Explain].
	Hooks []clusterversion.Hook

	// Tracker is what [Updater.Tracker] of an earlier process returned, so that
	// the times since when operators are awaited do not start again; it counts
	// as long as the cluster is at the same entry of the history. Nil: they do.
	// One that a later version of this package saved is an error of [New].
	Tracker []byte

	// Workers apply manifests of an update side by side; 0 means 16.
	Workers int
	// Interval between passes over a cluster that is as wanted; 0 means two to
	// four minutes, drawn once.
	Interval time.Duration
	// ApplyAlways makes every pass over a cluster that is as wanted apply every
	// object, as the cluster-version operator does. By default, where the cluster can
	// be watched, Run makes no call for an object that a watch shows to be as it was
	// applied, and reports what has drifted (see [Updater.Drifts]).
	ApplyAlways bool
	// ApplyMode is how manifests are applied; empty means
	// [runlevel.ApplyServerSide]. [runlevel.ApplyMerge] is for clusters that must
	// become what the cluster-version operator would make of them. An unknown one is
	// an error of [New].
	ApplyMode runlevel.Mode
	// Adopt names the field managers whose fields server-side apply takes over, as in
	// [runlevel.Options]; nil means the cluster-version operator's, empty none.
	Adopt []string
	// RetrieveTimeout limits the retrieval of a payload, half of it for its
	// verification; 0 means 4 minutes.
	RetrieveTimeout time.Duration
	// StatusInterval is the least time between two writes of mere progress; 0
	// means 15 seconds.
	StatusInterval time.Duration

	// Clock is the time of events and of the clients that are made here; nil means
	// the real one. Decisions use the driver's: in virtual time both must be the
	// same.
	Clock clock.WithTicker
	// Identity says under which names releases must have been signed: in which
	// repositories, and whether the tag must fit the version. Zero refuses
	// nothing. It also counts for what Verifier returns. A release that is
	// asked for by its image alone is compared once its contents say which
	// version it is.
	Identity signature.Identity
	// Logger gets what is worth a line; nil means no logging.
	Logger *slog.Logger
	// Observe gets every event, one at a time and in order. It must not
	// block for long: the update waits for it.
	Observe func(clusterapi.Event)
}

func (o Options) withDefaults() Options {
	if o.Checks == nil {
		o.Checks = preconditions.AtLoad()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Profile = cmp.Or(o.Profile, manifest.DefaultProfile)
	o.Architecture = cmp.Or(o.Architecture, "amd64")
	o.RetrieveTimeout = cmp.Or(o.RetrieveTimeout, 4*time.Minute)
	o.StatusInterval = cmp.Or(o.StatusInterval, 15*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// clusterVersionKey is the key of the only ClusterVersion.
var clusterVersionKey = types.NamespacedName{Name: "version"}

// process is what the reconcilers of an [Updater] have in common: its options, and
// those who get events and the log.
type process struct {
	o       Options                // API is the process's own
	accepts clusterapi.Definitions // what the cluster accepts

	observing sync.Mutex // events come from several goroutines, one at a time

	mu            sync.Mutex
	drawnInterval time.Duration // the interval; zero: not drawn yet
}

func newProcess(o Options, api clusterapi.ClusterAPI) *process {
	o.API = api
	if _, cached := o.Risks.(*risk.Cache); o.Risks != nil && !cached {
		o.Risks = &risk.Cache{Matcher: o.Risks, Clock: o.Clock}
	}
	return &process{o: o}
}

// interval is the time between passes, drawn once.
func (p *process) interval(q reconcile.Request) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawnInterval == 0 {
		p.drawnInterval = p.o.Interval
		if p.drawnInterval == 0 {
			p.drawnInterval = risk.CheckInterval(q.Rand.Float64())
		}
	}
	return p.drawnInterval
}

// report sends an event about a release, with the time of the clock.
func (p *process) report(t clusterapi.EventType, r configv1.Release, message string) {
	p.emit(clusterapi.Event{Type: t, Message: message}, EventData{Release: r})
}

// emit sends an event about a release to the observer.
func (p *process) emit(e clusterapi.Event, d EventData) {
	if p.o.Observe == nil {
		return
	}
	e.Data = &d
	e.Subject = releaseSubject(d.Release)
	p.observing.Lock()
	defer p.observing.Unlock()
	if e.Time.IsZero() {
		e.Time = p.o.Clock.Now()
	}
	// What happens in the cluster does not depend on the observer.
	p.log("the observer failed", panics.Catch(func() error {
		p.o.Observe(e)
		return nil
	}))
}

// releaseSubject names a release as the Subject of an event; empty for none.
func releaseSubject(r configv1.Release) string {
	if name := cmp.Or(r.Version, r.Image); name != "" {
		return "release " + name
	}
	return ""
}

func (p *process) log(msg string, err error) {
	if caught, ok := errors.AsType[*clusterapi.PanicError](err); ok {
		p.o.Logger.Error(msg, "error", err, "stack", string(caught.Stack))
		return
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		p.o.Logger.Warn(msg, "error", err)
	}
}
