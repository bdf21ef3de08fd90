package rollout

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// readDrains reads what drains are predicted from, where budgets are to choose
// among the nodes that may be targeted now.
func (x *run) readDrains(ctx context.Context, sel mcp.Selection) error {
	if !x.o.OrderByBudgets || len(sel.Nodes) == 0 {
		return nil
	}
	o, _, err := ReadDrains(ctx, x.o.API)
	if err != nil {
		return err
	}
	o.Topology = x.state.ControlPlaneTopology()
	o.Now = x.now
	x.drains = mcp.NewDrainView(o)
	return nil
}

// ReadDrains reads the pods, budgets and DaemonSets that drains are predicted from. unknown
// are those kinds of which a recording lacks some objects or all; DaemonSets that pods name
// exist in any case. Its error joins those of the API; a kind that a cluster does not have
// is none.
func ReadDrains(ctx context.Context, api clusterapi.Reader) (o mcp.DrainObjects, unknown []string, err error) {
	all := clusterapi.ListOptions{}
	pods, err := clusterapi.ReadAll[corev1.Pod](ctx, api, all)
	budgets, err2 := clusterapi.ReadAll[policyv1.PodDisruptionBudget](ctx, api, all)
	daemonSets, err3 := clusterapi.ReadAll[appsv1.DaemonSet](ctx, api, all)
	kinds := []string{"Pod", "PodDisruptionBudget", "DaemonSet"}
	var errs []error
	for i, err := range []error{err, err2, err3} {
		switch {
		case errors.Is(err, clusterapi.ErrNotCollected):
			unknown = append(unknown, kinds[i])
		case err != nil && !unknownKind(err):
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return mcp.DrainObjects{}, nil, err
	}
	o = mcp.DrainObjects{Pods: pods, Budgets: budgets}
	for _, d := range daemonSets {
		o.DaemonSets = append(o.DaemonSets, clusterapi.Key(d.Namespace, d.Name))
	}
	for _, p := range pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if slices.Contains(unknown, "DaemonSet") && owner != nil && owner.Kind == "DaemonSet" {
			o.DaemonSets = append(o.DaemonSets, clusterapi.Key(p.Namespace, owner.Name))
		}
	}
	return o, unknown, nil
}
