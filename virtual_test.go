package clusterupdate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// virtualUpdate updates the sample in virtual time, under faults and with
// crashes, and returns the events as text.
func virtualUpdate(t *testing.T, from, to *manifest.Payload, seed uint64, faults reconcile.Faults) (string, *testCluster) {
	t.Helper()
	c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
		cv.UID = "11111111-2222-3333-4444-555555555555"
		cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
	})
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	order := newOrderCheck(to, sample.To())
	var events strings.Builder
	u := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: c.Cluster, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(), Clock: clock,
		Observe: func(e clusterapi.Event) {
			order.observe(e)
			line, err := json.Marshal(e)
			checktest.Good(t, err)
			events.Write(append(line, '\n'))
		},
	}))(t)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: c.Cluster, Clock: clock, Seed: seed, Order: reconcile.Random, Faults: faults}, u.Process())
	defer v.Close()
	if err := v.RunWhile(12*time.Hour, func() bool { return historyOf(c.version(t)) != completedHistory }); err != nil {
		t.Fatalf("seed %d: %v: history %s", seed, err, historyOf(c.version(t)))
	}
	order.check(t)
	return events.String(), c
}

// TestVirtual: an update runs in virtual time, and the same seed gives the same
// run.
func TestVirtual(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	first, c := virtualUpdate(t, from, to, 1, reconcile.Faults{})
	checkApplied(t, c, to)
	again, _ := virtualUpdate(t, from, to, 1, reconcile.Faults{})
	checktest.SameIn(t, "another run (-first +second)", first, again)
}

// TestVirtualFaults: an update under faults comes to the same end.
func TestVirtualFaults(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for seed := range seeds(12, 3) {
		_, c := virtualUpdate(t, from, to, seed, reconcile.Faults{Before: 0.02, After: 0.02, Conflict: 0.05, Slow: 0.01, Stale: 0.02, Late: 0.2, Double: 0.1, Merge: 0.2, Crash: 0.002, Outage: 0.1, ClockBack: 0.1})
		checkApplied(t, c, to)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
