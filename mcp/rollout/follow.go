package rollout

import (
	"context"
	"slices"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// run is what the reconcilers of a Rollout share: one State, fed by what they
// watch before any of them hears of it, and by what they write. A new run
// starts with nothing and comes to the same end.
type run struct {
	rollout *Rollout
	o       Options // API gives mu up while a call is under way
	api     clusterapi.ClusterAPI

	mu    sync.Mutex // guards what follows
	now   time.Time  // of the latest look or event
	state *mcp.State
	ready bool     // every source has been listed, and decisions have begun
	queue []string // pools that a change concerns, until somebody asks

	accepts clusterapi.Definitions // what the cluster accepts as the status of a pool
	read    time.Time              // since when accepts may have read it

	seen     *reconcile.Objects // nodes, as events and calls of our own have shown them last
	versions map[string]string  // by node: the resourceVersion that State knows
	verify   map[string]bool    // nodes whose stored state is not known
	failures map[string]int     // of pools
	owing    map[string]bool    // nodes whose last hook is to be run
	halted   bool               // a hook failed: no further node is targeted
	drains   mcp.DrainView      // while a pool's nodes are targeted by OrderByBudgets

	phases  map[string]nodePhase
	moved   map[string]time.Time // pool → last change of a phase
	stalled map[string]bool
	blocks  map[string]mcp.Block
	done    map[string]string // pool → configuration last reported done
	pools   map[string]poolCounts

	free   bool     // no machine-config controller runs, as was found out
	events struct { // that the observer has not received
		sync.Mutex
		waiting []clusterapi.Event
		busy    bool // the observer has one
	}
}

type nodePhase struct{ phase, stuck mcp.Phase }

type poolCounts struct{ updated, unavailable, degraded, total int }

func newRun(r *Rollout, api clusterapi.ClusterAPI) *run {
	x := &run{
		rollout:  r,
		o:        r.o,
		api:      api,
		seen:     new(reconcile.Objects),
		versions: map[string]string{},
		verify:   map[string]bool{},
		failures: map[string]int{},
		owing:    map[string]bool{},
		phases:   map[string]nodePhase{},
		moved:    map[string]time.Time{},
		stalled:  map[string]bool{},
		blocks:   map[string]mcp.Block{},
		done:     map[string]string{},
		pools:    map[string]poolCounts{},
	}
	decide := r.o.Options
	if r.o.OrderByBudgets {
		decide.Order.Budgets = func() mcp.DrainView { return x.drains }
	}
	x.state = mcp.NewState(mcp.Objects{}, decide)
	x.o.API = unlocked{api, &x.mu}
	return x
}

// lock takes the lock at a time; release gives it up and reports what happened.
func (x *run) lock(now time.Time) {
	x.mu.Lock()
	x.now = now
}

func (x *run) release() {
	x.mu.Unlock()
	x.flush()
}

// sources are the watches of every reconciler: none looks at anything before
// all have been listed. The State is kept once, by the reconciler of pools.
func (x *run) sources(cached bool, changed map[string]func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake) []reconcile.Watch {
	var all []reconcile.Watch
	add := func(w reconcile.Watch, convert func(*clusterapi.Object) (any, error)) {
		if cached {
			w.Cache = func(now time.Time, old, new *clusterapi.Object) { x.cacheChange(now, old, new, convert) }
		}
		w.Changed = changed[w.GVK.Kind]
		all = append(all, w)
	}
	// Pools first: nodes that come before them would be placed twice.
	add(watchOf[mcfgv1.MachineConfigPool]())
	nodes, _ := watchOf[corev1.Node]()
	if cached {
		nodes.Objects = x.seen
		nodes.Cache = x.nodeChange
	}
	nodes.Changed = changed[nodes.GVK.Kind]
	all = append(all, nodes)
	add(watchOf[mcfgv1.ControllerConfig]())
	add(watchOf[mcfgv1.MachineConfigNode]())
	add(watchOf[mcfgv1.MachineOSConfig]())
	add(watchOf[mcfgv1.MachineOSBuild]())
	pods, convert := watchOf[corev1.Pod]()
	pods.Options = clusterapi.ListOptions{Namespace: mcp.OperatorNamespace, Labels: labels.SelectorFromSet(labels.Set{mcp.LabelApp: mcp.AppOperator})}
	add(pods, convert)
	configs, _ := watchOf[mcfgv1.MachineConfig]()
	if cached {
		configs.Trim = trimConfig
		add(configs, func(o *clusterapi.Object) (any, error) {
			c := &mcfgv1.MachineConfig{}
			c.Name, c.OwnerReferences = o.Name(), o.Unstructured().GetOwnerReferences()
			return c, nil
		})
	}
	return all
}

func watchOf[T any]() (reconcile.Watch, func(*clusterapi.Object) (any, error)) {
	gvk, err := clusterapi.KindOf[T]()
	if err != nil {
		panic(err) // all kinds are known
	}
	return reconcile.Watch{GVK: gvk}, func(o *clusterapi.Object) (any, error) { return clusterapi.As[T](o) }
}

// trimConfig keeps of a MachineConfig, which may be megabytes, who owns it.
func trimConfig(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(u.GroupVersionKind())
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	out.SetOwnerReferences(u.GetOwnerReferences())
	return out
}

// cacheChange takes a change into the State.
func (x *run) cacheChange(now time.Time, old, new *clusterapi.Object, convert func(*clusterapi.Object) (any, error)) {
	x.lock(now)
	defer x.release()
	if new == nil {
		if o, err := convert(old); err == nil {
			x.apply(o, true)
		}
		return
	}
	o, err := convert(new)
	if err != nil {
		x.fail("", "", err)
		return
	}
	x.apply(o, false)
}

// nodeChange takes a change of a node into the State.
func (x *run) nodeChange(now time.Time, old, new *clusterapi.Object) {
	x.lock(now)
	defer x.release()
	if new == nil {
		new = old
	}
	x.update(new.Name())
}

// apply takes in an object other than a node, from an event or from a write.
func (x *run) apply(o any, deleted bool) {
	x.enqueue(x.state.Apply(mcp.Change{Object: o, Deleted: deleted}))
	switch o := o.(type) {
	case *mcfgv1.MachineConfigPool:
		x.noticePool(o, deleted)
	case *mcfgv1.MachineConfigNode: // may say more about the node's phase
		if n, assign, ok := x.state.Node(o.Name); ok && x.ready {
			x.noticeNode(true, n, n, assign.Primary)
		}
	}
}

// update takes the newest state of a node that is known into the State.
func (x *run) update(name string) {
	o := x.seen.Get(clusterapi.Key("", name))
	if o == nil {
		x.dropNode(name)
		return
	}
	n, err := clusterapi.As[corev1.Node](o)
	if err != nil {
		x.fail("", "", err)
		return
	}
	old, _, had := x.state.Node(name)
	if had && n.ResourceVersion != "" && n.ResourceVersion == x.versions[name] {
		return
	}
	x.enqueue(x.state.Apply(mcp.Change{Object: n}))
	x.versions[name] = n.ResourceVersion
	x.noticeHooks(n)
	if state, assign, _ := x.state.Node(name); x.ready {
		x.noticeNode(had, old, state, assign.Primary)
	}
}

// learn takes in a node that a call of our own has just written or read, which events may
// still lag behind.
func (x *run) learn(name string) {
	delete(x.verify, name)
	x.update(name)
}

func (x *run) dropNode(name string) {
	n := &corev1.Node{}
	n.Name = name
	x.enqueue(x.state.Apply(mcp.Change{Object: n, Deleted: true}))
	delete(x.versions, name)
	delete(x.verify, name)
	delete(x.phases, name)
	delete(x.owing, name)
}

func (x *run) enqueue(pools []string) {
	for _, pool := range pools {
		if !slices.Contains(x.queue, pool) {
			x.queue = append(x.queue, pool)
		}
	}
}

// queued are the wakes of the pools that changes concern, as the
// machine-config controller queues them.
func (x *run) queued() []reconcile.Wake {
	var wakes []reconcile.Wake
	for _, pool := range x.queue {
		wakes = append(wakes, reconcile.Wake{Reconciler: poolsName, Key: poolKey(pool), After: x.o.Delays.PoolQueue})
	}
	x.queue = nil
	return wakes
}

// begin starts decisions, once every source has been listed.
func (x *run) begin() {
	if x.ready {
		return
	}
	x.ready = true
	for _, pool := range x.state.Pools() {
		x.moved[pool] = x.now
	}
	for _, name := range x.state.Nodes("") {
		n, assign, _ := x.state.Node(name)
		x.noticeNode(false, n, n, assign.Primary)
	}
}

// emit queues an event. The observer may look at the rollout, so it is called
// without the lock, by the caller that gives that up.
func (x *run) emit(t clusterapi.EventType, d EventData, message string, err error) {
	e := event(t, d, message, err)
	e.Time = x.now
	x.events.Lock()
	x.events.waiting = append(x.events.waiting, e)
	x.events.Unlock()
}

// flush passes the queued events to the observer, in order and one at a time.
func (x *run) flush() {
	for {
		x.events.Lock()
		if x.events.busy || len(x.events.waiting) == 0 {
			x.events.Unlock()
			return
		}
		e := x.events.waiting[0]
		x.events.waiting = x.events.waiting[1:]
		x.events.busy = true
		x.events.Unlock()
		x.rollout.emit(e)
		x.events.Lock()
		x.events.busy = false
		x.events.Unlock()
	}
}

// fail reports something that is tried again.
func (x *run) fail(pool, node string, err error) {
	x.rollout.o.Logger.Warn("rollout: tried again", "pool", pool, "node", node, "error", err)
	x.rollout.logPanic("rollout: a panic", err)
	x.emit(EventError, EventData{Pool: pool, Node: node, Warning: true}, "", err)
}

// retry reports an error and says when to try again. A conflict is the
// driver's.
func (x *run) retry(now time.Time, tries int, pool, node string, err error) reconcile.Result {
	x.fail(pool, node, err)
	return reconcile.Result{At: now.Add(x.o.Delays.backoff(tries))}
}

// permitted finds out, once, that no machine-config controller runs beside a
// rollout that drives. If it returns false, the result says when to look again.
func (x *run) permitted(ctx context.Context, now time.Time) (bool, reconcile.Result) {
	if x.free || x.o.Mode == ReadOnly {
		return true, reconcile.Result{}
	}
	err := panics.Catch(func() error { return x.rollout.checkNoController(ctx, x.o.API, now) })
	if err == nil {
		x.free = true
		return true, reconcile.Result{}
	}
	if ctx.Err() != nil || x.rollout.fatal(err) {
		return false, reconcile.Result{}
	}
	x.failures[""]++
	return false, x.retry(now, x.failures[""], "", "", err)
}
