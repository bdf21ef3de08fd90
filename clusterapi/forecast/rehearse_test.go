package forecast_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// well is a recorded cluster that is well, and its next patch.
func well(tb testing.TB) forecast.RehearseOptions {
	return forecast.RehearseOptions{
		Reader: recorded(tb, "not-upgrading"),
		From:   release(tb, "4.17.30", "4.14.1", "4.13.9"),
		To:     release(tb, "4.18.15", "4.14.2", "4.14.1", ""),
	}
}

// A cluster that is not being updated stays as it was recorded: nothing writes to a node,
// a pool or an operator for a day.
func TestAtRest(t *testing.T) {
	written, all, err := forecast.Rest(t.Context(), well(t), 24*time.Hour)
	checktest.OK(t, err)
	checktest.Same(t, []string(nil), written)
	if all < 40 {
		t.Errorf("%d nodes, pools and operators are too few", all)
	}
}

// The same seed gives the same rehearsal, another one other times.
func TestSeed(t *testing.T) {
	play := func(seed uint64) string {
		o := well(t)
		o.Seed = seed
		r := checktest.Get(forecast.Rehearse(context.Background(), o))(t)
		return string(checktest.Get(json.Marshal(r))(t))
	}
	first := play(1)
	checktest.Same(t, first, play(1))
	if first == play(2) {
		t.Error("seed 2 gives the same times as seed 1")
	}
}

// undated is a recording of which the time is not known.
type undated struct{ clusterapi.Reader }

func (undated) Time() time.Time { return time.Time{} }

// A recording without any time is rehearsed from now on, not from the year 1.
func TestUndated(t *testing.T) {
	o := well(t)
	o.Reader = undated{o.Reader}
	r := checktest.Get(forecast.Rehearse(t.Context(), o))(t)
	if r.Outcome != forecast.Completed || time.Since(r.Start) > time.Hour {
		t.Errorf("%s, from %s on: %v", r.Outcome, r.Start, r.Why)
	}
}

// The default times agree with the formula of the documentation.
func TestDefaultTiming(t *testing.T) {
	o := well(t)
	o.Runs = 5
	r := checktest.Get(forecast.Rehearse(context.Background(), o))(t)
	documented := mcp.EstimateDocumented(
		mcp.EstimateInput{Pools: []mcp.EstimatePool{{Nodes: 3, MaxUnavailable: 1}, {Nodes: 3, MaxUnavailable: 1}}},
	)
	if d := (r.Quantiles.ControlPlane.P50 - documented).Abs(); d > documented/10 {
		t.Errorf("%v, the documentation says %v", r.Quantiles.ControlPlane, documented)
	}
	checktest.Equal(t, 5, r.Quantiles.Completed, "runs completed")
	if q := r.Quantiles.Total; q.P50 > q.P90 || q.P90 > q.Max || q.P50 == q.Max {
		t.Errorf("quantiles %+v", q)
	}
}

// What-ifs change the outcome as they would change the cluster's.
func TestWhatIf(t *testing.T) {
	yes, two := true, intstr.FromInt32(2)
	degraded := func(o *forecast.RehearseOptions) {
		o.Reader = recorded(t, "4.14.1-degraded")
		o.From = release(t, "4.17.30", "4.14.0-rc.3", "4.13.9")
		o.To = release(t, "4.18.15", "4.14.1", "4.14.0-rc.3", "")
	}
	for _, tt := range []struct {
		name   string
		change func(*forecast.RehearseOptions)
		want   forecast.Outcome
		why    string
	}{
		{"a paused pool of the control plane", func(o *forecast.RehearseOptions) {
			o.Pools = map[string]forecast.PoolChange{"master": {Paused: &yes}}
		}, forecast.Stuck, "MachineConfigPool master: 0 of 3 nodes updated, paused"},
		{"a paused pool of workers", func(o *forecast.RehearseOptions) {
			o.Pools = map[string]forecast.PoolChange{"worker": {Paused: &yes}}
		}, forecast.Completed, ""},
		{"an operator that fails", func(o *forecast.RehearseOptions) {
			o.Faults = map[string]simulation.Fault{"operator/dns": {Kind: simulation.FaultDegraded, Reason: "Broken", Message: "no names"}}
		}, forecast.Stuck, "ClusterOperator dns: Degraded=True (Broken): no names"},
		{"an operator that is never done", func(o *forecast.RehearseOptions) {
			o.Faults = map[string]simulation.Fault{"operator/etcd": {Kind: simulation.FaultStuck}}
		}, forecast.Stuck, "ClusterOperator etcd: Progressing=True"},
		{"an operator that flaps", func(o *forecast.RehearseOptions) {
			o.Faults = map[string]simulation.Fault{"operator/etcd": {Kind: simulation.FaultFlaps}}
		}, forecast.Completed, ""},
		{"more nodes, two at a time", func(o *forecast.RehearseOptions) {
			o.Nodes = map[string]int{"worker": 9}
			o.Pools = map[string]forecast.PoolChange{"worker": {MaxUnavailable: &two}}
		}, forecast.Completed, ""},
		{"a controller whose calls all fail", func(o *forecast.RehearseOptions) {
			o.Calls = reconcile.Faults{Before: 1, Processes: []string{"rollout"}}
		}, forecast.Stuck, "Reconciler "},
		{"no workers", func(o *forecast.RehearseOptions) { o.Nodes = map[string]int{"worker": 0} }, forecast.Completed, ""},
		{"half of what is degraded is healed", func(o *forecast.RehearseOptions) {
			degraded(o)
			o.Heal = map[string]time.Duration{"operator/etcd": time.Hour}
		}, forecast.Stuck, "ClusterOperator kube-apiserver: Degraded=True"},
		{"all that is degraded is healed", func(o *forecast.RehearseOptions) {
			degraded(o)
			o.Heal = map[string]time.Duration{}
			for i, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
				o.Heal["operator/"+name] = time.Duration(i+1) * time.Hour
			}
		}, forecast.Completed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := well(t)
			tt.change(&o)
			r := checktest.Get(forecast.Rehearse(context.Background(), o))(t)
			checktest.Equal(t, tt.want, r.Outcome, "why: %v", r.Why)
			if tt.why != "" {
				checktest.Has(t, r.Why[0].String(), tt.why)
			}
		})
	}
}

// Options that cannot work are errors that name the field.
func TestRehearseOptions(t *testing.T) {
	for _, tt := range []struct {
		change func(*forecast.RehearseOptions)
		want   string
	}{
		{func(o *forecast.RehearseOptions) { o.To = nil }, "RehearseOptions need Reader, From and To"},
		{func(o *forecast.RehearseOptions) { o.Runs = 10_001 }, "RehearseOptions.Runs is 10001, more than 10000"},
		{func(o *forecast.RehearseOptions) { o.Runs = -1 }, "Runs"},
		{func(o *forecast.RehearseOptions) { o.From = o.To }, "the cluster has last completed 4.14.1, RehearseOptions.From is 4.14.2"},
		{func(o *forecast.RehearseOptions) { o.Nodes = map[string]int{"infra": 3} }, "RehearseOptions.Nodes[infra]"},
		{func(o *forecast.RehearseOptions) { o.Pools = map[string]forecast.PoolChange{"infra": {}} }, "RehearseOptions.Pools[infra]"},
		{func(o *forecast.RehearseOptions) { o.Heal = map[string]time.Duration{"etcd": 1} }, "RehearseOptions.Heal[etcd]"},
		{func(o *forecast.RehearseOptions) {
			o.Faults = map[string]simulation.Fault{"operator/x": {Kind: simulation.FaultStuck}}
		}, "RehearseOptions.Faults[operator/x]: the cluster does not have it, but authentication, "},
		{func(o *forecast.RehearseOptions) {
			o.Faults = map[string]simulation.Fault{"node/x": {Kind: simulation.FaultNodeDegraded}}
		}, "RehearseOptions.Faults[node/x]: the cluster does not have it, but ip-10-0-"},
		{func(o *forecast.RehearseOptions) { o.Heal = map[string]time.Duration{"operator/x": 1} },
			"RehearseOptions.Heal[operator/x]: the cluster does not have it, but authentication, "},
		{func(o *forecast.RehearseOptions) { o.Heal = map[string]time.Duration{"pod/x/y": 1} },
			"RehearseOptions.Heal[pod/x/y]: the cluster does not have it, but none"},
	} {
		o := well(t)
		tt.change(&o)
		_, err := forecast.Rehearse(context.Background(), o)
		checktest.ErrorHas(t, tt.want, err)
	}
}

// A recording without operators, pods or anything else but nodes and pools is
// rehearsed too; a cause that was made up says so.
func TestAssumed(t *testing.T) {
	o := well(t)
	dir := filepath.Join(testdata.Dir(t), "clusters", "not-upgrading")
	files := fstest.MapFS{}
	for _, kind := range []string{"cv", "mcp", "node", "mc"} {
		data := checktest.Get(os.ReadFile(filepath.Join(dir, "not-upgrading-"+kind+".yaml")))(t)
		files["cluster-scoped-resources/config.openshift.io/"+kind+".yaml"] = &fstest.MapFile{Data: data}
	}
	o.Reader = checktest.Get(dump.Open(t.Context(), files, dump.Options{}))(t)
	written, _, err := forecast.Rest(t.Context(), o, 24*time.Hour)
	checktest.OK(t, err)
	checktest.Same(t, []string(nil), written)
	r := checktest.Get(forecast.Rehearse(t.Context(), o))(t)
	checktest.Equal(t, forecast.Completed, r.Outcome, "why: %v", r.Why)
	all := strings.Join(r.Assumed, "\n")
	checktest.Has(t, all, "these ClusterOperators were not recorded, and are well at 4.14.1: ", "pods were not recorded",
		"not all namespaces were recorded: each one that the update needs exists",
		"the ControllerConfig was not recorded: the control plane is HighlyAvailable")

	o.Faults = map[string]simulation.Fault{"operator/dns": {Kind: simulation.FaultDegraded}}
	r = checktest.Get(forecast.Rehearse(t.Context(), o))(t)
	checktest.Equal(t, forecast.Stuck, r.Outcome, "why: %v", r.Why)
	if !r.Why[0].Assumed {
		t.Errorf("%s is about an operator that was not recorded", r.Why[0])
	}
}

// A rehearsal whose time stands still before the update is requested is stuck, and shows why.
func TestStandstill(t *testing.T) {
	r := checktest.Get(forecast.Standstill(t.Context(), forecast.RehearseOptions{
		Reader: recorded(t, "not-upgrading"), From: release(t, "4.17.30", "4.14.1", "4.13.9"),
		To: release(t, "4.18.15", "4.14.2", "4.14.1", ""),
	}))(t)
	checktest.Equal(t, forecast.Stuck, r.Outcome, "why: %v", r.Why)
	checktest.Has(t, r.Why[0].String(), "restless")
	checktest.Equal(t, true, r.Why[0].Assumed, "a failure of the rehearsal is one of the cluster")
}
