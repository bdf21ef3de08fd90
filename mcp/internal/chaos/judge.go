package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
	"github.com/clusterupdate/clusterupdate/mcp"
)

const (
	// grace is how long those that act may not have seen a change, while calls fail and events
	// are late.
	grace = 2 * time.Minute
	// stale is how old a read may be, with some time for what follows from it.
	stale = 3 * time.Second
)

// Judge looks at each change of a cluster:
//
//   - No more nodes of a pool go down than its maxUnavailable allows.
//   - No node of a paused pool gets a target.
//   - A drain is complete when its node is cordoned, and runs no pod that the drain had to evict.
//   - Nothing is done to a node that is schedulable, or after a drain to one with such a pod.
//
// For some time after a change from outside it allows for what follows from the state before.
type Judge struct {
	// Targets and Drains count what was judged.
	Targets, Drains, Actions int

	now   func() time.Time
	pools map[string]*pool
	nodes map[string]*node
	pods  map[types.UID]*pod
	err   error
}

type pool struct {
	object    *mcfgv1.MachineConfigPool
	disturbed time.Time // when its nodes or its limit changed from outside
	paused    time.Time // since when; zero if it is not
}

type node struct {
	state mcp.NodeState
	pool  string
	moved time.Time // into its pool
	freed time.Time // when it became schedulable
}

type pod struct {
	object *corev1.Pod
	bound  time.Time // to its node
}

// NewJudge returns a judge of a cluster that is as it is now.
func NewJudge(now func() time.Time, cluster clusterapi.Reader) *Judge {
	j := &Judge{now: now, pools: map[string]*pool{}, nodes: map[string]*node{}, pods: map[types.UID]*pod{}}
	ctx, all := context.Background(), clusterapi.ListOptions{}
	for _, p := range must(clusterapi.List[mcfgv1.MachineConfigPool](ctx, cluster, all)) {
		j.pool(p.Name).object = &p
		if p.Spec.Paused {
			j.pool(p.Name).paused = now()
		}
	}
	for _, n := range must(clusterapi.List[corev1.Node](ctx, cluster, all)) {
		j.nodes[n.Name] = &node{state: mcp.NodeStateOf(&n), pool: PoolOf(&n)}
	}
	for _, p := range must(clusterapi.List[corev1.Pod](ctx, cluster, all)) {
		j.pods[p.UID] = &pod{object: &p}
	}
	return j
}

// Observe judges one change, and returns the first fault of all.
func (j *Judge) Observe(c clusterapi.Change) error {
	switch c.Object().Kind().Kind {
	case "MachineConfigPool":
		j.observePool(must(clusterapi.As[mcfgv1.MachineConfigPool](c.Object())), c.New == nil)
	case "Pod":
		j.observePod(must(clusterapi.As[corev1.Pod](c.Object())), c.New == nil)
	case "Node":
		if c.New == nil {
			delete(j.nodes, c.Old.Name())
			return j.err
		}
		j.observeNode(must(clusterapi.As[corev1.Node](c.New)))
	}
	return j.err
}

// Act judges that something is done to a node, which a plan has drained or only cordoned.
func (j *Judge) Act(name string, drained bool) {
	j.Actions++
	n := j.nodes[name]
	if n == nil {
		return
	}
	if !n.state.Unschedulable && j.now().Sub(n.freed) > stale {
		j.wrong("something is done to node %s, which is schedulable", name)
	}
	if drained {
		j.empty(name, "something is done to")
	}
}

func (j *Judge) wrong(format string, args ...any) {
	if j.err == nil {
		j.err = fmt.Errorf(format, args...)
	}
}

func (j *Judge) pool(name string) *pool {
	if j.pools[name] == nil {
		j.pools[name] = &pool{}
	}
	return j.pools[name]
}

// Disturb allows for what follows from a change of pools from outside.
func (j *Judge) Disturb(pools ...string) {
	for _, name := range pools {
		j.pool(name).disturbed = j.now()
	}
}

func (j *Judge) observePool(object *mcfgv1.MachineConfigPool, deleted bool) {
	if deleted {
		delete(j.pools, object.Name)
		return
	}
	p := j.pool(object.Name)
	before := j.limit(object.Name)
	p.object = object
	if j.limit(object.Name) < before {
		j.Disturb(object.Name)
	}
	switch {
	case !object.Spec.Paused:
		p.paused = time.Time{}
	case p.paused.IsZero():
		p.paused = j.now()
	}
}

func (j *Judge) observePod(object *corev1.Pod, deleted bool) {
	if deleted {
		delete(j.pods, object.UID)
		return
	}
	p := j.pods[object.UID]
	if p == nil {
		p = &pod{object: object}
		j.pods[object.UID] = p
	}
	if p.bound.IsZero() && object.Spec.NodeName != "" {
		p.bound = j.now()
	}
	p.object = object
}

func (j *Judge) observeNode(object *corev1.Node) {
	in, state, now := PoolOf(object), mcp.NodeStateOf(object), j.now()
	n := j.nodes[object.Name]
	if n == nil {
		n = &node{state: state, pool: in, moved: now}
		j.nodes[object.Name] = n
		j.Disturb(in)
	}
	if n.pool != in {
		j.Disturb(n.pool, in)
		n.moved = now
	}
	before := n.state
	down := !(before.Unavailable() && n.pool == in) && state.Unavailable()
	n.state = state
	n.pool = in
	if before.Unschedulable && !state.Unschedulable {
		n.freed = now
	}
	p := j.pool(in)
	if down && now.Sub(p.disturbed) > grace {
		j.judgeDown(in)
	}
	if before.DesiredConfig != state.DesiredConfig {
		j.Targets++
		if !p.paused.IsZero() && now.Sub(p.paused) > grace && now.Sub(n.moved) > grace {
			j.wrong("node %s was targeted while its pool %s is paused", object.Name, in)
		}
	}
	fulfilled := before.LastAppliedDrain != state.LastAppliedDrain
	if fulfilled && strings.HasPrefix(state.LastAppliedDrain, mcp.DrainVerbDrain) {
		j.Drains++
		if !state.Unschedulable {
			j.wrong("the drain of node %s is complete, and it is schedulable", object.Name)
		}
		j.empty(object.Name, "complete is the drain of")
	}
}

// judgeDown judges that a node of a pool went down.
func (j *Judge) judgeDown(name string) {
	var down []string
	for _, n := range slices.Sorted(maps.Keys(j.nodes)) {
		if o := j.nodes[n]; o.pool == name && o.state.Unavailable() {
			down = append(down, n)
		}
	}
	if limit := j.limit(name); len(down) > limit {
		j.wrong("%s of pool %s are unavailable, and maxUnavailable is %d", down, name, limit)
	}
}

// limit is how many nodes of a pool may be unavailable.
func (j *Judge) limit(name string) int {
	p := j.pools[name]
	if p == nil || p.object == nil {
		return 1
	}
	count := 0
	for _, n := range j.nodes {
		if n.pool == name {
			count++
		}
	}
	limit, _, err := mcp.MaxUnavailable(p.object, count)
	if err != nil {
		j.wrong("pool %s: %w", name, err)
	}
	return limit
}

// empty judges that no pod runs on a node that a drain evicts.
func (j *Judge) empty(name, doing string) {
	for _, uid := range slices.Sorted(maps.Keys(j.pods)) {
		p := j.pods[uid]
		if p.object.Spec.NodeName != name || j.now().Sub(p.bound) <= stale {
			continue
		}
		exists := func(types.NamespacedName) (bool, error) { return true, nil }
		if stays, _ := disruption.Stays(p.object, exists); !stays {
			j.wrong("%s node %s, on which pod %s has run for %s", doing, name, p.object.Name, j.now().Sub(p.bound))
		}
	}
}
