package upgradeconfig_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/fixture"
)

// A sync that finds all in step, which nearly all are.
func BenchmarkSyncNoChange(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			writes := 0
			cluster := serving(memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb != "Get" {
					writes++
				}
				return do(ctx)
			}}))
			all := make([]upgradeconfig.Policy, n)
			for i := range all {
				all[i] = upgradeconfig.Policy{ID: "p", Spec: specA}
			}
			provider := fixture.ProviderFunc(func(context.Context) ([]upgradeconfig.Policy, error) { return all, nil })
			m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: cluster, Provider: provider}))
			must(clusterapi.Create(b.Context(), cluster, object(specA, underWay("4.20.3")), clusterapi.CreateOptions{}))
			writes = 0
			b.ReportAllocs()
			for b.Loop() {
				if r, err := m.Sync(b.Context()); err != nil || r.Changed {
					b.Fatal(r, err)
				}
			}
			if writes > 0 {
				b.Fatalf("%d writes", writes)
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	current := object(specA, underWay("4.20.3"))
	other := with(specA, func(s *upgradeconfig.Spec) { s.UpgradeAt = "2031-02-04T05:00:00+02:00" })
	for name, specs := range map[string][]upgradeconfig.Spec{"equal": {specA}, "same instant": {other}, "different": {specB}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				upgradeconfig.Diff(current, specs, upgradeconfig.DiffOptions{})
			}
		})
	}
}
