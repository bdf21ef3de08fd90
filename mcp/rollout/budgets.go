package rollout

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// readDrains reads what drains are predicted from, where budgets are to choose
// among the nodes that may be targeted now.
func (x *run) readDrains(ctx context.Context, sel mcp.Selection) error {
	if !x.o.OrderByBudgets || len(sel.Nodes) == 0 {
		return nil
	}
	o, err := ReadDrains(ctx, x.o.API)
	if err != nil {
		return err
	}
	o.Topology = x.state.ControlPlaneTopology()
	o.Now = x.now
	x.drains = mcp.NewDrainView(o)
	return nil
}

// ReadDrains reads the pods, budgets and DaemonSets that drains are predicted from. Its
// errors are those of the API; kinds that a cluster or recording lacks are left out.
func ReadDrains(ctx context.Context, api clusterapi.Reader) (mcp.DrainObjects, error) {
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, api, clusterapi.ListOptions{})
	if err != nil && !unknownKind(err) {
		return mcp.DrainObjects{}, err
	}
	budgets, err := clusterapi.ReadAll[policyv1.PodDisruptionBudget](ctx, api, clusterapi.ListOptions{})
	if err != nil && !unknownKind(err) {
		return mcp.DrainObjects{}, err
	}
	daemonSets, err := clusterapi.ReadAll[appsv1.DaemonSet](ctx, api, clusterapi.ListOptions{})
	if err != nil && !unknownKind(err) {
		return mcp.DrainObjects{}, err
	}
	o := mcp.DrainObjects{Pods: pods, Budgets: budgets}
	for _, d := range daemonSets {
		o.DaemonSets = append(o.DaemonSets, clusterapi.Key(d.Namespace, d.Name))
	}
	return o, nil
}
