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
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
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
type original struct {
	*simulation.Cluster
	images payload.Images
	driver *reconcile.Virtual
}

// newOriginal begins an update, of which operators and nodes may fail, and calls of the
// API too.
func newOriginal(t checktest.T, options simulation.Options, faults map[string]simulation.Fault, calls reconcile.Faults) *original {
	ctx := context.Background()
	from := checktest.Get(payload.Open(ctx, "from", sample.From()))(t)
	to := checktest.Get(payload.Open(ctx, "to", sample.To()))(t)
	o := &original{images: payload.Images{from, to}}
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	options.Clock = clock
	options.Release = payload.Release(from.Payload)
	options.Timing = steady
	options.ClusterVersion.Channel = sample.Channel
	options.NodeFaults = map[string]*simulation.Fault{}
	next := payload.Release(to.Payload)
	for part, f := range faults {
		switch kind, name, _ := strings.Cut(part, "/"); kind {
		case "operator":
			checktest.OK(t, next.Break(name, f))
		case "node":
			options.NodeFaults[name] = &f
		}
	}
	o.Cluster = checktest.Get(simulation.New(options))(t)
	checktest.OK(t, o.Expect(next))
	updates := checktest.Get(graph.DecodeBytes(o.images.Graph(sample.Channel), graph.DecodeOptions{}))(t)
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: o.Cluster, Payloads: o.images, Graph: graph.Static(updates), Verifier: signature.Insecure(), Interval: time.Hour, Clock: clock,
	}))(t)
	nodes := checktest.Get(rollout.New(rollout.Options{API: o.Cluster, Mode: rollout.Drive, Clock: clock}))(t)
	o.driver = reconcile.NewVirtual(
		reconcile.VirtualOptions{Cluster: o.Cluster, Clock: clock, Faults: calls}, o.Process(), nodes.Process(), updater.Process(),
	)
	o.pass(t, 10*time.Minute)
	checktest.Get(clusterapi.Modify(ctx, o.Cluster, clusterapi.Key("", "version"), clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
		cv.Spec.DesiredUpdate = &configv1.Update{Version: to.Version()}
		return nil
	}))(t)
	return o
}

func (o *original) pass(t checktest.T, d time.Duration) {
	checktest.OK(t, o.driver.RunUntil(o.driver.Now().Add(d)))
}

// ends returns when the cluster version was complete, and when the last pool was updated;
// zero if they are not.
func (o *original) ends(t checktest.T) (control, total time.Time) {
	ctx := context.Background()
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](ctx, o.Cluster, clusterapi.Key("", "version")))(t)
	last := cv.Status.History[0]
	if last.Version != o.images[1].Version() || last.CompletionTime == nil {
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
	defer o.driver.Close()
	o.pass(t, time.Duration(30+draw.IntN(50*60))*time.Second)
	moment := o.driver.Now()
	if _, total := o.ends(t); !total.IsZero() {
		return
	}
	from := o.images[0]
	already, _ := o.ends(t)
	if !already.IsZero() {
		from = o.images[1] // nodes are left
	}
	recording := record(t, o.Cluster, o.driver.Clock())
	r := checktest.Get(forecast.Rehearse(t.Context(), forecast.RehearseOptions{
		Reader: recording, From: from, To: o.images[1], Timing: plain, Faults: faults,
	}))(t)
	o.pass(t, 8*time.Hour)
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
func record(t *testing.T, c *simulation.Cluster, now clock.PassiveClock) *dump.Recording {
	dir := filepath.Join(t.TempDir(), "recording")
	checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Clock: now}))
	return checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
}
