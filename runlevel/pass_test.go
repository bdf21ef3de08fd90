package runlevel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

var passStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// script is an applier whose tasks fail as they are told.
type script struct {
	fail map[string]error // by file name; nil: it succeeds
	log  []string
}

func (s *script) Apply(_ context.Context, t *manifest.Task, _ State) error {
	s.log = append(s.log, t.Manifest.Filename)
	return s.fail[t.Manifest.Filename]
}

// taken returns the files applied since it was last called.
func (s *script) taken() string {
	out := strings.Join(s.log, " ")
	s.log = nil
	return out
}

func newScripted(t *testing.T, stay bool, files ...string) (*Pass, *script, *reconcile.Clock, *[]string) {
	t.Helper()
	s := &script{fail: map[string]error{}}
	clock := reconcile.NewClock(passStart)
	var events []string
	p := checktest.Get(NewPass(configMaps(t, files...), Options{
		Applier: s, Clock: clock, Stay: stay,
		Observe: func(e clusterapi.Event) { events = append(events, string(e.Type)) },
	}))(t)
	return p, s, clock, &events
}

// A node that waits goes on with the task at which it waited, and not before
// it.
func TestStepGoesOnWhereItWaited(t *testing.T) {
	const a, b, other, c = "0000_10_a_1.yaml", "0000_10_a_2.yaml", "0000_10_b_1.yaml", "0000_20_c_1.yaml"
	p, s, _, events := newScripted(t, false, a, b, other, c)
	first := p.Start()
	if len(first) != 2 {
		t.Fatalf("Start = %v, want both components of the first runlevel", first)
	}
	s.fail[b] = errors.New("not yet")
	step := p.Step(t.Context(), first[0])
	if want := passStart.Add(10 * time.Second); !step.At.Equal(want) || step.Settled || step.Awaits.Name != b {
		t.Errorf("step %+v, want a wait for %s until %s", step, b, want)
	}
	if got := s.taken(); got != a+" "+b {
		t.Errorf("applied %s", got)
	}
	if step = p.Step(t.Context(), first[1]); len(step.Ready) > 0 || step.Settled || s.taken() != other {
		t.Errorf("step %+v, want the next runlevel to wait", step)
	}
	s.fail[b] = nil
	step = p.Step(t.Context(), first[0])
	if len(step.Ready) != 1 || !step.At.IsZero() || step.Done {
		t.Fatalf("step %+v", step)
	}
	if got := s.taken(); got != b {
		t.Errorf("applied %s, want %s alone", got, b)
	}
	last := step.Ready[0]
	if step = p.Step(t.Context(), last); !step.Done || !step.Settled || s.taken() != c {
		t.Errorf("step %+v, want the end", step)
	}
	if again := p.Step(t.Context(), last); !again.Done || s.taken() != "" {
		t.Error("a step of a node that has ended did something")
	}
	for range 2 {
		res, err := p.Result()
		if err != nil || res.Done != 4 {
			t.Errorf("Result = %+v, %v", res, err)
		}
	}
	want := "PassStarted NodeStarted TaskStarted TaskDone TaskStarted TaskRetry NodeStarted TaskStarted TaskDone NodeDone TaskDone NodeDone NodeStarted TaskStarted TaskDone NodeDone PassDone"
	if got := strings.Join(*events, " "); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

// A pass that stays holds a node whose task has failed, says what is wrong, and
// goes on there when it can.
func TestStay(t *testing.T) {
	const a, b, c = "0000_10_a_1.yaml", "0000_10_b_1.yaml", "0000_20_c_1.yaml"
	p, s, _, events := newScripted(t, true, a, b, c)
	first := p.Start()
	s.fail[a] = fatal("stuck")
	if step := p.Step(t.Context(), first[0]); !step.Stalled || step.Settled || !step.At.IsZero() || step.Awaits.Name != a {
		t.Errorf("step %+v, want a stalled node while another one is at work", step)
	}
	if step := p.Step(t.Context(), first[1]); step.Stalled || !step.Settled || step.Done || len(step.Ready) > 0 {
		t.Errorf("step %+v, want nothing at work", step)
	}
	res, err := p.Result()
	if err == nil || res.Failure == nil || res.Done != 1 || p.Finished() {
		t.Errorf("Result = %+v, %v; want the failure of %s so far", res, err, a)
	}
	if diff := cmp.Diff(first[:1], p.Stalled()); diff != "" {
		t.Errorf("Stalled (-want +got):\n%s", diff)
	}
	s.taken()
	for range 3 {
		if step := p.Step(t.Context(), first[0]); !step.Stalled || !step.Settled {
			t.Errorf("step %+v", step)
		}
	}
	if got := s.taken(); got != a+" "+a+" "+a {
		t.Errorf("applied %s", got)
	}
	s.fail[a] = nil
	step := p.Step(t.Context(), first[0])
	if len(step.Ready) != 1 || step.Settled {
		t.Fatalf("step %+v, want the next runlevel", step)
	}
	if step := p.Step(t.Context(), step.Ready[0]); !step.Done {
		t.Errorf("step %+v", step)
	}
	if res, err = p.Result(); err != nil || res.Done != 3 {
		t.Errorf("Result = %+v, %v", res, err)
	}
	// The failure is told once, and no task is called failed that then succeeds.
	got := strings.Join(*events, " ")
	if strings.Count(got, "TaskRetry") != 1 || strings.Contains(got, "TaskFailed") || strings.Count(got, "PassDone") != 1 {
		t.Errorf("events %s", got)
	}
}

// A stalled node leaves its place to others.
func TestStalledNodesTakeNoPlace(t *testing.T) {
	s := &script{fail: map[string]error{}}
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("0000_10_c%02d_1.yaml", i))
		s.fail[files[i]] = fatal("stuck")
	}
	p := checktest.Get(NewPass(configMaps(t, files...), Options{Applier: s, Workers: 3, Stay: true}))(t)
	todo, last := p.Start(), Step{}
	if len(todo) != 3 {
		t.Errorf("%d nodes begin, want 3", len(todo))
	}
	for ; len(todo) > 0; todo = todo[1:] {
		last = p.Step(t.Context(), todo[0])
		todo = append(todo, last.Ready...)
	}
	if n := p.Stalled(); len(n) != 20 || !slices.IsSorted(n) || !last.Settled {
		t.Errorf("nodes %v are stalled, want 20 in order", n)
	}
}

func TestStop(t *testing.T) {
	const a, b = "0000_10_a_1.yaml", "0000_10_b_1.yaml"
	for _, c := range []struct {
		name string
		stay bool
		do   func(p *Pass, s *script, first int)
		want string
	}{
		{"before anything", false, func(*Pass, *script, int) {}, "2 incomplete task nodes"},
		{"in a wait", false, func(p *Pass, s *script, first int) {
			s.fail[a] = errors.New("not yet")
			p.Step(t.Context(), first)
		}, "Could not update"},
		{"stalled", true, func(p *Pass, s *script, first int) {
			s.fail[a] = fatal("stuck")
			p.Step(t.Context(), first)
		}, "stuck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s, _, events := newScripted(t, c.stay, a, b)
			first := p.Start()
			c.do(p, s, first[0])
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			p.Stop(ctx)
			p.Stop(ctx)
			if !p.Finished() {
				t.Error("the pass goes on")
			}
			_, err := p.Result()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Result: %v, want %q", err, c.want)
			}
			_, _ = p.Result()
			told := strings.Join(*events, " ")
			if strings.Count(told, "NodeStarted") != strings.Count(told, "NodeDone") || strings.Count(told, "PassDone") != 1 {
				t.Errorf("events %s, want each node and the pass to end once", told)
			}
			s.taken()
			if p.Step(t.Context(), first[1]); s.taken() != "" {
				t.Error("a pass that was called off applied something")
			}
		})
	}
}

// stayer drives a pass that stays by a driver of package reconcile, as an
// embedder would.
type stayer struct {
	pass  *Pass
	first []int
}

func (s *stayer) Name() string { return "nodes" }
func (s *stayer) Watches() []reconcile.Watch {
	return []reconcile.Watch{{GVK: configv1.GroupVersion.WithKind("ClusterOperator"), Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake {
		var wakes []reconcile.Wake
		for _, node := range s.pass.Stalled() {
			wakes = append(wakes, reconcile.Wake{Key: reconcile.Key{Name: strconv.Itoa(node)}})
		}
		return wakes
	}}}
}
func (s *stayer) Keys() (keys []reconcile.Key) {
	for _, node := range s.first {
		keys = append(keys, reconcile.Key{Name: strconv.Itoa(node)})
	}
	return keys
}
func (s *stayer) Reconcile(ctx context.Context, r reconcile.Request) (res reconcile.Result, err error) {
	node, _ := strconv.Atoi(r.Key.Name)
	step := s.pass.Step(ctx, node)
	res.At = step.At
	for _, ready := range step.Ready {
		res.Wake = append(res.Wake, reconcile.Wake{Key: reconcile.Key{Name: strconv.Itoa(ready)}})
	}
	return res, nil
}

// An operator that becomes ready wakes the node that waits for it; nothing
// before it is applied again. A second pass goes on after a crash.
func TestPassInVirtualTime(t *testing.T) {
	clock := reconcile.NewClock(passStart)
	cluster := memory.NewOpenShift(memory.Options{Clock: clock})
	applied := map[string]int{}
	var ms []*manifest.Manifest
	for i, name := range []string{"first", "second"} {
		level := 10 * (i + 1)
		ms = append(ms,
			newManifest(t, fmt.Sprintf("0000_%d_%s_1.yaml", level, name), "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: ns, annotations: {}}}"),
			newManifest(t, fmt.Sprintf("0000_%d_%s_2.yaml", level, name), "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: "+name+", annotations: {}}, spec: {}, status: {versions: [{name: operator, version: v2}]}}"))
	}
	tasks := manifest.NewTasks(ms)
	v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: clock, Seed: 1})
	var pass *Pass
	v.Add(reconcile.Process{Name: "pass", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		pass = checktest.Get(NewPass(tasks, Options{API: api, Clock: clock, Stay: true,
			Observe: func(e clusterapi.Event) {
				if e.Type == EventTaskDone {
					applied[progressOf(e).Task.Manifest.Filename]++
				}
			}}))(t)
		return []reconcile.Reconciler{&stayer{pass: pass, first: pass.Start()}}
	}})
	report := func(name string) {
		t.Helper()
		checktest.Get(clusterapi.Modify(t.Context(), cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: true}, func(co *configv1.ClusterOperator) error {
			co.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "v2"}}
			co.Status.Conditions = nil
			for kind, status := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{"Available": "True", "Degraded": "False"} {
				c := configv1.ClusterOperatorStatusCondition{Type: kind, Status: status}
				c.LastTransitionTime.Time = v.Now()
				co.Status.Conditions = append(co.Status.Conditions, c)
			}
			return nil
		}))(t)
	}
	run := func(d time.Duration) {
		t.Helper()
		checktest.OK(t, v.RunUntil(v.Now().Add(d)))
	}
	run(time.Hour)
	if res, err := pass.Result(); err == nil || res.Done != 1 {
		t.Fatalf("after an hour: %+v, %v; want a wait for the first operator", res, err)
	}
	report("first")
	run(0)
	if res, _ := pass.Result(); res.Done != 3 {
		t.Errorf("%d tasks are done at once when the operator is, want 3", res.Done)
	}
	run(time.Hour)
	for file, n := range applied {
		if n != 1 {
			t.Errorf("%s was applied %d times", file, n)
		}
	}
	v.Crash("pass")
	run(time.Minute)
	if res, _ := pass.Result(); res.Done != 3 {
		t.Errorf("%d tasks are done after the crash, want 3", res.Done)
	}
	report("second")
	run(0)
	if res, err := pass.Result(); err != nil || res.Done != 4 {
		t.Errorf("Result = %+v, %v", res, err)
	}
}

func TestTrackerIsSaved(t *testing.T) {
	clock := reconcile.NewClock(passStart)
	tracker := NewTracker(clock)
	tracker.StartCO("etcd")
	data := checktest.Get(json.Marshal(tracker))(t)
	if want := `{"version":1,"operators":{"etcd":"2026-01-02T03:04:05Z"}}`; string(data) != want {
		t.Errorf("saved as %s, want %s", data, want)
	}
	for _, c := range []struct {
		name, data, want string
		pending          []string
	}{
		{name: "whole", data: `{"version":1,"operators":{"etcd":"2026-01-02T03:00:00Z"},"deletions":[{"kind":"service","namespace":"ns","name":"a"},{"kind":"job","name":"b","verified":true}]}`,
			pending: []string{`service "ns/a"`}},
		{name: "later version", data: `{"version":2}`, want: "version 2"},
		{name: "no version", data: `{}`, want: "version 0"},
		{name: "not JSON", data: `{"version":"x"}`, want: "a saved tracker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			restored := NewTracker(clock)
			restored.StartCO("dns")
			err := json.Unmarshal([]byte(c.data), restored)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if _, ok := restored.COStart("dns"); !ok {
					t.Error("what was there is gone")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if since, ok := restored.COStart("etcd"); !ok || !since.Equal(passStart.Add(-245*time.Second)) {
				t.Errorf("etcd is awaited since %v", since)
			}
			if diff := cmp.Diff(c.pending, restored.PendingDeletions()); diff != "" {
				t.Errorf("pending (-want +got):\n%s", diff)
			}
		})
	}
}

// A clock that was set back does not make an operator's wait negative.
func TestTrackerClockSetBack(t *testing.T) {
	tracker := NewTracker(reconcile.NewClock(passStart))
	checktest.OK(t, json.Unmarshal([]byte(`{"version":1,"operators":{"etcd":"2026-01-02T05:00:00Z"}}`), tracker))
	if since, _ := tracker.COStart("etcd"); !since.Equal(passStart) {
		t.Errorf("etcd is awaited since %v, want now", since)
	}
}

func TestEventJSON(t *testing.T) {
	task := configMaps(t, "0000_10_a_1.yaml")[0]
	e := clusterapi.Event{Type: EventWaiting, Data: &Progress{Task: task, Level: "10", Component: "a", Attempt: 2, Done: 1, Total: 3,
		Wait: &Wait{Operator: "etcd", Available: "True", Undone: []string{"operator to v2"}}}}
	want := `{"type":"Waiting","data":{"task":` + strconv.Quote(task.String()) + `,"node":0,"level":"10","component":"a","attempt":2,"done":1,"skipped":0,"total":3,` +
		`"wait":{"operator":"etcd","available":"True","undone":["operator to v2"]}}}`
	if data, err := json.Marshal(e); err != nil || string(data) != want {
		t.Errorf("JSON %s\nwant %s, %v", data, want, err)
	}
}
