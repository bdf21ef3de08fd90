package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// reconciler runs one plan. All that it keeps is a cache; what must survive is
// in the record and in the marks of objects.
type reconciler struct {
	run  *Runner
	api  clusterapi.ClusterAPI
	key  reconcile.Key
	plan Plan

	holder  string    // our name; empty before the first look
	rec     *record   // as we wrote it last, or read it; nil: to be read
	ours    bool      // rec was written by us, and names us
	renewed time.Time // when that was
	dirty   bool      // the record may have been changed
	other   other     // who has it else
	took    bool      // TakeOver was used
	resumed bool      // the mode Resume was used
	over    bool      // nothing is left to do
	had     bool      // the record was there

	work      stepWork
	cordons   map[string]cordon // by node
	releases  map[string]string
	pools     *reconcile.Objects
	allPools  *reconcile.Index     // by ""
	member    *mcp.Membership      // of pools; nil: to be made
	moved     map[string]time.Time // when a phase changed, by pool
	lingering map[string]time.Time // pools that a stop is to delete, since when nothing moved
	missing   map[string]time.Time // since when an object is not there
	silent    time.Time            // when a scan first found nothing
}

// stepWork is what is known of the work at the present step.
type stepWork struct {
	step     string
	call     *call           // of its action
	drain    *drainState     // of its node
	waits    string          // last reported
	reported map[string]bool // what events were about
	doubt    time.Time       // when it was first found to fail
}

func newReconciler(r *Runner, api clusterapi.ClusterAPI) *reconciler {
	pools := new(reconcile.Objects)
	all := pools.Index(func(*clusterapi.Object) []string { return []string{""} })
	return &reconciler{
		run: r, api: api, plan: r.o.Plan, key: reconcile.Key{Name: r.o.Plan.ID}, pools: pools, allPools: all,
		cordons:  map[string]cordon{},
		releases: map[string]string{}, moved: map[string]time.Time{}, lingering: map[string]time.Time{},
		missing: map[string]time.Time{},
	}
}

func (x *reconciler) Name() string { return "plan" }

func (x *reconciler) Keys() []reconcile.Key { return []reconcile.Key{x.key} }

// Watches wake the runner early. Without them it looks every Poll.
func (x *reconciler) Watches() []reconcile.Watch {
	wake := []reconcile.Wake{{Key: x.key}}
	record := func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		written := x.rec != nil && new != nil && new.ResourceVersion() == x.rec.object.GetResourceVersion()
		if new == nil {
			new = old
		}
		if written || new.Name() != recordName(x.plan.ID) {
			return nil
		}
		x.dirty = true
		return wake
	}
	return []reconcile.Watch{
		{GVK: configMapKind, Options: clusterapi.ListOptions{Namespace: x.run.o.Namespace}, Changed: record},
		{GVK: poolKind, Objects: x.pools, Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake {
			x.member = nil
			return wake
		}},
		{GVK: versionKind, Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { return wake }},
		{GVK: nodeKind, Trim: trimNode, Changed: x.nodeChanged},
	}
}

// trimNode keeps what phases and pools depend on.
func trimNode(u *unstructured.Unstructured) *unstructured.Unstructured {
	content := map[string]any{}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetName(u.GetName())
	out.SetLabels(u.GetLabels())
	out.SetAnnotations(u.GetAnnotations())
	for _, path := range [][]string{pathUnschedulable, {"status", "conditions"}} {
		if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...); ok {
			_ = unstructured.SetNestedField(content, deepCopy(v), path...)
		}
	}
	return out
}

// nodeChanged notes that something moves in a pool.
func (x *reconciler) nodeChanged(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
	before, err := clusterapi.As[corev1.Node](old)
	after, err2 := clusterapi.As[corev1.Node](new)
	if err == nil && err2 == nil && phases(before) == phases(after) && x.poolOf(before) == x.poolOf(after) {
		return nil
	}
	for _, n := range []*corev1.Node{before, after} {
		if n != nil {
			x.moved[x.poolOf(n)] = now
		}
	}
	return nil
}

func phases(n *corev1.Node) string {
	phase, stuck := mcp.PhaseOf(mcp.NodeStateOf(n))
	return phase.In(stuck)
}

func (x *reconciler) poolOf(n *corev1.Node) string {
	if x.member == nil {
		var pools []*mcfgv1.MachineConfigPool
		for _, o := range x.allPools.At("") {
			if p, err := clusterapi.As[mcfgv1.MachineConfigPool](o); err == nil {
				pools = append(pools, p)
			}
		}
		x.member = membershipOf(pools)
	}
	return x.member.Of(n.Labels).Primary
}

// Reconcile continues with the plan as far as it can.
func (x *reconciler) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if x.over && !x.dirty {
		return reconcile.Result{}, nil
	}
	// All that this look does has ended before another runner may take over.
	ctx, cancel := reconcile.WithTimeout(reconcile.WithCallTimeout(ctx, callTimeout), callTimeout)
	defer cancel()
	p := &pass{r: x, v: x.newView(ctx), ctx: ctx, now: r.Now, rand: r.Rand}
	if x.holder == "" {
		x.holder = x.run.o.Holder
		if x.holder == "" {
			x.holder = fmt.Sprintf("runner-%016x", r.Rand.Uint64())
		}
	}
	held, res, err := p.hold()
	if err == nil && held {
		res, err = p.proceed()
	}
	if err != nil {
		if x.work.call != nil && x.atLeast(r.Now).Sub(x.renewed) > callTimeout {
			return reconcile.Result{At: r.Now.Add(actionRetry)}, nil // cancels jobs
		}
		return res, err
	}
	if x.over {
		return reconcile.Result{}, nil
	}
	if x.ours {
		if at := x.renewed.Add(renewEvery); res.At.IsZero() || at.Before(res.At) {
			res.At = at
		}
	}
	return res, nil
}

// atLeast is t, or if the clock was set back since the last renewal a time at
// which the next one is due.
func (x *reconciler) atLeast(t time.Time) time.Time {
	if t.Before(x.renewed) {
		return x.renewed.Add(renewEvery)
	}
	return t
}

// pass is one look of a reconciler.
type pass struct {
	r   *reconciler
	v   *view
	ctx context.Context
	now time.Time
	// rand is for this look alone.
	rand *rand.Rand
}
