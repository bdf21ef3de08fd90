package preconditions

import (
	"context"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func nodesUnavailableCheck() Check {
	return documented{Rule{
		Name: "NodesUnavailable", Severities: []Severity{Warning, Blocking},
		Source: "Understanding OpenShift updates, How updates are applied", Link: docsUnderstanding,
		Reads: []schema.GroupVersionKind{gvkOf[corev1.Node](), gvkOf[mcfgv1.MachineConfigPool]()},
	}, nodesUnavailable}
}

// nodesUnavailable finds nodes that take the place of nodes that could be updated. A
// pool in which they take all places stands still. A node that the machine-config
// operator is updating does not count: that is a rollout at work, which ends by itself.
func nodesUnavailable(ctx context.Context, in *Input) ([]Finding, error) {
	pools, err := readPools(ctx, in)
	if pools == nil {
		return nil, err
	}
	if onlyNode(ctx, in) != "" {
		return nil, &NotApplicableError{Why: "the cluster has a single node"}
	}
	var findings []Finding
	for _, p := range pools {
		if p.Spec.Paused {
			continue
		}
		if f := p.unavailable(in.Transition); f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, err
}

// unavailable judges one pool; nil means that nothing is wrong with it.
func (p *poolNodes) unavailable(t Transition) *Finding {
	var down []Object
	cordoned := false
	for _, n := range p.nodes {
		state := mcp.NodeStateOf(n)
		if state.Unavailable() && !inHand(state) {
			down = append(down, unavailableNode(n, state))
			cordoned = cordoned || state.Unschedulable
		}
	}
	noRoom := Warning
	if p.Name == controlPlanePool {
		noRoom = blockMinor(t)
	}
	limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
	if limitErr != nil { // the pool never goes on
		down = append(down, poolObject(p.Name, "spec.maxUnavailable", p.Spec.MaxUnavailable.String(), ""))
		f := newFinding(noRoom, "NoRoomToUpdate", fmt.Sprintf("Not one node of pool %s would be updated: %v", p.Name, limitErr), down,
			"Correct spec.maxUnavailable of the pool")
		return &f
	}
	if len(down) == 0 {
		return nil
	}
	remedy := "Bring these nodes back: oc describe node NAME"
	if cordoned {
		remedy += "; those that an administrator cordoned: oc adm uncordon NAME"
	}
	f := newFinding(Warning, "NodesUnavailable",
		fmt.Sprintf("%d of %d nodes of pool %s are unavailable, of which %d may be", len(down), len(p.nodes), p.Name, limit), down, remedy)
	if len(down) >= limit {
		f = newFinding(noRoom, "NoRoomToUpdate",
			fmt.Sprintf("Not one node of pool %s would be updated: %d are unavailable, and %d may be", p.Name, len(down), limit), down, remedy)
	}
	return &f
}

// inHand reports whether the machine-config operator is taking a node from one
// configuration to another and has not failed.
func inHand(s mcp.NodeState) bool {
	if s.Degraded() || s.Unreconcilable() {
		return false
	}
	return s.CurrentConfig != s.DesiredConfig || !s.ImageDone() || s.DesiredDrain != s.LastAppliedDrain
}

// unavailableNode says why a node is unavailable.
func unavailableNode(n *corev1.Node, state mcp.NodeState) Object {
	if state.Ready() {
		return nodeObject(n, "metadata.annotations", "", "its machine config daemon is not done")
	}
	if n.Spec.Unschedulable {
		return nodeObject(n, "spec.unschedulable", "true", "unschedulable")
	}
	return nodeObject(n, "status.conditions", "", state.NotReadyText())
}
