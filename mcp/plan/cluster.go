package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/machinehealth"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// Cluster is what plans are built for: a cluster's objects at one moment.
type Cluster struct {
	Pools []mcfgv1.MachineConfigPool
	Nodes []corev1.Node
	// Version is nil if the cluster has none; plans that update it need it.
	Version *configv1.ClusterVersion
	// Drains are the pods, budgets and DaemonSets from which builders predict drains:
	// they refuse plans with drains that never end, and warn of those that pods block. Its Nodes and
	// Topology are those of the cluster. The zero value predicts nothing.
	Drains mcp.DrainObjects
	// HealthChecks are the names of the MachineHealthChecks that would replace nodes
	// while they reboot. Plans pause them if there are any.
	HealthChecks []string
	// Unknown are the kinds of which a recording lacks some objects or all. Builders warn
	// of them: a plan is made as if the cluster had no more than are recorded.
	Unknown []string
}

// isUnknown reports whether c may lack objects of a kind that the cluster has.
func (c *Cluster) isUnknown(kind string) bool { return slices.Contains(c.Unknown, kind) }

// lacks is what is wrong with an object of a kind that c does not have.
func (c *Cluster) lacks(kind string) string {
	if c.isUnknown(kind) {
		return "is not recorded"
	}
	return "does not exist"
}

// ReadCluster reads what builders need. Its error joins those of the API; a kind that a
// cluster does not have is none.
func ReadCluster(ctx context.Context, api clusterapi.Reader) (Cluster, error) {
	pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, api, clusterapi.ListOptions{})
	nodes, err2 := clusterapi.List[corev1.Node](ctx, api, clusterapi.ListOptions{})
	cv, err3 := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterVersionKey)
	drains, unknown, err4 := rollout.ReadDrains(ctx, api)
	machines := clusterapi.ListOptions{Namespace: machinehealth.Namespace}
	checks, err5 := clusterapi.ReadAll[machinev1beta1.MachineHealthCheck](ctx, api, machines)
	kinds := []string{"MachineConfigPool", "Node", "ClusterVersion", "", "MachineHealthCheck"}
	var errs []error
	for i, err := range []error{err, err2, err3, err4, err5} {
		switch {
		case errors.Is(err, clusterapi.ErrNotCollected):
			unknown = append(unknown, kinds[i])
		case err != nil && !clusterapi.IsAbsent(err):
			errs = append(errs, err)
		}
	}
	slices.Sort(unknown)
	c := Cluster{Pools: pools, Nodes: nodes, Version: cv, Drains: drains, Unknown: unknown}
	for _, check := range checks {
		if machinehealth.ActsOnReady(check) {
			c.HealthChecks = append(c.HealthChecks, check.Name)
		}
	}
	return c, errors.Join(errs...)
}

// builder is what all builders have in common: an index of the cluster, and what
// was found.
type builder struct {
	faults
	c        Cluster
	pools    map[string]*mcfgv1.MachineConfigPool
	nodes    map[string][]*member // by primary pool, in the order in which they are updated
	node     map[string]*member
	warnings []string
	steps    []Step
}

// member is a node with its place.
type member struct {
	*corev1.Node
	state mcp.NodeState
	pool  string // the primary one
}

func newBuilder(c Cluster, id string) *builder {
	b := &builder{
		c:     c,
		pools: map[string]*mcfgv1.MachineConfigPool{},
		nodes: map[string][]*member{},
		node:  make(map[string]*member, len(c.Nodes)),
	}
	if texts := validation.IsDNS1123Label(id); texts != nil {
		b.add("id %s: %s", bounded.Quote(id), strings.Join(texts, "; "))
	}
	for _, kind := range c.Unknown {
		b.warn("not every %s of the cluster is recorded: the plan is made as if there were no others", kind)
	}
	for i := range c.Pools {
		b.pools[c.Pools[i].Name] = &c.Pools[i]
	}
	membership, issues := mcp.NewMembership(c.Pools)
	for _, issue := range issues {
		b.add("%w", issue.Err)
	}
	members := make([]member, len(c.Nodes))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		a := membership.Of(n.Labels)
		if a.Err != nil {
			b.add("node %s: %w", n.Name, a.Err)
		}
		m := &members[i]
		*m = member{n, mcp.NodeStateOf(n), a.Primary}
		b.node[n.Name] = m
		if m.pool != "" {
			b.nodes[m.pool] = append(b.nodes[m.pool], m)
		}
	}
	for _, all := range b.nodes {
		slices.SortFunc(all, func(x, y *member) int { return mcp.CompareNodes(x.state, y.state) })
	}
	return b
}

func (b *builder) warn(format string, args ...any) {
	b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
}

func (b *builder) step(s Step) { b.steps = append(b.steps, s) }

// plan is what was built, or all that is wrong.
func (b *builder) plan(id string, kind string) (Plan, []string, error) {
	if err := b.join(); err != nil {
		return Plan{}, b.warnings, err
	}
	p := Plan{Version: Format, ID: id, Kind: kind, Steps: b.withHealthChecks(b.steps)}
	if err := p.Validate(); err != nil {
		return Plan{}, b.warnings, err
	}
	return p, b.warnings, nil
}

// poolNames are those of all pools, sorted.
func (b *builder) poolNames() []string {
	var out []string
	for name := range b.pools {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// controlPlane are the pools of the control plane that the cluster has.
func (b *builder) controlPlane() []string {
	return slices.DeleteFunc([]string{mcp.PoolMaster, mcp.PoolArbiter}, func(p string) bool { return b.pools[p] == nil })
}

// atRest requires what must be so before any rollout: the pools exist, are
// updated and are not paused, and all of their nodes are available.
func (b *builder) atRest(pools ...string) {
	for _, name := range pools {
		p := b.pools[name]
		if p == nil {
			b.add("pool %s %s", name, b.c.lacks("MachineConfigPool"))
			continue
		}
		if p.Spec.Paused {
			b.add("pool %s is paused", name)
		} else if why := notUpdated(p); why != "" {
			b.add("%s", why)
		}
		if _, warnings, err := mcp.MaxUnavailable(p, len(b.nodes[name])); err != nil {
			b.add("pool %s: %w", name, err)
		} else {
			b.warnings = append(b.warnings, warnings...)
		}
		for _, n := range b.nodes[name] {
			if n.state.Unavailable() {
				b.add("node %s of pool %s is not available: %s", n.Name, name, unavailable(n.state))
			}
		}
	}
}

func unavailable(s mcp.NodeState) string {
	if text := s.NotReadyText(); text != "" {
		return text
	}
	phase, stuck := mcp.PhaseOf(s)
	return "it is " + phase.In(stuck)
}

// idle requires that the cluster is not being updated, and returns its version.
func (b *builder) idle() string {
	switch {
	case b.c.Version != nil:
	case b.c.isUnknown("ClusterVersion"):
		b.add("the ClusterVersion is not recorded")
		return ""
	default:
		b.add("the cluster has no ClusterVersion")
		return ""
	}
	if why := notAt(b.c.Version, ""); why != "" {
		b.add("%s", why)
	}
	return desiredVersion(b.c.Version)
}

// leadsTo requires that the cluster is not being updated and that a version is another one
// than the cluster's, not of an earlier minor version, and supports the kubelets and the
// operating systems of its nodes. It reports whether it supports nodes from packages.
func (b *builder) leadsTo(to string) (packages bool) {
	now := b.idle()
	version(&b.faults, to)
	wanted, err := openshift.ParseVersion(to)
	if err != nil {
		return true
	}
	next := openshift.MinorOf(wanted)
	b.packages(next)
	if has, err := openshift.ParseVersion(now); err == nil {
		switch minor := openshift.MinorOf(has); {
		case now == to:
			b.add("the cluster is at %s already", now)
		case minor.Above(next):
			b.add("version %s is older than the cluster's, which is %s", to, now)
		case wanted.LessThan(has):
			b.warn("version %s is older than the cluster's, which is %s: only the version before that may be rolled back to", to, now)
		case minor != next:
			if !next.Follows(minor) {
				b.warn("an update from %s to %s skips minor versions", now, to)
			}
			b.kubelets([]openshift.Minor{minor, next})
		}
	}
	return next.PackageBased()
}

// verify adds a step that asks checks, which must hold within minutes.
func (b *builder) verify(id string, checks ...Check) {
	soon := metav1.Duration{Duration: 5 * time.Minute}
	b.step(Step{ID: id, Kind: CheckAll, Timeout: soon, Args: Args{Checks: checks}})
}

// others warns of the pools that are not in the plan: those that were paused before
// stay so, the rest is updated with the cluster.
func (b *builder) others(version string, planned ...string) {
	for _, name := range b.compute() {
		switch {
		case slices.Contains(planned, name):
		case b.pools[name].Spec.Paused:
			b.warn("pool %s is paused already, and stays so", name)
		case version != "":
			b.warn("pool %s is not part of the plan: its nodes are updated with the cluster", name)
		}
	}
}

// certificates warns of pools whose nodes get certificates with their
// configuration alone, so that a paused pool does not get them.
func (b *builder) certificates(pools ...string) {
	for _, name := range pools {
		p := b.pools[name]
		if p == nil || len(p.Status.CertExpirys) == 0 {
			continue
		}
		for _, n := range b.nodes[name] {
			if n.Annotations[mcp.AnnotationLastSyncedControllerConfig] == "" {
				c := p.Status.CertExpirys[0]
				b.warn("pool %s: while it is paused its nodes do not get new certificates; %s (%s) expires at %s: pause briefly",
					name, c.Bundle, c.Subject, expiry(c))
				break
			}
		}
	}
}

func expiry(c mcfgv1.CertExpiry) string {
	if c.Expiry == nil {
		return "an unknown time"
	}
	return c.Expiry.UTC().Format("2006-01-02T15:04:05Z")
}

// namesOf are the names of nodes.
func namesOf(nodes []*member) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Name
	}
	return out
}

// setPaused adds a step that pauses pools or unpauses them.
func (b *builder) setPaused(id string, paused bool, pools []string) {
	b.step(Step{ID: id, Kind: SetPaused, Args: Args{Pools: pools, Paused: &paused}})
}

// wait adds a step that waits until pools are updated.
func (b *builder) wait(id string, pools []string) {
	b.step(Step{ID: id, Kind: WaitPools, Args: Args{Pools: pools}})
}

// updateCluster adds a step that updates the cluster while pools are paused.
func (b *builder) updateCluster(id, version, image string, paused []string) {
	s := Step{ID: id, Kind: UpdateCluster, Args: Args{Version: version, Image: image}}
	if len(paused) > 0 {
		s.Needs = []Check{{Kind: poolsPaused, Pools: paused}}
	}
	b.step(s)
}
