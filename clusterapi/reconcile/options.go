package reconcile

import (
	"log/slog"
	"math"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Options are those of the live driver: [Run] and [Syncer].
type Options struct {
	// API is the cluster. It may be nil if nothing is watched and no reconciler
	// calls it. If it is a [clusterapi.Watcher] too, events drive the reconcilers,
	// else lists at intervals.
	API clusterapi.ClusterAPI
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
	// Seed makes the randomness that reconcilers get repeatable; zero means a
	// random seed.
	Seed uint64
	// Logger logs failures and panics; nil logs nothing.
	Logger *slog.Logger
	// Workers bounds the keys that one reconciler is called for at a time; zero
	// leaves that to the reconcilers ([Concurrent]).
	Workers int
	// CallTimeout bounds every call of the API but watches; zero means 30
	// seconds, [Never] none. See [WithCallTimeout].
	CallTimeout time.Duration
	// Poll is the time between two lists of a kind where API cannot watch;
	// zero means 30 seconds.
	Poll time.Duration
	// Resync is the time between two looks at all keys of reconcilers that are
	// [Lister]s; zero means 10 minutes. With [Never] there is one look. A [Syncer] does
	// it in the first Sync after that time.
	Resync time.Duration
	// Dispatch decides where the looks of [Run] run, for a host that has work
	// queues and workers: look makes one and returns its error. It is to be called
	// in another goroutine, at any time; once the driver's context has ended it
	// does nothing. nil: each look runs in its own goroutine.
	Dispatch func(process, reconciler string, key Key, look func() error)
	// Observe gets the events of the driver, one at a time. nil is not called. A
	// panic in it is logged.
	Observe func(clusterapi.Event)
}

// Never is a time that does not come: for [Options] that can be switched off.
const Never time.Duration = math.MaxInt64

const (
	defaultCallTimeout = 30 * time.Second
	defaultPoll        = 30 * time.Second
	defaultResync      = 10 * time.Minute
)
