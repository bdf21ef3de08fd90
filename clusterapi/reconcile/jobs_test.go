package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// working returns a job that takes some time and logs what becomes of it.
func working(l *log, id any, d time.Duration) reconcile.Job {
	return reconcile.Job{ID: id, Run: func(ctx context.Context, report func(any)) (any, error) {
		l.add("%v begins", id)
		defer l.add("%v ends", id)
		report("half")
		return "whole", reconcile.Sleep(ctx, d)
	}, Report: func(x any) []reconcile.Wake {
		l.add("%v reports %v", id, x)
		return nil
	}, Done: func(x any, err error) []reconcile.Wake {
		l.add("%v done: %v, %v", id, x, err)
		return nil
	}}
}

func TestJobs(t *testing.T) {
	type id struct{ Name string }
	for _, tc := range []struct {
		name string
		look func(l *log, n int) []reconcile.Job // of look n, each 10 s
		want []string
	}{
		{"started once while named", func(l *log, n int) []reconcile.Job {
			return []reconcile.Job{working(l, id{"j"}, 15*time.Second), working(l, id{"j"}, 0)}
		}, []string{"0s {j} begins", "0s {j} reports half", "15s {j} ends", "15s {j} done: whole, <nil>"}},
		{"cancelled when not named", func(l *log, n int) []reconcile.Job {
			if n == 0 {
				return []reconcile.Job{working(l, 1, time.Hour)}
			}
			return nil
		}, []string{"0s 1 begins", "0s 1 reports half", "10s 1 ends"}},
		{"started again when named again", func(l *log, n int) []reconcile.Job {
			if n%2 == 0 {
				return []reconcile.Job{working(l, 1, 5*time.Second)}
			}
			return nil
		}, []string{
			"0s 1 begins", "0s 1 reports half", "5s 1 ends", "5s 1 done: whole, <nil>",
			"20s 1 begins", "20s 1 reports half", "25s 1 ends", "25s 1 done: whole, <nil>",
		}},
		{"several at a time", func(l *log, n int) []reconcile.Job {
			return []reconcile.Job{working(l, "a", 2*time.Second), working(l, "b", time.Second)}[:2-min(n, 1)]
		}, []string{
			"0s a begins", "0s b begins", "0s a reports half", "0s b reports half",
			"1s b ends", "1s b done: whole, <nil>", "2s a ends", "2s a done: whole, <nil>",
		}},
		{"limited", func(l *log, n int) []reconcile.Job {
			j := working(l, 1, time.Hour)
			j.Limit = 7 * time.Second
			return []reconcile.Job{j}
		}, []string{"0s 1 begins", "0s 1 reports half", "7s 1 ends", "7s 1 done: whole, the job has not ended within 7s: context deadline exceeded"}},
		{"the newest Done is called", func(l *log, n int) []reconcile.Job {
			j := working(l, 1, 15*time.Second)
			j.Report = nil
			j.Done = func(any, error) []reconcile.Wake { l.add("done of look %d", n); return nil }
			return []reconcile.Job{j}
		}, []string{"0s 1 begins", "15s 1 ends", "15s done of look 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
				n := -1
				drive(t, reconcile.Options{}, 29*time.Second, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					n++
					return reconcile.Result{At: r.Now.Add(10 * time.Second), Jobs: tc.look(l, n)}, nil
				}}, "k"))
				got := l.take()
				if tc.name == "several at a time" {
					got, tc.want = sorted(got), sorted(tc.want)
				}
				checktest.Same(t, tc.want, got)
			})
		})
	}
}

func TestAJobWithoutDoneWakesItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		drive(t, reconcile.Options{Observe: l.observe}, time.Minute, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			l.add("look%s", keyText(r.Key))
			return reconcile.Result{Jobs: []reconcile.Job{{ID: 1, Run: func(ctx context.Context, report func(any)) (any, error) {
				report("nobody hears")
				return nil, errors.Join(reconcile.Sleep(ctx, time.Second), errTest)
			}}}}, nil
		}}, "k"))
		checktest.Same(t, []string{"0s look k", "1s Failed r k x1: job 1: no luck", "1s look k"}, l.take())
	})
}

func TestJobsStayAfterAnError(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		n := 0
		drive(t, reconcile.Options{}, time.Minute, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if n++; n > 1 {
				return reconcile.Result{}, errTest
			}
			return reconcile.Result{At: r.Now.Add(time.Second), Jobs: []reconcile.Job{working(l, 1, 20*time.Second)}}, nil
		}}, "k"))
		checktest.Same(t, []string{"0s 1 begins", "0s 1 reports half", "20s 1 ends", "20s 1 done: whole, <nil>"}, l.take())
	})
}

func TestAnIDThatCannotBeCompared(t *testing.T) {
	bubble(t, func(t *testing.T, l *log, _ *memory.Cluster) {
		drive(t, reconcile.Options{Observe: l.observe}, time.Millisecond, at(rec{name: "r", look: func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{Jobs: []reconcile.Job{{ID: []string{"a"}}}}, nil
		}}, "k"))
		checktest.Same(t, []string{"0s Failed r k x1: the ID of a job, a []string, cannot be compared"}, l.take())
	})
}

// A job of the same ID waits until the one that was cancelled has returned.
func TestJobsOfOneIDDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, starts atomic.Int64
		n := 0
		drive(t, reconcile.Options{}, time.Minute, at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			n++
			res := reconcile.Result{At: r.Now.Add(time.Second)}
			if n%2 == 1 {
				res.Jobs = []reconcile.Job{{ID: 1, Run: func(ctx context.Context, _ func(any)) (any, error) {
					starts.Add(1)
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					<-ctx.Done()
					time.Sleep(2500 * time.Millisecond) // slow to end
					return nil, nil
				}}}
			}
			return res, nil
		}}, "k"))
		checktest.FailIf(t, most.Load() != 1 || starts.Load() < 5,
			"%d at a time, %d starts", most.Load(), starts.Load())
	})
}

// Report, Done and Changed of a reconciler never run during its looks.
func TestCallbacksDoNotOverlapLooks(t *testing.T) {
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var looks, callbacks, overlaps, calls atomic.Int64
				callback := func() []reconcile.Wake {
					calls.Add(1)
					checktest.FailIf(t, callbacks.Add(1) > 1, "two callbacks at a time")
					if looks.Load() > 0 {
						overlaps.Add(1)
					}
					time.Sleep(time.Millisecond)
					callbacks.Add(-1)
					return nil
				}
				l := at(rec{name: "r", look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					looks.Add(1)
					time.Sleep(3 * time.Millisecond)
					looks.Add(-1)
					return reconcile.Result{At: r.Now.Add(5 * time.Millisecond), Jobs: []reconcile.Job{{
						ID: r.Now, Run: func(ctx context.Context, report func(any)) (any, error) {
							for range 3 {
								report(1)
							}
							return nil, nil
						},
						Report: func(any) []reconcile.Wake { return callback() },
						Done:   func(any, error) []reconcile.Wake { return callback() },
					}}}, nil
				}}, "a", "b", "c")
				var r reconcile.Reconciler = l
				if workers > 1 {
					r = wide{l, workers}
				}
				drive(t, reconcile.Options{}, time.Second, r)
				if calls.Load() < 100 || workers == 1 && overlaps.Load() > 0 || workers > 1 && overlaps.Load() == 0 {
					t.Errorf("%d of %d callbacks ran during a look", overlaps.Load(), calls.Load())
				}
			})
		})
	}
}

func TestSleepOutsideOfADriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := reconcile.Sleep(t.Context(), time.Minute)
		checktest.FailIf(t, err != nil || time.Since(start) != time.Minute, "%v after %s", err, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		checktest.ErrorIs(t, context.DeadlineExceeded, reconcile.Sleep(ctx, time.Minute))
	})
}
