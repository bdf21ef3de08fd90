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

// Estimate is how long a rollout takes by the books.
type Estimate struct {
	Documented Duration  `json:"documented"` // the formula of the documentation
	Min        Duration  `json:"min"`
	Expected   Duration  `json:"expected"`
	Max        *Duration `json:"max,omitempty"` // nil: nobody can tell
	Blocked    []string  `json:"blocked,omitempty"`
}

// estimate says how long the nodes take from now on, with their drains predicted.
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
	for _, pool := range state.Pools() {
		in.Pools = append(in.Pools, state.EstimatePool(pool, mcp.EstimateView{Drains: &view, Now: r.driver.Now()}))
	}
	e := mcp.EstimateUpdate(in)
	out := &Estimate{Documented: Duration(mcp.EstimateDocumented(in)), Min: Duration(e.Min), Expected: Duration(e.Expected), Max: (*Duration)(e.Max)}
	for _, b := range e.Unbounded {
		out.Blocked = append(out.Blocked, strings.Trim(b.Pool+" > "+b.Node, " >")+": "+b.Text)
	}
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

// String tells the estimate in a line, and what blocks in further ones.
func (e *Estimate) String() string {
	most := "nobody can tell how long at most"
	if e.Max != nil {
		most = "at most " + e.Max.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "estimate: %s, at least %s, %s; %s by the documentation\n", e.Expected, e.Min, most, e.Documented)
	for _, blocked := range e.Blocked {
		b.WriteString("  " + blocked + "\n")
	}
	return b.String()
}
