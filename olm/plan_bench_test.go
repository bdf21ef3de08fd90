package olm_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
)

// chain is a catalog of one package with n versions, each of which replaces the
// one before.
func chain(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("a.v%d X", i+1)
		if i > 0 {
			lines[i] += fmt.Sprintf(" >a.v%d", i)
		}
	}
	return lines
}

func BenchmarkPathTo(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		c := contents(chain(n)...)
		last := fmt.Sprintf("a.v%d", n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				steps, err := c.PathTo("a", "stable", olm.Origin{Name: "a.v1"}, func(e *olm.Entry) bool { return e.Name == last })
				if err != nil || len(steps) != n-1 {
					b.Fatal(len(steps), err)
				}
			}
		})
	}
}

// What is in the way of the cluster's update, with n operators in n namespaces
// that each have two updates to go.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		c := contents("a.v1 X"+limit("4.17"), "a.v2 X >a.v1"+limit("4.18"), "a.v3 X >a.v2"+limit("4.19"))
		var snapshots []*olm.Snapshot
		for i := range n {
			s := snapshot(c, installed("a.v1 X"+limit("4.17")), sub("a", "a.v1"))
			s.Namespace = fmt.Sprintf("ns%d", i)
			s.Installed[0].Namespace, s.Subscriptions[0].Namespace, s.OperatorGroups[0].Namespace = s.Namespace, s.Namespace, s.Namespace
			snapshots = append(snapshots, &s)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := olm.Plan(context.Background(), snapshots, olm.PlanOptions{Target: "4.19"})
				if err != nil || p.Target.Generations != 2 || len(p.Target.Operators) != n {
					b.Fatal(p, err)
				}
			}
		})
	}
}
