package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// wallClock is a clock that is set at a time, by a difference. Its timers run on, as
// those of a machine do.
type wallClock struct {
	clock.RealClock
	at   time.Time
	back time.Duration
}

func (c *wallClock) Now() time.Time {
	now := time.Now().Round(0) // without the monotonic clock
	if !now.Before(c.at) {
		now = now.Add(-c.back)
	}
	return now
}

func (c *wallClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestLateByAMinute: a clock that is set back by any difference, with a cluster that
// cannot be watched, delays looks, back-off, polls and the resync by a minute at most.
func TestLateByAMinute(t *testing.T) {
	const late = time.Minute
	for _, back := range []time.Duration{30 * time.Second, 10 * time.Minute, 36 * time.Hour, 10 * 365 * 24 * time.Hour} {
		for name, look := range map[string]func(q reconcile.Request) (reconcile.Result, error){
			"At": func(q reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{At: q.Now.Add(5 * time.Minute)}, nil
			},
			"error": func(reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, errTest },
			"busy": func(reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, apierrors.NewTooManyRequests("busy", 100)
			},
			"wake": func(q reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{Wake: []reconcile.Wake{{Key: q.Key, After: 3 * time.Minute}}}, nil
			},
			"slow": func(q reconcile.Request) (reconcile.Result, error) {
				time.Sleep(2 * time.Minute)
				return reconcile.Result{At: q.Now.Add(5 * time.Minute)}, nil
			},
			"resync": func(reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
			"poll":   func(reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil },
		} {
			t.Run(fmt.Sprint(name, back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					longest := map[string]time.Duration{"At": 5 * time.Minute, "error": 30 * time.Second, "busy": 100 * time.Second,
						"wake": 3 * time.Minute, "slow": 7 * time.Minute, "resync": 10 * time.Minute, "poll": 30 * time.Second}[name] + late
					cluster := memory.New(memory.Options{})
					config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{}}
					if _, err := clusterapi.Create(t.Context(), cluster, config, clusterapi.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					last := start
					var gaps []time.Duration
					mark := func() { gaps, last = append(gaps, time.Since(last)), time.Now() }
					r := rec{name: "r", look: func(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
						if name != "poll" {
							mark()
						}
						return look(q)
					}}
					o := reconcile.Options{Clock: &wallClock{at: start.Add(21*time.Minute + 13*time.Second), back: back}}
					if name != "resync" {
						o.Resync = reconcile.Never
					}
					if name == "poll" {
						o.API = unwatched{cluster}
						r.watches = []reconcile.Watch{{GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
							Changed: func(time.Time, *clusterapi.Object, *clusterapi.Object) []reconcile.Wake { mark(); return nil }}}
						go func() { // something changes all the time
							for i := 0; time.Since(start) < 2*time.Hour; i++ {
								time.Sleep(10 * time.Second)
								if _, err := clusterapi.Modify(context.Background(), cluster, clusterapi.Key("ns", "a"), clusterapi.ModifyOptions{}, func(c *corev1.ConfigMap) error {
									c.Data = map[string]string{"i": fmt.Sprint(i)}
									return nil
								}); err != nil {
									t.Error(err)
								}
							}
						}()
					}
					drive(t, o, 2*time.Hour+time.Second, at(r, "a"))
					mark()
					for i, gap := range gaps {
						checktest.FailIf(t, gap > longest, "gap %d is %s, want at most %s", i, gap, longest)
					}
					checktest.FailIf(t, len(gaps) < 10, "only %d looks", len(gaps))
				})
			})
		}
	}
}

// TestSyncClockSetBack: what a Sync planned before the clock was set back is as far
// off as before.
func TestSyncClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, looks := newLog(), 0
		r := rec{name: "r", look: func(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
			l.add("look")
			return reconcile.Result{At: q.Now.Add(5 * time.Minute)}, nil
		}}
		c := &wallClock{at: time.Now().Add(2 * time.Minute), back: 24 * time.Hour}
		s := reconcile.NewSyncer(reconcile.Options{Clock: c, Resync: reconcile.Never}, process(at(r, "a")))
		for range 20 {
			checktest.OK(t, checktest.Err(s.Sync(t.Context())))
			time.Sleep(time.Minute)
		}
		for i, line := range l.take() {
			since, err := time.ParseDuration(strings.Fields(line)[0])
			checktest.FailIf(t, err != nil || since > time.Duration(i)*6*time.Minute, "look %d: %s, %v", i, line, err)
			looks = i + 1
		}
		checktest.FailIf(t, looks < 4, "%d looks", looks)
	})
}
