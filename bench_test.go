package clusterupdate_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"

	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// BenchmarkWholeUpdate makes a simulated cluster and updates it in virtual
// time, its operators and nodes included.
func BenchmarkWholeUpdate(b *testing.B) {
	b.Run("sample", func(b *testing.B) {
		two := intstr.FromInt32(2)
		wholeUpdate(b, sample.From(), sample.To(), simulation.Options{
			Pools:     []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
			Workloads: []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}},
		})
	})
	b.Run("real/nodes=43/pods=180", func(b *testing.B) {
		dir := testdata.Dir(b)
		one, share := intstr.FromInt32(1), intstr.FromString("10%")
		o := simulation.Options{Pools: []simulation.Pool{{Nodes: 40, MaxUnavailable: &share}}}
		for i := range 30 {
			o.Workloads = append(o.Workloads, simulation.Workload{Namespace: fmt.Sprintf("apps-%d", i%10), Name: fmt.Sprintf("app-%d", i), Replicas: 6, MaxUnavailable: &one})
		}
		wholeUpdate(b, os.DirFS(filepath.Join(dir, "payload-4.17.30")), os.DirFS(filepath.Join(dir, "payload-4.18.15")), o)
	})
}

func wholeUpdate(b *testing.B, fromFS, toFS fs.FS, o simulation.Options) {
	from, to := loadSample(b, fromFS, sample.FromImage), loadSample(b, toFS, sample.ToImage)
	o.Release, o.ClusterVersion = payload.Release(from), simulation.ClusterVersion{Channel: "stable-4.21"}
	next, source := payload.Release(to), twoNodeGraph(b, from, to)
	b.ReportAllocs()
	for b.Loop() {
		clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		o.Clock = clock
		cluster := checktest.Get(simulation.New(o))(b)
		cluster.Expect(next)
		updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
			API: cluster,
			Payloads: manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
				return map[string]fs.FS{from.Release.Image: fromFS, to.Release.Image: toFS}[r.Image], nil
			}),
			Graph: source, Verifier: signature.Insecure(), Clock: clock,
		}))(b)
		nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: clock}))(b)
		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1}, cluster.Process(), nodes.Process(), updater.Process())
		if err := v.RunUntil(v.Now().Add(10 * time.Minute)); err != nil { // the cluster is kept as it is
			b.Fatal(err)
		}
		modify(b, cluster, false, func(cv *configv1.ClusterVersion) {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: to.Release.Version}
		})
		for limit := v.Now().Add(24 * time.Hour); !updated(b, cluster, to.Release); {
			if v.Now().After(limit) {
				b.Fatal("the cluster was not updated within a day")
			}
			checktest.OK(b, v.RunUntil(v.Now().Add(time.Minute)))
		}
		v.Close()
	}
}
