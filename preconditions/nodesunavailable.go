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

// nodesUnavailable: a node that is unavailable, for whatever reason, takes the place
// of one that could be updated. A pool in which they take all places stands still.
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
		var down []Object
		for _, n := range p.nodes {
			if state := mcp.NodeStateOf(n); state.Unavailable() {
				down = append(down, unavailableNode(n, state))
			}
		}
		limit, _, limitErr := mcp.MaxUnavailable(p.MachineConfigPool, len(p.nodes))
		severity, reason := Warning, "NodesUnavailable"
		meaning := fmt.Sprintf("%d of %d nodes of pool %s are unavailable, of which %d may be", len(down), len(p.nodes), p.Name, limit)
		remedy := "Bring these nodes back: oc describe node NAME; oc adm uncordon NAME"
		switch {
		case limitErr != nil: // the pool never goes on
			reason, meaning = "NoRoomToUpdate", fmt.Sprintf("Not one node of pool %s would be updated: %v", p.Name, limitErr)
			down = append(down, poolObject(p.Name, "spec.maxUnavailable", p.Spec.MaxUnavailable.String(), ""))
			remedy = "Correct spec.maxUnavailable of the pool"
		case len(down) == 0:
			continue
		case len(down) >= limit:
			reason = "NoRoomToUpdate"
			meaning = fmt.Sprintf("Not one node of pool %s would be updated: %d are unavailable, and %d may be", p.Name, len(down), limit)
		}
		if reason == "NoRoomToUpdate" && p.Name == controlPlanePool {
			severity = Blocking
		}
		findings = append(findings, newFinding(severity, reason, meaning, down, remedy))
	}
	return findings, err
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
