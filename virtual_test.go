package clusterupdate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// virtualUpdate updates the sample in virtual time, under faults and with
// crashes, and returns the events as text. prepare, if not nil, gets the run before it
// starts.
func virtualUpdate(t *testing.T, from, to *manifest.Payload, v reconcile.VirtualOptions, prepare func(*virtualRun)) string {
	t.Helper()
	c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
		cv.UID = "11111111-2222-3333-4444-555555555555"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
		cv.Status.AvailableUpdates = []configv1.Release{{Version: sample.ToVersion, Image: sample.ToImage}}
	})
	order := newOrderCheck(to, sample.To())
	var events strings.Builder
	o := sampleOptions(t)
	o.Observe = func(e clusterapi.Event) {
		order.observe(e)
		line, err := json.Marshal(e)
		checktest.Good(t, err)
		events.Write(append(line, '\n'))
	}
	r := virtually(t, c, o, v)
	defer r.Close()
	if prepare != nil {
		prepare(r)
	}
	if err := r.RunWhile(12*time.Hour, func() bool { return historyOf(c.version(t)) != completedHistory }); err != nil {
		t.Fatalf("seed %d: %v: history %s", v.Seed, err, historyOf(c.version(t)))
	}
	order.check(t)
	checkApplied(t, c, to)
	return events.String()
}

// TestVirtual: an update runs in virtual time, and the same seed gives the same
// run.
func TestVirtual(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	o := reconcile.VirtualOptions{Seed: 1, Order: reconcile.Random}
	first := virtualUpdate(t, from, to, o, nil)
	again := virtualUpdate(t, from, to, o, nil)
	checktest.SameIn(t, "another run (-first +second)", first, again)
}

// TestVirtualFaults: an update under faults comes to the same end.
func TestVirtualFaults(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for seed := range seeds(12, 3) {
		virtualUpdate(t, from, to, reconcile.VirtualOptions{Seed: seed, Order: reconcile.Random, Faults: reconcile.Faults{
			Before: 0.02, After: 0.02, Conflict: 0.05, Slow: 0.01, Stale: 0.02, Late: 0.2, Double: 0.1, Merge: 0.2, Crash: 0.002, Outage: 0.1, ClockBack: 0.1,
		}}, nil)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

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
