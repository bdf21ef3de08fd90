package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func (x *run) observePool(pool string) {
	p := x.state.Pool(pool)
	if p == nil {
		return
	}
	sel := x.state.Candidates(pool)
	x.noticeBlock(pool, sel.Block, sel.Err)
	x.noticeCounts(pool, x.state.Status(pool, p.Status, x.now))
}

// drivePool is one sync of a pool, in the controller's order. afterMaster reports
// that pool master has just been synced, which is when the arbiter's turn is.
func (x *run) drivePool(ctx context.Context, pool string, afterMaster bool) error {
	p := x.state.Pool(pool)
	if p == nil {
		return nil
	}
	if p.Spec.Configuration.Name == "" {
		x.noticeBlock(pool, mcp.Block{Kind: mcp.BlockUnconfigured, Text: "the pool has no rendered configuration yet"}, nil)
		x.enqueue([]string{pool})
		return nil
	}
	if !x.state.HasControllerConfig() {
		return fmt.Errorf("error getting controllerconfig %q, error: %w", mcp.ControllerConfigName,
			apierrors.NewNotFound(mcfgv1.Resource("controllerconfigs"), mcp.ControllerConfigName))
	}
	if err := x.refresh(ctx); err != nil {
		return err
	}
	if pool == mcp.PoolArbiter && !afterMaster {
		if m := x.state.Pool(mcp.PoolMaster); m != nil && (!m.Spec.Paused || x.state.ControlPlaneTopology() != mcp.TopologyHighlyAvailableArbiter) {
			x.enqueue([]string{mcp.PoolMaster})
			return x.statusOnly(ctx, pool)
		}
	}
	if mcp.SelectsAll(p.Spec.NodeSelector) {
		x.noticeBlock(pool, mcp.Block{Kind: mcp.BlockSelectingAll, Text: mcp.TextSelectingAll}, nil)
		x.emit(EventPool, EventData{Pool: pool, Reason: ReasonSelectingAll, Warning: true}, mcp.TextSelectingAll, nil)
		return nil
	}
	sel := x.state.Candidates(pool)
	x.noticeBlock(pool, sel.Block, sel.Err)
	if sel.Block.Kind != mcp.BlockNone {
		err := x.statusOnly(ctx, pool)
		if sel.Err != nil {
			err = errors.Join(sel.Err, err)
		}
		return err
	}
	for _, warning := range sel.Warnings {
		x.o.Logger.Warn(warning, "pool", pool)
	}
	markErr := x.markNodes(ctx, pool)
	targetErr := x.readDrains(ctx, sel)
	if targetErr == nil {
		targetErr = x.targetNodes(ctx, pool)
	}
	x.drains = mcp.DrainView{} // it is of this moment
	err := errors.Join(targetErr, x.statusOnly(ctx, pool), markErr)
	if pool == mcp.PoolMaster && x.state.ControlPlaneTopology() == mcp.TopologyHighlyAvailableArbiter && targetErr == nil {
		err = errors.Join(err, x.drivePool(ctx, mcp.PoolArbiter, true))
	}
	return err
}

// markNodes sets and removes the taint and the topology annotation. A failure
// does not keep the pool from being updated.
func (x *run) markNodes(ctx context.Context, pool string) error {
	goal := x.state.Goal(pool)
	nodes, topology := x.state.Topology(pool)
	adds := map[string]bool{}
	for _, t := range x.state.Taints(pool) {
		adds[t.Node] = t.Add
		nodes = append(nodes, t.Node)
	}
	slices.Sort(nodes)
	var errs []error
	for _, name := range slices.Compact(nodes) {
		_, err := clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", name), modifyNode, func(n *corev1.Node) error {
			setAnnotation(n, mcp.AnnotationControlPlaneTopology, topology)
			setTaint(n, mcp.NodeStateOf(n).WantsTaint(goal))
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsNotFound(err):
		case err != nil:
			add, taint := adds[name]
			switch {
			case add:
				err = fmt.Errorf("failed applying %s taint for node %s: %w", mcp.TaintUpdateInProgress, name, err)
			case taint:
				err = fmt.Errorf("failed removing %s taint for node %s: %w", mcp.TaintUpdateInProgress, name, err)
			default:
				err = fmt.Errorf("failed setting annotation %s of node %s: %w", mcp.AnnotationControlPlaneTopology, name, err)
			}
			errs = append(errs, err)
		default:
			x.learn(name)
		}
	}
	return errors.Join(errs...)
}

var modifyNode = clusterapi.ModifyOptions{FieldManager: clusterapi.ManagerRollout}

func setAnnotation(n *corev1.Node, name, value string) {
	if value == "" {
		return
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[name] = value
}

func setTaint(n *corev1.Node, want bool) {
	is := func(t corev1.Taint) bool {
		return t.Key == mcp.TaintUpdateInProgress && t.Effect == corev1.TaintEffectPreferNoSchedule
	}
	has := slices.ContainsFunc(n.Spec.Taints, is)
	switch {
	case want && !has:
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: mcp.TaintUpdateInProgress, Effect: corev1.TaintEffectPreferNoSchedule})
	case !want && has:
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, is)
	}
}

// statusOnly writes the pool's status if it changed, and removes an
// annotation of a build that is gone.
func (x *run) statusOnly(ctx context.Context, pool string) error {
	if err := x.dropStaleBuild(ctx, pool); err != nil {
		return err
	}
	p := x.state.Pool(pool)
	if p == nil {
		return nil
	}
	want := x.state.Status(pool, p.Status, x.now)
	x.noticeCounts(pool, want)
	if equality.Semantic.DeepEqual(want, p.Status) {
		return nil
	}
	if x.now.Sub(x.read) >= readAgain || x.now.Before(x.read) {
		x.accepts.Forget() // an update replaces definitions
		x.read = x.now
	}
	_, err := clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", pool),
		clusterapi.ModifyOptions{Status: true, FieldManager: clusterapi.ManagerRollout, Definitions: &x.accepts},
		func(fresh *mcfgv1.MachineConfigPool) error {
			if !equality.Semantic.DeepEqual(fresh.Spec, p.Spec) {
				return errStale
			}
			next := x.state.Status(pool, fresh.Status, x.now)
			fitting := &mcfgv1.MachineConfigPool{Status: next}
			_, err := x.accepts.FitStatus(ctx, x.o.API, fitting)
			if err != nil || sameStatus(fitting.Status, fresh.Status) {
				return err
			}
			fresh.Status = next
			return nil
		})
	switch {
	case errors.Is(err, errStale):
		// The change is on its way to us.
		if fresh, err := clusterapi.Get[mcfgv1.MachineConfigPool](ctx, x.o.API, clusterapi.Key("", pool)); err == nil &&
			fresh.Spec.Configuration.Name != p.Spec.Configuration.Name {
			goal := x.state.Goal(pool)
			goal.Config = fresh.Spec.Configuration.Name
			x.emit(EventPool, EventData{Pool: pool, Reason: ReasonUpdating}, fmt.Sprintf("Pool %s now targeting %s", pool, goal.Label()), nil)
		}
		x.enqueue([]string{pool})
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("status of pool %s: %w", pool, err)
	}
	return nil
}

// readAgain is the time between looks at the definition of pools, while their statuses
// change.
const readAgain = 10 * time.Minute

// sameStatus compares statuses whatever the order of their conditions: a message that was
// cut looks new each time, and a new condition comes last.
func sameStatus(a, b mcfgv1.MachineConfigPoolStatus) bool {
	for _, s := range []*mcfgv1.MachineConfigPoolStatus{&a, &b} {
		s.Conditions = slices.SortedFunc(slices.Values(s.Conditions), func(a, b mcfgv1.MachineConfigPoolCondition) int {
			return strings.Compare(string(a.Type), string(b.Type))
		})
	}
	return equality.Semantic.DeepEqual(a, b)
}

// errStale reports that an object is not the one that was decided on.
var errStale = errors.New("the object has changed since the decision")

func (x *run) dropStaleBuild(ctx context.Context, pool string) error {
	c := x.state.StaleBuild(pool)
	if c == nil {
		return nil
	}
	stale := c.Annotations[mcp.AnnotationCurrentMachineOSBuild]
	fresh, err := clusterapi.Modify(ctx, x.o.API, clusterapi.Key("", c.Name), modifyNode, func(c *mcfgv1.MachineOSConfig) error {
		if c.Annotations[mcp.AnnotationCurrentMachineOSBuild] == stale {
			delete(c.Annotations, mcp.AnnotationCurrentMachineOSBuild)
		}
		return nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("removing the stale annotation %s of MachineOSConfig %s: %w", mcp.AnnotationCurrentMachineOSBuild, c.Name, err)
	}
	x.apply(fresh, false)
	return nil
}
