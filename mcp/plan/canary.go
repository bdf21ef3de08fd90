package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// CanaryOptions are the options of [PlanCanary].
type CanaryOptions struct {
	// ID names the plan; required.
	ID string
	// Pool is the pool whose nodes are updated group by group; empty means
	// worker.
	Pool string
	// Version is the release to update the cluster to, and Image its pull spec
	// if the action needs one. Empty: the cluster is not updated, and the
	// configuration that is pending later, such as a new MachineConfig, rolls out
	// as the groups are unpaused.
	Version, Image string

	// Groups are the new pools with their nodes. nil: they are sized by the
	// fields below, and nodes are taken in the order in which their pool updates them.
	Groups []Group
	// Prefix starts the names of pools that are sized here; empty means workerpool.
	Prefix string
	// Sizes are those of the pools, the canary first. nil: they follow from Window,
	// NodeTime, MaxUnavailable and SparePercent.
	Sizes []int
	// Window is a maintenance window's length, NodeTime how long a node takes, and
	// ClusterTime how long the update of the cluster takes before that; zero:
	// not known, and an hour for ClusterTime. Window and NodeTime are required if
	// neither Groups nor Sizes are given, and Window is never shorter than NodeTime.
	Window, NodeTime, ClusterTime time.Duration
	// MaxUnavailable is for the new pools; zero means 1.
	MaxUnavailable int
	// SparePercent is the spare capacity of the pool in percent: the nodes that may
	// be lost at a time. Zero means none: the canary is one node.
	SparePercent int

	// Starts are when the windows of the groups open, one each, and one more for nodes
	// that are in no group; those after these are for what is left then. Window is how
	// long they last. So long before the end as a node takes, pools that are not done are
	// paused again; the next window continues with them. nil: there are no windows, and a
	// group starts when the one before is done.
	Starts []time.Time
	// Gate is the action that decides, after each group, whether the next one may
	// start; empty means health.
	Gate string
	// KeepPools leaves the new pools and the nodes in them.
	KeepPools bool
}

// Group is a custom pool of a canary plan.
type Group struct {
	Pool  string
	Nodes []string
	// MaxUnavailable is the pool's; nil means CanaryOptions.MaxUnavailable.
	MaxUnavailable *intstr.IntOrString
}

// PlanCanary builds the documented canary rollout. Custom pools are made of the
// pool's nodes. All but the first are paused; the first one, the canary, is updated
// with the cluster. Then the rest is unpaused one after another, each when the
// one before is done and the gate lets it pass. In the end the nodes move back and
// the pools are deleted. Nodes that are in no group stay in the pool and come last.
//
// Sizes follow from the window: a group has as many nodes as are updated in one,
// w = ⌊Window ÷ NodeTime⌋ × MaxUnavailable; the canary has as many as may be lost,
// ⌊SparePercent % of the nodes⌋, at least 1 and at most w.
//
// If the canary is bad, stop the plan with [Hold], cordon and drain its nodes, and
// find out why: nodes are not rolled back. The pools that wait stay paused.
//
// It costs O(n log n) for n nodes. warnings are what to know before it is
// started. The error joins all that speaks against it: what is wrong with the
// options, and what the cluster is not fit for.
func PlanCanary(c Cluster, o CanaryOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	if err := options.NonNegative(o); err != nil {
		b.add("%w", err)
		return b.plan(o.ID, kindCanary)
	}
	if o.Pool == "" {
		o.Pool = mcp.PoolWorker
	}
	if o.Prefix == "" {
		o.Prefix = "workerpool"
	}
	if o.MaxUnavailable == 0 {
		o.MaxUnavailable = 1
	}
	if o.ClusterTime == 0 {
		o.ClusterTime = time.Hour
	}
	if o.Gate == "" {
		o.Gate = actionHealth
	}
	x := &canary{b: b, o: o}
	x.validate()
	groups := x.groups()
	x.validateGroups(groups)
	x.validateMoves(groups)
	if len(groups) > 0 {
		x.build(groups)
	}
	return b.plan(o.ID, kindCanary)
}

type canary struct {
	b      *builder
	o      CanaryOptions
	source map[string]string // labels by which a custom pool has its nodes
}

func (x *canary) validate() {
	if x.o.Pool == mcp.PoolMaster || x.o.Pool == mcp.PoolArbiter {
		x.b.add("pool %s: the control plane has no canary: nodes leave it for no custom pool", x.o.Pool)
	}
	x.b.atRest(x.o.Pool)
	x.b.others(x.o.Version, x.o.Pool)
	packages := true
	switch {
	case x.o.Version != "":
		x.b.atRest(x.b.controlPlane()...)
		packages = x.b.leadsTo(x.o.Version)
	case x.b.c.Version != nil:
		x.b.idle()
	}
	for _, n := range x.b.nodes[x.o.Pool] {
		if v, is := openshift.PackageRHEL(n.Status.NodeInfo.OSImage); is && packages {
			x.b.add("node %s runs Red Hat Enterprise Linux %s: machine config pools do not update it", n.Name, v)
		}
	}
	if len(x.b.nodes[x.o.Pool]) == 0 && x.b.pools[x.o.Pool] != nil {
		x.b.add("pool %s has no nodes", x.o.Pool)
	}
	x.b.certificates(x.o.Pool)
	if p := x.b.pools[x.o.Pool]; p != nil && x.o.Pool != mcp.PoolWorker && p.Spec.NodeSelector != nil {
		x.source = maps.Clone(p.Spec.NodeSelector.MatchLabels)
		delete(x.source, mcp.LabelNodeRolePrefix+mcp.PoolWorker)
		if len(p.Spec.NodeSelector.MatchExpressions) > 0 || len(x.source) == 0 {
			x.b.add("pool %s does not select its nodes by labels alone: nodes cannot be moved out of it and back", x.o.Pool)
		}
	}
}

// groups are the new pools: those of the options, or what sizes say.
func (x *canary) groups() []Group {
	if x.o.Window > 0 && x.o.Window < x.o.NodeTime && (x.o.Groups != nil || x.o.Sizes != nil) {
		x.b.add("%w", shortWindow(x.o.Window, x.o.NodeTime))
	}
	if x.o.Groups != nil {
		if len(x.o.Groups) == 0 {
			x.b.add("there are no groups")
		}
		return slices.Clone(x.o.Groups)
	}
	nodes := namesOf(x.b.nodes[x.o.Pool])
	sizes := x.o.Sizes
	if sizes == nil {
		sizes = x.sizes(len(nodes))
	}
	total := 0
	for i, size := range sizes {
		if size < 1 {
			x.b.add("size %d of group %d is not positive", size, i+1)
			return nil
		}
		total += size
	}
	if total > len(nodes) {
		x.b.add("the groups have %d nodes together, pool %s has %d", total, x.o.Pool, len(nodes))
		return nil
	}
	if x.o.Sizes != nil && len(sizes) == 0 {
		x.b.add("there are no groups")
	}
	var out []Group
	for i, size := range sizes {
		out = append(out, Group{Pool: x.o.Prefix + "-" + suffix(i), Nodes: nodes[:size]})
		nodes = nodes[size:]
	}
	return out
}

// sizes cuts n nodes into groups.
func (x *canary) sizes(n int) []int {
	window, nodeTime := x.o.Window, x.o.NodeTime
	switch {
	case nodeTime == 0, window == 0:
		x.b.add("the length of a window and the time of a node are needed to size groups")
		return nil
	case window < nodeTime:
		x.b.add("%w", shortWindow(window, nodeTime))
		return nil
	}
	w := int(min(int64(window/nodeTime), int64(n))) * min(x.o.MaxUnavailable, max(n, 1))
	spare := x.o.SparePercent * n / 100
	if spare == 0 {
		x.b.warn("there is no spare capacity for a whole node: while the canary is updated, its pods may find no place")
	}
	var sizes []int
	for size := max(1, min(spare, w)); n > 0; size = w {
		size = min(size, n)
		sizes = append(sizes, size)
		n -= size
	}
	return sizes
}

func shortWindow(window, nodeTime time.Duration) error {
	return fmt.Errorf("the window of %s is shorter than the %s that a node takes", window, nodeTime)
}

// suffix names the groups: canary, a to z, aa and so on.
func suffix(i int) string {
	if i == 0 {
		return "canary"
	}
	out := ""
	for ; i > 0; i = (i - 1) / 26 {
		out = string(rune('a'+(i-1)%26)) + out
	}
	return out
}

func (x *canary) validateGroups(groups []Group) {
	seen := map[string]string{}
	labelled := x.labelled()
	for _, g := range groups {
		f := x.b.in("group " + bounded.Quote(g.Pool))
		if texts := validation.IsDNS1123Subdomain(g.Pool); texts != nil {
			f.add("%s", strings.Join(texts, "; "))
		} else if texts := validation.IsQualifiedName(mcp.LabelNodeRolePrefix + g.Pool); texts != nil {
			f.add("the name is no label: %s", strings.Join(texts, "; "))
		}
		x.validatePool(f, g, labelled[mcp.LabelNodeRolePrefix+g.Pool])
		if g.MaxUnavailable != nil {
			if err := validLimit(g.MaxUnavailable); err != nil {
				f.add("%w", err)
			}
		}
		if len(g.Nodes) == 0 {
			f.add("it has no nodes")
		}
		if seen["pool "+g.Pool] != "" {
			f.add("it comes twice")
		}
		seen["pool "+g.Pool] = g.Pool
		for _, n := range g.Nodes {
			switch m := x.b.node[n]; {
			case m == nil:
				f.add("node %s %s", n, x.b.c.lacks("Node"))
			case m.pool != x.o.Pool:
				f.add("node %s belongs to pool %q, not %s", n, m.pool, x.o.Pool)
			}
			if other, twice := seen["node "+n]; twice {
				f.add("node %s is in group %s too", n, other)
			}
			seen["node "+n] = g.Pool
		}
	}
	windows := len(groups)
	if x.rest(groups) > 0 {
		windows++ // the pool itself comes last
	}
	x.validateStarts(windows)
	if len(groups) > 0 {
		x.warnOfCanary(groups[0])
	}
}

// labelled are the names of the nodes that have the label of a role, by label.
func (x *canary) labelled() map[string][]string {
	out := map[string][]string{}
	for i := range x.b.c.Nodes {
		n := &x.b.c.Nodes[i]
		for label, value := range n.Labels {
			if value == "" && strings.HasPrefix(label, mcp.LabelNodeRolePrefix) {
				out[label] = append(out[label], n.Name)
			}
		}
	}
	return out
}

// validatePool requires that the pool of a group is new, and gets no nodes but the group's.
// labelled are the nodes that have the label of its nodes.
func (x *canary) validatePool(f *faults, g Group, labelled []string) {
	if x.b.pools[g.Pool] != nil {
		f.add("a pool of this name exists")
		return
	}
	for _, n := range labelled {
		if !slices.Contains(g.Nodes, n) {
			f.add("node %s has the label of its nodes already", n)
		}
	}
}

// validateStarts requires a window for each group, one after another.
func (x *canary) validateStarts(groups int) {
	starts := x.o.Starts
	if starts == nil {
		return
	}
	if len(starts) < groups {
		x.b.add("there are %d windows for %d groups", len(starts), groups)
	}
	if x.o.Window == 0 {
		x.b.add("the length of the windows is needed, to know when they end")
	}
	for i, start := range starts {
		if start.IsZero() {
			x.b.add("window %d has no start", i+1)
		}
		if i > 0 && start.Before(starts[i-1].Add(x.o.Window)) {
			x.b.add("window %d opens before the one before it has closed", i+1)
		}
	}
}

// warnOfCanary describes what the first group risks.
func (x *canary) warnOfCanary(g Group) {
	n := len(x.b.nodes[x.o.Pool])
	if spare := x.o.SparePercent * n / 100; len(g.Nodes) > max(spare, 1) {
		x.b.warn("the canary has %d nodes, the spare capacity is %d: if they are lost there is no way back",
			len(g.Nodes), spare)
	}
	if x.o.NodeTime == 0 || x.o.Window == 0 || x.o.Version == "" {
		return
	}
	limit := x.limit(g, len(g.Nodes))
	need := x.o.ClusterTime + time.Duration((len(g.Nodes)+limit-1)/limit)*x.o.NodeTime
	if need > x.o.Window {
		x.b.warn("the first window is too short: the cluster takes %s and the canary %s, together %s of %s",
			x.o.ClusterTime, need-x.o.ClusterTime, need, x.o.Window)
	}
}

// limit is how many nodes of a group go down at a time.
func (x *canary) limit(g Group, nodes int) int {
	if g.MaxUnavailable == nil {
		return x.o.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(g.MaxUnavailable, nodes, false)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

func (x *canary) build(groups []Group) {
	source := x.o.Pool
	roles := []string{mcp.PoolWorker}
	if source != mcp.PoolWorker {
		roles = append(roles, source)
	}
	x.b.step(Step{ID: "check", Kind: CheckAll, Args: Args{Checks: x.checks()}})
	var pools []string
	for _, g := range groups {
		limit := g.MaxUnavailable
		if limit == nil {
			limit = new(intstr.FromInt32(int32(min(x.o.MaxUnavailable, math.MaxInt32))))
		}
		own := append(slices.Clone(roles), g.Pool)
		x.b.step(Step{ID: "create-" + g.Pool, Kind: CreatePool, Args: Args{Pool: g.Pool, Roles: own, MaxUnavailable: limit}})
		pools = append(pools, g.Pool)
	}
	for _, g := range groups {
		x.b.step(Step{ID: "label-" + g.Pool, Kind: LabelNodes, Args: x.labels(g, true)})
	}
	together := append([]string{source}, pools...)
	x.b.verify("same-content", Check{Kind: poolsHealthy, Pools: together}, Check{Kind: poolsSameContent, Pools: together})

	waiting := slices.Clone(pools[1:])
	if x.rest(groups) > 0 {
		waiting = append(waiting, source)
	}
	if len(waiting) > 0 {
		x.b.setPaused("pause", true, waiting)
	}
	x.window(0)
	first := []string{pools[0]}
	if x.o.Version != "" {
		x.b.updateCluster("update-cluster", x.o.Version, x.o.Image, waiting)
		first = append(x.b.controlPlane(), first...)
	}
	x.rollOut(0, pools[0], []string{pools[0]}, first)
	x.b.step(Step{ID: "gate-" + pools[0], Kind: Gate, Args: Args{Action: x.o.Gate, Pools: []string{pools[0]}}})
	for i, pool := range waiting {
		x.window(i + 1)
		if before := slices.Concat(pools[:1], waiting[:i]); x.windowed(i + 1) {
			x.rollOut(i+1, fmt.Sprintf("rest-%d", i+2), before, before) // what overran its window
		}
		x.rollOut(i+1, pool, []string{pool}, []string{pool})
		x.b.step(Step{ID: "gate-" + pool, Kind: Gate, Args: Args{Action: x.o.Gate, Pools: []string{pool}}})
	}
	all := slices.Concat(pools[:1], waiting)
	for i := len(all); x.windowed(i); i++ {
		x.window(i)
		x.rollOut(i, fmt.Sprintf("rest-%d", i+1), all, all)
	}
	if x.o.Starts != nil {
		x.b.verify("verify", Check{Kind: poolsUpdated, Pools: all}, Check{Kind: poolsUnpaused, Pools: all})
	}
	if x.o.KeepPools {
		return
	}
	for _, g := range groups {
		x.b.step(Step{ID: "return-" + g.Pool, Kind: LabelNodes, Args: x.labels(g, false)})
	}
	for _, pool := range pools {
		x.b.step(Step{ID: "delete-" + pool, Kind: DeletePool, Args: Args{Pool: pool}})
	}
}

// checks are what must hold when the plan is started.
func (x *canary) checks() []Check {
	out := []Check{{Kind: poolsUpdated, Pools: []string{x.o.Pool}}, {Kind: poolsUnpaused, Pools: []string{x.o.Pool}}}
	if x.o.Version != "" {
		out = append(out, Check{Kind: clusterIdle})
	}
	return out
}

// rest is how many nodes are in no group.
func (x *canary) rest(groups []Group) int {
	n := len(x.b.nodes[x.o.Pool])
	for _, g := range groups {
		n -= len(g.Nodes)
	}
	return n
}

// labels move a group's nodes to its pool, or back. The role worker stays.
func (x *canary) labels(g Group, there bool) Args {
	role := map[string]string{mcp.LabelNodeRolePrefix + g.Pool: ""}
	if len(g.Nodes) > plainNodes {
		g.Nodes = slices.SortedFunc(slices.Values(g.Nodes), compareNodes)
	}
	if there {
		return Args{Pool: g.Pool, Nodes: g.Nodes, Add: role, Remove: slices.Sorted(maps.Keys(x.source))}
	}
	return Args{Pool: x.o.Pool, Nodes: g.Nodes, Add: x.source, Remove: slices.Sorted(maps.Keys(role))}
}

// windowed reports whether a group has a window.
func (x *canary) windowed(i int) bool { return i < len(x.o.Starts) }

// window holds the plan until the window of a group opens, if it has one.
func (x *canary) window(i int) {
	if x.windowed(i) {
		x.b.holdForWindow(i, Window{x.o.Starts[i], x.o.Window}, x.o.Version)
	}
}

// rollOut unpauses pools and waits: in a window until that is about to
// end, when those that are not done are paused again. The first pool was never paused.
func (x *canary) rollOut(i int, id string, pools, wait []string) {
	var last *metav1.Time
	if x.windowed(i) {
		last = Window{x.o.Starts[i], x.o.Window}.lastStart(x.o.NodeTime)
	}
	if i > 0 {
		x.b.step(Step{ID: "unpause-" + id, Kind: SetPaused, Args: Args{Pools: pools, Paused: new(false), Until: last}})
	}
	if last == nil {
		x.b.wait("wait-"+id, wait)
		return
	}
	x.b.step(Step{ID: "wait-" + id, Kind: WaitPools, OnFailure: continuePlan, Args: Args{Pools: wait, Until: last}})
	x.b.step(Step{ID: "pause-" + id, Kind: SetPaused, Args: Args{Pools: pools, Paused: new(true), Unfinished: true}})
}
