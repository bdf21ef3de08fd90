package upgradeconfig

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// ManagerOptions are the options of a [Manager]. API is required, and so is
// one of Provider and FromConfig; the zero value of every other field works.
type ManagerOptions struct {
	// API is the cluster.
	API clusterapi.ReadWriter
	// Namespace and Name of the UpgradeConfig; empty means [DefaultNamespace]
	// and [Name].
	Namespace, Name string

	// Provider has the policies. Nil: FromConfig.
	Provider Provider
	// FromConfig makes the provider from the operator's ConfigMap, which is
	// read anew for each sync. It is called for source OCM; source LOCAL is
	// [Local]. Nil: the ConfigMap is not looked at.
	FromConfig func(ctx context.Context, c *Config) (Provider, error)

	// FirstSync is the wait before the first sync; 0 means 1 minute, a
	// negative one none.
	FirstSync time.Duration
	// Interval from one sync to the next after a success; 0 means that of the
	// ConfigMap, as it is at the start of Run, and 60 minutes where FromConfig
	// is nil.
	Interval time.Duration
	// Backoff is the wait after failures; see there for its defaults.
	Backoff Backoff
	// Jitter is the part of a wait by which it is at most shorter or longer; 0
	// means 0.1, a negative one none, and more than 1 is 1. Back-off is limited
	// before, so waits can exceed its maximum by that part.
	Jitter float64
	// Wake makes Run sync at once, for each value that it receives. It leaves
	// the back-off as it is. Nil or closed: nothing does, but
	// [Manager.SyncNow].
	Wake <-chan struct{}

	// Update changes an UpgradeConfig in place, and so keeps its status, if
	// only the time, the drain time-out or the capacity reservation differ. By
	// default every change replaces it.
	Update bool
	// KeepWhileUpgrading leaves an UpgradeConfig alone while its upgrade is in
	// progress, whatever the provider says by then. By default the provider
	// has its way.
	KeepWhileUpgrading bool
	// Compat makes source LOCAL do as the managed-upgrade operator does: see
	// [Local.Compat].
	Compat bool

	// Clock is the time of Run and Sync; nil means the real one. A driver of
	// [Manager.Process] has its own.
	Clock clock.WithTicker
	// Rand returns a number in [0, n) for jitter; nil means the driver's.
	Rand func(n int64) int64
	// Logger gets what is worth a line; nil means no logging.
	Logger *slog.Logger
	// Observe gets every [Event], one at a time. Syncs wait for it, so it must
	// not call the Manager.
	Observe func(Event)
}

const (
	firstSync      = time.Minute
	syncInterval   = time.Hour
	configInterval = time.Minute
	defaultJitter  = 0.1
)

// Manager keeps the UpgradeConfig of a cluster in step with the policies of a
// provider. All that it knows is on the cluster, so another one can go on at
// any point where one was stopped. It is safe for concurrent use: syncs take
// turns, and a second Run fails.
type Manager struct {
	o       ManagerOptions
	now     func() time.Time
	turn    chan struct{} // holds a value while a sync is under way
	wanted  chan struct{} // holds a value while a sync is asked for
	running atomic.Bool

	observing *sync.Mutex
}

// NewManager returns a Manager that is not running yet.
func NewManager(o ManagerOptions) *Manager {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Name = cmp.Or(o.Name, Name)
	if o.FirstSync == 0 {
		o.FirstSync = firstSync
	}
	if o.Jitter == 0 {
		o.Jitter = defaultJitter
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{o: o, now: o.Clock.Now, turn: make(chan struct{}, 1), wanted: make(chan struct{}, 1), observing: new(sync.Mutex)}
}

// SyncNow makes Run sync at once, or as soon as a sync that is under way has
// ended. Several calls before that count as one. It does not wait. A driver of
// one's own wakes the reconciler "sync" with a key of Kind "now" instead.
func (m *Manager) SyncNow() {
	select {
	case m.wanted <- struct{}{}:
	default:
	}
}

// Run syncs until ctx ends, and returns its error promptly then, all its
// goroutines gone. The first sync is made after FirstSync, the next ones after
// Interval, or after Backoff while they fail; one success resets the back-off.
// Each wait is jittered. With FromConfig the ConfigMap is awaited before, and
// looked at every minute.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	if !m.running.CompareAndSwap(false, true) {
		return errors.New("upgradeconfig: the Manager is already running")
	}
	defer m.running.Store(false)
	return loop.Run(ctx, m.o.API, m.o.Clock, m.o.Logger, m.process(true))
}

// Process is the manager for a driver of package reconcile: what Run drives
// live. It uses the driver's API and time instead of the options'; providers
// keep theirs.
func (m *Manager) Process() reconcile.Process { return m.process(false) }

// process makes the reconciler; only a live one hears of SyncNow and Wake.
func (m *Manager) process(live bool) reconcile.Process {
	return reconcile.Process{Name: "upgradeconfig-policies", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		o := m.o
		o.API = api
		s := &syncing{Manager: &Manager{o: o, turn: m.turn, observing: m.observing}}
		r := &loop.Loop{ID: "sync", Each: s.again, First: s.first}
		if live {
			r.Asked = m.asked
		}
		return []reconcile.Reconciler{r}
	}}
}

// asked waits until somebody asks for a sync.
func (m *Manager) asked(ctx context.Context) {
	wake := m.o.Wake
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wanted:
			return
		case _, ok := <-wake:
			if ok {
				return
			}
			wake = nil // closed: it would always be ready
		}
	}
}

// syncing is a manager that syncs again and again.
type syncing struct {
	*Manager
	interval time.Duration // zero: not known yet
	failures int
	began    bool // the first sync is no longer ahead
}

// first is the wait before the first sync. Where the interval is not known yet,
// the configuration is looked at before.
func (s *syncing) first(t loop.Turn) time.Duration {
	if s.o.FromConfig != nil && s.o.Provider == nil {
		return 0
	}
	s.interval, s.began = s.o.Interval, true
	if s.interval <= 0 {
		s.interval = syncInterval
	}
	return s.jitter(t, s.o.FirstSync)
}

// again makes a sync and says when the next one is due.
func (s *syncing) again(ctx context.Context, t loop.Turn) time.Duration {
	s.now = t.Time
	if s.interval == 0 {
		if err := s.findInterval(ctx); err != nil {
			s.fail(err, configInterval)
			return configInterval
		}
	}
	if !s.began {
		if s.began = true; s.o.FirstSync > 0 {
			return s.jitter(t, s.o.FirstSync)
		}
	}
	_, err := s.Sync(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		s.failures++
		wait := s.jitter(t, s.o.Backoff.Next(s.failures))
		s.fail(err, wait)
		return wait
	}
	s.failures = 0
	return s.jitter(t, s.interval)
}

func (m *Manager) check() error {
	if m.o.API == nil {
		return errors.New("upgradeconfig: ManagerOptions.API is required")
	}
	return nil
}

// findInterval finds out how often to sync, once the configuration says so.
func (s *syncing) findInterval(ctx context.Context) error {
	c, err := ReadConfig(ctx, s.o.API, s.o.Namespace)
	if err == nil {
		err = c.CheckInterval()
	}
	if err != nil {
		return err
	}
	if s.interval = s.o.Interval; s.interval <= 0 {
		s.interval = c.Interval()
	}
	return nil
}

func (m *Manager) jitter(t loop.Turn, d time.Duration) time.Duration {
	if m.o.Rand != nil {
		t.Int64N = m.o.Rand
	}
	return Jitter(d, m.o.Jitter, t.Int64N)
}

func (m *Manager) key() types.NamespacedName { return clusterapi.Key(m.o.Namespace, m.o.Name) }

func (m *Manager) fail(err error, retry time.Duration) {
	m.o.Logger.Warn("sync failed", "error", err, "retry", retry)
	m.emit(Event{Type: EventFailed, Err: err, Retry: retry, Text: err.Error()})
}

func (m *Manager) emit(e Event) {
	if m.o.Observe == nil {
		return
	}
	e.Time, e.Name = m.now(), m.o.Name
	m.observing.Lock()
	defer m.observing.Unlock()
	loop.Observe(m.o.Observe, e, m.o.Logger)
}
