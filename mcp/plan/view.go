package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

var (
	poolKind    = mcfgv1.SchemeGroupVersion.WithKind("MachineConfigPool")
	configKind  = mcfgv1.SchemeGroupVersion.WithKind("MachineConfig")
	nodeKind    = corev1.SchemeGroupVersion.WithKind("Node")
	versionKind = configv1.GroupVersion.WithKind("ClusterVersion")
)

var clusterVersionKey = clusterapi.Key("", "version")

// view reads what checks ask, each list once. It lives for one look.
type view struct {
	ctx      context.Context
	api      clusterapi.Reader
	releases map[string]string // of rendered configs, by name; lives longer

	pools  []*mcfgv1.MachineConfigPool
	nodes  []*corev1.Node
	byName map[string]*corev1.Node
	member *mcp.Membership
	cv     *configv1.ClusterVersion
}

// newView returns a view that has read nothing yet.
func (x *reconciler) newView(ctx context.Context) *view {
	return &view{ctx: ctx, api: x.api, releases: x.releases}
}

// node returns nil if there is no such node.
func (v *view) node(name string) (*corev1.Node, error) {
	nodes, err := v.allNodes()
	if err != nil {
		return nil, err
	}
	if v.byName == nil {
		v.byName = make(map[string]*corev1.Node, len(nodes))
		for _, n := range nodes {
			v.byName[n.Name] = n
		}
	}
	return v.byName[name], nil
}

func (v *view) allPools() (_ []*mcfgv1.MachineConfigPool, err error) {
	if v.pools == nil {
		v.pools, err = clusterapi.ReadAll[mcfgv1.MachineConfigPool](v.ctx, v.api, clusterapi.ListOptions{})
	}
	return v.pools, err
}

// pool returns nil if there is no such pool.
func (v *view) pool(name string) (*mcfgv1.MachineConfigPool, error) {
	pools, err := v.allPools()
	for _, p := range pools {
		if p.Name == name {
			return p, nil
		}
	}
	return nil, err
}

func (v *view) allNodes() (_ []*corev1.Node, err error) {
	if v.nodes == nil {
		v.nodes, err = clusterapi.ReadAll[corev1.Node](v.ctx, v.api, clusterapi.ListOptions{})
	}
	return v.nodes, err
}

func (v *view) membership() (*mcp.Membership, error) {
	if v.member == nil {
		pools, err := v.allPools()
		if err != nil {
			return nil, err
		}
		v.member = membershipOf(pools)
	}
	return v.member, nil
}

func membershipOf(pools []*mcfgv1.MachineConfigPool) *mcp.Membership {
	all := make([]mcfgv1.MachineConfigPool, len(pools))
	for i, p := range pools {
		all[i] = *p
	}
	m, _ := mcp.NewMembership(all)
	return m
}

// nodesOf are the nodes whose primary pool a pool is.
func (v *view) nodesOf(pool string) ([]*corev1.Node, error) {
	member, err := v.membership()
	nodes, err2 := v.allNodes()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	elsewhere := func(n *corev1.Node) bool { return member.Of(n.Labels).Primary != pool }
	return slices.DeleteFunc(slices.Clone(nodes), elsewhere), nil
}

// usersOf are the nodes that have a pool's rendered configuration, or are to get it,
// whatever pool they are in. It goes when the pool does.
func (v *view) usersOf(pool string) (users []*corev1.Node, err error) {
	nodes, err := v.allNodes()
	for _, n := range nodes {
		state := mcp.NodeStateOf(n)
		if renderedFor(pool, state.CurrentConfig) || renderedFor(pool, state.DesiredConfig) {
			users = append(users, n)
		}
	}
	return users, err
}

// parked reports whether one of the nodes keeps its configuration because its pool is
// paused.
func (v *view) parked(nodes []*corev1.Node) (bool, error) {
	member, err := v.membership()
	if err != nil {
		return false, err
	}
	for _, n := range nodes {
		p, err := v.pool(member.Of(n.Labels).Primary)
		if err != nil {
			return false, err
		}
		if p != nil && p.Spec.Paused && mcp.NodeStateOf(n).Done() {
			return true, nil
		}
	}
	return false, nil
}

// renderedFor reports whether a configuration is a pool's, by its name:
// rendered-<pool>-<hash>.
func renderedFor(pool, config string) bool {
	hash, ok := strings.CutPrefix(config, "rendered-"+pool+"-")
	return ok && hash != "" && !strings.Contains(hash, "-")
}

// clusterVersion returns nil if the cluster has none.
func (v *view) clusterVersion() (_ *configv1.ClusterVersion, err error) {
	if v.cv == nil {
		v.cv, err = clusterapi.Read[configv1.ClusterVersion](v.ctx, v.api, clusterVersionKey)
		if clusterapi.IsAbsent(err) {
			return nil, nil
		}
	}
	return v.cv, err
}

// release is the version that a rendered config was made for; "" if that is not
// known.
func (v *view) release(config string) (string, error) {
	if r, known := v.releases[config]; known {
		return r, nil
	}
	o, err := clusterapi.GetShared(v.ctx, v.api, configKind, clusterapi.Key("", config))
	if clusterapi.IsAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r := o.Unstructured().GetAnnotations()[mcp.AnnotationReleaseImageVersion]
	v.releases[config] = r
	return r, nil
}

// updated explains why a pool is not on the configuration that it is to have, "" if
// it is.
func (v *view) updated(name string) (why string, err error) {
	p, err := v.pool(name)
	if err != nil {
		return "", err
	}
	if p == nil {
		return fmt.Sprintf("pool %s does not exist", name), nil
	}
	if why := notUpdated(p); why != "" {
		return why, nil
	}
	has, err := v.release(p.Spec.Configuration.Name)
	if err != nil || has == "" {
		return "", err
	}
	cv, err := v.clusterVersion()
	if err != nil || cv == nil {
		return "", err
	}
	if want := desiredVersion(cv); want != "" && want != has {
		return fmt.Sprintf("pool %s is on the configuration of release %s, the cluster's is %s", name, has, want), nil
	}
	return "", nil
}

// desiredVersion is the cluster's version, also while it is being updated to it.
func desiredVersion(cv *configv1.ClusterVersion) string {
	if len(cv.Status.History) > 0 {
		return cv.Status.History[0].Version
	}
	return cv.Status.Desired.Version
}

// notUpdated explains why a pool is not updated, by itself.
func notUpdated(p *mcfgv1.MachineConfigPool) string {
	says := func(t mcfgv1.MachineConfigPoolConditionType) bool { return poolSays(p, t) }
	counts := fmt.Sprintf("%d of %d nodes are updated", p.Status.UpdatedMachineCount, p.Status.MachineCount)
	switch {
	case says(mcfgv1.MachineConfigPoolDegraded):
		return fmt.Sprintf("pool %s is degraded: %s", p.Name, counts)
	case p.Spec.Configuration.Name == "":
		return fmt.Sprintf("pool %s has no rendered configuration yet", p.Name)
	case p.Status.ObservedGeneration < p.Generation:
		return fmt.Sprintf("pool %s: its status is not of its newest form", p.Name)
	case p.Spec.Configuration.Name != p.Status.Configuration.Name,
		!says(mcfgv1.MachineConfigPoolUpdated), says(mcfgv1.MachineConfigPoolUpdating):
		if p.Spec.Paused {
			return fmt.Sprintf("pool %s is paused: %s", p.Name, counts)
		}
		return fmt.Sprintf("pool %s: %s", p.Name, counts)
	}
	return ""
}

func poolSays(p *mcfgv1.MachineConfigPool, t mcfgv1.MachineConfigPoolConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// clusterAt explains why the cluster is not at a version, "" if it is; version ""
// asks for any.
func (v *view) clusterAt(version string) (why string, err error) {
	cv, err := v.clusterVersion()
	switch {
	case err != nil:
		return "", err
	case cv == nil:
		return "the cluster has no ClusterVersion", nil
	}
	return notAt(cv, version), nil
}

func notAt(cv *configv1.ClusterVersion, version string) string {
	if len(cv.Status.History) == 0 {
		return "the cluster's history is empty"
	}
	newest := cv.Status.History[0]
	switch {
	case version != "" && newest.Version != version:
		return fmt.Sprintf("the cluster's newest update is to %s, not %s%s", newest.Version, version, trouble(cv))
	case newest.State != configv1.CompletedUpdate:
		return fmt.Sprintf("the update of the cluster to %s is not complete%s", newest.Version, trouble(cv))
	}
	return ""
}

// trouble is what the cluster says against its update.
func trouble(cv *configv1.ClusterVersion) (text string) {
	for _, c := range cv.Status.Conditions {
		refused := c.Type == "ReleaseAccepted" && c.Status == configv1.ConditionFalse
		if refused || c.Type == "Failing" && c.Status == configv1.ConditionTrue {
			text += fmt.Sprintf("; %s=%s: %s", c.Type, c.Status, c.Message)
		}
	}
	return text
}

// check explains why a check does not hold, "" if it does.
func (v *view) check(c Check) (why string, err error) {
	switch c.Kind {
	case clusterAt, clusterIdle:
		return v.clusterAt(c.Version)
	case nodesReady, kubeletsAtLeast:
		return v.checkNodes(c)
	case "":
		return "", nil
	}
	var first *mcfgv1.MachineConfigPool
	for _, name := range c.Pools {
		if c.Kind == poolsUpdated {
			if why, err := v.updated(name); why != "" || err != nil {
				return why, err
			}
			continue
		}
		p, err := v.pool(name)
		if err != nil {
			return "", err
		}
		if p == nil {
			return fmt.Sprintf("pool %s does not exist", name), nil
		}
		if first == nil {
			first = p
		}
		switch {
		case c.Kind == poolsHealthy && poolSays(p, mcfgv1.MachineConfigPoolDegraded):
			return fmt.Sprintf("pool %s is degraded", name), nil
		case c.Kind == poolsPaused && !p.Spec.Paused:
			return fmt.Sprintf("pool %s is not paused", name), nil
		case c.Kind == poolsUnpaused && p.Spec.Paused:
			return fmt.Sprintf("pool %s is paused", name), nil
		case c.Kind == poolsSameContent && p != first:
			a, b := first.Spec.Configuration.Name, p.Spec.Configuration.Name
			if !sameConfig(a, b) {
				return fmt.Sprintf("the configurations of pools %s and %s differ: %s, %s", first.Name, name, a, b), nil
			}
		}
	}
	return "", nil
}

func sameConfig(a, b string) bool { return a == b || mcp.SameContent(a, b) }

func (v *view) checkNodes(c Check) (why string, err error) {
	for _, name := range c.Nodes {
		n, err := v.node(name)
		if err != nil {
			return "", err
		}
		if n == nil {
			return fmt.Sprintf("node %s does not exist", name), nil
		}
		s := mcp.NodeStateOf(n)
		s.Unschedulable = false
		if c.Kind == nodesReady && !s.Ready() {
			return s.NotReadyText(), nil
		}
		if c.Kind == kubeletsAtLeast && !kubeletAtLeast(n, c.Version) {
			return fmt.Sprintf("node %s has kubelet %s; %s is needed", name, n.Status.NodeInfo.KubeletVersion, c.Version), nil
		}
	}
	return "", nil
}

func kubeletAtLeast(n *corev1.Node, version string) bool {
	has, err := minorOf(n.Status.NodeInfo.KubeletVersion)
	want, err2 := minorOf(version)
	return err == nil && err2 == nil && has >= want
}

// minorOf is the minor version of Kubernetes 1.x.
func minorOf(version string) (int, error) {
	v, err := semver.NewVersion(strings.TrimPrefix(version, "v"))
	if err != nil {
		return 0, err
	}
	return int(v.Minor()), nil
}
