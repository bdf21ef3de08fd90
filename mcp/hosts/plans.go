package hosts

import (
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// builder makes a plan that takes one node after another out of service.
type builder struct {
	nodes    map[string]*corev1.Node
	steps    []plan.Step
	problems []error
}

func newBuilder(c plan.Cluster) *builder {
	b := &builder{nodes: make(map[string]*corev1.Node, len(c.Nodes))}
	for i := range c.Nodes {
		b.nodes[c.Nodes[i].Name] = &c.Nodes[i]
	}
	return b
}

func (b *builder) add(format string, args ...any) {
	b.problems = append(b.problems, fmt.Errorf(format, args...))
}

// known returns the nodes of a list that exist, and reports the others and those that come
// twice.
func (b *builder) known(names []string) []*corev1.Node {
	seen := map[string]bool{}
	var out []*corev1.Node
	for _, name := range names {
		n := b.nodes[name]
		switch {
		case seen[name]:
			b.add("node %s comes twice", name)
		case n == nil:
			b.add("node %s does not exist", name)
		default:
			out = append(out, n)
		}
		seen[name] = true
	}
	return out
}

// step adds a step of a kind for a node.
func (b *builder) step(what string, kind plan.StepKind, node string, args plan.Args) {
	args.Node = node
	b.steps = append(b.steps, plan.Step{ID: what + "-" + node, Kind: kind, Args: args})
}

// byHand adds a step by hand that concerns no node.
func (b *builder) byHand(id, text string) {
	b.steps = append(b.steps, plan.Step{ID: id, Kind: plan.Manual, Args: plan.Args{Text: text}})
}

// hook adds a step that calls an action for a node, if there is an action.
func (b *builder) hook(what, action, node string) {
	if action != "" {
		b.step(what, plan.Hook, node, plan.Args{Action: action})
	}
}

// check adds a step that waits for a check to hold.
func (b *builder) check(id string, timeout time.Duration, c plan.Check) {
	b.steps = append(b.steps, plan.Step{ID: id, Kind: plan.CheckAll, Timeout: metav1.Duration{Duration: timeout},
		Args: plan.Args{Checks: []plan.Check{c}}})
}

// ready adds a step that waits until a node is Ready.
func (b *builder) ready(node string) {
	b.check("ready-"+node, time.Hour, plan.Check{Kind: "NodesReady", Nodes: []string{node}})
}

// plan returns what was built, or all that speaks against it.
func (b *builder) plan(c plan.Cluster, id, kind string) (plan.Plan, []string, error) {
	p, warnings, err := plan.PlanNodes(c, plan.Plan{Version: plan.Format, ID: id, Kind: kind, Steps: b.steps})
	if len(b.problems) > 0 {
		return plan.Plan{}, warnings, errors.Join(append(b.problems, err)...)
	}
	return p, warnings, err
}

// idle requires that the cluster is not being updated, and returns its version.
func (b *builder) idle(cv *configv1.ClusterVersion) string {
	switch {
	case cv == nil:
		b.add("the cluster has no ClusterVersion")
		return ""
	case len(cv.Status.History) == 0:
		b.add("the cluster's history is empty")
		return ""
	}
	newest := cv.Status.History[0]
	if newest.State != configv1.CompletedUpdate {
		b.add("the update of the cluster to %s is not complete", newest.Version)
	}
	return newest.Version
}

func isControlPlane(n *corev1.Node) bool {
	_, is := n.Labels[mcp.LabelNodeRolePrefix+mcp.PoolMaster]
	return is
}

// namesOf are the names of some nodes, sorted.
func namesOf(nodes []corev1.Node, include func(*corev1.Node) bool) []string {
	var out []string
	for i := range nodes {
		if include(&nodes[i]) {
			out = append(out, nodes[i].Name)
		}
	}
	slices.Sort(out)
	return out
}
