package clusterupdate_test

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestInstallUnderFaults: a cluster without a history is installed and updated,
// whatever goes wrong with calls, events and clocks.
func TestInstallUnderFaults(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for seed := uint64(30); seed < 42; seed += seeds(1, 7) { // in 37 a look comes too early, by a clock that was set back
		c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
			cv.Status = configv1.ClusterVersionStatus{}
		})
		o := clusterupdate.Options{API: c.Cluster, Graph: sampleGraph(t), Verifier: signature.Insecure(), Clock: reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
			Payloads: &initially{PayloadSource: sampleSource(), failures: int(seed % 3)}}
		if seed%2 == 0 {
			o.Own = configv1.Release{Version: sample.FromVersion, Image: sample.FromImage}
		}
		u := checktest.Get(clusterupdate.New(o))(t)
		f := reconcile.Faults{Before: 0.05, After: 0.1, Conflict: 0.1, Slow: 0.05, Stale: 0.1, Late: 0.3, Double: 0.2, Merge: 0.3, Outage: 0.1, ClockBack: 0.2}
		if seed%4 == 0 {
			f.Crash = 0.002
		}
		v := reconcile.NewVirtual(reconcile.VirtualOptions{
			Cluster: c.Cluster, Clock: o.Clock.(*reconcile.Clock), Seed: seed, Order: reconcile.Random, Faults: f,
		}, u.Process())
		if err := v.RunWhile(12*time.Hour, func() bool { return historyOf(c.version(t)) != completedHistory }); err != nil {
			t.Errorf("seed %d: %v: history %s: %+v", seed, err, historyOf(c.version(t)), u.Explain().Actions)
		}
		v.Close()
	}
}
