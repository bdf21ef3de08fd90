package forecast_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
)

// plain are times without a spread, and steady the same as a simulated cluster has them.
var (
	plain = forecast.Timing{
		Operator: forecast.Distribution{Median: 6 * time.Minute}, Drain: forecast.Distribution{Median: 5 * time.Second},
		Pull: forecast.Distribution{Median: time.Minute}, Reboot: forecast.Distribution{Median: 3 * time.Minute},
	}
	steady = simulation.Timing{Operator: 6 * time.Minute, PodStop: 5 * time.Second, Apply: time.Minute, Reboot: 3 * time.Minute}
)

// original is a simulated cluster that is being updated between the sample releases.
type original struct{ *updatetest.Cluster }

// newOriginal begins an update, of which operators and nodes may fail, and calls of the
// API too.
func newOriginal(t *testing.T, options simulation.Options, faults map[string]simulation.Fault, calls reconcile.Faults) *original {
	options.Timing = steady
	o := &original{updatetest.New(t, options, reconcile.VirtualOptions{Faults: calls})}
	next := payload.Release(o.Images[1].Payload)
	for part, f := range faults {
		if name, ok := strings.CutPrefix(part, "node/"); ok {
			o.SetNodeFault(name, &f)
		}
		if name, ok := strings.CutPrefix(part, "operator/"); ok {
			checktest.OK(t, next.Break(name, f))
		}
	}
	checktest.OK(t, o.Expect(next))
	o.Advance(t, 10*time.Minute)
	o.Request(t)
	return o
}

// ends returns when the cluster version was complete, and when the last pool was updated;
// zero if they are not.
func (o *original) ends(t *testing.T) (control, total time.Time) {
	ctx := context.Background()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](ctx, o.Cluster, clusterapi.Key("", "version")))(t)
	last := cv.Status.History[0]
	if last.Version != o.Images[1].Version() || last.CompletionTime == nil {
		return control, total
	}
	control = last.CompletionTime.Time
	total = control
	for _, p := range checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](ctx, o.Cluster, clusterapi.ListOptions{}))(t) {
		for _, c := range p.Status.Conditions {
			switch {
			case c.Type != mcfgv1.MachineConfigPoolUpdated:
			case c.Status != corev1.ConditionTrue:
				return control, time.Time{}
			case c.LastTransitionTime.After(total):
				total = c.LastTransitionTime.Time
			}
		}
	}
	return control, total
}

var moments = flag.Int("moments", 8, "at how many moments TestMidUpdate records a cluster")

// A cluster that is recorded in mid-update, with calls of its API that fail, and rehearsed
// from there ends as it does itself, and as late: its control plane and its nodes.
func TestMidUpdate(t *testing.T) {
	for seed := range *moments {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { midUpdate(t, uint64(seed)) })
	}
}

func midUpdate(t *testing.T, seed uint64) {
	draw := rand.New(rand.NewPCG(seed, 0))
	faults := map[string]simulation.Fault{}
	switch draw.IntN(6) {
	case 0:
		faults["operator/dns"] = simulation.Fault{Kind: simulation.FaultDegraded}
	case 1:
		faults["node/worker-0"] = simulation.Fault{Kind: simulation.FaultNodeReturnsOld}
	case 2:
		faults["node/worker-0"] = simulation.Fault{Kind: simulation.FaultNodeStaysNotReady}
	}
	one, limit := intstr.FromInt32(1), intstr.FromInt32(int32(1+draw.IntN(2)))
	options := simulation.Options{
		Pools:     []simulation.Pool{{Nodes: 2 + draw.IntN(4), MaxUnavailable: &limit}, {Name: "infra", Nodes: draw.IntN(3)}},
		Workloads: []simulation.Workload{{Name: "shop", Replicas: 2, MaxUnavailable: &one}},
	}
	var calls reconcile.Faults
	if draw.IntN(2) == 0 {
		calls = reconcile.Faults{Before: 0.02, After: 0.02, Conflict: 0.05, Stale: 0.05, Late: 0.1, Double: 0.05, Merge: 0.05, Until: 9 * time.Hour}
	}
	o := newOriginal(t, options, faults, calls)
	o.Advance(t, time.Duration(30+draw.IntN(50*60))*time.Second)
	moment := o.Virtual.Now()
	if _, total := o.ends(t); !total.IsZero() {
		return
	}
	from := o.Images[0]
	already, _ := o.ends(t)
	if !already.IsZero() {
		from = o.Images[1] // nodes are left
	}
	recording := record(t, o.Cluster.Cluster)
	r := checktest.Get(forecast.Rehearse(t.Context(), forecast.RehearseOptions{
		Reader: recording, From: from, To: o.Images[1], Timing: plain, Faults: faults,
	}))(t)
	o.Advance(t, 8*time.Hour)
	control, total := o.ends(t)
	if total.IsZero() {
		checktest.Equal(t, forecast.Stuck, r.Outcome, "at %s: %v", moment, r.Why)
		return
	}
	checktest.Equal(t, forecast.Completed, r.Outcome, "at %s: %v", moment, r.Why)
	near := func(what string, got, want time.Duration) {
		if d := (got - want).Abs(); d > max(want/10, time.Minute) {
			t.Errorf("at %s: %s %s, and the cluster itself takes %s", moment.Format(time.TimeOnly), what, got, want)
		}
	}
	near("control plane", r.ControlPlane, max(control.Sub(moment), 0))
	near("all", r.Total, total.Sub(moment))
}

// record records a cluster as it is.
func record(t *testing.T, c *simulation.Cluster) *dump.Recording {
	dir := filepath.Join(t.TempDir(), "recording")
	checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{}))
	return checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
}
