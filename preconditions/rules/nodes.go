package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/machinehealth"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/operators"
)

// The reasons of nodes by how far their kubelets are from the API server, which are
// those of the API server operator's condition KubeletMinorVersionUpgradeable.
const (
	skewUnsupported     = "KubeletMinorVersionUnsupported"            // too far behind now
	skewAhead           = "KubeletMinorVersionAhead"                  // newer than the API server
	skewVersionUnknown  = "KubeletVersionUnknown"                     // not a version
	skewUnsupportedNext = "KubeletMinorVersionUnsupportedNextUpgrade" // too far behind after the update
)

// kubeletSkewOf judges a node on a path of updates, each to the next minor version:
// kubelet is what the node reports (status.nodeInfo.kubeletVersion), apiServer the
// API server's minor version of Kubernetes 1, minor the minor version of OpenShift,
// and steps how many updates there are before the node is updated. It returns the
// reason, which is empty if the node is supported all the way.
//
// The API server is one minor version further with each step, and as much as each
// minor version of OpenShift allows a kubelet may be behind it.
func kubeletSkewOf(kubelet string, apiServer uint64, minor openshift.Minor, steps int) string {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(kubelet, "v"))
	if err != nil || v.Major() != 1 {
		return skewVersionUnknown
	}
	behind := int64(apiServer) - int64(v.Minor())
	switch {
	case behind > int64(minor.KubeletSkew()):
		return skewUnsupported
	case behind < 0:
		return skewAhead
	}
	for i := 1; i <= steps; i++ {
		minor = minor.Next()[0]
		if behind+int64(i) > int64(minor.KubeletSkew()) {
			return skewUnsupportedNext
		}
	}
	return ""
}

// kubeletSkew: no kubelet is too old for the API server that the update brings.
// Unlike the operator's condition, of which the most severe class hides the
// others, it judges each node.
func kubeletSkew(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	current, err := currentVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	apiServer, err := currentAPIServer(ctx, in, current)
	if err != nil {
		return nil, err
	}
	nodes, err := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	pools, poolsErr := poolNames(ctx, in)
	at := map[string][]preconditions.Object{}
	for _, n := range nodes {
		version := n.Status.NodeInfo.KubeletVersion
		o := nodeObject(n, "status.nodeInfo.kubeletVersion", version, "kubelet "+strings.TrimPrefix(version, "v"))
		if version == "" {
			o.Note = "no kubelet version"
		}
		if pool := pools[n.Name]; pool != "" {
			o.Note += ", pool " + pool
		}
		reason := kubeletSkewOf(version, apiServer, openshift.MinorOf(current), minorSteps(current, in.Target))
		at[reason] = append(at[reason], o)
	}
	const (
		update = "Update these nodes first: unpause their pools, and wait until they are updated"
		next   = "will not be supported in the next OpenShift minor version upgrade"
	)
	server := fmt.Sprintf("the API server (1.%d)", apiServer)
	var found findings
	for _, class := range []struct {
		severity             preconditions.Severity
		reason, one, several string
		remedy               string
	}{
		{preconditions.Blocking, skewUnsupported, "is too far behind " + server, "are too far behind " + server, update},
		{preconditions.Warning, skewAhead, "is ahead of " + server, "are ahead of " + server, "Wait until the control plane is updated"},
		{preconditions.Warning, skewVersionUnknown, "is not a version", "are not versions", "Look at status.nodeInfo of these nodes"},
		{preconditions.Blocking, skewUnsupportedNext, next, next, update},
	} {
		objects := at[class.reason]
		sortObjects(objects)
		found.add(class.severity, class.reason, skewText(objects, class.one, class.several), objects, class.remedy)
	}
	// A pool only makes the message clearer.
	if len(found) == 0 {
		poolsErr = nil
	}
	return found, facts.JoinErrors(err, poolsErr)
}

// skewText names up to three nodes, and counts more.
func skewText(objects []preconditions.Object, one, several string) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	const what = "Kubelet minor versions on"
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Kubelet minor version (%s) on node %s %s.", strings.TrimPrefix(objects[0].Value, "v"), names[0], one)
	case 2:
		return fmt.Sprintf("%s nodes %s and %s %s.", what, names[0], names[1], several)
	case 3:
		return fmt.Sprintf("%s nodes %s, %s, and %s %s.", what, names[0], names[1], names[2], several)
	default:
		return fmt.Sprintf("%s %d nodes %s.", what, n, several)
	}
}

// minorSteps is how many minor versions the update is further. What is not known
// counts as one.
func minorSteps(current, target *semver.Version) int {
	if target == nil {
		return 1
	}
	return max(openshift.MinorOf(current).Steps(openshift.MinorOf(target)), 1)
}

// currentAPIServer returns the minor version of the API server: what its operator
// reports, else what the current release has.
func currentAPIServer(ctx context.Context, in *preconditions.Input, current *semver.Version) (uint64, error) {
	co, err := facts.ReadOrNil[configv1.ClusterOperator](ctx, in.Reader, "", apiServerOperator)
	if co != nil {
		if minor, ok := apiServerMinor(co); ok {
			return minor, nil
		}
	}
	if minor, ok := kubernetesMinor(in, current, in.CurrentPayload); ok {
		return minor, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("the version of the API server in OpenShift %s is not known: the ClusterOperator %s does not report it", current, apiServerOperator)
}

// poolNames returns the name of each node's pool. Without machine config pools there
// are none.
func poolNames(ctx context.Context, in *preconditions.Input) (map[string]string, error) {
	pools, err := readPools(ctx, in)
	names := map[string]string{}
	for _, p := range pools {
		for _, n := range p.nodes {
			names[n.Name] = p.Name
		}
	}
	if notApplicable := new(preconditions.NotApplicableError); errors.As(err, &notApplicable) {
		return names, nil
	}
	return names, err
}

// rhelNodes finds nodes with package-based RHEL, which are not supported from 4.19 on.
// Before, an administrator updates each with a playbook; those of RHEL 7 not even so.
func rhelNodes(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	nodes, err := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	var blocking, others []preconditions.Object
	var unknown []string
	for _, n := range nodes {
		image := n.Status.NodeInfo.OSImage
		o := nodeObject(n, "status.nodeInfo.osImage", image, image)
		if image == "" {
			unknown = append(unknown, n.Name)
			continue
		}
		version, packages := openshift.PackageRHEL(image)
		switch {
		case !packages:
		case isRHEL7(version) || isRHEL7(n.Labels["node.openshift.io/os_version"]) || crosses(in.Transition, "4.19"):
			blocking = append(blocking, o)
		default:
			others = append(others, o)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		err = facts.JoinErrors(err, fmt.Errorf("the operating system of nodes is not known, since status.nodeInfo.osImage is empty: %s", strings.Join(unknown, ", ")))
	}
	var found findings
	found.add(preconditions.Blocking, "PackageModeNodes", "Nodes with package-based RHEL are not supported by this release", blocking,
		"Cordon, drain and delete each, and replace it by one with RHCOS")
	found.add(preconditions.Warning, "PackageModeNodes", "Nodes with package-based RHEL are not updated with the cluster", others,
		"Run the upgrade playbook as each turns NotReady, or replace them by nodes with RHCOS, which 4.19 requires")
	return found, err
}

func isRHEL7(version string) bool { return version == "7" || strings.HasPrefix(version, "7.") }

// singleNode: a cluster with one control plane node is down while that node is updated.
func singleNode(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	size, err := clusterSize(ctx, in)
	if !size.single() {
		return nil, err
	}
	var objects []preconditions.Object
	if size.singleReplica {
		objects = append(objects, infrastructureObject("status.controlPlaneTopology", string(configv1.SingleReplicaTopologyMode)))
	}
	if size.node != "" {
		objects = append(objects, object[corev1.Node]("", size.node, "", "", ""))
	}
	var found findings
	found.addAt(preconditions.Info, "SingleNode", "The cluster has a single control plane node: it is down while that is updated, and no node is drained",
		"Plan the downtime; restoring a backup is not supported here", objects...)
	return found, nil
}

// size is what is special about the size of a cluster.
type size struct {
	singleReplica bool   // the control plane is one node, other nodes may be added
	node          string // the only one in all
}

func (s size) single() bool { return s.singleReplica || s.node != "" }

// notDrained is the error for a single-node cluster, whose nodes are not drained, added
// ones neither.
func (s size) notDrained() error {
	return &preconditions.NotApplicableError{Why: "the cluster has a single control plane node: no node is drained"}
}

// clusterSize looks at the topology and at the nodes. If either is not known the error
// says so, and the other counts.
func clusterSize(ctx context.Context, in *preconditions.Input) (size, error) {
	infrastructure, err := facts.Infrastructure(ctx, in.Reader)
	s := size{singleReplica: infrastructure != nil && infrastructure.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode}
	nodes, nodesErr := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	if nodesErr == nil && len(nodes) == 1 {
		s.node = nodes[0].Name
	}
	if err == nil {
		err = nodesErr
	}
	return s, err
}

// onlyNode is the name of the only node in all; empty if there are more, or it is not
// known.
func onlyNode(ctx context.Context, in *preconditions.Input) string {
	nodes, err := facts.List[corev1.Node](ctx, in.Reader, clusterapi.ListOptions{})
	if err != nil || len(nodes) != 1 {
		return ""
	}
	return nodes[0].Name
}

func infrastructureObject(field, value string) preconditions.Object {
	return object[configv1.Infrastructure]("", "cluster", field, value, "")
}

// machineHealthChecks: a node that reboots looks unhealthy for a time. A check that
// is not paused may have it replaced.
func machineHealthChecks(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	checks, err := facts.List[machinev1beta1.MachineHealthCheck](ctx, in.Reader, clusterapi.ListOptions{Namespace: machinehealth.Namespace})
	var active []preconditions.Object
	for _, c := range checks {
		if machinehealth.ActsOnReady(c) {
			active = append(active, object[machinev1beta1.MachineHealthCheck](c.Namespace, c.Name, "metadata.annotations["+machinehealth.AnnotationPaused+"]", "", ""))
		}
	}
	if len(active) == 0 {
		return nil, optionalAPI(err, "MachineHealthChecks")
	}
	if onlyNode(ctx, in) != "" {
		return nil, &preconditions.NotApplicableError{Why: "the cluster has a single node"}
	}
	var found findings
	found.add(preconditions.Warning, "MachineHealthCheckActive", "Machine health checks may replace nodes that are being updated", active,
		"Pause each for the time of the update: oc -n "+machinehealth.Namespace+" annotate mhc NAME "+machinehealth.AnnotationPaused+"=\"\"")
	return found, err
}

// cgroupV1 finds clusters whose nodes use cgroup v1, which is gone in 4.19: the
// machine-config operator of 4.18 does not let them leave it.
func cgroupV1(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	config, err := readCluster[configv1.Node](ctx, in, "configuration of nodes")
	if config == nil || config.Spec.CgroupMode != "v1" {
		return nil, err // the default is v2
	}
	o := object[configv1.Node]("", "cluster", "spec.cgroupMode", string(config.Spec.CgroupMode), "spec.cgroupMode v1")
	var found findings
	found.add(preconditions.Blocking, "CgroupV1", "The nodes use cgroup v1, which the target does not have", []preconditions.Object{o},
		`Migrate to cgroup v2, from which there is no way back, and which reboots the nodes: oc patch nodes.config cluster --type=merge -p '{"spec":{"cgroupMode":"v2"}}'`)
	return found, nil
}

// bootLoader: updates leave the boot loader as it was installed. Nodes of a
// cluster that was installed with 4.4 or before have one that bootupd does not
// manage before somebody has it adopt it.
func bootLoader(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	cv, err := theClusterVersion(ctx, in)
	if err != nil || len(cv.Status.History) == 0 {
		return nil, err
	}
	oldest := len(cv.Status.History) - 1
	text := cv.Status.History[oldest].Version
	first, err := facts.ParseVersion(text)
	if err != nil {
		return nil, fmt.Errorf("the oldest version of the history, %q: %w", text, err)
	}
	var found findings
	if !openshift.MinorOf(first).Above(openshift.Minor{Major: 4, Minor: 4}) {
		found.addAt(preconditions.Info, "BootLoaderNotAdopted", "The cluster was installed with "+text+", so bootupd may not manage the boot loader of its nodes",
			"Look with: bootupctl status, on each node; then: bootupctl adopt-and-update",
			clusterVersionObject(fmt.Sprintf("status.history[%d].version", oldest), text))
	}
	return found, nil
}

// kernelModules: out-of-tree kernel modules have been built and verified for the
// kernel of the target.
func kernelModules(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	modules, err := facts.List[operators.KernelModule](ctx, in.Reader, clusterapi.ListOptions{})
	err = optionalAPI(err, "out-of-tree kernel modules")
	if err != nil && len(modules) == 0 {
		return nil, err
	}
	if len(modules) == 0 {
		return nil, &preconditions.NotApplicableError{Why: "the cluster has no out-of-tree kernel modules"}
	}
	var found findings
	_, preflights, preflightErr := operators.Preflights(ctx, in.Reader)
	preflightErr = facts.UnlessMissing(preflightErr)
	mine := operators.PreflightOf(preflights, in.TargetImage, in.TargetKernel)
	if mine == nil {
		if preflightErr != nil {
			return nil, facts.JoinErrors(err, preflightErr)
		}
		if in.TargetKernel == "" && slices.ContainsFunc(preflights, func(p *operators.PreflightValidation) bool { return p.Spec.KernelVersion != "" }) {
			return nil, facts.JoinErrors(err, &preconditions.UnknownError{Reason: "KernelVersionUnknown", Why: "the kernel version of the target is not given, by which preflight validations are told apart here"})
		}
		var objects []preconditions.Object
		for _, m := range modules {
			objects = append(objects, object[operators.KernelModule](m.Namespace, m.Name, "", "", ""))
		}
		found.add(preconditions.Warning, "PreflightNotRun", "Out-of-tree kernel modules have not been verified for the target", objects, "Verify them with:\n"+preflightManifest(in))
		return found, err
	}
	var failed []preconditions.Object
	var pending []string
	for _, m := range modules {
		r, ok := mine.Status.Result(m.Namespace, m.Name)
		o := object[operators.KernelModule](m.Namespace, m.Name, "", r.Status, withText("stage "+r.Stage, r.Reason))
		switch {
		case !ok:
			pending = append(pending, fullName(o)+" (not reported)")
		case r.State() == operators.PreflightFailed:
			failed = append(failed, o)
		case r.State() == operators.PreflightPending:
			pending = append(pending, fmt.Sprintf("%s (%s, stage %s)", fullName(o), cmp.Or(r.Status, "no status"), r.Stage))
		}
	}
	if len(pending) > 0 {
		err = facts.JoinErrors(err, &preconditions.UnknownError{Reason: "PreflightPending", Why: fmt.Sprintf("preflight validation %s has not verified yet: %s", mine.Name, strings.Join(pending, ", "))})
	}
	found.add(preconditions.Blocking, "ModuleNotVerified", "Out-of-tree kernel modules failed to verify for the target", failed,
		"Correct these modules, and run the preflight validation "+mine.Name+" again")
	if len(failed) == 0 {
		found.addAt(preconditions.Info, "PreflightDone", "Out-of-tree kernel modules are verified for the target",
			"Delete the preflight validation after use: oc delete preflightvalidationocp "+mine.Name, preconditions.Object{GVK: mine.GroupVersionKind(), Name: mine.Name})
	}
	return found, err
}

// preflightManifest is what to create.
func preflightManifest(in *preconditions.Input) string {
	target := "releaseImage: " + cmp.Or(in.TargetImage, "IMAGE")
	if in.TargetKernel != "" {
		target = "kernelVersion: " + in.TargetKernel
	}
	return fmt.Sprintf("apiVersion: %s/v1beta2\nkind: PreflightValidationOCP\nmetadata:\n  name: preflight\nspec:\n  %s\n", operators.KMMGroup, target)
}
