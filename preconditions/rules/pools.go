package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

const controlPlanePool = "master"

func listPools(ctx context.Context, in *preconditions.Input) ([]*mcfgv1.MachineConfigPool, error) {
	pools, err := facts.List[mcfgv1.MachineConfigPool](ctx, in.Reader, clusterapi.ListOptions{})
	return pools, optionalAPI(err, "machine config pools")
}

func poolObject(name, field, value, note string) preconditions.Object {
	return object[mcfgv1.MachineConfigPool]("", name, field, value, note)
}

func nodeObject(n *corev1.Node, field, value, note string) preconditions.Object {
	return object[corev1.Node]("", n.Name, field, value, note)
}

// poolNodes are a pool and the nodes whose primary pool it is.
type poolNodes struct {
	*mcfgv1.MachineConfigPool
	nodes []*corev1.Node // by name
	known bool           // these are all
}

// readPools returns the pools, by name, with their nodes. The error is for pools and
// nodes that are not known; without machine config pools it is a
// [preconditions.NotApplicableError].
func readPools(ctx context.Context, in *preconditions.Input) ([]*poolNodes, error) {
	pools, err := listPools(ctx, in)
	if err != nil && len(pools) == 0 {
		return nil, err
	}
	nodes, nodesErr := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	values := make([]mcfgv1.MachineConfigPool, len(pools))
	byName := make(map[string]*poolNodes, len(pools))
	out := make([]*poolNodes, len(pools))
	for i, p := range pools {
		values[i] = *p
		out[i] = &poolNodes{MachineConfigPool: p, known: nodesErr == nil}
		byName[p.Name] = out[i]
	}
	members, issues := mcp.NewMembership(values)
	for _, n := range nodes {
		if p := byName[members.Of(n.Labels).Primary]; p != nil {
			p.nodes = append(p.nodes, n)
		}
	}
	errs := []error{err, nodesErr}
	for _, issue := range issues {
		byName[issue.Pool].known = false
		errs = append(errs, issue.Err)
	}
	return out, facts.JoinErrors(errs...)
}

// poolsPaused: the nodes of a paused pool are not updated. That is a fault in
// the control plane, and elsewhere unless it is planned.
func poolsPaused(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := listPools(ctx, in)
	var controlPlane, others []preconditions.Object
	for _, p := range pools {
		o := poolObject(p.Name, "spec.paused", "true", "")
		switch {
		case !p.Spec.Paused:
		case p.Name == controlPlanePool:
			controlPlane = append(controlPlane, o)
		default:
			others = append(others, o)
		}
	}
	severity, meaning := preconditions.Warning, "Pools are paused, their nodes are not updated until they are unpaused"
	switch in.Plan {
	case preconditions.Canary:
		severity, meaning = preconditions.Info, "Pools are paused, as a canary update wants it"
	case preconditions.ControlPlaneOnly:
		severity, meaning = preconditions.Info, "Pools are paused, as a control-plane-only update wants it"
		end := in.PlanTarget
		switch {
		case end != nil && !openshift.MinorOf(end).EUS():
			severity = preconditions.Warning
			meaning = fmt.Sprintf("Pools are paused for a control-plane-only update, but %d.%d, where it ends, is not a minor version with extended update support", end.Major(), end.Minor())
		case end == nil && in.Target != nil && !openshift.MinorOf(in.Target).EUS():
			meaning += ", which goes on from here to a minor version with extended update support"
		}
	}
	const remedy = "Unpause with: oc patch mcp NAME --type=merge -p '{\"spec\":{\"paused\":false}}'"
	var found findings
	found.add(preconditions.Blocking, "ControlPlanePoolPaused", "The pool of the control plane is paused, its nodes would not be updated", controlPlane, remedy)
	found.add(severity, "PoolPaused", meaning, others, remedy)
	return found, err
}

// poolsDegraded: a pool that cannot apply its configuration now will not apply
// the next one.
func poolsDegraded(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := listPools(ctx, in)
	var bad []preconditions.Object
	for _, p := range pools {
		for _, t := range []mcfgv1.MachineConfigPoolConditionType{mcfgv1.MachineConfigPoolDegraded, mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolNodeDegraded} {
			if c := facts.PoolCondition(p, t); c.Status == corev1.ConditionTrue {
				bad = append(bad, poolObject(p.Name, "status.conditions", "True", withText(string(t), c.Message)))
				break // one entry a pool
			}
		}
	}
	var found findings
	found.add(blockMinor(in.Transition), "DegradedPool", "Machine config pools are degraded", bad, "Look at the conditions with: oc describe mcp NAME")
	return found, err
}

// withText adds a text, if there is one, after a colon.
func withText(what, text string) string {
	if text == "" {
		return what
	}
	return what + ": " + text
}

// poolsUpdating: nodes that are still on their way to the last configuration. It
// stops another minor version where they are of the control plane, and elsewhere
// where the plan has the others skip a version.
func poolsUpdating(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := listPools(ctx, in)
	var blocking, others []preconditions.Object
	for _, p := range pools {
		updating := facts.PoolCondition(p, mcfgv1.MachineConfigPoolUpdating).Status == corev1.ConditionTrue
		if p.Spec.Paused || !updating && facts.PoolCondition(p, mcfgv1.MachineConfigPoolUpdated).Status == corev1.ConditionTrue {
			continue
		}
		o := poolObject(p.Name, "status.conditions", "Updated is not True", fmt.Sprintf("%d of %d machines updated", p.Status.UpdatedMachineCount, p.Status.MachineCount))
		if updating {
			o.Value = "Updating=True"
		}
		if leavesMinor(in.Transition) && (p.Name == controlPlanePool || in.Plan == preconditions.ControlPlaneOnly) {
			blocking = append(blocking, o)
		} else {
			others = append(others, o)
		}
	}
	const remedy = "Wait until the pools are updated: oc get mcp"
	var found findings
	found.add(preconditions.Blocking, "PoolUpdating", "Machine config pools are being updated, which this update has to wait for", blocking, remedy)
	found.add(preconditions.Warning, "PoolUpdating", "Machine config pools are being updated", others, remedy)
	return found, err
}

// maxUnavailable: the control plane goes down one node at a time. All at once take
// etcd and the API with them.
func maxUnavailable(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := readPools(ctx, in)
	var found findings
	for _, p := range pools {
		if p.Name != controlPlanePool {
			continue
		}
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		if limitErr != nil {
			return nil, fmt.Errorf("pool %s: %w", p.Name, limitErr)
		}
		if limit <= 1 {
			continue
		}
		severity := preconditions.Warning
		if len(p.nodes) > 1 && limit >= len(p.nodes) && p.known {
			severity = preconditions.Blocking
		}
		value := p.Spec.MaxUnavailable.String()
		found.add(severity, "ControlPlaneMaxUnavailable",
			fmt.Sprintf("%d of the %d nodes of the control plane may be updated at a time", limit, len(p.nodes)),
			[]preconditions.Object{poolObject(p.Name, "spec.maxUnavailable", value, "maxUnavailable "+value)},
			"Set it back to 1: oc patch mcp master --type=merge -p '{\"spec\":{\"maxUnavailable\":1}}'")
	}
	return found, err
}

// nodesUnavailable finds nodes that take the place of nodes that could be updated. A
// pool in which they take all places stands still. A node that the machine-config
// operator is updating does not count: that is a rollout at work, which ends by itself.
func nodesUnavailable(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return nil, err
	}
	if onlyNode(ctx, in) != "" {
		return nil, &preconditions.NotApplicableError{Why: "the cluster has a single node"}
	}
	var found findings
	for _, p := range pools {
		if !p.Spec.Paused {
			p.unavailable(in.Transition, &found)
		}
	}
	return found, err
}

// unavailable judges one pool.
func (p *poolNodes) unavailable(t preconditions.Transition, found *findings) {
	var down []preconditions.Object
	cordoned := false
	for _, n := range p.nodes {
		state := mcp.NodeStateOf(n)
		if state.Unavailable() && !inHand(state) {
			down = append(down, unavailableNode(n, state))
			cordoned = cordoned || state.Unschedulable
		}
	}
	noRoom := preconditions.Warning
	if p.Name == controlPlanePool {
		noRoom = blockMinor(t)
	}
	limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
	if limitErr != nil { // not one node is updated until it is put right
		at := poolObject(p.Name, "spec.maxUnavailable", p.Spec.MaxUnavailable.String(), "")
		*found = append(*found, newFinding(noRoom, "NoRoomToUpdate", fmt.Sprintf("Not one node of pool %s would be updated: %v", p.Name, limitErr),
			append(down, at), "Correct spec.maxUnavailable of the pool"))
		return
	}
	remedy := "Bring these nodes back: oc describe node NAME"
	if cordoned {
		remedy += "; those that an administrator cordoned: oc adm uncordon NAME"
	}
	if len(down) >= limit {
		found.add(noRoom, "NoRoomToUpdate",
			fmt.Sprintf("Not one node of pool %s would be updated: %d are unavailable, and %d may be", p.Name, len(down), limit), down, remedy)
		return
	}
	found.add(preconditions.Warning, "NodesUnavailable",
		fmt.Sprintf("%d of %d nodes of pool %s are unavailable, of which %d may be", len(down), len(p.nodes), p.Name, limit), down, remedy)
}

// inHand reports whether the machine-config operator is taking a node from one
// configuration to another and has not failed.
func inHand(s mcp.NodeState) bool {
	if s.Degraded() || s.Unreconcilable() {
		return false
	}
	return s.CurrentConfig != s.DesiredConfig || !s.ImageDone() || s.DesiredDrain != s.LastAppliedDrain
}

// unavailableNode explains why a node is unavailable.
func unavailableNode(n *corev1.Node, state mcp.NodeState) preconditions.Object {
	switch {
	case state.Ready():
		return nodeObject(n, "metadata.annotations", "", "its machine config daemon is not done")
	case n.Spec.Unschedulable:
		return nodeObject(n, "spec.unschedulable", "true", "unschedulable")
	}
	return nodeObject(n, "status.conditions", "", state.NotReadyText())
}

// osImageStreamKinds are the versions of the kind, the newest first.
func osImageStreamKinds() []schema.GroupVersionKind {
	kind := schema.GroupVersionKind{Group: mcfgv1.GroupName, Kind: "OSImageStream"}
	return []schema.GroupVersionKind{kind.GroupKind().WithVersion("v1"), kind.GroupKind().WithVersion("v1alpha1")}
}

const (
	runtimeRunc     = "runc"
	rhel10Stream    = "rhel-10" // what the names of streams of RHCOS 10 start with
	runtimeOverride = "-generated-crio-default-container-runtime"
)

// runc finds what makes nodes run containers with runc. RHCOS 10 does not have it: the
// machine-config operator renders no configuration for a pool that is to have both, which
// is degraded then. Files of CRI-O in machine configs that an administrator wrote are not
// read.
func runc(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	pools, err := listPools(ctx, in)
	if err != nil && len(pools) == 0 {
		return nil, err
	}
	configs, configsErr := facts.List[mcfgv1.ContainerRuntimeConfig](ctx, in.Reader, clusterapi.ListOptions{})
	err = facts.JoinErrors(err, facts.UnlessMissing(configsErr))
	configured := map[string]bool{} // configs with runc; false: the finding about their pools says it
	for _, c := range configs {
		if runtimeOf(c) == runtimeRunc {
			configured[c.Name] = true
		}
	}
	var blocking, others []preconditions.Object
	for _, p := range pools {
		config, uses := runcOf(p, pools, configs)
		if !uses {
			continue
		}
		by := "ContainerRuntimeConfig " + config
		if config == "" {
			by = "MachineConfig " + overrideOf(p)
		}
		stream, streamErr := osImageStream(ctx, in, p)
		err = facts.JoinErrors(err, streamErr)
		switch {
		case strings.HasPrefix(stream, rhel10Stream):
			configured[config] = false
			blocking = append(blocking, poolObject(p.Name, "spec.osImageStream.name", stream, "OS image stream "+stream+", runc by "+by))
		case config == "":
			others = append(others, poolObject(p.Name, "spec.configuration.source", overrideOf(p), by))
		}
	}
	for _, c := range configs {
		if configured[c.Name] {
			others = append(others, object[mcfgv1.ContainerRuntimeConfig]("", c.Name, "spec.containerRuntimeConfig.defaultRuntime", runtimeRunc, "ContainerRuntimeConfig"))
		}
	}
	var found findings
	const remedy = "Migrate to crun: delete the MachineConfigs 00-override-NAME" + runtimeOverride + ", and set defaultRuntime: crun in ContainerRuntimeConfigs"
	found.add(preconditions.Blocking, "RuncNotAvailable", "Pools are to have RHCOS 10, which does not have the container runtime runc that they use", blocking, remedy)
	found.add(preconditions.Warning, "RuncDeprecated", "The container runtime runc is deprecated, and RHCOS 10 does not have it", others, remedy)
	return found, err
}

func runtimeOf(c *mcfgv1.ContainerRuntimeConfig) string {
	if c.Spec.ContainerRuntimeConfig == nil {
		return ""
	}
	return string(c.Spec.ContainerRuntimeConfig.DefaultRuntime)
}

// runcOf reports whether the nodes of a pool use runc, and by which ContainerRuntimeConfig:
// the newest that sets a runtime for the pool or, as custom pools get what workers get, for
// the pool worker. Without one it is what the update to 4.18 kept.
func runcOf(p *mcfgv1.MachineConfigPool, pools []*mcfgv1.MachineConfigPool, configs []*mcfgv1.ContainerRuntimeConfig) (config string, uses bool) {
	of := []*mcfgv1.MachineConfigPool{p}
	if p.Name != controlPlanePool {
		for _, other := range pools {
			if other.Name == mcp.PoolWorker {
				of = append(of, other)
			}
		}
	}
	var newest *mcfgv1.ContainerRuntimeConfig
	for _, c := range configs {
		if runtimeOf(c) == "" || !slices.ContainsFunc(of, func(p *mcfgv1.MachineConfigPool) bool { return selectsPool(c, p) }) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp) {
			newest = c
		}
	}
	switch {
	case newest == nil:
		return "", overrideOf(p) != ""
	case runtimeOf(newest) == runtimeRunc:
		return newest.Name, true
	}
	return "", false
}

// selectsPool reports whether a config is for a pool. One without a selector, or with one
// that is not valid, is for none.
func selectsPool(c *mcfgv1.ContainerRuntimeConfig, p *mcfgv1.MachineConfigPool) bool {
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.MachineConfigPoolSelector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// overrideOf is the name of the MachineConfig by which the update to 4.18 kept runc for the
// nodes of a pool; empty if absent.
func overrideOf(p *mcfgv1.MachineConfigPool) string {
	for _, source := range p.Spec.Configuration.Source {
		if strings.HasSuffix(source.Name, runtimeOverride) {
			return source.Name
		}
	}
	return ""
}

// osImageStream is the stream that the nodes of a pool are to have: the pool's own, else
// the cluster's, which by default is the one of the release that installed it. It is empty
// if absent or unknown.
func osImageStream(ctx context.Context, in *preconditions.Input, p *mcfgv1.MachineConfigPool) (string, error) {
	if p.Spec.OSImageStream.Name != "" {
		return p.Spec.OSImageStream.Name, nil
	}
	for _, gvk := range osImageStreamKinds() {
		o, err := clusterapi.GetShared(ctx, in.Reader, gvk, clusterapi.Key("", "cluster"))
		if clusterapi.IsMissing(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		stream, _, err := unstructured.NestedString(o.Unstructured().Object, "status", "defaultStream")
		if err != nil {
			return "", fmt.Errorf("OSImageStream cluster: %w", err)
		}
		return stream, nil
	}
	cv, err := facts.ClusterVersion(ctx, in.Reader)
	if err != nil || cv == nil || len(cv.Status.History) == 0 {
		return "", err
	}
	installed := facts.VersionOrNil(cv.Status.History[len(cv.Status.History)-1].Version)
	if installed != nil && installed.Major() >= 5 {
		return rhel10Stream, nil
	}
	return "", nil
}
