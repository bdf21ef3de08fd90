package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A process that is down, or has not begun, cannot crash: one instance begins.
func TestVirtualCrashWhileDown(t *testing.T) {
	for _, begun := range []bool{true, false} {
		w := newWorld(reconcile.VirtualOptions{})
		lives := 0
		w.Add(reconcile.Process{Name: "p", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
			lives++
			life := lives
			return []reconcile.Reconciler{&toy{name: "r", keys: []reconcile.Key{name("k")},
				reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					w.say("life %d", life)
					return reconcile.Result{At: r.Now.Add(2 * time.Second)}, nil
				}}}
		}})
		want := []string{"0s life 1", "2s life 1"}
		if begun {
			w.run(t, 0)
			want = []string{"0s life 1", "1s life 2", "3s life 2"}
		}
		w.Crash("p")
		w.Crash("p")
		w.run(t, 3*time.Second)
		w.check(t, want...)
	}
}

func TestVirtualServerBusy(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{Observe: nil})
	looks := 0
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			w.say("look")
			if looks++; looks == 1 {
				return reconcile.Result{}, apierrors.NewTooManyRequests("busy", 60)
			}
			return reconcile.Result{}, nil
		}}))
	w.run(t, 10*time.Second)
	w.Wake("p", "r", name("k")) // a wake does not shorten what the server asked for
	w.run(t, time.Minute)
	w.Wake("p", "r", name("k"))
	w.run(t, time.Second)
	w.check(t, "0s look", "1m0s look", "1m10s look")
}

// With an error a Result is ignored, and the earlier one stays in effect.
func TestVirtualAtStaysAfterAnError(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	failures, at := 0, start.Add(time.Minute)
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			switch {
			case r.Now.Equal(start):
				return reconcile.Result{At: at}, nil
			case r.Now.Before(at):
				failures++
				return reconcile.Result{}, errors.New("no")
			}
			w.say("look")
			return reconcile.Result{}, nil
		}}))
	w.run(t, 40*time.Second)
	w.Wake("p", "r", name("k")) // fails, and is tried until 20.47 s later, then 20.48 s after that
	w.run(t, time.Minute)
	w.check(t, "1m0s look")
}

func TestVirtualAnIDThatCannotBeCompared(t *testing.T) {
	var told []error
	w := newWorld(reconcile.VirtualOptions{Observe: func(e clusterapi.Event) { told = append(told, e.Err) }})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{Jobs: []reconcile.Job{{ID: []int{1}}}}, nil
		}}))
	w.run(t, time.Millisecond)
	checktest.FailIf(t, len(told) != 1 || !strings.Contains(told[0].Error(), "cannot be compared"), "told %v", told)
}

// What a job reports comes in order, its end last, in whatever order else
// things that are due are taken.
func TestVirtualReportsKeepTheirOrder(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(reconcile.VirtualOptions{Order: reconcile.Random, Seed: seed})
		w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
			reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Jobs: []reconcile.Job{{
					ID: 1,
					Run: func(_ context.Context, report func(any)) (any, error) {
						for i := range 5 {
							report(i)
						}
						return "end", nil
					},
					Report: func(x any) []reconcile.Wake { w.say("%v", x); return nil },
					Done:   func(x any, _ error) []reconcile.Wake { w.say("%v", x); return nil },
				}}}, nil
			}}))
		w.run(t, time.Second)
		w.check(t, "0s 0", "0s 1", "0s 2", "0s 3", "0s 4", "0s end")
	}
}

// Of two watches of one kind and options in a Result the first counts.
func TestVirtualAWatchNamedTwice(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	watch := func(name string) reconcile.Watch {
		return reconcile.Watch{GVK: configMap, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
			w.say("%s %s", name, value(new))
			return nil
		}}
	}
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{Watches: []reconcile.Watch{watch("first"), watch("second")}}, nil
		}}))
	w.run(t, time.Second)
	w.put(t, "a", "1")
	w.run(t, time.Second)
	w.check(t, "1s first 1")
}

// Ever new keys keep time from moving as well as the same ones.
func TestVirtualStuckInNewKeys(t *testing.T) {
	w := newWorld(reconcile.VirtualOptions{})
	n := 0
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("0")},
		reconcile: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if n++; n > 50_000 {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{Wake: []reconcile.Wake{{Key: name(fmt.Sprint(n))}}}, nil
		}}))
	checktest.ErrorHas(t, "p r ", w.RunUntil(start.Add(time.Minute)))
}

// A job's failure is told where it has nobody else to tell.
func TestVirtualAJobFails(t *testing.T) {
	var told []string
	w := newWorld(reconcile.VirtualOptions{Observe: func(e clusterapi.Event) {
		told = append(told, fmt.Sprint(e.Type, " ", e.Data.(*reconcile.Attempt).Key, ": ", e.Err))
	}})
	w.Add(of("p", &toy{name: "r", keys: []reconcile.Key{name("k")},
		reconcile: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{Jobs: []reconcile.Job{
				{ID: 1, Run: func(context.Context, func(any)) (any, error) { panic("oh") }},
				{ID: 2, Run: func(context.Context, func(any)) (any, error) { return nil, errors.New("no") },
					Done: func(any, error) []reconcile.Wake { return nil }},
			}}, nil
		}}))
	w.run(t, time.Second)
	want := "Failed k: job 1: panic: oh"
	checktest.FailIf(t, len(told) != 1 || told[0] != want, "told %q, want %s", told, want)
}
