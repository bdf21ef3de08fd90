// Package chaos plays an administrator who changes the nodes and pools of a simulated cluster
// while something updates them, and judges each change of the cluster.
package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// Cluster is a simulated cluster.
type Cluster interface {
	clusterapi.ClusterAPI
	Load(objects ...*unstructured.Unstructured) error
}

// Administrator changes compute nodes and pools at random times. In the end its pools are as
// they were, and an hour later the nodes that it cordoned are schedulable.
type Administrator struct {
	Cluster Cluster
	Clock   *reconcile.Clock
	Judge   *Judge // learns what the administrator does
	// Pools are those whose nodes and settings change, with the maxUnavailable of each.
	Pools map[string]int
	// Moves are the pools between which nodes move.
	Moves []string
	// Pauses has the administrator pause pools, and unpause those.
	Pauses bool
	// For is how long the administrator works.
	For time.Duration
	// Only, if not nil, are the changes that take place.
	Only map[string]bool

	rand     *rand.Rand
	end      time.Time
	changes  []string
	touched  map[string]bool
	held     map[string]bool // nodes that are cordoned
	paused   map[string]bool // pools
	cordoned bool
	added    int
}

// Start has the administrator start now.
func (a *Administrator) Start(r *rand.Rand) {
	a.rand = r
	a.end = a.Clock.Now().Add(a.For)
	a.touched = map[string]bool{}
	a.held = map[string]bool{}
	a.paused = map[string]bool{}
	a.again()
}

// Changes are the names of the changes that took place, in order.
func (a *Administrator) Changes() []string { return a.changes }

// Touched reports whether the administrator changed a node or a pool, as in "node worker-0".
func (a *Administrator) Touched(object string) bool { return a.touched[object] }

// Cordoned reports whether the administrator has cordoned a node.
func (a *Administrator) Cordoned() bool { return a.cordoned }

// again draws the next change. The changes of a seed do not depend on which of them take place.
func (a *Administrator) again() {
	if !a.Clock.Now().Before(a.end) {
		a.restore()
		return
	}
	a.Clock.AfterFunc(time.Duration(30+a.rand.IntN(600))*time.Second, a.act)
}

func (a *Administrator) act() {
	defer a.again()
	verb, dice := a.rand.IntN(8), a.rand.Uint32()
	name := fmt.Sprintf("administrator %d %d", verb, dice)
	if a.Only != nil && !a.Only[name] {
		return
	}
	done := false
	switch verb {
	case 0, 1:
		done = a.uncordon(dice)
	case 2:
		done = a.cordon(dice)
	case 3:
		done = a.Pauses && a.set(dice, a.pause)
	case 4:
		done = a.set(dice, func(p *mcfgv1.MachineConfigPool) {
			p.Spec.MaxUnavailable = new(intstr.FromInt32(1 + int32(dice/7%2)))
		})
	case 5:
		done = a.move(dice)
	case 6:
		done = a.remove(dice)
	case 7:
		done = a.add(dice)
	}
	if done {
		a.changes = append(a.changes, name)
	}
}

// nodes are the compute nodes of the administrator's pools that a condition holds for, by name.
func (a *Administrator) nodes(holds func(*corev1.Node) bool) (out []corev1.Node) {
	for _, n := range must(clusterapi.List[corev1.Node](context.Background(), a.Cluster, clusterapi.ListOptions{})) {
		if _, mine := a.Pools[PoolOf(&n)]; mine && holds(&n) {
			out = append(out, n)
		}
	}
	return out
}

func (a *Administrator) uncordon(dice uint32) bool {
	return a.change(dice, func(n *corev1.Node) bool { return n.Spec.Unschedulable }, func(n *corev1.Node) {
		n.Spec.Unschedulable = false
		delete(a.held, n.Name)
	})
}

// cordon cordons a node for less than an hour.
func (a *Administrator) cordon(dice uint32) bool {
	name := ""
	done := a.change(dice, func(n *corev1.Node) bool { return !n.Spec.Unschedulable }, func(n *corev1.Node) {
		name = n.Name
		n.Spec.Unschedulable = true
		a.held[name] = true
		a.cordoned = true
	})
	if done {
		a.Clock.AfterFunc(time.Duration(10+dice%40)*time.Minute, func() { a.release(name) })
	}
	return done
}

// release uncordons a node that the administrator has cordoned.
func (a *Administrator) release(name string) {
	if !a.held[name] {
		return
	}
	delete(a.held, name)
	_, err := clusterapi.Modify(context.Background(), a.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{},
		func(n *corev1.Node) error {
			n.Spec.Unschedulable = false
			return nil
		})
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
}

// move gives a node the role of another pool.
func (a *Administrator) move(dice uint32) bool {
	if len(a.Moves) < 2 {
		return false
	}
	from := a.Moves[int(dice/7)%len(a.Moves)]
	to := a.Moves[int(dice/7+1)%len(a.Moves)]
	return a.change(dice, func(n *corev1.Node) bool { return PoolOf(n) == from }, func(n *corev1.Node) {
		delete(n.Labels, mcp.LabelNodeRolePrefix+from)
		n.Labels[mcp.LabelNodeRolePrefix+mcp.PoolWorker] = ""
		n.Labels[mcp.LabelNodeRolePrefix+to] = ""
	})
}

// change changes one of the nodes for which a condition holds.
func (a *Administrator) change(dice uint32, holds func(*corev1.Node) bool, change func(*corev1.Node)) bool {
	nodes := a.nodes(holds)
	if len(nodes) == 0 {
		return false
	}
	n := &nodes[int(dice)%len(nodes)]
	before := PoolOf(n)
	must(clusterapi.Modify(context.Background(), a.Cluster, clusterapi.Key("", n.Name), clusterapi.ModifyOptions{},
		func(n *corev1.Node) error {
			change(n)
			a.Judge.Disturb(before, PoolOf(n))
			return nil
		}))
	a.touched["node "+n.Name] = true
	return true
}

// remove deletes a node, unless its pool has few.
func (a *Administrator) remove(dice uint32) bool {
	nodes := a.nodes(func(*corev1.Node) bool { return true })
	if len(nodes) < 5 {
		return false
	}
	n := &nodes[int(dice)%len(nodes)]
	kind := corev1.SchemeGroupVersion.WithKind("Node")
	err := a.Cluster.Delete(context.Background(), kind, clusterapi.Key("", n.Name), clusterapi.DeleteOptions{})
	if err != nil {
		panic(err)
	}
	a.touched["node "+n.Name] = true
	a.Judge.Disturb(PoolOf(n))
	return true
}

// add adds a node that has joined with what one of its pool runs.
func (a *Administrator) add(dice uint32) bool {
	nodes := a.nodes(func(n *corev1.Node) bool { return mcp.NodeStateOf(n).Done() && !n.Spec.Unschedulable })
	if len(nodes) == 0 || a.added == 3 {
		return false
	}
	n := nodes[int(dice)%len(nodes)].DeepCopy()
	a.added++
	n.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint(PoolOf(n), "-new-", a.added), Labels: n.Labels,
		CreationTimestamp: metav1.NewTime(a.Clock.Now()), Annotations: map[string]string{
			mcp.AnnotationCurrentConfig: n.Annotations[mcp.AnnotationCurrentConfig],
			mcp.AnnotationDesiredConfig: n.Annotations[mcp.AnnotationCurrentConfig],
			mcp.AnnotationState:         mcp.StateDone,
		}}
	if n.Labels[corev1.LabelHostname] != "" {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	n.Spec = corev1.NodeSpec{}
	a.Judge.Disturb(PoolOf(n))
	a.touched["node "+n.Name] = true
	if err := a.Cluster.Load(must(clusterapi.ToUnstructured(n))); err != nil {
		panic(err)
	}
	return true
}

// set changes one of the pools.
func (a *Administrator) set(dice uint32, change func(*mcfgv1.MachineConfigPool)) bool {
	var names []string
	ctx, all := context.Background(), clusterapi.ListOptions{}
	for _, p := range must(clusterapi.List[mcfgv1.MachineConfigPool](ctx, a.Cluster, all)) {
		if _, mine := a.Pools[p.Name]; mine {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return false
	}
	a.setPool(names[int(dice)%len(names)], change)
	return true
}

func (a *Administrator) setPool(name string, change func(*mcfgv1.MachineConfigPool)) {
	_, err := clusterapi.Modify(context.Background(), a.Cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{},
		func(p *mcfgv1.MachineConfigPool) error {
			change(p)
			return nil
		})
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
	a.touched["pool "+name] = true
}

// pause pauses a pool, or unpauses one that it has paused.
func (a *Administrator) pause(p *mcfgv1.MachineConfigPool) {
	if p.Spec.Paused == a.paused[p.Name] {
		p.Spec.Paused = !p.Spec.Paused
		a.paused[p.Name] = p.Spec.Paused
	}
}

// restore puts back what would block updates.
func (a *Administrator) restore() {
	for _, name := range slices.Sorted(maps.Keys(a.Pools)) {
		if !a.touched["pool "+name] {
			continue
		}
		a.setPool(name, func(p *mcfgv1.MachineConfigPool) {
			p.Spec.MaxUnavailable = new(intstr.FromInt32(int32(a.Pools[name])))
			if a.paused[name] {
				p.Spec.Paused = false
			}
		})
	}
}

// PoolOf is the pool that a node is in, by its labels; of two custom pools "a+b".
func PoolOf(n *corev1.Node) string {
	pool := mcp.PoolWorker
	var custom []string
	for _, label := range slices.Sorted(maps.Keys(n.Labels)) {
		role, is := strings.CutPrefix(label, mcp.LabelNodeRolePrefix)
		switch {
		case !is || role == mcp.PoolWorker || role == "control-plane":
		case role == mcp.PoolMaster:
			pool = mcp.PoolMaster
		default:
			custom = append(custom, role)
		}
	}
	if len(custom) > 0 && pool != mcp.PoolMaster {
		return strings.Join(custom, "+")
	}
	return pool
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
