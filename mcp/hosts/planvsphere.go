package hosts

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

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
	// Action replaces all three with one step for each node, such as package
	// vmhardware's action.
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
func PlanVSphereHardware(c plan.Cluster, o VSphereHardwareOptions) (p plan.Plan, warnings []string, err error) {
	b := newBuilder(c)
	if o.Nodes == nil {
		compute := namesOf(c.Nodes, func(n *corev1.Node) bool { return !isControlPlane(n) })
		o.Nodes = append(namesOf(c.Nodes, isControlPlane), compute...)
	}
	if len(o.Nodes) == 0 {
		b.add("the cluster has no nodes")
	}
	if o.Action != "" && o.ShutDown+o.Upgrade+o.PowerOn != "" {
		b.add("action %s shuts down, upgrades and powers on: other actions for that do not go with it", o.Action)
	}
	for _, n := range b.known(o.Nodes) {
		if id := n.Spec.ProviderID; id != "" && !strings.HasPrefix(id, "vsphere://") {
			b.add("node %s is not on vSphere: its provider's ID is %s", n.Name, id)
		}
		b.step("cordon", plan.Cordon, n.Name, plan.Args{})
		if !isControlPlane(n) {
			b.step("drain", plan.Drain, n.Name, plan.Args{})
		}
		if o.Action != "" {
			b.hook("upgrade", o.Action, n.Name)
		} else {
			b.byAction("shut-down", n.Name, o.ShutDown, "shut down the guest; do not power it off")
			b.byAction("upgrade", n.Name, o.Upgrade,
				"upgrade the compatibility of the virtual machine's hardware to version 15 or later (ESXi 7.0U2 or later)")
			b.byAction("power-on", n.Name, o.PowerOn, "power on the virtual machine")
		}
		b.ready(n.Name)
		b.step("uncordon", plan.Uncordon, n.Name, plan.Args{})
	}
	if o.Template {
		b.byHand("template", "convert the template to a virtual machine, do not power it on, upgrade its hardware, "+
			"check its settings, and convert it back to a template")
	}
	return b.plan(c, o.ID, "VSphereHardware")
}

// byAction adds a step that an action does, or a person if there is none.
func (b *builder) byAction(what, node, action, text string) {
	if action == "" {
		b.step(what, plan.Manual, node, plan.Args{Text: text})
		return
	}
	b.hook(what, action, node)
}
