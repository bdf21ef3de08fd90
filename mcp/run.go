package mcp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
)

// run is one run of a Rollout. Everything but the informers, the drains and
// the node updaters happens in its loop.
type run struct {
	*Rollout
	state   *State // changed under mu only, and by the loop only
	sources []source
	follows []follow
	ready   bool // all sources have been listed

	writes   atomic.Int64 // writes of nodes that are over
	versions map[string]string
	pins     map[string]pin
	verify   map[string]bool // nodes whose stored state is not known

	queue    dueQueue // pools
	failures map[string]int
	resync   time.Time

	drains   drainQueue
	drained  chan drainResult
	updating map[string]bool      // nodes that the NodeUpdater works on
	retryAt  map[string]time.Time // when the NodeUpdater may work on them again
	updated  chan updateResult
	group    sync.WaitGroup

	phases  map[string]nodePhase
	moved   map[string]time.Time // pool → last change of a phase
	stalled map[string]bool
	blocks  map[string]Block
	done    map[string]string // pool → configuration last reported done
	pools   map[string]poolCounts
}

type nodePhase struct{ phase, stuck Phase }

type poolCounts struct{ updated, unavailable, degraded, total int }

// pin remembers what was written to a node. Until its events show that, they
// are older than the write.
type pin struct {
	target  Target
	version string // resourceVersion
	seq     int64
}

func newRun(r *Rollout) *run {
	return &run{
		Rollout:  r,
		state:    NewState(Objects{}, r.o.Options),
		versions: map[string]string{},
		pins:     map[string]pin{},
		verify:   map[string]bool{},
		queue:    dueQueue{},
		failures: map[string]int{},
		drains:   newDrainQueue(),
		drained:  make(chan drainResult),
		updating: map[string]bool{},
		retryAt:  map[string]time.Time{},
		updated:  make(chan updateResult),
		phases:   map[string]nodePhase{},
		moved:    map[string]time.Time{},
		stalled:  map[string]bool{},
		blocks:   map[string]Block{},
		done:     map[string]string{},
		pools:    map[string]poolCounts{},
	}
}

// loop runs until ctx ends.
func (x *run) loop(ctx context.Context) error {
	var err error
	if x.sources, err = sources(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer x.group.Wait()
	defer cancel()
	messages := make(chan message)
	for i := range x.sources {
		x.follows = append(x.follows, follow{known: map[string]any{}, rvs: map[string]string{}})
		x.group.Go(func() { x.inform(ctx, i, messages) })
	}
	for ctx.Err() == nil {
		now := x.o.Clock.Now()
		if x.ready {
			x.work(ctx, now)
		}
		timer := x.o.Clock.NewTimer(x.idle(x.o.Clock.Now()))
		select {
		case <-ctx.Done():
		case m := <-messages:
			x.receive(m)
			x.becomeReady()
		case d := <-x.drained:
			x.drainOver(d)
		case u := <-x.updated:
			x.updateOver(u)
		case <-timer.C():
		}
		timer.Stop()
	}
	return nil
}

// becomeReady starts decisions once every source has been listed.
func (x *run) becomeReady() {
	if x.ready {
		return
	}
	for i := range x.follows {
		if !x.follows[i].synced {
			return
		}
	}
	x.ready = true
	x.mu.Lock()
	x.Rollout.state = x.state // View sees it from now on
	x.mu.Unlock()
	now := x.o.Clock.Now()
	for _, pool := range x.state.Pools() {
		x.queue.add(pool, now.Add(x.o.Options.Delays.PoolQueue))
		x.moved[pool] = now
	}
	for _, name := range slices.Sorted(maps.Keys(x.state.nodes)) {
		n, assign, _ := x.state.Node(name)
		x.noticeNode(false, n, n, assign.Primary)
	}
	x.resync = now.Add(x.o.Options.Delays.Resync)
}

// work does what is due.
func (x *run) work(ctx context.Context, now time.Time) {
	if !now.Before(x.resync) {
		for _, pool := range x.state.Pools() {
			x.queue.add(pool, now)
		}
		x.resync = now.Add(x.o.Options.Delays.Resync)
	}
	for _, pool := range x.queue.take(now) {
		if ctx.Err() != nil {
			return
		}
		x.syncPool(ctx, pool)
	}
	if x.o.Mode == Drive {
		x.drains.wake(now)
		x.startDrains(ctx)
		x.startUpdates(ctx)
	}
	x.checkStalls(now)
}

// idle is how long nothing is due.
func (x *run) idle(now time.Time) time.Duration {
	next := now.Add(x.o.Options.Delays.Resync)
	earlier := func(t time.Time, ok bool) {
		if ok && t.Before(next) {
			next = t
		}
	}
	if x.ready {
		earlier(x.resync, true)
		earlier(x.queue.next())
		earlier(x.drains.due.next())
		for _, at := range x.retryAt {
			earlier(at, true)
		}
		for pool, at := range x.moved {
			earlier(at.Add(x.o.Options.Delays.Stall), !x.stalled[pool] && x.state.Pool(pool) != nil)
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// apply takes in an object that is not a node.
func (x *run) apply(o any, deleted bool) {
	x.mu.Lock()
	changed := x.state.Apply(Change{Object: o, Deleted: deleted})
	x.mu.Unlock()
	x.enqueue(changed)
	switch o := o.(type) {
	case *mcfgv1.MachineConfigPool:
		x.noticePool(o, deleted)
	case *mcfgv1.MachineConfigNode: // may tell more of the node's phase
		if n, assign, ok := x.state.Node(o.Name); ok && x.ready {
			x.noticeNode(true, n, n, assign.Primary)
		}
	}
}

// applyNode takes in a node, from an event or from a write.
func (x *run) applyNode(n *corev1.Node) {
	old, _, had := x.state.Node(n.Name)
	x.mu.Lock()
	changed := x.state.Apply(Change{Object: n})
	x.mu.Unlock()
	x.versions[n.Name] = n.ResourceVersion
	state, assign, _ := x.state.Node(n.Name)
	x.enqueue(changed)
	asks := state.DesiredDrain != state.LastAppliedDrain
	if had {
		asks = old.DesiredDrain != state.DesiredDrain || old.Unschedulable != state.Unschedulable
	}
	if asks && x.o.Mode == Drive {
		x.drains.add(n.Name, x.o.Clock.Now().Add(x.o.Options.Delays.PoolQueue))
	}
	if x.ready {
		x.noticeNode(had, old, state, assign.Primary)
	}
}

func (x *run) dropNode(name string) {
	x.mu.Lock()
	changed := x.state.Apply(Change{Object: nodeNamed(name), Deleted: true})
	x.mu.Unlock()
	delete(x.versions, name)
	delete(x.pins, name)
	delete(x.verify, name)
	delete(x.phases, name)
	delete(x.retryAt, name)
	x.drains.forget(name)
	x.enqueue(changed)
}

func nodeNamed(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = name
	return n
}

func (x *run) enqueue(pools []string) {
	at := x.o.Clock.Now().Add(x.o.Options.Delays.PoolQueue)
	for _, pool := range pools {
		x.queue.add(pool, at)
	}
}

// outdated says that an event of a node may be older than what is known from a
// write or read of our own. It is then dropped: if it is older, what shows the
// write comes after it; if that cannot be told, the node is read.
func (x *run) outdated(n *corev1.Node, m message) bool {
	p, ok := x.pins[n.Name]
	if !ok {
		return false
	}
	if listed := !m.live && m.seq >= p.seq; !listed { // not by a list that began after the write
		s := NodeStateOf(n)
		shown := s.DesiredConfig == p.target.Config && s.DesiredImage == p.target.Image
		switch order, known := compareVersions(n.ResourceVersion, p.version); {
		case known && order < 0:
			return true
		case !known && !shown:
			x.verify[n.Name] = true
			x.enqueue(x.state.Pools())
			return true
		}
	}
	delete(x.pins, n.Name)
	return false
}

// compareVersions compares two resourceVersions, as far as that can be told:
// they are numbers in every known backend, but need not be.
func compareVersions(a, b string) (order int, known bool) {
	x, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return 0, false
	}
	y, err := strconv.ParseUint(b, 10, 64)
	return cmp.Compare(x, y), err == nil
}

// learn takes in a node that a write or a read of our own returned, which
// events may still lag behind.
func (x *run) learn(n *corev1.Node) {
	delete(x.verify, n.Name)
	if n.ResourceVersion != "" && n.ResourceVersion == x.versions[n.Name] {
		return
	}
	x.pins[n.Name] = pin{
		target:  Target{Config: n.Annotations[AnnotationDesiredConfig], Image: n.Annotations[AnnotationDesiredImage]},
		version: n.ResourceVersion, seq: x.writes.Add(1),
	}
	x.applyNode(n)
}

// dueQueue holds names with the time at which each is due. Adding a name that
// waits already keeps the earlier time.
type dueQueue map[string]time.Time

func (q dueQueue) add(name string, at time.Time) {
	if old, ok := q[name]; !ok || at.Before(old) {
		q[name] = at
	}
}

func (q dueQueue) next() (at time.Time, ok bool) {
	for _, t := range q {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// take removes and returns what is due, the earliest first.
func (q dueQueue) take(now time.Time) []string {
	var due []string
	for name, t := range q {
		if !t.After(now) {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(q[a].Compare(q[b]), cmp.Compare(a, b))
	})
	maps.DeleteFunc(q, func(_ string, t time.Time) bool { return !t.After(now) })
	return due
}
