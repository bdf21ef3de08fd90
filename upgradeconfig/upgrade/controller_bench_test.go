package upgrade_test

import (
	"context"
	"fmt"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// A pass over an upgrade that is over, with older ones behind it: it reads, and
// writes nothing.
func BenchmarkPassNothingToDo(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("history=%d", n), func(b *testing.B) {
			writes := 0
			cluster := serving(memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb != "Get" {
					writes++
				}
				return do(ctx)
			}}))
			c := object(specA, upgradeconfig.Status{})
			for i := range n {
				c.Status.SetEntry(upgradeconfig.HistoryEntry{Version: fmt.Sprintf("4.19.%d", i), Phase: upgradeconfig.PhaseUpgraded})
			}
			c.Status.SetEntry(upgradeconfig.HistoryEntry{Version: specA.Desired.Version, Phase: upgradeconfig.PhaseUpgraded})
			cv := &configv1.ClusterVersion{}
			cv.Name = "version"
			for _, obj := range []any{c, cv} {
				u, err := clusterapi.ToUnstructured(obj)
				if err == nil {
					err = cluster.Load(u)
				}
				checktest.OK(b, err)
			}
			controller := must(upgrade.New(upgrade.Options{API: cluster}))
			b.ReportAllocs()
			for b.Loop() {
				if p, err := controller.Sync(b.Context()); err != nil || p.Phase != upgradeconfig.PhaseUpgraded {
					b.Fatal(p, err)
				}
			}
			if writes > 0 {
				b.Errorf("%d writes", writes)
			}
		})
	}
}
