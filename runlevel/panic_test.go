package runlevel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// panicsOf returns the TaskErrors of a pass that came from panics, which all
// have their stack.
func panicsOf(t *testing.T, res *Result) []*TaskError {
	t.Helper()
	if res == nil {
		t.Fatal("no result")
	}
	var out []*TaskError
	for _, err := range res.Errors {
		te, ok := errors.AsType[*TaskError](err)
		if !ok {
			t.Fatalf("%T is not a TaskError: %v", err, err)
		}
		caught, ok := errors.AsType[*clusterapi.PanicError](err)
		if !ok {
			continue
		}
		if caught.Value != nil && !strings.Contains(string(caught.Stack), "panic_test.go") {
			t.Errorf("the stack of %v does not lead to the culprit:\n%s", err, caught.Stack)
		}
		out = append(out, te)
	}
	return out
}

// ways are the two ways in which supplied code may leave without returning.
var ways = map[string]func(){
	"panic":  func() { panic("boom") },
	"Goexit": func() { runtime.Goexit() },
}

func TestPanicInApplier(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_10_b_2", "0000_20_c_1", "0000_20_d_1"}
	for way, leave := range ways {
		for _, workers := range []int{1, 0} {
			t.Run(fmt.Sprint(way, workers), func(t *testing.T) {
				r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
					if t.Index == 1 {
						leave()
					}
					return nil
				}}
				var nodes []error
				res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, Workers: workers, Observe: func(e clusterapi.Event) {
					if e.Type == EventNodeDone {
						nodes = append(nodes, e.Err)
					}
				}})
				got := panicsOf(t, res)
				if len(got) != 1 || len(res.Errors) != 1 || err != error(got[0]) {
					t.Fatalf("errors %v, returned %v", res.Errors, err)
				}
				te := got[0]
				if te.Task == nil || te.Task.Index != 1 || te.Reason != ReasonFailed || !strings.HasPrefix(te.Message, `Could not update configmap "ns/0000_10_a_1" (1 of 6): panic: `) {
					t.Errorf("%+v", te)
				}
				slices.Sort(r.log)
				if got := strings.Join(r.log, " "); got != "0000_10_a_1 0000_10_b_1 0000_10_b_2" {
					t.Errorf("applied %s, once each but what is behind the panic", got)
				}
				if len(nodes) != 2 || nodes[0] == nil == (nodes[1] == nil) {
					t.Errorf("nodes ended with %v", nodes)
				}
			})
		}
	}
}

// A panic is found at the task, also if it happens in the precreation that
// comes before the node's other tasks.
func TestPanicInPrecreation(t *testing.T) {
	texts := []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: ns}}",
		"{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: co}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: last, namespace: ns}}",
	}
	r := &recorder{apply: func(_ context.Context, _ *manifest.Task, s State) error {
		if s == Precreating {
			panic(io.ErrUnexpectedEOF)
		}
		return nil
	}}
	res, err := Run(t.Context(), tasksOf(t, texts...), Options{Wrap: r.wrap})
	if got := panicsOf(t, res); len(got) != 1 || got[0].Task.Index != 2 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%v %v", res.Errors, err)
	}
	if got := strings.Join(r.log, ", "); got != "pre co, first" {
		t.Errorf("applied %s", got)
	}
}

// brokenAPI leaves without returning in Apply of one object, or returns an
// object with which no readiness check can do anything.
type brokenAPI struct {
	*fakeAPI
	leave func()
}

func (b brokenAPI) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	if obj.GetName() == "broken" {
		b.leave()
		return &unstructured.Unstructured{}, nil
	}
	return b.fakeAPI.Apply(ctx, obj, o)
}

func TestPanicInBackend(t *testing.T) {
	texts := []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: broken, namespace: ns}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: ns}}",
	}
	var ms []*manifest.Manifest
	for i, text := range texts {
		ms = append(ms, newManifest(t, fmt.Sprintf("0000_10_c%d_x.yaml", i), text))
	}
	for way, leave := range ways {
		t.Run(way, func(t *testing.T) {
			api := brokenAPI{newFake(), leave}
			res, _ := Run(t.Context(), manifest.NewTasks(ms), Options{API: api})
			if got := panicsOf(t, res); len(got) != 1 || got[0].Task.Index != 1 {
				t.Fatalf("%v", res.Errors)
			}
			if res.Done != 1 || api.get("ConfigMap", "ns/other") == nil {
				t.Error("the other component was not applied")
			}
		})
	}
}

// An observer that panics misses nothing else, stops no task, and makes the
// pass fail with the task of the event.
func TestPanicInObserver(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_20_c_1"}
	for _, at := range []clusterapi.EventType{EventPassStarted, EventNodeStarted, EventTaskStarted, EventTaskDone, EventNodeDone, EventPassDone} {
		t.Run(string(at), func(t *testing.T) {
			left := false
			events := 0
			r := &recorder{}
			res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, Observe: func(e clusterapi.Event) {
				events++
				if e.Type == at && !left {
					left = true
					panic("boom")
				}
			}})
			got := panicsOf(t, res)
			if len(got) != 1 || err != error(got[0]) || res.Failure == nil {
				t.Fatalf("errors %v, returned %v", res.Errors, err)
			}
			if task := at == EventTaskStarted || at == EventTaskDone; task != (got[0].Task != nil) || !strings.HasPrefix(got[0].Message, "The observer failed at "+string(at)) {
				t.Errorf("%+v", got[0])
			}
			if res.Done != 4 || len(r.log) != 4 {
				t.Errorf("%+v, applied %v", res, r.log)
			}
			if events != 2+4*2+3*2 {
				t.Errorf("%d events", events)
			}
		})
	}
}

// An observer that ends its goroutine takes one node with it; other nodes go
// on, other events come, and Run returns.
func TestGoexitInObserver(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_10_c_1"}
	for _, at := range []clusterapi.EventType{EventPassStarted, EventNodeStarted, EventTaskStarted, EventTaskDone, EventNodeDone, EventPassDone} {
		for _, always := range []bool{false, true} {
			for _, workers := range []int{1, 2, 0} {
				t.Run(fmt.Sprint(at, always, workers), func(t *testing.T) {
					left := 0
					var last clusterapi.EventType
					r := &recorder{}
					res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: r.wrap, Workers: workers, Observe: func(e clusterapi.Event) {
						last = e.Type
						if e.Type == at && (left == 0 || always) {
							left++
							runtime.Goexit()
						}
					}})
					got := panicsOf(t, res)
					if err == nil || len(got) == 0 || left == 0 || last != EventPassDone {
						t.Fatalf("errors %v, returned %v, left %d times, last event %s", res.Errors, err, left, last)
					}
					if !always && len(r.log) < 2 {
						t.Errorf("applied %v", r.log)
					}
				})
			}
		}
	}
}

// An observer that always panics makes one error, not one for each event.
func TestObserverThatAlwaysPanics(t *testing.T) {
	res, err := Run(t.Context(), configMaps(t, "0000_10_a_1", "0000_10_b_1"), Options{Wrap: (&recorder{}).wrap, Observe: func(clusterapi.Event) { panic("always") }})
	if got := panicsOf(t, res); len(got) != 1 || err == nil || res.Done != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	if !strings.HasSuffix(err.Error(), "panic: always (and at 9 more events)") {
		t.Errorf("error %v", err)
	}
}

// A slow observer holds up the worker that called it, and no other.
func TestSlowObserverHoldsUpNobodyElse(t *testing.T) {
	var files []string
	for i := range 8 {
		files = append(files, fmt.Sprintf("0000_10_c%d_1", i), fmt.Sprintf("0000_10_c%d_2", i))
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var applied []time.Duration
		apply := func(context.Context, *manifest.Task, State) error {
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, time.Since(start))
			return nil
		}
		var events []clusterapi.Event
		inside := false
		res, err := Run(t.Context(), configMaps(t, files...), Options{Wrap: by(apply), Observe: func(e clusterapi.Event) {
			if inside {
				t.Error("two events at a time")
			}
			inside = true
			if len(events) > 0 {
				time.Sleep(time.Minute)
			}
			events = append(events, e)
			inside = false
		}})
		if err != nil || res.Done != 16 {
			t.Fatal(res, err)
		}
		at0 := 0
		for _, d := range applied {
			if d == 0 {
				at0++
			}
		}
		if at0 < 14 { // all but the tasks of the worker that delivers
			t.Errorf("only %d of 16 tasks were applied without waiting for the observer: %v", at0, applied)
		}
		checkEventOrder(t, events)
	})
}

// checkEventOrder checks that counts never fall and that each task's events
// come in order.
func checkEventOrder(t *testing.T, events []clusterapi.Event) {
	t.Helper()
	if events[0].Type != EventPassStarted || events[len(events)-1].Type != EventPassDone {
		t.Errorf("begins with %s, ends with %s", events[0].Type, events[len(events)-1].Type)
	}
	state := map[*manifest.Task]clusterapi.EventType{}
	for i, e := range events {
		if i > 0 && (progressOf(e).Done < progressOf(events[i-1]).Done || e.Time.Before(events[i-1].Time)) {
			t.Errorf("event %d, %s: %d done after %d", i, e.Type, progressOf(e).Done, progressOf(events[i-1]).Done)
		}
		switch {
		case progressOf(e).Task == nil:
		case e.Type == EventTaskStarted && state[progressOf(e).Task] != "", e.Type == EventTaskDone && state[progressOf(e).Task] != EventTaskStarted:
			t.Errorf("%s: %s after %q", progressOf(e).Task, e.Type, state[progressOf(e).Task])
		}
		if progressOf(e).Task != nil {
			state[progressOf(e).Task] = e.Type
		}
	}
}

// brokenHandler is a logger's handler that panics.
type brokenHandler struct{ slog.Handler }

func (brokenHandler) Enabled(context.Context, slog.Level) bool { return true }

func (brokenHandler) Handle(context.Context, slog.Record) error { panic("no logging today") }

func TestPanicInLogger(t *testing.T) {
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
		if t.Index == 1 {
			return errors.New("tried again, and logged")
		}
		return nil
	}}
	res, err := Run(t.Context(), configMaps(t, "0000_10_a_1", "0000_10_b_1"), Options{
		Wrap: r.wrap, Logger: slog.New(brokenHandler{}), Backoff: &Backoff{Steps: 2},
	})
	if got := panicsOf(t, res); len(got) != 1 || got[0].Task == nil || got[0].Task.Index != 1 || res.Done != 1 {
		t.Fatalf("%+v %v", res, err)
	}
}
