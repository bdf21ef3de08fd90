package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// WindowsOptions are the options of [PlanWindows].
type WindowsOptions struct {
	// ID names the plan; required.
	ID string
	// Pools are those whose nodes are updated in the windows alone; nil means all
	// but those of the control plane.
	Pools []string
	// Version is the release to update the cluster to, in the first window, and
	// Image its pull spec if the action needs one. Empty: the cluster is not
	// updated.
	Version, Image string
	// Windows are the maintenance windows, one after another; required.
	Windows []Window
	// NodeTime is how long a node takes; zero is an error. So long before the end of a
	// window pools are paused, since nodes that have started finish.
	NodeTime time.Duration
	// ClusterTime is how long the update of the cluster takes; zero means an hour.
	ClusterTime time.Duration
}

// Window is a maintenance window.
type Window struct {
	Start    time.Time
	Duration time.Duration
}

// PlanWindows builds a plan that updates nodes in maintenance windows alone. The
// pools are paused. In each window they are unpaused until they are done or the
// window is about to end, and paused again; the next window continues with the
// nodes that are left. After the last one they are to be done.
//
// It costs O(n log n) for n nodes. warnings are what to know before it is
// started, such as that the windows are too few by the documented estimate. The error
// joins all that speaks against it.
func PlanWindows(c Cluster, o WindowsOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	if err := options.NonNegative(o); err != nil {
		b.add("%w", err)
		return b.plan(o.ID, kindWindows)
	}
	if o.ClusterTime == 0 {
		o.ClusterTime = time.Hour
	}
	if o.Pools == nil {
		o.Pools = b.compute()
	}
	b.validateWindows(o)
	if len(o.Pools) > 0 && len(o.Windows) > 0 {
		b.buildWindows(o)
	}
	return b.plan(o.ID, kindWindows)
}

// compute are all pools but those of the control plane.
func (b *builder) compute() []string {
	return slices.DeleteFunc(b.poolNames(), func(p string) bool { return p == mcp.PoolMaster || p == mcp.PoolArbiter })
}

func (b *builder) validateWindows(o WindowsOptions) {
	for _, p := range o.Pools {
		if p == mcp.PoolMaster || p == mcp.PoolArbiter {
			b.add("pool %s: an update of the cluster waits for it, so it cannot be paused", p)
		}
	}
	if len(o.Pools) == 0 {
		b.add("the cluster has no pool besides those of the control plane")
	}
	if o.Version == "" {
		b.exist(o.Pools...)
	} else {
		b.atRest(slices.Concat(b.controlPlane(), o.Pools)...)
		b.leadsTo(o.Version)
	}
	b.others(o.Version, o.Pools...)
	b.certificates(o.Pools...)
	b.drains(b.view(b.c.Nodes), b.drained(o.Version, o.Pools...))
	if o.NodeTime == 0 {
		b.add("the time of a node is needed, to know when a window is about to end")
	}
	if len(o.Windows) == 0 {
		b.add("there is no window")
	}
	var rounds int64 // that fit into all windows
	for i, w := range o.Windows {
		length := w.Duration
		if w.Duration < o.NodeTime {
			b.add("window %d of %s is shorter than the %s that a node takes", i+1, w.Duration, o.NodeTime)
		}
		if i == 0 && o.Version != "" {
			length -= o.ClusterTime
			if length < o.NodeTime {
				b.warn("the first window is too short for the update of the cluster, which takes %s, "+
					"and a node, which takes %s", o.ClusterTime, o.NodeTime)
			}
		}
		if i > 0 && w.Start.Before(o.Windows[i-1].Start.Add(o.Windows[i-1].Duration)) {
			b.add("window %d opens before the one before it has closed", i+1)
		}
		if w.Start.IsZero() {
			b.add("window %d has no start", i+1)
		}
		if o.NodeTime > 0 && length > 0 {
			rounds += int64(length / o.NodeTime)
		}
	}
	for _, name := range o.Pools {
		p := b.pools[name]
		if p == nil {
			continue
		}
		limit, _, err := mcp.MaxUnavailable(p, len(b.nodes[name]))
		if err != nil {
			continue // reported
		}
		if need := int64((len(b.nodes[name]) + limit - 1) / limit); need > rounds {
			b.warn("pool %s: %d nodes, %d at a time, take %d times %s; the windows have room for %d",
				name, len(b.nodes[name]), limit, need, o.NodeTime, rounds)
		}
	}
}

// exist requires that pools do, and are neither degraded nor paused. What is
// pending in them is what the plan rolls out.
func (b *builder) exist(pools ...string) {
	for _, name := range pools {
		p := b.pools[name]
		switch {
		case p == nil:
			b.add("pool %s %s", name, b.c.lacks("MachineConfigPool"))
			continue
		case poolSays(p, "Degraded"):
			b.add("%s", notUpdated(p))
		case p.Spec.Paused:
			b.add("pool %s is paused: the plan would not unpause it", name)
		}
		if _, _, err := mcp.MaxUnavailable(p, len(b.nodes[name])); err != nil {
			b.add("pool %s: %w", name, err)
		}
	}
}

func (b *builder) buildWindows(o WindowsOptions) {
	checks := []Check{{Kind: poolsHealthy, Pools: o.Pools}}
	if o.Version != "" {
		checks = append(checks, Check{Kind: clusterIdle})
	}
	b.step(Step{ID: "check", Kind: CheckAll, Args: Args{Checks: checks}})
	b.setPaused("pause", true, o.Pools)
	for i, w := range o.Windows {
		b.holdForWindow(i, w, o.Version)
		if i == 0 && o.Version != "" {
			b.updateCluster("update-cluster", o.Version, o.Image, o.Pools)
			b.wait("wait-control-plane", b.controlPlane())
		}
		id := func(what string) string { return fmt.Sprintf("%s-%d", what, i+1) }
		last := w.lastStart(o.NodeTime)
		b.step(Step{ID: id("unpause"), Kind: SetPaused, Args: Args{Pools: o.Pools, Paused: new(false), Until: last}})
		b.step(Step{ID: id("wait"), Kind: WaitPools, OnFailure: continuePlan, Args: Args{Pools: o.Pools, Until: last}})
		b.setPaused(id("pause"), true, o.Pools)
	}
	b.verify("verify", Check{Kind: poolsUpdated, Pools: o.Pools})
	b.setPaused("unpause", false, o.Pools)
}

// holdForWindow holds the plan until its i-th window opens. The first one fails if it has
// closed: a cluster that the plan updates, to version, is not updated outside of it.
func (b *builder) holdForWindow(i int, w Window, version string) {
	gate := map[string]string{"from": w.Start.UTC().Format(time.RFC3339)}
	if i == 0 && version != "" {
		gate["until"] = w.Start.Add(w.Duration).UTC().Format(time.RFC3339)
	}
	b.step(Step{ID: fmt.Sprintf("window-%d", i+1), Kind: Gate, Args: Args{Action: actionWindow, Parameters: gate}})
}

// lastStart is when the last node of a window starts, to be done when that ends.
func (w Window) lastStart(nodeTime time.Duration) *metav1.Time {
	return new(metav1.NewTime(w.Start.Add(w.Duration - nodeTime)))
}
