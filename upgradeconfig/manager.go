package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// ManagerOptions are the options of a [Manager]. API is required, and so is
// one of Provider and FromConfig for syncs; the zero value of every other field
// works.
type ManagerOptions struct {
	// API is the cluster. It must serve UpgradeConfigs: [Definition] is the
	// CustomResourceDefinition.
	API clusterapi.ReadWriter
	// Namespace and Name of the UpgradeConfig; empty means [DefaultNamespace]
	// and [Name].
	Namespace, Name string

	// Provider has the policies. Nil: FromConfig.
	Provider Provider
	// FromConfig makes the provider from the operator's ConfigMap, which is
	// read again for each sync. It is called for source OCM; source LOCAL is
	// [Local]. Nil: the ConfigMap is not read.
	FromConfig func(ctx context.Context, c *Config) (Provider, error)

	// FirstSync is the wait before the first sync; 0 means 1 minute.
	FirstSync time.Duration
	// AtOnce makes the first sync without that wait.
	AtOnce bool
	// Interval from one sync to the next after a success; 0 means the ConfigMap's,
	// as it is at the start of Run, and 60 minutes where FromConfig is nil.
	Interval time.Duration
	// Backoff is the wait after failures; see there for its defaults.
	Backoff Backoff
	// Jitter is the part of a wait by which it is at most shorter or longer; 0
	// means 0.1, and more than 1 is 1. Waits after failures are limited before
	// jitter, so they can exceed Backoff.Max by that part.
	Jitter float64
	// NoJitter makes all waits exact.
	NoJitter bool
	// Wake makes Run sync at once, or as soon as a sync that is under way has ended,
	// for each value that it receives. It leaves the back-off as it is. Nil or closed:
	// nothing does. A driver of your own wakes the reconciler "sync" with a key of
	// Kind "now" instead.
	Wake <-chan struct{}

	// Update changes an UpgradeConfig in place, and so keeps its status, if
	// only the time, the drain time-out or the capacity reservation differ. By
	// default every change replaces it.
	Update bool
	// KeepWhileUpgrading leaves an UpgradeConfig alone while its upgrade is in
	// progress, whatever the provider says by then. By default the provider
	// has its way.
	KeepWhileUpgrading bool

	// Clock is the time of Run and Sync; nil means the real one. A driver of
	// [Manager.Process] has its own.
	Clock clock.WithTicker
	// Rand returns a number in [0, n) for jitter; nil means the driver's.
	Rand func(n int64) int64
	// Logger gets what is worth a line; nil means no logging.
	Logger *slog.Logger
	// Observe gets every event, one at a time. Syncs wait for it, so it must not
	// call the Manager. A panic in it is logged.
	Observe func(clusterapi.Event)
}

const (
	firstSync      = time.Minute
	syncInterval   = time.Hour
	configInterval = time.Minute
	defaultJitter  = 0.1
)

// Manager keeps the UpgradeConfig of a cluster in step with the policies of a
// provider. All that it knows is on the cluster, so after one was stopped
// anywhere, the next can continue. It is safe for concurrent use: syncs run one at a
// time, and a second Run fails.
type Manager struct {
	o      ManagerOptions
	now    func() time.Time
	passes *loop.Passes
}

// NewManager returns a Manager that does not run yet. It returns an error where
// the options have no API or a negative number; the error names the field.
func NewManager(o ManagerOptions) (*Manager, error) {
	if o.API == nil {
		return nil, errors.New("upgradeconfig: ManagerOptions.API is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Name = cmp.Or(o.Name, Name)
	o.FirstSync = cmp.Or(o.FirstSync, firstSync)
	if o.AtOnce {
		o.FirstSync = 0
	}
	o.Jitter = cmp.Or(o.Jitter, defaultJitter)
	if o.NoJitter {
		o.Jitter = 0
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{o: o, now: o.Clock.Now, passes: loop.New()}, nil
}

// Run syncs until ctx ends, and returns the error of ctx promptly then, all its
// goroutines ended. It makes the first sync after FirstSync, the next ones after
// Interval, or after Backoff while they fail; one success resets the back-off. Each
// wait is jittered. With FromConfig it waits for a ConfigMap that reports how often
// to sync, and reads it every minute until then. Run fails at once if the Manager
// is already running.
func (m *Manager) Run(ctx context.Context) error {
	return m.passes.Run(ctx, m.o.API, m.o.Clock, m.o.Logger, m.process(true))
}

// Process is the manager for a driver of package reconcile: what Run drives
// live. It uses the driver's API and time instead of the options'; providers
// keep theirs.
func (m *Manager) Process() reconcile.Process { return m.process(false) }

// process makes the reconciler; only a live one hears of Wake.
func (m *Manager) process(live bool) reconcile.Process {
	return reconcile.Process{Name: "upgradeconfig-policies", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		o := m.o
		o.API = api
		s := &syncLoop{m: &Manager{o: o, passes: m.passes}}
		l := &loop.Loop{ID: "sync", Each: s.next, First: s.first}
		if live {
			l.Requested = m.requested
		}
		return []reconcile.Reconciler{l}
	}}
}

// requested waits until somebody asks for a sync.
func (m *Manager) requested(ctx context.Context) {
	select {
	case <-ctx.Done():
	case _, open := <-m.o.Wake:
		if !open {
			<-ctx.Done() // a closed channel would always be ready
		}
	}
}

// syncLoop is a manager that syncs again and again.
type syncLoop struct {
	m        *Manager
	interval time.Duration // zero: not known yet
	failures int
	begun    bool // the wait before the first sync has begun
}

// first is the wait before the first sync. Where the interval is not known yet,
// the configuration is read before.
func (s *syncLoop) first(p loop.Pass) time.Duration {
	if s.m.o.FromConfig != nil && s.m.o.Provider == nil {
		return 0
	}
	s.interval, s.begun = cmp.Or(s.m.o.Interval, syncInterval), true
	return s.jitter(p, s.m.o.FirstSync)
}

// next makes a sync and says when the next one is due.
func (s *syncLoop) next(ctx context.Context, p loop.Pass) time.Duration {
	s.m.now = func() time.Time { return p.Now }
	if s.interval == 0 {
		if err := s.findInterval(ctx); err != nil {
			s.fail(err, configInterval)
			return configInterval
		}
	}
	if !s.begun {
		s.begun = true
		if s.m.o.FirstSync > 0 {
			return s.jitter(p, s.m.o.FirstSync)
		}
	}
	_, err := s.m.Sync(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		s.failures++
		wait := s.jitter(p, s.m.o.Backoff.Next(s.failures))
		s.fail(err, wait)
		return wait
	}
	s.failures = 0
	return s.jitter(p, s.interval)
}

// findInterval finds out how often to sync, once the configuration says so.
func (s *syncLoop) findInterval(ctx context.Context) error {
	c, err := ReadConfig(ctx, s.m.o.API, s.m.o.Namespace)
	if err == nil {
		err = c.checkInterval()
	}
	if err != nil {
		return err
	}
	s.interval = cmp.Or(s.m.o.Interval, c.Interval())
	return nil
}

func (s *syncLoop) jitter(p loop.Pass, d time.Duration) time.Duration {
	if s.m.o.Rand != nil {
		p.Int64N = s.m.o.Rand
	}
	return loop.Jitter(d, s.m.o.Jitter, p.Int64N)
}

func (s *syncLoop) fail(err error, retry time.Duration) {
	s.m.o.Logger.Warn("sync failed", "error", err, "retry", retry)
	s.m.emit(clusterapi.Event{Type: EventFailed, Err: err, Message: err.Error()}, EventData{Retry: retry})
}

func (m *Manager) key() types.NamespacedName { return clusterapi.Key(m.o.Namespace, m.o.Name) }

func (m *Manager) emit(e clusterapi.Event, data EventData) {
	e.Time, e.Subject, e.Data = m.now(), "upgradeconfig/"+m.o.Name, &data
	m.passes.Observe(m.o.Logger, m.o.Observe, e)
}
