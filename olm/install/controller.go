package install

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// Options configure a [Controller].
type Options struct {
	// API is the cluster. Required. If it is
	// a clusterapi.Watcher too, [Controller.Run] is woken by changes.
	API clusterapi.ReadWriter

	// SnapshotOptions say where the content of catalogs comes from.
	SnapshotOptions

	// Resolve are the options of the resolution.
	Resolve olm.Options

	// Unpacker reads bundle images before their InstallPlan is made. Nil: they
	// go into the plan as lookups, and what carries it out unpacks them.
	Unpacker Unpacker

	// Execute makes the controller carry out InstallPlans: see [Refusal] for what
	// it does not write. It takes an Unpacker. Otherwise plans stay
	// in phase Installing until somebody else has carried them out and makes
	// them Complete: a program of the caller's. OLM's catalog operator would,
	// but it resolves, too, and must not run at the same time as the controller.
	Execute bool
	// Identity returns the API by which InstallPlans of a namespace are carried
	// out whose OperatorGroup names a service account: one that has the rights
	// of the account and no others. Definitions are written with the
	// controller's own rights. Nil, or an error: the plan waits, with condition
	// Installed=False, reason InstallCheckFailed.
	Identity func(ctx context.Context, namespace, serviceAccount string) (clusterapi.ReadWriter, error)
	// Retry is how long a failing step is tried again. Zero means a minute.
	Retry time.Duration

	// Interval is the time between two looks at a namespace that nothing wakes,
	// such as when a catalog has new contents. Zero means a minute.
	Interval time.Duration

	// Clock is the time; nil means the real one. Reconcilers of
	// [Controller.Process] have their driver's.
	Clock clock.WithTicker

	// Observe is called with what happens, one call at a time; nil disables it.
	Observe func(clusterapi.Event)
}

// Unpacker reads the content of bundle images. It must be safe for concurrent
// use.
type Unpacker interface {
	// Unpack returns the objects of a bundle's manifests. It is asked again in
	// every pass until it has an answer, so it keeps what it began. [ErrUnpacking]
	// means that it is not done yet, an [*UnpackError] that the attempt failed;
	// when to start another is its own business.
	Unpack(ctx context.Context, r UnpackRequest) ([]*unstructured.Unstructured, error)
}

// UnpackRequest is what an [Unpacker] is asked for.
type UnpackRequest struct {
	Namespace string
	Lookup    olmapi.BundleLookup
	// Limits are those that the namespace's OperatorGroup sets.
	Limits UnpackLimits
}

// ErrUnpacking reports a bundle that is still being unpacked.
var ErrUnpacking = errors.New("unpacking is in progress")

// UnpackError is a failed attempt to unpack a bundle, in the words of the job.
type UnpackError struct {
	Reason, Message string
}

// Error is REASON: MESSAGE.
func (e *UnpackError) Error() string { return e.Reason + ": " + e.Message }

// Controller keeps the operators of namespaces at what their Subscriptions ask
// for: it resolves, writes InstallPlans, and the status of Subscriptions. That
// is the work of OLM's catalog operator, and the two must not run at once. What it
// does is decided by [Decide]. All that it keeps is the last resolution of each
// namespace, for passes in which nothing has changed: a pass can be interrupted
// between any two calls, and the next one continues. It is safe for concurrent use
// for different namespaces.
type Controller struct {
	o        Options
	mu       sync.Mutex // around Observe
	resolved sync.Map   // *resolved by namespace
}

// New returns a controller. It does nothing yet. The error names an option that
// is missing or negative.
func New(o Options) (*Controller, error) {
	if o.API == nil {
		return nil, errors.New("install: Options.API is required")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	if o.Execute && o.Unpacker == nil {
		return nil, errors.New("install: Options.Execute takes an Unpacker: plans with bundle images would wait without end")
	}
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Controller{o: o}, nil
}

// SyncResult is the result of a pass over a namespace.
type SyncResult struct {
	Namespace string
	// Generation is the result of the resolution; nil if it failed, or without
	// Subscriptions.
	Generation *olm.Generation
	// Waiting names the InstallPlans that Subscriptions wait for: to be
	// approved, or to be carried out. By name.
	Waiting []string
	// Plan is the name of the InstallPlan that carries out the generation;
	// empty if it asks for nothing.
	Plan string
	// Changed is true if something was written: the next pass may find more to
	// do.
	Changed bool
	// At is when the InstallPlan for the generation is made that would follow
	// others too soon, such as those of an operator that somebody deletes again
	// and again. Zero if none has to wait.
	At time.Time
	// Soon is true if the next look is due in seconds: a bundle is being
	// unpacked, or a step is to be tried again.
	Soon bool
}

// Sync makes one pass over a namespace: it resolves, makes the plan for what is to
// change, starts what is approved, and writes the status of Subscriptions if it
// differs. A pass that finds nothing of that carries out InstallPlans. Without
// Subscriptions it does nothing.
//
// An error of the resolution, or of a step, is returned after it has been
// written to the objects; the result is valid then, too. A panic in the
// cluster's backend, a catalog or a hook is an error, a
// [clusterapi.PanicError].
func (c *Controller) Sync(ctx context.Context, namespace string) (*SyncResult, error) {
	var p *pass
	var cause error
	err := panics.Catch(func() (err error) {
		for range clusterapi.DefaultRetries {
			p = c.newPass(c.o.API, namespace, c.o.Clock.Now())
			cause, err = p.run(ctx, c.o.Catalogs, c.unpackAll)
			if !apierrors.IsConflict(err) {
				break // else somebody wrote meanwhile
			}
		}
		return err
	})
	return p.res, errors.Join(cause, err)
}

// Run makes passes over all namespaces until the context ends, and returns its
// error: at once while something changes, after five seconds while bundles are
// unpacked or steps fail, else at intervals and when a watch reports a change.
// Errors are reported to Observe and tried again.
func (c *Controller) Run(ctx context.Context) error {
	observe := func(e clusterapi.Event) {
		if e.Err == nil {
			return
		}
		subject, key := "", e.Data.(*reconcile.Attempt).Key
		if key.Namespace != "" {
			subject = "namespace/" + key.Namespace
		}
		c.observe(clusterapi.Event{Type: EventError, Time: e.Time, Subject: subject, Err: e.Err})
	}
	o := reconcile.Options{API: clusterOf(c.o.API), Clock: c.o.Clock, Observe: observe}
	return cmp.Or(reconcile.Run(ctx, o, c.Process()), ctx.Err())
}

// clusterOf is an API as a whole cluster: nothing is evicted here.
func clusterOf(api clusterapi.ReadWriter) clusterapi.ClusterAPI {
	if whole, ok := api.(clusterapi.ClusterAPI); ok {
		return whole
	}
	part := struct {
		clusterapi.ReadWriter
		clusterapi.Evictor
	}{ReadWriter: api}
	if w, ok := api.(clusterapi.Watcher); ok {
		return struct {
			clusterapi.ClusterAPI
			clusterapi.Watcher
		}{part, w}
	}
	return part
}

func (c *Controller) observe(e clusterapi.Event) {
	if c.o.Observe == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Message = bounded.Text(e.Message, maxMessage)
	// A panic of the observer must not keep the cluster from its end.
	_ = panics.Catch(func() error {
		c.o.Observe(e)
		return nil
	})
}
