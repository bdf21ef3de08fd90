package nodes

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// Estimate is how long a rollout takes by the formula of the documentation, and what holds it
// up. The rehearsal itself is the better answer.
type Estimate struct {
	Documented Duration `json:"documented"`
	Blocked    []string `json:"blocked,omitempty"`
}

// estimate says how long the nodes take from now on, and predicts their drains.
// Errors are those of reading the cluster.
func (r *Rehearsal) estimate(ctx context.Context) (*Estimate, error) {
	state, err := r.state(ctx)
	if err != nil {
		return nil, err
	}
	view, err := r.drains(ctx, state.ControlPlaneTopology())
	if err != nil {
		return nil, err
	}
	in := mcp.EstimateInput{ClusterVersionDone: true}
	out := &Estimate{}
	for _, pool := range state.Pools() {
		nodes := state.Nodes(pool)
		limit := state.Candidates(pool).MaxUnavailable
		in.Pools = append(in.Pools, mcp.EstimatePool{Nodes: len(nodes), MaxUnavailable: limit})
		for _, node := range nodes {
			for _, p := range mcp.DrainPlan(node, view).Blocked() {
				text := fmt.Sprintf("%s > %s: pod %s blocks its drain (%s): %s", pool, node, p.Pod, p.Kind, p.Text)
				out.Blocked = append(out.Blocked, text)
			}
		}
	}
	out.Documented = Duration(mcp.EstimateDocumented(in))
	return out, nil
}

// drains is what drains are predicted from.
func (r *Rehearsal) drains(ctx context.Context, topology string) (mcp.DrainView, error) {
	o, err := rollout.ReadDrains(ctx, r.Cluster)
	if err != nil {
		return mcp.DrainView{}, err
	}
	nodes, err := list[corev1.Node](ctx, r)
	if err != nil {
		return mcp.DrainView{}, err
	}
	o.Topology = topology
	o.Now = r.driver.Now()
	o.Nodes = nodes
	return mcp.NewDrainView(o), nil
}

// list returns all objects of a kind, none where the cluster does not have it.
func list[T any](ctx context.Context, r *Rehearsal) ([]*T, error) {
	all, err := clusterapi.ReadAll[T](ctx, r.Cluster, clusterapi.ListOptions{})
	if err != nil && !absent(err) {
		return nil, err
	}
	return all, nil
}

// String is the estimate in a line, and what blocks in further ones.
func (e *Estimate) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "estimate: %s by the formula of the documentation\n", e.Documented)
	for _, blocked := range e.Blocked {
		b.WriteString("  " + blocked + "\n")
	}
	return b.String()
}
