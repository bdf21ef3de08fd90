package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Planning costs O(n log n) for n nodes.
func BenchmarkPlanCanary(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		c := clusterOf(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "c", Version: version1, Window: 4 * time.Hour, NodeTime: 8 * time.Minute, MaxUnavailable: max(n/100, 1), SparePercent: 10}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPlanControlPlaneOnly(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		c := clusterOf(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := plan.PlanControlPlaneOnly(c, plan.ControlPlaneOnlyOptions{ID: "c", Versions: []string{version1, version2}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		p, _, err := plan.PlanCanary(clusterOf(n), plan.CanaryOptions{ID: "c", Version: version1, Window: 4 * time.Hour, NodeTime: 8 * time.Minute, MaxUnavailable: max(n/100, 1), SparePercent: 10})
		checktest.OK(b, err)
		text := checktest.Get(plan.Encode(p))(b)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				checktest.OK(b, checktest.Err(plan.Decode(text)))
			}
		})
	}
}
