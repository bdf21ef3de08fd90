package forecast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// BenchmarkRehearse rehearses the update of 43 nodes and 180 pods between two real
// releases.
func BenchmarkRehearse(b *testing.B) {
	from := release(b, "4.17.30", "4.17.30", "4.17.29")
	to := release(b, "4.18.15", "4.18.15", "4.17.30")
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o := simulation.Options{Clock: clock, Release: payload.Release(from.Payload), Pools: []simulation.Pool{{Nodes: 40}}}
	o.ClusterVersion.Channel = "stable-4.18"
	for i := range 30 {
		o.Workloads = append(
			o.Workloads, simulation.Workload{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), Replicas: 6},
		)
	}
	cluster := checktest.Get(simulation.New(o))(b)
	driver := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock}, cluster.Process())
	checktest.OK(b, driver.RunUntil(clock.Now().Add(10*time.Minute)))
	driver.Close()
	for _, runs := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := checktest.Get(forecast.Rehearse(context.Background(), forecast.RehearseOptions{
					Reader: cluster, From: from, To: to, Runs: runs,
				}))(b)
				checktest.Equal(b, forecast.Completed, r.Outcome, "why: %v", r.Why)
			}
		})
	}
}
