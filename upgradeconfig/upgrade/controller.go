package upgrade

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// Options are the options of a [Controller]. API is required; the
// zero value of every other field works. A hook that is nil does nothing.
type Options struct {
	// API is the cluster. If it is a [clusterapi.Watcher], changes of the
	// UpgradeConfig have their effect at once.
	API clusterapi.ReadWriter
	// Namespace and Name of the UpgradeConfig; empty means
	// [upgradeconfig.DefaultNamespace] and [upgradeconfig.Name].
	Namespace, Name string

	// Refresh brings the UpgradeConfig in step with its provider once more, right before an
	// upgrade starts, and reports whether they differed: [upgradeconfig.Manager.Refresh].
	// [upgradeconfig.ErrNotConfigured] counts as no difference. Nil: an upgrade starts
	// without.
	Refresh func(ctx context.Context) (differs bool, err error)
	// Notifier hears how the upgrade goes; an [upgradeconfig.Manager] passes it on to its provider.
	// Nil means the log. A notification is stored as due before it is sent, and as
	// sent after: it is sent at least once, and twice only if the process or a write
	// failed in between, or two Controllers run.
	Notifier upgradeconfig.Notifier

	// FromConfig reads TimeOut, DelayTrigger, PreHealthCheck, ServiceLogs and
	// Validate.Cincinnati from the operator's ConfigMap, again for each pass, instead of
	// taking the ones in the options. There, what is absent is zero.
	FromConfig bool
	// TimeOut is how long an upgrade may take to commence before it fails, if
	// it is of type OSD; 0 means 120 minutes, [reconcile.Never] that it does
	// not fail.
	TimeOut time.Duration
	// DelayTrigger is after which time the provider hears that an upgrade has
	// not commenced; 0 means 30 minutes, [reconcile.Never] that it does not
	// hear of it.
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
	// Capacity reserves extra worker nodes. It and Maintenance are closed again however the
	// upgrade ends, also if its UpgradeConfig is deleted: an annotation of the
	// ClusterVersion keeps what is open. Nil if absent, so a reservation that is asked for
	// is skipped, and the provider hears of that.
	Capacity Capacity
	// Health looks for what could harm the upgrade, before it and after it, such as
	// [OperatorHealth]. It returns what is wrong, in words; nothing means that all is
	// well. An error means that this is not known.
	Health func(ctx context.Context, c *upgradeconfig.UpgradeConfig) (failing []string, err error)
	// Dependencies is like Health for what the upgrade needs outside the cluster.
	Dependencies func(ctx context.Context, c *upgradeconfig.UpgradeConfig) (failing []string, err error)
	// Maintenance silences alerts.
	Maintenance Maintenance
	// Drain helps with worker nodes that cannot be drained, such as
	// [ForcedDrain.ForceDrain]. It is called about every minute while the worker nodes
	// are upgraded. For each node that waits for longer than after, it removes what
	// prevents the drain. after is PDBForceDrainTimeout of the UpgradeConfig, and 0 if a
	// provider names no time. An error fails the step, which is tried again.
	Drain func(ctx context.Context, c *upgradeconfig.UpgradeConfig, after time.Duration) error
	// PostUpgrade does what remains to be done after an upgrade of type OSD, and
	// reports whether it is done.
	PostUpgrade func(ctx context.Context, c *upgradeconfig.UpgradeConfig) (done bool, err error)
	// Alerts names the paging alerts that fired since the upgrade started, for the
	// event that it is done. A failure is logged, and counts as none. Nil if
	// absent.
	Alerts func(ctx context.Context, since time.Time) ([]string, error)

	// Clock is the time of Run and Sync; nil means the real one. A driver of
	// [Controller.Process] has its own.
	Clock clock.WithTicker
	// Logger gets what is worth a line; nil means no logging.
	Logger *slog.Logger
	// Observe gets every event, one at a time; their types and data are those of
	// package upgradeconfig. Passes wait for it, so it must not call the Controller.
	// A panic in it is logged.
	Observe func(clusterapi.Event)
}

const (
	defaultTimeOut      = 120 * time.Minute
	defaultDelayTrigger = 30 * time.Minute
)

// Controller carries out what an UpgradeConfig asks for, and keeps its status.
// All that it needs is on the cluster, so the next can continue where one
// was stopped. It is safe for concurrent use: passes run one at a time, and a
// second Run fails. Of two Controllers on one cluster, one gives way: each
// status is written on condition that it is the one that was read.
type Controller struct {
	o      Options
	now    func() time.Time
	sent   sentStates
	open   upgradeID // of which this process has stored AnnotationOpen
	passes *loop.Passes
}

// New returns a Controller that does not run yet. It returns an error if the
// options have no API or a negative number; the error names the field.
func New(o Options) (*Controller, error) {
	if o.API == nil {
		return nil, errors.New("upgrade: Options.API is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	o.Namespace = cmp.Or(o.Namespace, upgradeconfig.DefaultNamespace)
	o.Name = cmp.Or(o.Name, upgradeconfig.Name)
	o.TimeOut = cmp.Or(o.TimeOut, defaultTimeOut)
	if o.TimeOut == reconcile.Never {
		o.TimeOut = 0 // as in a ConfigMap
	}
	o.DelayTrigger = cmp.Or(o.DelayTrigger, defaultDelayTrigger)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Notifier == nil {
		o.Notifier = logNotifier{o.Logger}
	}
	return &Controller{o: o, now: o.Clock.Now, passes: loop.New()}, nil
}

// Progress is how far a pass got.
type Progress struct {
	// Phase of the upgrade; [upgradeconfig.PhaseUnknown] if there is none.
	Phase upgradeconfig.Phase
	// Reason says in a clause why nothing more was done; may be empty.
	Reason string
	// After is when to look again, above 0: 1 minute while an upgrade is under
	// way, up to 5 minutes otherwise.
	After time.Duration
}

// Run makes passes until ctx ends, and returns the error of ctx promptly then,
// without a goroutine left. A pass is made at once, then after as long as the one
// before says, and when the UpgradeConfig is created, deleted, or changed other
// than in its status. Failures are reported as [upgradeconfig.EventFailed] and
// tried again. Run fails at once if the Controller is already running.
func (c *Controller) Run(ctx context.Context) error {
	return c.passes.Run(ctx, c.o.API, c.o.Clock, c.o.Logger, c.Process())
}

// Process is the controller for a driver of package reconcile: what Run drives
// live. It uses the driver's API and time instead of the options'; hooks keep
// theirs.
func (c *Controller) Process() reconcile.Process {
	return reconcile.Process{Name: "upgradeconfig", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		o := c.o
		o.API = api
		own := &Controller{o: o, passes: c.passes}
		return []reconcile.Reconciler{&loop.Loop{ID: "upgrade", Each: own.next,
			Watch: reconcile.Watch{GVK: kind, Options: clusterapi.ListOptions{Namespace: o.Namespace}, Changed: own.changed}}}
	}}
}

// next makes a pass and says when the next one is due.
func (c *Controller) next(ctx context.Context, p loop.Pass) time.Duration {
	c.now = func() time.Time { return p.Now }
	out, err := c.Sync(ctx)
	if err != nil && ctx.Err() == nil {
		c.o.Logger.Warn("pass failed", "error", err, "retry", out.After)
		c.emit(clusterapi.Event{Type: upgradeconfig.EventFailed, Err: err, Message: err.Error()}, upgradeconfig.EventData{Retry: out.After, Phase: out.Phase})
	}
	return out.After
}

// changed asks for a pass after each change that counts.
func (c *Controller) changed(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
	named := func(o *clusterapi.Object) *unstructured.Unstructured {
		if o == nil || o.Name() != c.o.Name {
			return nil
		}
		return withoutOwnWrites(o.Unstructured())
	}
	if equality.Semantic.DeepEqual(named(old), named(new)) {
		return nil
	}
	return []reconcile.Wake{{}}
}

// withoutOwnWrites is an object without what each write of a controller changes.
func withoutOwnWrites(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", annotationSent)
	return u
}

// Sync makes one pass: it reads the UpgradeConfig and the ClusterVersion, and
// takes the upgrade as far as it can go for now. Progress says when to make the
// next pass, also when there is an error. Where the UpgradeConfig changes
// meanwhile, the pass starts over.
//
// Errors are those of the cluster, the ConfigMap, validation, hooks and the
// Notifier: what kept the upgrade from going on. A panic in the cluster's
// backend or in a hook is an error, a [clusterapi.PanicError].
func (c *Controller) Sync(ctx context.Context) (out Progress, err error) {
	err = c.passes.Do(ctx, func() (err error) {
		out = Progress{}
		out, err = c.pass(ctx)
		return err
	})
	out.Phase = cmp.Or(out.Phase, upgradeconfig.PhaseUnknown)
	if err != nil && out.After == 0 {
		out.After = shortWait
	}
	return out, err
}

func (c *Controller) pass(ctx context.Context) (Progress, error) {
	config, err := clusterapi.Get[upgradeconfig.UpgradeConfig](ctx, c.o.API, c.key())
	if apierrors.IsNotFound(err) {
		return c.closeWithout(ctx)
	}
	if err != nil {
		return Progress{}, err
	}
	p := &pass{c: c, config: config, stored: config.Status}
	p.entry, _ = config.Status.Entry(config.Spec.Desired.Version)
	out, err := p.run(ctx)
	if apierrors.IsNotFound(err) && p.isDeleted(ctx) {
		return c.closeWithout(ctx)
	}
	out.Phase = config.Status.Phase(config.Spec.Desired.Version)
	return out, err
}

func (c *Controller) key() types.NamespacedName { return clusterapi.Key(c.o.Namespace, c.o.Name) }

func (c *Controller) emit(e clusterapi.Event, data upgradeconfig.EventData) {
	e.Time, e.Subject, e.Data = c.now(), "upgradeconfig/"+c.o.Name, &data
	c.passes.Observe(c.o.Logger, c.o.Observe, e)
}

// logNotifier passes notifications to a log.
type logNotifier struct{ log *slog.Logger }

func (l logNotifier) Notify(ctx context.Context, n upgradeconfig.Notification) error {
	n.Log(ctx, l.log)
	return nil
}

// kind is the kind UpgradeConfig.
var kind = (*upgradeconfig.UpgradeConfig)(nil).APIKind()
