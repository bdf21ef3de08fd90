package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// RHELOptions are the options of [PlanRHEL].
type RHELOptions struct {
	// ID names the plan; required.
	ID string
	// Nodes are updated in this order; nil means all that run Red Hat Enterprise
	// Linux, by name.
	Nodes []string
	// Update is the action that updates one node: required. It gets the node in
	// Call.Step.Args.
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
func PlanRHEL(c Cluster, o RHELOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	to := b.idle()
	if o.Update == "" {
		b.add("the action that updates a node is needed")
	}
	if o.Nodes == nil {
		for i := range c.Nodes {
			if _, is := isRHEL(&c.Nodes[i]); is {
				o.Nodes = append(o.Nodes, c.Nodes[i].Name)
			}
		}
		slices.Sort(o.Nodes)
	}
	if minor, err := openshiftOf(to); err == nil && !minor.PackageBased() {
		b.add("the cluster is at %s: OpenShift 4.19 and later do not support compute nodes that run Red Hat Enterprise Linux, replace them", to)
	}
	b.validateRHEL(o.Nodes)
	b.drains(b.view(b.c.Nodes), o.Nodes)
	if !o.Prepared {
		b.prepareRHEL(to)
	}
	for _, n := range o.Nodes {
		hook := func(what, action string) {
			if action != "" {
				b.step(Step{ID: what + "-" + n, Kind: Hook, Args: Args{Action: action, Node: n}})
			}
		}
		hook("pre-cordon", o.PreCordon)
		b.step(Step{ID: "cordon-" + n, Kind: Cordon, Args: Args{Node: n}})
		b.step(Step{ID: "drain-" + n, Kind: Drain, Args: Args{Node: n}})
		hook("pre-upgrade", o.PreUpgrade)
		hook("update", o.Update)
		b.ready(n)
		hook("pre-uncordon", o.PreUncordon)
		b.step(Step{ID: "uncordon-" + n, Kind: Uncordon, Args: Args{Node: n}})
		hook("post-upgrade", o.PostUpgrade)
	}
	if minor, err := openshiftOf(to); err == nil && len(o.Nodes) > 0 {
		b.kubeletsReach(minor, o.Nodes)
	}
	return b.plan(o.ID, kindRHEL)
}

// kubeletsReach checks in the end that kubelets are those of a minor version, if that is
// known.
func (b *builder) kubeletsReach(minor openshift.Minor, nodes []string) {
	kubernetes, known := minor.Kubernetes()
	if !known {
		return
	}
	check := Check{Kind: kubeletsAtLeast, Nodes: nodes, Version: fmt.Sprintf("v1.%d.0", kubernetes)}
	b.step(Step{ID: "kubelets", Kind: CheckAll, Timeout: metav1.Duration{Duration: 10 * time.Minute}, Args: Args{Checks: []Check{check}}})
}

// openshiftOf is the minor version of a release.
func openshiftOf(version string) (openshift.Minor, error) {
	v, err := openshift.ParseVersion(version)
	if err != nil {
		return openshift.Minor{}, err
	}
	return openshift.MinorOf(v), nil
}

// prepareRHEL is what comes first, by hand.
func (b *builder) prepareRHEL(to string) {
	repository := "the repository of the new one"
	if minor, err := openshiftOf(to); err == nil {
		repository = fmt.Sprintf("rhocp-%s-for-rhel-8-x86_64-rpms", minor)
	}
	for i, text := range []string{
		"stop and disable firewalld on each of the nodes",
		"on the host that runs the playbooks and on each node, disable the repository of the old minor version and enable " + repository,
		"on the host that runs the playbooks: yum swap ansible ansible-core; update openshift-ansible and openshift-clients",
		"list the nodes under [workers] in the inventory",
	} {
		b.step(Step{ID: fmt.Sprintf("prepare-%d", i+1), Kind: Manual, Args: Args{Text: text}})
	}
}

func (b *builder) validateRHEL(nodes []string) {
	if len(nodes) == 0 {
		b.add("no node runs Red Hat Enterprise Linux")
	}
	oldest := semver.MustParse("8.6.0")
	b.once(nodes, func(n *member) {
		text, is := isRHEL(n.Node)
		v, err := semver.NewVersion(text)
		switch {
		case !is:
			b.add("node %s runs %q, not Red Hat Enterprise Linux", n.Name, n.Status.NodeInfo.OSImage)
		case err != nil:
			b.add("node %s: version of Red Hat Enterprise Linux: %w", n.Name, err)
		case v.Major() < 8:
			b.add("node %s runs Red Hat Enterprise Linux %s: it is to be replaced", n.Name, text)
		case v.LessThan(oldest):
			b.add("node %s runs Red Hat Enterprise Linux %s: 8.6 or later is needed", n.Name, text)
		}
		b.fit(n)
	})
}

// once calls f for each node of a list, and requires that it exists and comes
// once.
func (b *builder) once(nodes []string, f func(*member)) {
	seen := map[string]bool{}
	for _, name := range nodes {
		n := b.node[name]
		switch {
		case seen[name]:
			b.add("node %s comes twice", name)
		case n == nil:
			b.add("node %s does not exist", name)
		default:
			f(n)
		}
		seen[name] = true
	}
}

// fit requires that a node is ready for what is to come.
func (b *builder) fit(n *member) {
	s := n.state
	if s.Unschedulable {
		b.warn("node %s is cordoned already, and stays so", n.Name)
		s.Unschedulable = false
	}
	if !s.Ready() {
		b.add("node %s is not available: %s", n.Name, s.NotReadyText())
	}
}

// ready waits until a node is Ready.
func (b *builder) ready(node string) {
	b.step(Step{ID: "ready-" + node, Kind: CheckAll, Timeout: metav1.Duration{Duration: time.Hour},
		Args: Args{Checks: []Check{{Kind: nodesReady, Nodes: []string{node}}}}})
}

// VSphereHardwareOptions are the options of [PlanVSphereHardware].
type VSphereHardwareOptions struct {
	// ID names the plan; required.
	ID string
	// Nodes are taken in this order, one after another; nil means all: those of the
	// control plane first, by name.
	Nodes []string
	// ShutDown, Upgrade and PowerOn are actions that get the node: shut the guest
	// down (never power it off), upgrade the compatibility of its virtual hardware,
	// power it on. Empty: a person does it.
	ShutDown, Upgrade, PowerOn string
	// Action does all three in place of them, one step for each node, as that of
	// package vmhardware does.
	Action string
	// Template adds the steps by hand for the template of new machines.
	Template bool
}

// PlanVSphereHardware builds the documented upgrade of the virtual hardware of nodes
// on vSphere: one node after another is cordoned, a compute node also drained, shut
// down, upgraded, powered on, awaited and uncordoned. What is not Kubernetes is
// done by actions or by hand.
//
// It costs O(n log n) for n nodes. The error joins all that speaks against it.
func PlanVSphereHardware(c Cluster, o VSphereHardwareOptions) (p Plan, warnings []string, err error) {
	b := newBuilder(c, o.ID)
	if o.Nodes == nil {
		for i := range c.Nodes {
			o.Nodes = append(o.Nodes, c.Nodes[i].Name)
		}
		slices.SortFunc(o.Nodes, func(x, y string) int {
			if cx, cy := isControlPlane(b.node[x]), isControlPlane(b.node[y]); cx != cy {
				if cx {
					return -1
				}
				return 1
			}
			return strings.Compare(x, y)
		})
	}
	if len(o.Nodes) == 0 {
		b.add("the cluster has no nodes")
	}
	if o.Action != "" && o.ShutDown+o.Upgrade+o.PowerOn != "" {
		b.add("action %s shuts down, upgrades and powers on: other actions for that do not go with it", o.Action)
	}
	b.once(o.Nodes, func(n *member) {
		if id := n.Spec.ProviderID; id != "" && !strings.HasPrefix(id, "vsphere://") {
			b.add("node %s is not on vSphere: its provider's ID is %s", n.Name, id)
		}
		b.fit(n)
	})
	drained := slices.DeleteFunc(slices.Clone(o.Nodes), func(n string) bool { return isControlPlane(b.node[n]) })
	b.drains(b.view(b.c.Nodes), drained)
	for _, name := range o.Nodes {
		b.step(Step{ID: "cordon-" + name, Kind: Cordon, Args: Args{Node: name}})
		if n := b.node[name]; n != nil && !isControlPlane(n) {
			b.step(Step{ID: "drain-" + name, Kind: Drain, Args: Args{Node: name}})
		}
		if o.Action != "" {
			b.step(Step{ID: "upgrade-" + name, Kind: Hook, Args: Args{Node: name, Action: o.Action}})
		} else {
			b.hardware(name, o)
		}
		b.ready(name)
		b.step(Step{ID: "uncordon-" + name, Kind: Uncordon, Args: Args{Node: name}})
	}
	if o.Template {
		b.step(Step{ID: "template", Kind: Manual, Args: Args{
			Text: "convert the template to a virtual machine, do not power it on, upgrade its hardware, check its settings, and convert it back to a template"}})
	}
	return b.plan(o.ID, kindVSphereHardware)
}

// hardware upgrades a node's machine in the documented steps.
func (b *builder) hardware(name string, o VSphereHardwareOptions) {
	b.byAction("shut-down-"+name, name, o.ShutDown, "shut down the guest; do not power it off")
	b.byAction("upgrade-"+name, name, o.Upgrade, "upgrade the compatibility of the virtual machine's hardware to version 15 or later (ESXi 7.0U2 or later)")
	b.byAction("power-on-"+name, name, o.PowerOn, "power on the virtual machine")
}

// byAction is a step that an action does, or a person.
func (b *builder) byAction(id, node, action, text string) {
	if action == "" {
		b.step(Step{ID: id, Kind: Manual, Args: Args{Node: node, Text: text}})
		return
	}
	b.step(Step{ID: id, Kind: Hook, Args: Args{Node: node, Action: action}})
}

func isControlPlane(n *member) bool {
	if n == nil {
		return false
	}
	_, is := n.Labels[mcp.LabelNodeRolePrefix+mcp.PoolMaster]
	return is
}
