package risk_test

import (
	"context"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// targets returns n available and n conditional updates, each of which has one
// risk of its own and one that all share.
func targets(n int) (available []configv1.Release, conditional []configv1.ConditionalUpdate) {
	for i := range n {
		available = append(available, graphtest.Release(fmt.Sprintf("4.1.%d", i)))
		conditional = append(conditional, graphtest.Update(fmt.Sprintf("4.2.%d", i), graphtest.Risk("All", "F"), graphtest.Risk(fmt.Sprint("R", i), "T")))
	}
	return available, conditional
}

// A list of ten times the length takes some ten times as long.
func BenchmarkEvaluateTargets(b *testing.B) {
	for _, n := range []int{160, 1_600, 16_000} {
		available, conditional := targets(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := risk.Evaluator{Matcher: graphtest.Facts}.Evaluate(context.Background(), available, conditional, conditional, graphtest.Start)
				if len(e.Verdicts) != n+1 {
					b.Fatal(len(e.Verdicts))
				}
			}
		})
	}
}

func BenchmarkMergeTargets(b *testing.B) {
	for _, n := range []int{160, 1_600, 16_000} {
		available, conditional := targets(n)
		set := risk.Set{Risks: []configv1.ConditionalUpdateRisk{graphtest.Risk("Cluster", "T")}, Versions: map[string][]string{"Cluster": risk.TargetVersions(available, conditional)}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, merged, err := risk.Merge(available, conditional, set); err != nil || len(merged) != 2*n {
					b.Fatal(len(merged), err)
				}
			}
		})
	}
}
