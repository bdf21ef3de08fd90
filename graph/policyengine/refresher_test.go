package policyengine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
)

func noLoad(context.Context) (*graphdata.Snapshot, error) { return nil, errors.New("no") }

// refreshed is a handler whose refresher is played in virtual time.
type refreshed struct {
	*policyengine.Handler
	*reconcile.Virtual
	events []clusterapi.Event
}

func loadOf(e clusterapi.Event) policyengine.Load { return *e.Data.(*policyengine.Load) }

func refresh(t *testing.T, o policyengine.RefresherOptions) *refreshed {
	t.Helper()
	clock := reconcile.NewClock(start)
	h := checktest.Must(policyengine.New(policyengine.Options{Clock: clock}))
	r := &refreshed{Handler: h}
	o.Observe = func(e clusterapi.Event) { r.events = append(r.events, e); panic("nobody is harmed") }
	refresher := checktest.Must(policyengine.NewRefresher(h, o))
	r.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: memory.New(memory.Options{Clock: clock}), Clock: clock}, refresher.Process())
	t.Cleanup(r.Close)
	return r
}

// TestRefresher: when graphs are loaded, what fails changes nothing, and what is told.
func TestRefresher(t *testing.T) {
	one, two := sample(t), sample(t, "1.1.1")
	var loads []time.Time
	var r *refreshed
	answers := []func() (*graphdata.Snapshot, error){
		func() (*graphdata.Snapshot, error) { return nil, errors.New("not there") },
		func() (*graphdata.Snapshot, error) { return one, nil },
		func() (*graphdata.Snapshot, error) { return sample(t), nil },
		func() (*graphdata.Snapshot, error) { panic("it broke") },
		func() (*graphdata.Snapshot, error) { return nil, nil },
		func() (*graphdata.Snapshot, error) { return nil, errors.New("not there") },
		func() (*graphdata.Snapshot, error) { return two, nil },
	}
	r = refresh(t, policyengine.RefresherOptions{Load: func(context.Context) (*graphdata.Snapshot, error) {
		loads = append(loads, r.Now())
		if len(loads) > len(answers) {
			return two, nil
		}
		return answers[len(loads)-1]()
	}})
	checktest.OK(t, r.RunWhile(time.Hour, func() bool { return len(r.events) < 8 }))
	var got []string
	for _, e := range r.events {
		text := fmt.Sprint(e.Type, " ", loadOf(e).Failures, " ", loadOf(e).Nodes)
		if e.Err != nil {
			text += " " + e.Err.Error()
		}
		got = append(got, text)
	}
	want := []string{
		"LoadFailed 1 0 not there",
		"LoadRecovered 1 4", "GraphChanged 0 4", "GraphUnchanged 0 4",
		"LoadFailed 1 0 panic: it broke", "LoadFailed 2 0 there is no graph", "LoadFailed 3 0 not there",
		"LoadRecovered 3 5", "GraphChanged 0 5",
	}
	if diff := cmp.Diff(want[:len(got)], got); diff != "" || len(got) < 8 {
		t.Error(diff)
	}
	for i, between := range [][2]time.Duration{{4 * time.Second, 6 * time.Second}, {270 * time.Second, 330 * time.Second}, {270 * time.Second, 330 * time.Second}, {4 * time.Second, 6 * time.Second}, {8 * time.Second, 12 * time.Second}, {16 * time.Second, 24 * time.Second}} {
		if d := loads[i+1].Sub(loads[i]); d < between[0] || d > between[1] {
			t.Errorf("load %d came %s after the one before", i+1, d)
		}
		if e := r.events[min(i, 0)]; !loadOf(e).Retry.Equal(loads[1]) {
			t.Errorf("the event says %v", loadOf(e).Retry)
		}
	}
	if r.Revision() != two.Revision() || sampleValue(t, r.Samples(), "http_upstream_requests_total") != 7 || sampleValue(t, r.Samples(), "http_upstream_errors_total") != 4 {
		t.Errorf("%s, %v", r.Revision(), r.Samples())
	}
	text, err := json.Marshal(r.events[4])
	if err != nil || string(text) != fmt.Sprintf(`{"time":%q,"type":"LoadFailed","error":"panic: it broke","data":{"revision":%q,"failures":1,"retry":%q}}`, r.events[4].Time.Format(time.RFC3339Nano), one.Revision(), loadOf(r.events[4]).Retry.Format(time.RFC3339Nano)) {
		t.Errorf("%s %v", text, err)
	}
}

// TestRetriesGrow: delays double up to the interval, and never overflow.
func TestRetriesGrow(t *testing.T) {
	var loads []time.Time
	var r *refreshed
	r = refresh(t, policyengine.RefresherOptions{Interval: time.Minute, Retry: time.Second, Load: func(context.Context) (*graphdata.Snapshot, error) {
		loads = append(loads, r.Now())
		return nil, errors.New("no")
	}})
	checktest.OK(t, r.RunUntil(start.Add(2*time.Hour)))
	for i := range loads[1:] {
		want := min(time.Second<<min(i, 10), time.Minute)
		if d := loads[i+1].Sub(loads[i]); d < want*8/10 || d > want*12/10 {
			t.Errorf("load %d came %s after the one before, want about %s", i+1, d, want)
		}
	}
	if len(loads) < 100 {
		t.Errorf("%d loads", len(loads))
	}
}

// TestRefresherRun: the live driver, in a bubble of virtual time: a load that does not heed
// its context is left to itself, a late one does not count, and Refresh loads at once.
func TestRefresherRun(t *testing.T) {
	one, two := sample(t), sample(t, "1.1.1")
	synctest.Test(t, func(t *testing.T) {
		h := checktest.Must(policyengine.New(policyengine.Options{}))
		var load atomic.Pointer[func() (*graphdata.Snapshot, error)]
		next := func(f func() (*graphdata.Snapshot, error)) { load.Store(&f) }
		next(func() (*graphdata.Snapshot, error) { return one, nil })
		r, err := policyengine.NewRefresher(h, policyengine.RefresherOptions{Timeout: time.Minute, Load: func(context.Context) (*graphdata.Snapshot, error) {
			return (*load.Load())()
		}})
		checktest.OK(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		at := func(want string) {
			t.Helper()
			synctest.Wait()
			checktest.Equal(t, want, h.Revision(), "revision")
		}
		at(one.Revision())
		next(func() (*graphdata.Snapshot, error) { time.Sleep(10 * time.Minute); return two, nil })
		time.Sleep(20 * time.Minute) // several began, and ended too late
		at(one.Revision())
		checktest.ErrorIs(t, context.DeadlineExceeded, r.Refresh(t.Context()))
		next(func() (*graphdata.Snapshot, error) { return two, nil })
		checktest.Good(t, r.Refresh(t.Context()))
		at(two.Revision())
		cancel()
		checktest.ErrorIs(t, context.Canceled, <-ended)
		time.Sleep(10 * time.Minute) // for those that were left to themselves
	})
}

// TestRefresherFaults: whatever strikes, a graph that was loaded is served until the
// next, only graphs that there were are served, and in the end the last one is.
func TestRefresherFaults(t *testing.T) {
	var graphs []*graphdata.Snapshot
	var revisions []string
	for i := range 6 {
		graphs = append(graphs, sample(t, []string{"1.1.1", "1.1.2", "1.1.3", "1.1.4", "1.1.5"}[:i]...))
		revisions = append(revisions, graphs[i].Revision())
	}
	simtest.Test(t, 0.5, func(seed uint64, only map[string]bool) ([]string, error) {
		clock := reconcile.NewClock(start)
		cluster := memory.New(memory.Options{Clock: clock})
		office := func(n int) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"namespace": "default", "name": "graph"}, "data": map[string]any{"graph": strconv.Itoa(n)}}}
		}
		if err := cluster.Load(office(0)); err != nil {
			return nil, err
		}
		h, err := policyengine.New(policyengine.Options{Clock: clock})
		if err != nil {
			return nil, err
		}
		var api clusterapi.ClusterAPI
		luck := rand.New(rand.NewPCG(seed, 1))
		var events []clusterapi.Event
		r, err := policyengine.NewRefresher(h, policyengine.RefresherOptions{
			Load: func(ctx context.Context) (*graphdata.Snapshot, error) {
				switch luck.IntN(20) {
				case 0:
					panic("it broke")
				case 1:
					return nil, nil
				case 2:
					if err := reconcile.Sleep(ctx, time.Duration(luck.IntN(8))*time.Minute); err != nil {
						return nil, err
					}
				}
				cm, err := clusterapi.Read[corev1.ConfigMap](ctx, api, clusterapi.Key("default", "graph"))
				if err != nil {
					return nil, err
				}
				n, err := strconv.Atoi(cm.Data["graph"])
				if err != nil {
					return nil, err
				}
				return graphs[n], nil
			},
			Observe: func(e clusterapi.Event) { events = append(events, e) },
		})
		if err != nil {
			return nil, err
		}
		process := r.Process()
		inner := process.New
		process.New = func(a clusterapi.ClusterAPI) []reconcile.Reconciler { api = a; return inner(a) }
		const faultsFor = 2 * time.Hour
		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: seed, Order: reconcile.Random, Latency: reconcile.Latency{Job: time.Second}, Faults: reconcile.Faults{
			Before: 0.2, Slow: 0.1, Stale: 0.2, Crash: 0.1, Outage: 0.4, ClockBack: 0.4, Until: faultsFor, Only: only,
		}}, process)
		defer v.Close()
		served, newest := "", 0
		for at := time.Duration(0); at < faultsFor+time.Hour; at += time.Minute {
			if err := v.RunUntil(start.Add(at)); err != nil {
				return v.Faults(), err
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/graph?channel=candidate-1.1", nil))
			revision := h.Revision()
			known := slices.Contains(revisions[:newest+1], revision)
			if served != "" && (w.Code != 200 || !known) || served == "" && revision != "" && !known {
				return v.Faults(), fmt.Errorf("after %s: %d, revision %q", at, w.Code, revision)
			}
			served = revision
			if at < faultsFor && newest+1 < len(graphs) && luck.IntN(15) == 0 {
				newest++
				if _, err := cluster.Apply(context.Background(), office(newest), clusterapi.ApplyOptions{FieldManager: "office"}); err != nil {
					return v.Faults(), err
				}
			}
		}
		if served != revisions[newest] {
			return v.Faults(), fmt.Errorf("the last graph is not served: %d events, the last is %+v", len(events), events[len(events)-1])
		}
		failures := 0
		for i, e := range events {
			switch {
			case e.Type == policyengine.EventFailed && loadOf(e).Failures != 1 && loadOf(e).Failures != failures+1, e.Err == nil != (e.Type != policyengine.EventFailed):
				return v.Faults(), fmt.Errorf("event %d: %+v after %d failures", i, e, failures)
			case e.Type == policyengine.EventRecovered && loadOf(e).Failures != failures:
				return v.Faults(), fmt.Errorf("event %d: %+v after %d failures", i, e, failures)
			}
			failures = loadOf(e).Failures
		}
		return v.Faults(), nil
	})
}
