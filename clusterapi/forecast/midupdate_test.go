package forecast_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
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

// newOriginal begins an update, of which an operator may fail.
func newOriginal(t checktest.T, faults map[string]simulation.Fault) *original {
	ctx := context.Background()
	from := checktest.Get(payload.Open(ctx, "from", sample.From()))(t)
	to := checktest.Get(payload.Open(ctx, "to", sample.To()))(t)
	o := &original{images: payload.Images{from, to}}
	clock := reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	o.Cluster = checktest.Get(simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(from.Payload), Timing: steady,
		ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	}))(t)
	next := payload.Release(to.Payload)
	for name, f := range faults {
		checktest.OK(t, next.Break(name, f))
	}
	o.Expect(next)
	updates := checktest.Get(graph.DecodeBytes(o.images.Graph(sample.Channel), graph.DecodeOptions{}))(t)
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: o.Cluster, Payloads: o.images, Graph: graph.Static(updates), Verifier: signature.Insecure(), Interval: time.Hour, Clock: clock,
	}))(t)
	nodes := checktest.Get(rollout.New(rollout.Options{API: o.Cluster, Mode: rollout.Drive, Clock: clock}))(t)
	o.driver = reconcile.NewVirtual(
		reconcile.VirtualOptions{Cluster: o.Cluster, Clock: clock}, o.Process(), nodes.Process(), updater.Process(),
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

// completed returns when the cluster version was complete, zero if it is not.
func (o *original) completed(t checktest.T) time.Time {
	cv := checktest.Get(clusterapi.Get[configv1.ClusterVersion](context.Background(), o.Cluster, clusterapi.Key("", "version")))(t)
	last := cv.Status.History[0]
	if last.Version != o.images[1].Version() || last.CompletionTime == nil {
		return time.Time{}
	}
	return last.CompletionTime.Time
}

var moments = flag.Int("moments", 5, "at how many moments TestMidUpdate records a cluster")

// A cluster that is recorded in mid-update and rehearsed from there ends as it does
// itself, and as late.
func TestMidUpdate(t *testing.T) {
	for seed := range *moments {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			draw := rand.New(rand.NewPCG(uint64(seed), 0))
			operator := map[string]simulation.Fault{}
			broken := map[string]simulation.Fault{}
			if draw.IntN(3) == 0 {
				operator["dns"] = simulation.Fault{Kind: simulation.FaultDegraded}
				broken["operator/dns"] = operator["dns"]
			}
			o := newOriginal(t, operator)
			defer o.driver.Close()
			o.pass(t, time.Duration(30+draw.IntN(35*60))*time.Second)
			moment := o.driver.Now()
			recording := record(t, o.Cluster, o.driver.Clock())
			r := checktest.Get(forecast.Rehearse(t.Context(), forecast.RehearseOptions{
				Reader: recording, From: o.images[0], To: o.images[1], Timing: plain, Faults: broken,
			}))(t)
			o.pass(t, 8*time.Hour)
			end := o.completed(t)
			if end.IsZero() {
				checktest.Equal(t, forecast.Stuck, r.Outcome, "at %s: %v", moment, r.Why)
				return
			}
			checktest.Equal(t, forecast.Completed, r.Outcome, "at %s: %v", moment, r.Why)
			took := end.Sub(moment)
			if d := (r.ControlPlane - took).Abs(); d > max(took/10, time.Minute) {
				t.Errorf("at %s: %s, and the cluster itself takes %s", moment, r.ControlPlane, took)
			}
		})
	}
}

// record records a cluster as it is.
func record(t *testing.T, c *simulation.Cluster, now clock.PassiveClock) *dump.Recording {
	dir := filepath.Join(t.TempDir(), "recording")
	checktest.OK(t, dump.Record(t.Context(), c, dir, dump.RecordOptions{Clock: now}))
	return checktest.Get(dump.Open(t.Context(), os.DirFS(dir), dump.Options{}))(t)
}
