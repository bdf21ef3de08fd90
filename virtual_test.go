package clusterupdate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
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
