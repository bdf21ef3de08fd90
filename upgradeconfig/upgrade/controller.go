package upgrade

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// ControllerOptions are the options of a [Controller]. API is required; the
// zero value of every other field works. A hook that is nil does nothing.
type ControllerOptions struct {
	// API is the cluster. If it is a [clusterapi.Watcher], changes of the
	// UpgradeConfig are acted upon at once.
	API clusterapi.ReadWriter
	// Namespace and Name of the UpgradeConfig; empty means [DefaultNamespace]
	// and [Name].
	Namespace, Name string

	// Refresh brings the UpgradeConfig in step with its provider once more,
	// right before an upgrade starts, and says whether they differed:
	// [Manager.Refresh]. [ErrNotConfigured] counts as no difference. Nil: an
	// upgrade starts without.
	Refresh func(ctx context.Context) (differs bool, err error)
	// Notifier is told how the upgrade goes; a [Manager] tells its provider.
	// Nil: the log is told. What is to be told is stored before, and that it
	// was told after: it is told at least once, and twice only where the process
	// or a write failed in between, or two Controllers are at work.
	Notifier upgradeconfig.Notifier

	// FromConfig reads TimeOut, DelayTrigger, PreHealthCheck, ServiceLogs and
	// Validate.Cincinnati from the operator's ConfigMap, anew for each pass,
	// instead of taking those of these options. There, what is absent is zero.
	FromConfig bool
	// TimeOut is how long an upgrade may take to commence, before it fails, if
	// it is of type OSD; 0 means 120 minutes, a negative one for ever.
	TimeOut time.Duration
	// DelayTrigger is after which time the provider hears that an upgrade has
	// not commenced; 0 means 30 minutes, a negative one never.
	DelayTrigger time.Duration
	// SkipBreached does not start an upgrade more than TimeOut after its time.
	// By default it starts, however late.
	SkipBreached bool
	// PreHealthCheck checks the cluster's health when an UpgradeConfig appears
	// more than two hours ahead of its time.
	PreHealthCheck bool
	// ServiceLogs sends the notifications that make service logs.
	ServiceLogs bool
	// Validate are the options of validation.
	Validate upgradeconfig.ValidateOptions

	// Preconditions refuses an update by an error. It is called right before
	// spec.desiredUpdate of the ClusterVersion is written, again in each pass
	// until it agrees.
	Preconditions func(ctx context.Context, cv *configv1.ClusterVersion, target configv1.Release) error
	// Capacity reserves extra worker nodes. Nil: there are none that could be
	// had, so a reservation that is asked for is skipped, and said to be.
	Capacity Capacity
	// Health is checked before and after the upgrade.
	Health Check
	// Dependencies are what the upgrade needs outside the cluster.
	Dependencies Check
	// Maintenance silences alerts.
	Maintenance Maintenance
	// Drain helps worker nodes on that cannot be drained.
	Drain Drain
	// PostUpgrade does what remains to be done after an upgrade of type OSD,
	// and says whether it is done.
	PostUpgrade func(ctx context.Context, c *upgradeconfig.UpgradeConfig) (done bool, err error)
	// Alerts names the alerts that somebody was paged for since the upgrade
	// started, for the event that it is done. A failure is logged, and counts
	// as none. Nil: there are none.
	Alerts func(ctx context.Context, since time.Time) ([]string, error)

	// Clock is the time of Run and Sync; nil means the real one. A driver of
	// [Controller.Process] has its own.
	Clock clock.WithTicker
	// Logger gets what is worth a line; nil means no logging.
	Logger *slog.Logger
	// Observe gets every [Event], one at a time. Passes wait for it, so it must
	// not call the Controller. A panic in it is logged.
	Observe func(upgradeconfig.Event)
}

const (
	defaultTimeOut      = 120 * time.Minute
	defaultDelayTrigger = 30 * time.Minute
)

// Controller carries out what an UpgradeConfig asks for, and keeps its status.
// All that it needs is on the cluster, so another one can go on at any point
// where one was stopped. It is safe for concurrent use: passes take turns, and
// a second Run fails. Of two Controllers on one cluster, one gives way: each
// status is written on condition that it is the one that was read.
type Controller struct {
	o       ControllerOptions
	now     func() time.Time
	said    said
	turn    chan struct{} // holds a value while a pass is under way
	running atomic.Bool

	observing *sync.Mutex
}

// NewController returns a Controller that is not running yet.
func NewController(o ControllerOptions) *Controller {
	o.Namespace = cmp.Or(o.Namespace, upgradeconfig.DefaultNamespace)
	o.Name = cmp.Or(o.Name, upgradeconfig.Name)
	o.TimeOut = durationOr(o.TimeOut, defaultTimeOut)
	o.DelayTrigger = durationOr(o.DelayTrigger, defaultDelayTrigger)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Notifier == nil {
		o.Notifier = upgradeconfig.LogNotifier{Logger: o.Logger}
	}
	return &Controller{o: o, now: o.Clock.Now, turn: make(chan struct{}, 1), observing: new(sync.Mutex)}
}

// durationOr gives a duration its default; a negative one is 0.
func durationOr(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

// Progress is how far a pass came.
type Progress struct {
	// Phase of the upgrade; [PhaseUnknown] if there is none.
	Phase upgradeconfig.Phase
	// Reason says in a clause why nothing more was done; may be empty.
	Reason string
	// After is when to look again, above 0.
	After time.Duration
}

// Run makes passes until ctx ends, and returns its error promptly then, all its
// goroutines gone. A pass is made at once, then after as long as the one before
// says, and when the UpgradeConfig is created, deleted, or changed other than
// in its status. Failures are reported as [EventFailed] and tried again.
func (c *Controller) Run(ctx context.Context) error {
	if c.o.API == nil {
		return errNoAPI
	}
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("upgradeconfig: the Controller is already running")
	}
	defer c.running.Store(false)
	return loop.Run(ctx, c.o.API, c.o.Clock, c.o.Logger, c.Process())
}

var errNoAPI = errors.New("upgradeconfig: ControllerOptions.API is required")

// Process is the controller for a driver of package reconcile: what Run drives
// live. It uses the driver's API and time instead of the options'; hooks keep
// theirs.
func (c *Controller) Process() reconcile.Process {
	return reconcile.Process{Name: "upgradeconfig", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		o := c.o
		o.API = api
		own := &Controller{o: o, turn: c.turn, observing: c.observing}
		return []reconcile.Reconciler{&loop.Loop{ID: "upgrade", Each: own.again,
			Watch: reconcile.Watch{GVK: kind, Options: clusterapi.ListOptions{Namespace: o.Namespace}, Changed: own.changed}}}
	}}
}

// again makes a pass and says when the next one is due.
func (c *Controller) again(ctx context.Context, t loop.Turn) time.Duration {
	c.now = t.Time
	p, err := c.Sync(ctx)
	if err != nil && ctx.Err() == nil {
		c.o.Logger.Warn("pass failed", "error", err, "retry", p.After)
		c.emit(upgradeconfig.Event{Type: upgradeconfig.EventFailed, Err: err, Retry: p.After, Phase: p.Phase, Text: err.Error()})
	}
	return p.After
}

// changed asks for a pass after each change that counts.
func (c *Controller) changed(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
	named := func(o *clusterapi.Object) *unstructured.Unstructured {
		if o == nil || o.Name() != c.o.Name {
			return nil
		}
		return essence(o.Unstructured())
	}
	if equality.Semantic.DeepEqual(named(old), named(new)) {
		return nil
	}
	return []reconcile.Wake{{}}
}

// essence is an object without what each write of a controller changes.
func essence(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", AnnotationTold)
	return u
}

// Sync makes one pass: it reads the UpgradeConfig and the ClusterVersion and
// does what [Next] decides, until there is nothing more to do for now. Progress
// says when to make the next pass, also when there is an error.
//
// Where the UpgradeConfig changes meanwhile, the pass starts over. A panic in
// the cluster's backend or in a hook is an error, a [clusterapi.PanicError].
func (c *Controller) Sync(ctx context.Context) (Progress, error) {
	if c.o.API == nil {
		return Progress{Phase: upgradeconfig.PhaseUnknown, After: LookAgain}, errNoAPI
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return Progress{Phase: upgradeconfig.PhaseUnknown, After: LookSoon}, ctx.Err()
	}
	for moves := 0; ; moves++ {
		p := Progress{Phase: upgradeconfig.PhaseUnknown}
		err := panics.Catch(func() (err error) {
			p, err = c.pass(ctx)
			return err
		})
		if moved(err) && moves < maxMoves {
			continue
		}
		if err != nil && p.After == 0 {
			p.After = LookSoon
		}
		return p, err
	}
}

func (c *Controller) pass(ctx context.Context) (Progress, error) {
	none := Progress{Phase: upgradeconfig.PhaseUnknown, After: LookAgain, Reason: noConfig}
	config, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, c.o.API, c.key())
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return Progress{Phase: upgradeconfig.PhaseUnknown}, err
	}
	p := &pass{Controller: c, config: config, stored: config.Status}
	p.entry, _ = config.Status.Entry(config.Spec.Desired.Version)
	out, err := p.run(ctx)
	if apierrors.IsNotFound(err) && p.gone(ctx) {
		return none, nil
	}
	out.Phase = config.Status.Phase(config.Spec.Desired.Version)
	return out, err
}

func (c *Controller) key() types.NamespacedName { return clusterapi.Key(c.o.Namespace, c.o.Name) }

func (c *Controller) emit(e upgradeconfig.Event) {
	if c.o.Observe == nil {
		return
	}
	e.Time, e.Name = c.now(), c.o.Name
	c.observing.Lock()
	defer c.observing.Unlock()
	loop.Observe(c.o.Observe, e, c.o.Logger)
}

// maxMoves is how often a sync starts over because somebody changed the
// UpgradeConfig meanwhile.
const maxMoves = 3

// errMoved says that the object is not as it was when the decision was made.
var errMoved = errors.New("the UpgradeConfig was changed meanwhile")

// moved says that a decision is to be made again with what is stored now.
func moved(err error) bool { return errors.Is(err, errMoved) || apierrors.IsConflict(err) }

// kind is that of an UpgradeConfig.
var kind = (*upgradeconfig.UpgradeConfig)(nil).APIKind()
