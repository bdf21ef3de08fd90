package runlevel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
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

// scripted is a pass over manifests that a script applies.
type scripted struct {
	pass    *Pass
	script  *script
	clock   *reconcile.Clock
	events  []string
	settled bool // after the last look
}

func newScripted(t *testing.T, o Options, files ...string) *scripted {
	t.Helper()
	s := &scripted{script: &script{fail: map[string]error{}}, clock: reconcile.NewClock(passStart)}
	o.Wrap, o.Clock = by(s.script.Apply), s.clock
	o.Observe = func(e clusterapi.Event) { s.events = append(s.events, string(e.Type)) }
	o.Stepped = func(settled bool) []reconcile.Wake {
		s.settled = settled
		return nil
	}
	s.pass = checktest.Get(NewPass(configMaps(t, files...), o))(t)
	return s
}

// look looks at a node at a time after the start.
func (s *scripted) look(t *testing.T, key reconcile.Key, after time.Duration) reconcile.Result {
	t.Helper()
	return checktest.Get(s.pass.Reconcile(t.Context(), reconcile.Request{Key: key, Now: passStart.Add(after)}))(t)
}

// A node that waits goes on with the task at which it waited, and not before
// it.
func TestNodeGoesOnWhereItWaited(t *testing.T) {
	const a, b, other, c = "0000_10_a_1.yaml", "0000_10_a_2.yaml", "0000_10_b_1.yaml", "0000_20_c_1.yaml"
	s := newScripted(t, Options{}, a, b, other, c)
	first := s.pass.Keys()
	if len(first) != 2 {
		t.Fatalf("Keys = %v, want both components of the first runlevel", first)
	}
	s.script.fail[b] = errors.New("not yet")
	res := s.look(t, first[0], 0)
	if want := passStart.Add(10 * time.Second); !res.At.Equal(want) || s.settled {
		t.Errorf("result %+v, want a wait until %s", res, want)
	}
	checktest.SameIn(t, "applied", a+" "+b, s.script.taken())
	if res = s.look(t, first[1], 0); len(res.Wake) > 0 || s.settled || s.script.taken() != other {
		t.Errorf("result %+v, want the next runlevel to wait", res)
	}
	checktest.SameIn(t, "nodes at work", first[:1], s.pass.Keys())
	s.script.fail[b] = nil
	early := s.look(t, first[0], time.Second)
	checktest.SameIn(t, "applied too early", "", s.script.taken())
	checktest.SameIn(t, "a look too early", reconcile.Result{At: passStart.Add(10 * time.Second)}, early)
	res = s.look(t, first[0], 10*time.Second)
	if len(res.Wake) != 1 || !res.At.IsZero() || s.pass.Finished() {
		t.Fatalf("result %+v", res)
	}
	checktest.SameIn(t, "applied", b, s.script.taken())
	last := res.Wake[0].Key
	s.look(t, last, 10*time.Second)
	if !s.pass.Finished() || !s.settled || s.script.taken() != c {
		t.Error("the pass has not ended")
	}
	s.look(t, last, 10*time.Second)
	checktest.SameIn(t, "applied by a look at a node that has ended", "", s.script.taken())
	for range 2 {
		res, err := s.pass.Result()
		if err != nil || res.Done != 4 {
			t.Errorf("Result = %+v, %v", res, err)
		}
	}
	checktest.SameIn(t, "events", "PassStarted NodeStarted TaskStarted TaskDone TaskStarted TaskRetry "+
		"NodeStarted TaskStarted TaskDone NodeDone TaskDone NodeDone NodeStarted TaskStarted TaskDone NodeDone PassDone", strings.Join(s.events, " "))
}

// A pass that stays holds a node whose task has failed, says what is wrong, and
// goes on there when it can.
func TestStay(t *testing.T) {
	const a, b, c = "0000_10_a_1.yaml", "0000_10_b_1.yaml", "0000_20_c_1.yaml"
	s := newScripted(t, Options{Stay: true}, a, b, c)
	first := s.pass.Keys()
	s.script.fail[a] = fatal("stuck")
	if res := s.look(t, first[0], 0); !res.At.IsZero() || s.settled {
		t.Errorf("result %+v, want a stalled node while another one is at work", res)
	}
	if res := s.look(t, first[1], 0); !s.settled || s.pass.Finished() || len(res.Wake) > 0 {
		t.Errorf("result %+v, want nothing at work", res)
	}
	res, err := s.pass.Result()
	if err == nil || res.Failure == nil || res.Done != 1 || len(s.pass.Keys()) > 0 {
		t.Errorf("Result = %+v, %v; want the failure of %s so far", res, err, a)
	}
	s.script.taken()
	s.look(t, first[0], time.Hour)
	checktest.SameIn(t, "applied of a node that stalls", "", s.script.taken())
	for range 3 {
		checktest.SameIn(t, "resumed", first[:1], s.pass.Resume())
		if _, err := s.pass.Result(); err == nil || s.pass.Settled() {
			t.Error("a node that is to go on is not looked at yet, and has its trouble")
		}
		if s.look(t, first[0], 0); !s.settled {
			t.Error("a node is at work")
		}
	}
	checktest.SameIn(t, "applied", a+" "+a+" "+a, s.script.taken())
	s.script.fail[a] = nil
	s.pass.Resume()
	next := s.look(t, first[0], 0)
	if len(next.Wake) != 1 || s.settled {
		t.Fatalf("result %+v, want the next runlevel", next)
	}
	if s.look(t, next.Wake[0].Key, 0); !s.pass.Finished() {
		t.Error("the pass has not ended")
	}
	if res, err = s.pass.Result(); err != nil || res.Done != 3 {
		t.Errorf("Result = %+v, %v", res, err)
	}
	// The failure is told once, and no task is called failed that then succeeds.
	got := strings.Join(s.events, " ")
	if strings.Count(got, "TaskRetry") != 1 || strings.Contains(got, "TaskFailed") || strings.Count(got, "PassDone") != 1 {
		t.Errorf("events %s", got)
	}
}

// A stalled node leaves its place to others.
func TestStalledNodesTakeNoPlace(t *testing.T) {
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("0000_10_c%02d_1.yaml", i))
	}
	s := newScripted(t, Options{Workers: 3, Stay: true}, files...)
	for _, file := range files {
		s.script.fail[file] = fatal("stuck")
	}
	todo := s.pass.Keys()
	checktest.SameIn(t, "nodes that begin", 3, len(todo))
	for ; len(todo) > 0; todo = todo[1:] {
		for _, wake := range s.look(t, todo[0], 0).Wake {
			todo = append(todo, wake.Key)
		}
	}
	if !s.settled || len(s.pass.Resume()) != 20 {
		t.Error("not all nodes are stalled")
	}
}

func TestStop(t *testing.T) {
	const a, b = "0000_10_a_1.yaml", "0000_10_b_1.yaml"
	for _, c := range []struct {
		name string
		stay bool
		fail error // of the first node; nil: it is not looked at
		want string
	}{
		{"before anything", false, nil, "2 incomplete task nodes"},
		{"in a wait", false, errors.New("not yet"), "Could not update"},
		{"stalled", true, fatal("stuck"), "stuck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScripted(t, Options{Stay: c.stay}, a, b)
			first := s.pass.Keys()
			if s.script.fail[a] = c.fail; c.fail != nil {
				s.look(t, first[0], 0)
			}
			for range 2 {
				if !s.pass.Stop(context.Canceled) || !s.pass.Finished() {
					t.Error("the pass goes on")
				}
			}
			_, err := s.pass.Result()
			checktest.ErrorHas(t, c.want, err)
			_, _ = s.pass.Result()
			got := strings.Join(s.events, " ")
			if strings.Count(got, "NodeStarted") != strings.Count(got, "NodeDone") || strings.Count(got, "PassDone") != 1 {
				t.Errorf("events %s, want each node and the pass to end once", got)
			}
			s.script.taken()
			s.look(t, first[1], 0)
			checktest.SameIn(t, "applied by a pass that was stopped", "", s.script.taken())
		})
	}
}

// What a node waits for may change while it is looked at, and the time of the next
// look at all that waits may be that of such a look: it goes on, and the node is
// looked at again only for the change.
func TestNodeIsWokenDuringALook(t *testing.T) {
	const file = "0000_10_a_1.yaml"
	operator := newManifest(t, file, "{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: a, annotations: {}}}")
	var during func()
	applied, settled := 0, false
	p := checktest.Get(NewPass(manifest.NewTasks([]*manifest.Manifest{operator}), Options{
		Stay: true, Clock: reconcile.NewClock(passStart),
		Stepped: func(s bool) []reconcile.Wake { settled = s; return nil },
		Wrap: by(func(ctx context.Context, _ *manifest.Task, state State) error {
			if state == Precreating {
				return nil
			}
			applied++
			if during != nil {
				during()
			}
			checktest.OK(t, ctx.Err())
			return fatal("waits")
		}),
	}))(t)
	node := p.Keys()[0]
	look := func() reconcile.Result {
		return checktest.Get(p.Reconcile(t.Context(), reconcile.Request{Key: node, Now: passStart}))(t)
	}
	changed := func(name string) int {
		co := clusterapi.NewObject(newManifest(t, file,
			"{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: "+name+", annotations: {}}}").Object())
		return len(p.Watches()[0].Changed(passStart, co, co))
	}
	look()
	p.Resume()
	during = func() { checktest.SameIn(t, "resumed", 0, len(p.Resume())) }
	checktest.SameIn(t, "a look at the time of the next", reconcile.Result{}, look())
	checktest.SameIn(t, "settled", true, settled)
	p.Resume()
	during = func() {
		checktest.SameIn(t, "woken by another operator", 0, changed("b"))
		checktest.SameIn(t, "woken by the operator", 1, changed("a"))
	}
	checktest.SameIn(t, "a look with a change", reconcile.Result{At: passStart}, look())
	checktest.SameIn(t, "settled", false, p.Settled())
	during = nil
	look()
	look()
	checktest.SameIn(t, "attempts", 4, applied)
}

// A pass applies nothing after a driver has ended a look.
func TestPassThatADriverCuts(t *testing.T) {
	const a, b = "0000_10_a_1.yaml", "0000_10_b_1.yaml"
	s := newScripted(t, Options{Stay: true}, a, b)
	first := s.pass.Keys()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.pass.Reconcile(ctx, reconcile.Request{Key: first[0], Now: passStart})
	checktest.ErrorIs(t, context.Canceled, err)
	s.look(t, first[1], 0)
	checktest.SameIn(t, "applied", "", s.script.taken())
	checktest.SameIn(t, "finished", true, s.pass.Finished())
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
		return []reconcile.Reconciler{pass}
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
			checktest.OK(t, err)
			if since, ok := restored.COStart("etcd"); !ok || !since.Equal(passStart.Add(-245*time.Second)) {
				t.Errorf("etcd is awaited since %v", since)
			}
			checktest.SameIn(t, "pending", c.pending, restored.PendingDeletions())
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

// A task that stalled has all its attempts again when its node goes on, as in a
// new pass.
func TestStalledTaskHasItsAttemptsAgain(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	s := newScripted(t, Options{Stay: true}, a)
	s.script.fail[a] = errors.New("not yet")
	node := s.pass.Keys()[0]
	for range 3 {
		res := s.look(t, node, 0)
		if want := passStart.Add(10 * time.Second); !res.At.Equal(want) || s.settled {
			t.Fatalf("after the first attempt: %+v, want a wait until %s", res, want)
		}
		if res = s.look(t, node, 10*time.Second); !s.settled || !res.At.IsZero() {
			t.Fatalf("after the second attempt: %+v, want it stalled", res)
		}
		s.pass.Resume()
	}
	checktest.SameIn(t, "applied", strings.TrimSpace(strings.Repeat(a+" ", 6)), s.script.taken())
}

// A node that stalls tells what its task waits for when that is new: for an
// operator as Waiting, for anything else as TaskRetry. It ends once.
func TestStalledNodeTellsWhatIsNew(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	s := newScripted(t, Options{Stay: true}, a)
	waits := func(text string) error {
		return &TaskError{Effect: EffectNone, Message: text, Wait: &Wait{Operator: "a"}}
	}
	node := s.pass.Keys()[0]
	var got []string
	for _, err := range []error{waits("one"), waits("one"), waits("two"), fatal("three"), nil} {
		s.events = nil
		s.script.fail[a] = err
		s.pass.Resume()
		s.look(t, node, 0)
		got = append(got, strings.Join(s.events, " "))
	}
	checktest.SameIn(t, "events", []string{"NodeStarted TaskStarted Waiting", "", "Waiting", "TaskRetry", "TaskDone NodeDone"}, got)
}

// An attempt that fails otherwise than by the end of the context is a failure,
// though the context has ended meanwhile.
func TestFailureWhileTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error { cancel(); return errors.New("refused") }}
		res, err := Run(ctx, configMaps(t, "x"), Options{Wrap: r.wrap})
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.Err.Error() != "refused" || res.Failure != err || len(r.log) != 1 {
			t.Errorf("error %v after %d attempts", err, len(r.log))
		}
	})
}

// What is only told stops neither its node nor what depends on it, counts as done,
// and comes in the order of the tasks, whatever the order of the pass.
func TestReportGoesOn(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_20_c_1", "0000_30_d_1", "0000_30_e_1"}
	for _, state := range []State{Initializing, Updating, Reconciling} {
		r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
			return &TaskError{Effect: EffectReport, Message: t.Manifest.Identity().Name}
		}}
		res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, State: state, Workers: 1})
		if err != nil || res.Done != len(files) || len(r.log) != len(files) {
			t.Errorf("%s: %d done, %d applied, error %v", state, res.Done, len(r.log), err)
		}
		te, _ := errors.AsType[*TaskError](res.Report)
		if te == nil {
			t.Fatalf("%s: report %v", state, res.Report)
		}
		var got []string
		for _, m := range te.Members {
			got = append(got, m.Error())
		}
		if diff := cmp.Diff(files, got); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
	}
}

// A pass with a failure and with what is only told has both.
func TestReportBesideAFailure(t *testing.T) {
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
		if t.Index == 1 {
			return &TaskError{Effect: EffectReport, Message: "told"}
		}
		return fatal("broken")
	}}
	res, err := Run(t.Context(), configMaps(t, "0000_10_a_1", "0000_10_a_2", "0000_10_a_3"), Options{Wrap: r.wrap})
	if err == nil || err.Error() != "broken" || res.Report == nil || res.Report.Error() != "told" || res.Done != 1 || len(r.log) != 2 {
		t.Errorf("%+v, error %v, applied %v", res, err, r.log)
	}
}

// Events count the attempts that failed, in all tasks of a pass together, final
// ones too; creating a ClusterOperator ahead is none.
func TestEventsCountFailedAttempts(t *testing.T) {
	left := map[string][]error{
		"pre c": {errors.New("ahead")},
		"a":     {errors.New("one"), errors.New("two")},
		"b":     {&TaskError{Effect: EffectReport, Message: "told"}},
		"c":     {errors.New("one"), fatal("final")},
	}
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, s State) (err error) {
		name := t.Manifest.Identity().Name
		if s == Precreating {
			name = "pre " + name
		}
		if errs := left[name]; len(errs) > 0 {
			err, left[name] = errs[0], errs[1:]
		}
		return err
	}}
	cm := configMaps(t, "a", "b")
	tasks := manifest.NewTasks([]*manifest.Manifest{cm[0].Manifest, cm[1].Manifest, operatorManifest(t, "c", "c")})
	var got []int
	_, err := Run(t.Context(), tasks, Options{Wrap: r.wrap, Workers: 1, Backoff: &Backoff{Base: 1, Steps: 3}, Observe: func(e clusterapi.Event) {
		if e.Type == EventTaskStarted || e.Type == EventPassDone {
			got = append(got, progressOf(e).FailedAttempts)
		}
	}})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff([]int{0, 2, 3, 5}, got); diff != "" {
		t.Errorf("failed attempts before each task and at the end: %s", diff)
	}
}
