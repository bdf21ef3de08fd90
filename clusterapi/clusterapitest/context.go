package clusterapitest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// contextCall is a call of one verb. prepare reads and makes what the call
// needs, again each time.
type contextCall struct {
	verb    string
	reads   bool
	prepare func() probe.Call
}

// contextCalls are calls of every verb that may be made again and again. Of a
// backend that only reads, they are those that read.
func contextCalls(t *testing.T, s *suite, u *unstructured.Unstructured) []contextCall {
	status := u
	if !s.recorded {
		status = s.create(t, s.widget(t, u.GetName()))
	}
	now := func() string { return time.Now().String() } // a change each time
	created := s.configMap(t, u.GetName()+"-created")
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}}`, u.GetName(), s.ns)
	pages := clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"page": s.id})}
	all := []contextCall{
		{"Get", true, func() probe.Call { return probe.Of("Get", u) }},
		{"List", true, func() probe.Call { return probe.Call{Verb: "List", Kind: configMaps, List: pages} }},
		{"Create", false, func() probe.Call {
			s.discard(t, configMaps, s.ns, created.GetName())
			return probe.Of("Create", created)
		}},
		{"Apply", false, func() probe.Call {
			in := s.configMap(t, u.GetName())
			in.Object["data"] = map[string]any{"now": now()}
			return probe.By("first", "Apply", in)
		}},
		{"Update", false, func() probe.Call {
			in := s.get(t, u)
			in.Object["data"] = map[string]any{"now": now()}
			return probe.Of("Update", in)
		}},
		{"UpdateStatus", false, func() probe.Call {
			in := s.get(t, status)
			in.Object["status"] = map[string]any{"phase": now()}
			return probe.Of("UpdateStatus", in)
		}},
		{"Evict", false, func() probe.Call {
			if s.gone(t, pod) {
				s.pod(t, u.GetName(), false, false)
			}
			return probe.Of("Evict", pod)
		}},
		{"Delete", false, func() probe.Call {
			if s.gone(t, created) {
				s.create(t, created)
			}
			return probe.Of("Delete", created)
		}},
	}
	if s.recorded {
		all = slices.DeleteFunc(all, func(c contextCall) bool { return !c.reads })
	}
	return all
}

// testContext: every verb honours its context.
func testContext(t *testing.T, s *suite) {
	u := s.make(t, s.configMap(t, "context"))
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	past, cancelPast := context.WithDeadline(s.ctx, time.Now().Add(-time.Minute))
	defer cancelPast()
	for _, tc := range contextCalls(t, s, u) {
		t.Run(tc.verb, func(t *testing.T) {
			first, second := tc.prepare(), tc.prepare()
			before := s.snapshot(t)
			checktest.ErrorIs(t, context.Canceled, checktest.Err(first.Do(ctx, s.api)))
			checktest.ErrorIs(t, context.DeadlineExceeded, checktest.Err(second.Do(past, s.api)))
			checktest.Equal(t, before, s.snapshot(t), "it had an effect after its context had ended")
		})
	}
	t.Run("InMidCall", func(t *testing.T) { testMidCall(t, s) })
}

// snapshot is what is there of the objects of this test.
func (s *suite) snapshot(t *testing.T) string {
	t.Helper()
	out := ""
	for _, u := range []*unstructured.Unstructured{s.configMap(t, "context"), s.configMap(t, "context-created"), s.widget(t, "context"),
		object(t, `{apiVersion: v1, kind: Pod, metadata: {name: context, namespace: %s}}`, s.ns)} {
		got, err := probe.Get(s.ctx, s.api, u.GroupVersionKind(), clusterapi.KeyOf(u))
		switch {
		case apierrors.IsNotFound(err):
			out += u.GetKind() + " is not there\n"
		case err != nil:
			t.Fatal(err)
		default:
			out += text(got.Object)
		}
	}
	return out
}

// testMidCall ends contexts while calls are under way. What returns is the
// context's error or a whole answer, at once: never a part of an answer, never
// another reason, and never an answer that was waited for long after the end.
func testMidCall(t *testing.T, s *suite) {
	u := s.make(t, s.configMap(t, "context-mid"))
	page := clusterapi.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"page": s.id})}
	if !s.recorded && len(s.list(t, configMaps, page).Items) == 0 { // testList has not made them
		for i := range 200 {
			s.create(t, object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: mid-%03d, namespace: %s, labels: {page: "%s"}}}`, i, s.ns, s.id))
		}
	}
	for _, tc := range contextCalls(t, s, u) {
		t.Run(tc.verb, func(t *testing.T) {
			usual, whole := time.Hour, ""
			for range 3 {
				out, took, err := tc.measured(s)
				for again := 0; again < 20 && tookEffect(tc.verb, err); again++ {
					out, took, err = tc.measured(s)
				}
				usual = min(usual, took)
				checktest.FatalIf(t, err != nil, "without an end: %v", err)
				if tc.verb == "List" {
					whole = text(out.Object)
				}
			}
			check := func(out *unstructured.Unstructured, err error) {
				t.Helper()
				switch {
				case err == nil && tc.verb == "List" && text(out.Object) != whole:
					t.Errorf("got a part of the list: %s, want %s", text(out.Object), whole)
				case err == nil && out == nil && tc.verb != "Evict" && tc.verb != "Delete":
					t.Error("got neither an object nor an error")
				case tookEffect(tc.verb, err):
				case err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("got %v, want the context's error or an answer", err)
				}
			}
			// The context ends at the n-th look at it.
			for n := range 6 {
				ctx := &failing{Context: s.ctx, left: n, done: make(chan struct{})}
				out, err := tc.prepare().Do(ctx, s.api)
				ctx.end()
				check(out, err)
			}
			// The context ends after a quarter of the usual time. A call that
			// continues nevertheless is seen by a backend that is not immediate.
			const tries = 5
			late := 0
			for range tries {
				call := tc.prepare()
				ctx, cancel := context.WithCancel(s.ctx)
				var ended time.Time
				timer := time.AfterFunc(usual/4, func() { ended = time.Now(); cancel() })
				out, err := returns(t, func() (*unstructured.Unstructured, error) { return call.Do(ctx, s.api) })
				if !timer.Stop() && err == nil {
					<-ctx.Done()
					if usual > slow && time.Since(ended) > usual/2 {
						late++
					}
				}
				cancel()
				check(out, err)
			}
			if late > tries/2 {
				t.Errorf("it took its usual %s, and went through, %d of %d times that its context ended after %s", usual, late, tries, usual/4)
			}
		})
	}
}

// tookEffect reports whether a call failed since a call before it, whose context
// ended, had its effect after all: between what prepare saw and the call.
func tookEffect(verb string, err error) bool {
	switch verb {
	case "Create":
		return apierrors.IsAlreadyExists(err)
	case "Evict", "Delete":
		return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
	}
	return apierrors.IsConflict(err)
}

// measured makes the call and reports how long it took.
func (c contextCall) measured(s *suite) (*unstructured.Unstructured, time.Duration, error) {
	call := c.prepare()
	begin := time.Now()
	out, err := call.Do(s.ctx, s.api)
	return out, time.Since(begin), err
}

// slow is the least time that a call must take for its answer to be late: a faster
// one is prompt, whatever it looks at.
const slow = 25 * time.Millisecond

// returns fails the test where a call does not return.
func returns(t *testing.T, call func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	t.Helper()
	type answer struct {
		out *unstructured.Unstructured
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		out, err := call()
		answers <- answer{out, err}
	}()
	select {
	case a := <-answers:
		return a.out, a.err
	case <-time.After(wait):
		t.Fatalf("the call has not returned %s after its context ended", wait)
		return nil, nil
	}
}

// failing is a context that ends when it has been looked at some times.
type failing struct {
	context.Context
	mu   sync.Mutex
	left int
	over bool
	done chan struct{}
}

func (f *failing) Err() error {
	f.mu.Lock()
	f.left--
	end := f.left < 0 || f.over
	f.mu.Unlock()
	if !end {
		return nil
	}
	f.end()
	return context.Canceled
}

func (f *failing) Done() <-chan struct{} { return f.done }

func (f *failing) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		f.over = true
		close(f.done)
	}
}
