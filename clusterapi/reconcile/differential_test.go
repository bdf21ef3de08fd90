package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// drama is a run that a seed decides: what people do to a cluster, and what two
// reconcilers do at each look. Nothing but what begins at the start is due at the
// time of something else, so that the run is the same whatever the order of what
// is due at one time.
type drama struct {
	t     *testing.T
	seed  uint64
	now   func() time.Time
	begun time.Time
	api   *memory.Cluster

	mu    sync.Mutex
	lines []line
	count map[string]uint64
}

// line is a line of the log of a script.
type line struct {
	at   time.Duration
	text string
}

// playTime is how long a script goes on.
const playTime = 8 * time.Minute

// newDrama returns the script of a seed for a cluster that begins to fail some
// lists.
func newDrama(t *testing.T, seed uint64, now func() time.Time, o memory.Options) *drama {
	s := &drama{t: t, seed: seed, now: now, begun: now(), count: make(map[string]uint64)}
	r := s.draws("lists")
	failing := map[string]int{"": r.IntN(4), "ns": r.IntN(4)} // by namespace
	o.Intercept = func(ctx context.Context, c memory.Call, do func(context.Context) error) error {
		if c.Verb != "List" && c.Verb != "Watch" || c.GVK != secrets {
			return do(ctx)
		}
		s.mu.Lock()
		left := failing[c.Key.Namespace]
		failing[c.Key.Namespace]--
		s.mu.Unlock()
		switch {
		case left > 2, left == 1:
			return errTest
		case left == 2:
			return apierrors.NewTooManyRequests("busy", 7)
		}
		return do(ctx)
	}
	s.api = memory.New(o)
	s.put(configMaps, "a", "0")
	s.put(secrets, "a", "0")
	return s
}

// draws returns the randomness for a purpose, another one each time.
func (s *drama) draws(what string) *rand.Rand {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[what]++
	h := s.count[what]
	for _, b := range []byte(what) {
		h = h*1099511628211 ^ uint64(b)
	}
	return rand.New(rand.NewPCG(s.seed, h))
}

// span draws a time that no other draw has.
func span(r *rand.Rand, longest time.Duration) time.Duration {
	return 1 + time.Duration(r.Int64N(int64(longest)))
}

func (s *drama) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{s.now().Sub(s.begun), fmt.Sprintf(format, args...)})
}

func (s *drama) observe(e clusterapi.Event) {
	a := e.Data.(*reconcile.Attempt)
	retry := time.Duration(0)
	if !a.Retry.IsZero() {
		retry = a.Retry.Sub(e.Time)
	}
	s.add("%s %s %s %s %s x%d +%s: %v", e.Type, e.Subject, a.Process, a.Reconciler, a.Key, a.Failures, retry, e.Err)
}

// log returns what happened before the end, in order.
func (s *drama) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.text, b.text))
	})
	var out []string
	for _, l := range s.lines {
		if l.at < playTime {
			out = append(out, fmt.Sprint(l.at, " ", l.text))
		}
	}
	return out
}

// put makes an object hold a value, as a person or as a reconciler by its API.
func (s *drama) put(gvk schema.GroupVersionKind, name, value string) {
	checktest.OK(s.t, apply(s.api, gvk, name, value))
}

func apply(api clusterapi.ClusterAPI, gvk schema.GroupVersionKind, name, value string) error {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"v": value}}}
	if gvk == secrets {
		u.Object = map[string]any{"stringData": map[string]any{"v": value}, "type": "Opaque"}
	}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(map[string]string{"v": value})
	_, err := api.Apply(context.Background(), u, clusterapi.ApplyOptions{FieldManager: "test"})
	return err
}

// play lets people do what the seed says until the time is over. wait lets time pass.
func (s *drama) play(wait func(time.Duration)) {
	r := s.draws("people")
	for left := playTime; left > 0; {
		d := min(left, span(r, 100*time.Second))
		wait(d)
		left -= d
		gvk := []schema.GroupVersionKind{configMaps, secrets}[r.IntN(2)]
		name := string(rune('a' + r.IntN(3)))
		if r.IntN(4) > 0 {
			s.put(gvk, name, fmt.Sprint(r.IntN(5)))
			continue
		}
		key := clusterapi.Key("ns", name)
		if err := s.api.Delete(context.Background(), gvk, key, clusterapi.DeleteOptions{}); !apierrors.IsNotFound(err) {
			checktest.OK(s.t, err)
		}
	}
}

// watch is a watch that logs, and wakes later.
func (s *drama) watch(who string, gvk schema.GroupVersionKind, o clusterapi.ListOptions) reconcile.Watch {
	text := func(o *clusterapi.Object) string {
		if o == nil {
			return "-"
		}
		return o.Unstructured().GetLabels()["v"] + "@" + o.ResourceVersion()
	}
	return reconcile.Watch{
		GVK: gvk, Options: o,
		Cache: func(now time.Time, old, new *clusterapi.Object) {
			s.add("%s cache %s %s>%s %v", who, gvk.Kind, text(old), text(new), now.Sub(s.begun))
		},
		Changed: func(now time.Time, old, new *clusterapi.Object) []reconcile.Wake {
			name := clusterapi.Change{Old: old, New: new}.Object().Name()
			s.add("%s changed %s %s %s>%s %v", who, gvk.Kind, name, text(old), text(new), now.Sub(s.begun))
			r := s.draws(who + " changed " + gvk.Kind + name)
			if r.IntN(10) == 0 {
				panic("in Changed")
			}
			return []reconcile.Wake{{Key: reconcile.Key{Name: name}, After: span(r, time.Minute)}}
		},
	}
}

func (s *drama) process() reconcile.Process {
	red := clusterapi.ListOptions{Namespace: "ns", Labels: labels.SelectorFromSet(labels.Set{"v": "1"})}
	return reconcile.Process{Name: "p", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		one := rec{name: "one", look: s.look(api, "one"), watches: []reconcile.Watch{
			s.watch("one", configMaps, clusterapi.ListOptions{}), s.watch("one red", configMaps, red),
		}}
		two := rec{name: "two", look: s.look(api, "two"), watches: []reconcile.Watch{
			s.watch("two", configMaps, clusterapi.ListOptions{}), s.watch("two", secrets, clusterapi.ListOptions{}),
			{GVK: widgets},
		}}
		if s.seed%3 == 0 {
			return []reconcile.Reconciler{two, wide{at(one, "k"), 4}}
		}
		return []reconcile.Reconciler{at(one, "k"), two}
	}}
}

// look is what a reconciler does.
func (s *drama) look(api clusterapi.ClusterAPI, who string) func(context.Context, reconcile.Request) (reconcile.Result, error) {
	return func(_ context.Context, q reconcile.Request) (reconcile.Result, error) {
		s.add("%s look %s %v %d", who, q.Key, q.Now.Sub(s.begun), q.Rand.IntN(1000))
		r := s.draws(who + " look " + q.Key.Name)
		switch r.IntN(10) {
		case 0:
			return reconcile.Result{}, errTest
		case 1:
			return reconcile.Result{}, errConflict
		case 2:
			return reconcile.Result{}, apierrors.NewTooManyRequests("busy", 1+r.IntN(30))
		case 3:
			panic("in Reconcile")
		case 4, 5:
			return reconcile.Result{}, apply(api, configMaps, q.Key.Name, fmt.Sprint(r.IntN(5)))
		}
		return s.result(r, who, q), nil
	}
}

// result draws a Result.
func (s *drama) result(r *rand.Rand, who string, q reconcile.Request) reconcile.Result {
	var res reconcile.Result
	if r.IntN(2) == 0 {
		res.At = q.Now.Add(span(r, 3*time.Minute))
	}
	if r.IntN(3) == 0 {
		to := []string{"", "one", "two", "nobody"}[r.IntN(4)]
		key := reconcile.Key{Name: string(rune('a' + r.IntN(4)))}
		res.Wake = []reconcile.Wake{{Reconciler: to, Key: key, After: span(r, time.Minute)}}
	}
	if r.IntN(3) == 0 {
		w := s.watch(who+" "+q.Key.Name, secrets, clusterapi.ListOptions{Namespace: "ns"})
		if r.IntN(2) == 0 {
			w.Trim = func(u *unstructured.Unstructured) *unstructured.Unstructured {
				out := &unstructured.Unstructured{Object: map[string]any{}}
				out.SetNamespace(u.GetNamespace())
				out.SetName(u.GetName())
				return out
			}
		}
		res.Watches = append(res.Watches, w)
	}
	for id := range r.IntN(3) {
		res.Jobs = append(res.Jobs, s.job(r, fmt.Sprint(who, " ", q.Key, " job ", id), id))
	}
	return res
}

// job draws a job.
func (s *drama) job(r *rand.Rand, who string, id int) reconcile.Job {
	j := reconcile.Job{ID: id}
	first, second := span(r, 2*time.Minute), span(r, 2*time.Minute)
	fails, wake := r.IntN(3), span(r, time.Minute)
	key := reconcile.Key{Name: "j"}
	j.Run = func(ctx context.Context, report func(any)) (any, error) {
		err := reconcile.Sleep(ctx, first)
		report("half")
		err = errors.Join(err, reconcile.Sleep(ctx, second))
		switch {
		case err != nil:
			return nil, err
		case fails == 0:
			return nil, errTest
		case fails == 1:
			panic("in a job")
		}
		return "whole", nil
	}
	if r.IntN(2) == 0 {
		j.Limit = span(r, 3*time.Minute)
	}
	if r.IntN(4) > 0 {
		j.Report = func(x any) []reconcile.Wake {
			s.add("%s reports %v", who, x)
			return []reconcile.Wake{{Key: key, After: wake}}
		}
	}
	if r.IntN(4) > 0 {
		j.Done = func(x any, err error) []reconcile.Wake {
			s.add("%s done %v %v", who, x, err)
			return []reconcile.Wake{{Key: key, After: 2 * wake}}
		}
	}
	return j
}

// TestHostsDoTheSame plays scripts live and in virtual time: the same looks at the
// same times, and the same events.
func TestHostsDoTheSame(t *testing.T) {
	lines := 0
	for seed := range uint64(300) {
		var live, virtual *drama
		synctest.Test(t, func(t *testing.T) {
			live = newDrama(t, seed, time.Now, memory.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			o := reconcile.Options{API: live.api, Seed: seed + 1, Resync: 3 * time.Minute, Observe: live.observe}
			go func() { ended <- reconcile.Run(ctx, o, live.process()) }()
			live.play(time.Sleep)
			cancel()
			checktest.OK(t, <-ended)
		})
		clock := reconcile.NewClock(live.begun)
		virtual = newDrama(t, seed, clock.Now, memory.Options{Clock: clock})
		v := reconcile.NewVirtual(reconcile.VirtualOptions{
			Cluster: virtual.api, Clock: clock, Seed: seed + 1, Resync: 3 * time.Minute, Observe: virtual.observe,
		}, virtual.process())
		virtual.play(func(d time.Duration) { checktest.OK(t, v.RunUntil(v.Now().Add(d))) })
		got := virtual.log()
		lines += len(got)
		checktest.SameIn(t, fmt.Sprintf("seed %d (live, virtual)", seed), live.log(), got)
		if t.Failed() {
			break
		}
	}
	checktest.FailIf(t, lines < 300*80, "only %d lines", lines)
}
