package mcp_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestBoundDrains(t *testing.T) {
	nodes := []string{"a", "b", "c", "d"}
	on := func(app string, at ...string) (pods []*corev1.Pod) {
		for i, node := range at {
			pods = append(pods, drainedPod(fmt.Sprint(app, i), node, app))
		}
		return pods
	}
	for _, tt := range []struct {
		name    string
		pods    []*corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		{"no budget", on("x", "a", "b"), nil, "[] helps 1, bears 4 []"},
		{"neighbours", on("x", "a", "b", "d"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 3, 2, 3)}, "[] helps 1, bears 1 [ns/p]"},
		{"two apart", on("x", "a", "c"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 2, 1, 2)}, "[] helps 1, bears 2 [ns/p]"},
		{"two allowed", on("x", "a", "b", "d"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 3, 1, 3)}, "[] helps 1, bears 3 [ns/p]"},
		{"all on one", on("x", "a", "a", "a"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 3, 2, 3)}, "[] helps 1, bears 4 []"},
		{"two on one, one on the next", on("x", "a", "a", "b"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 3, 1, 3)}, "[] helps 1, bears 1 [ns/p]"},
		{"the least counts", append(on("x", "a", "c"), on("y", "a", "b")...), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 2, 1, 2), drainBudget("q", "y", 2, 1, 2)}, "[] helps 1, bears 1 [ns/q]"},
		{"two that are alike", append(on("x", "a", "c"), on("y", "b", "d")...), []*policyv1.PodDisruptionBudget{drainBudget("q", "y", 2, 1, 2), drainBudget("p", "x", 2, 1, 2)}, "[] helps 1, bears 2 [ns/p ns/q]"},
		{"two are blocked", on("x", "a", "c"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 2, 2, 2)}, "[a c] helps 3, bears 4 []"},
		{"all are blocked", on("x", "a", "b", "c", "d"), []*policyv1.PodDisruptionBudget{drainBudget("p", "x", 4, 4, 4)}, "[a b c d] helps 0, bears 4 []"},
	} {
		b := mcp.BoundDrains(append(nodes, "a"), drainView(mcp.DrainObjects{Pods: tt.pods, Budgets: tt.budgets}))
		if got := fmt.Sprintf("%v helps %d, bears %d %v", b.Blocked, b.Helps, b.Bears, b.Budgets); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if b := mcp.BoundDrains(nil, mcp.DrainView{}); b.Helps != 0 || b.Bears != 0 {
		t.Errorf("%+v", b)
	}
}

// As many neighbours as the bound says can be drained together without one waiting
// for another, and no more.
func TestBoundDrainsHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := mcp.DrainObjects{Pods: genDrainPods(t), Budgets: genDrainBudgets(t), DaemonSets: theDaemonSets}
		for _, b := range o.Budgets {
			keepBudget(b, o.Pods)
		}
		v := drainView(o)
		nodes := rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(t, "nodes")
		bears := 0
		for k := 1; k <= len(nodes) && bears == k-1; k++ {
			bears = k
			for i := 0; i+k <= len(nodes); i++ {
				if wait(mcp.DrainPlans(nodes[i:i+k], v)) {
					bears = k - 1
				}
			}
		}
		got := mcp.BoundDrains(nodes, v)
		if diff := gocmp.Diff(bears, got.Bears); diff != "" {
			t.Errorf("%s: %+v", diff, got)
		}
		if (got.Bears < len(nodes)) != (len(got.Budgets) > 0) {
			t.Errorf("%+v", got)
		}
	})
}

// wait says that a pod of one node waits for pods of another one.
func wait(drains []mcp.Drain) bool {
	first, several, waits := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, d := range drains {
		for _, p := range d.Pods {
			if p.Verdict == mcp.DrainBlocked || len(p.Budgets) == 0 || p.Text[:2] == "it" { // it takes nothing from the budget
				continue
			}
			b := p.Pod.Namespace + "/" + p.Budgets[0]
			if first[b] == "" {
				first[b] = d.Node
			}
			several[b] = several[b] || first[b] != d.Node
			waits[b] = waits[b] || p.Verdict == mcp.DrainEvictsAfter
		}
	}
	for b := range waits {
		if waits[b] && several[b] {
			return true
		}
	}
	return false
}
