package hosts

import (
	"fmt"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// RHELOptions are the options of [PlanRHEL].
type RHELOptions struct {
	// ID names the plan; required.
	ID string
	// Nodes are updated in this order; nil means all that run Red Hat Enterprise
	// Linux, by name.
	Nodes []string
	// Update names the action that updates one node, such as package rhel's;
	// required.
	Update string
	// The hooks of the documented playbook, as actions that get the node; empty:
	// none. A hook that fails stops the plan, and the node stays as it is.
	PreCordon, PreUpgrade, PreUncordon, PostUpgrade string
	// Prepared leaves out the steps by hand that come first: packages and
	// repositories on the host that runs the playbooks.
	Prepared bool
}

// PlanRHEL builds the documented update of compute nodes that run Red Hat
// Enterprise Linux, after the update of the cluster: one node after another is
// cordoned, drained, updated and uncordoned, with hooks in between.
//
// It costs O(n log n) for n nodes. The error joins all that speaks against it.
func PlanRHEL(c plan.Cluster, o RHELOptions) (p plan.Plan, warnings []string, err error) {
	b := newBuilder(c)
	to := b.idle(c.Version)
	if o.Update == "" {
		b.add("the action that updates a node is needed")
	}
	if o.Nodes == nil {
		o.Nodes = namesOf(c.Nodes, func(n *corev1.Node) bool {
			_, is := openshift.PackageRHEL(n.Status.NodeInfo.OSImage)
			return is
		})
	}
	if len(o.Nodes) == 0 {
		b.add("no node runs Red Hat Enterprise Linux")
	}
	var minor openshift.Minor
	version, versionErr := semver.NewVersion(to)
	if versionErr == nil {
		minor = openshift.MinorOf(version)
	}
	if versionErr == nil && !minor.PackageBased() {
		b.add("the cluster is at %s: OpenShift 4.19 and later do not support compute nodes that run Red Hat Enterprise Linux, "+
			"replace them", to)
	}
	if !o.Prepared {
		b.prepareRHEL(minor)
	}
	for _, n := range b.known(o.Nodes) {
		b.supportedRHEL(n)
		b.hook("pre-cordon", o.PreCordon, n.Name)
		b.step("cordon", plan.Cordon, n.Name, plan.Args{})
		b.step("drain", plan.Drain, n.Name, plan.Args{})
		b.hook("pre-upgrade", o.PreUpgrade, n.Name)
		b.hook("update", o.Update, n.Name)
		b.ready(n.Name)
		b.hook("pre-uncordon", o.PreUncordon, n.Name)
		b.step("uncordon", plan.Uncordon, n.Name, plan.Args{})
		b.hook("post-upgrade", o.PostUpgrade, n.Name)
	}
	if kubernetes, known := minor.Kubernetes(); known && len(o.Nodes) > 0 {
		b.check("kubelets", 10*time.Minute,
			plan.Check{Kind: "KubeletsAtLeast", Nodes: o.Nodes, Version: fmt.Sprintf("v1.%d.0", kubernetes)})
	}
	return b.plan(c, o.ID, "RHEL")
}

// prepareRHEL adds what comes first, by hand. The zero minor version is not known.
func (b *builder) prepareRHEL(minor openshift.Minor) {
	repository := "the repository of the new one"
	if minor != (openshift.Minor{}) {
		repository = fmt.Sprintf("rhocp-%s-for-rhel-8-x86_64-rpms", minor)
	}
	for i, text := range []string{
		"stop and disable firewalld on each of the nodes",
		"on the host that runs the playbooks and on each node, disable the repository of the old minor version and enable " +
			repository,
		"on the host that runs the playbooks: yum swap ansible ansible-core; update openshift-ansible and openshift-clients",
		"list the nodes under [workers] in the inventory",
	} {
		b.byHand(fmt.Sprintf("prepare-%d", i+1), text)
	}
}

// supportedRHEL requires that a node runs a version of Red Hat Enterprise Linux that can
// be updated in place.
func (b *builder) supportedRHEL(n *corev1.Node) {
	image := n.Status.NodeInfo.OSImage
	text, is := openshift.PackageRHEL(image)
	if !is {
		b.add("node %s runs %q, not Red Hat Enterprise Linux", n.Name, image)
		return
	}
	v, err := semver.NewVersion(text)
	switch {
	case err != nil:
		b.add("node %s: version of Red Hat Enterprise Linux: %w", n.Name, err)
	case v.Major() < 8:
		b.add("node %s runs Red Hat Enterprise Linux %s: it is to be replaced", n.Name, text)
	case v.LessThan(semver.New(8, 6, 0, "", "")):
		b.add("node %s runs Red Hat Enterprise Linux %s: 8.6 or later is needed", n.Name, text)
	}
}
