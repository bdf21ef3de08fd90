package preconditions

import (
	"context"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// poolNodes are a pool and the nodes whose primary pool it is.
type poolNodes struct {
	*mcfgv1.MachineConfigPool
	nodes []*corev1.Node // by name
	known bool           // these are all
}

// readPools returns the pools, by name, with their nodes. The error is for pools and
// nodes that are not known; without machine config pools it is a
// [NotApplicableError].
func readPools(ctx context.Context, in *Input) ([]*poolNodes, error) {
	pools, err := listPools(ctx, in)
	if err != nil && len(pools) == 0 {
		return nil, err
	}
	nodes, nodesErr := list[corev1.Node](ctx, in, clusterapi.ListOptions{})
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
	return out, joinErrors(errs...)
}

func nodeObject(n *corev1.Node, field, value, note string) Object {
	return Object{GVK: gvkOf[corev1.Node](), Name: n.Name, FieldPath: field, Value: value, Note: note}
}
