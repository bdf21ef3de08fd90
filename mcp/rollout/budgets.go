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
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, x.o.API, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	budgets, err := clusterapi.ReadAll[policyv1.PodDisruptionBudget](ctx, x.o.API, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	daemonSets, err := clusterapi.ReadAll[appsv1.DaemonSet](ctx, x.o.API, clusterapi.ListOptions{})
	if err != nil {
		return err
	}
	o := mcp.DrainObjects{Pods: pods, Budgets: budgets, Topology: x.state.ControlPlaneTopology(), Now: x.now}
	for _, d := range daemonSets {
		o.DaemonSets = append(o.DaemonSets, clusterapi.Key(d.Namespace, d.Name))
	}
	x.drains = mcp.NewDrainView(o)
	return nil
}
