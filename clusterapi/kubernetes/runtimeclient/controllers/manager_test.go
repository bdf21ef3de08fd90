package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient/controllers"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// probed is a Manager that keeps its health checks.
type probed struct {
	manager.Manager
	ready, health map[string]healthz.Checker
}

func (p *probed) AddReadyzCheck(name string, check healthz.Checker) error {
	p.ready[name] = check
	return p.Manager.AddReadyzCheck(name, check)
}

func (p *probed) AddHealthzCheck(name string, check healthz.Checker) error {
	p.health[name] = check
	return p.Manager.AddHealthzCheck(name, check)
}

// run starts a Manager with a process, and returns how to end it.
func run(t *testing.T, config *rest.Config, o controllers.Options, p reconcile.Process) (*probed, func() error) {
	t.Helper()
	mgr := checktest.Get(manager.New(config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	}))(t)
	m := &probed{Manager: mgr, ready: map[string]healthz.Checker{}, health: map[string]healthz.Checker{}}
	checktest.OK(t, controllers.Add(m, o, p))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var once sync.Once
	var result error
	stop := func() error {
		once.Do(func() {
			cancel()
			result = <-ended
		})
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return m, stop
}

// one is a reconciler made of its parts.
type one struct {
	watches []reconcile.Watch
	look    func(context.Context, reconcile.Request) (reconcile.Result, error)
}

func (one) Name() string                 { return "one" }
func (o one) Watches() []reconcile.Watch { return o.watches }
func (o one) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return o.look(ctx, r)
}

// seen is what was seen, in no order.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *seen) has(want ...string) func() bool {
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(s.lines, w) })
	}
}

func TestManager(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	s := testserver.Start(t)
	api := checktest.Get(kubernetes.New(s.Config(), kubernetes.Options{}))(t)
	write := func(name string) {
		t.Helper()
		u, err := clusterapi.ToUnstructured(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"name": name},
		}})
		if err == nil {
			_, err = api.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: "test"})
		}
		checktest.OK(t, err)
	}
	remove := func(name string) {
		t.Helper()
		checktest.OK(t, api.Delete(t.Context(), configMaps, clusterapi.Key("default", name), clusterapi.DeleteOptions{}))
	}
	write("before")

	t.Run("Looks", func(t *testing.T) {
		got := &seen{}
		watch := func(prefix string, o clusterapi.ListOptions) reconcile.Watch {
			return reconcile.Watch{GVK: configMaps, Options: o, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
				o := clusterapi.Change{Old: old, New: new}.Object()
				got.add("%s %s %v>%v", prefix, o.Name(), old != nil, new != nil)
				return []reconcile.Wake{{Key: reconcile.Key{Name: o.Name()}}}
			}}
		}
		selector := labels.SelectorFromSet(labels.Set{"name": "before"})
		failed := false
		p := reconcile.Process{Name: "looks", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{one{
				watches: []reconcile.Watch{
					watch("cached", clusterapi.ListOptions{}), watch("selected", clusterapi.ListOptions{Labels: selector}),
					{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}},
				},
				look: func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
					got.add("look %s", r.Key)
					if r.Key.Name == "fails" && !failed {
						failed = true
						return reconcile.Result{}, errors.New("no luck")
					}
					return reconcile.Result{}, nil
				},
			}}
		}}
		m, stop := run(t, s.Config(), controllers.Options{}, p)
		await(t, "the first list", 20*time.Second, got.has("cached before false>true", "selected before false>true", "look before"))
		write("after")
		write("fails")
		remove("before")
		await(t, "changes", 20*time.Second, got.has("cached after false>true", "cached before true>false", "selected before true>false", "look after"))
		await(t, "a look that failed is tried again", 20*time.Second, func() bool {
			return count(t, "controller_runtime_terminal_reconcile_errors_total", "looks-one") == 1
		})
		n := count(t, "controller_runtime_reconcile_total", "looks-one")
		checktest.FailIf(t, n < 4, "%v looks are counted", n)
		checktest.FailIf(t, got.has("selected after false>true")(), "a watch saw what it does not select")
		checktest.Good(t, m.ready["looks"](nil))
		checktest.Good(t, m.health["looks"](nil))
		checktest.Good(t, stop())
		checktest.Fails(t, m.health["looks"](nil), "alive after its end")
	})

	t.Run("Forbidden", func(t *testing.T) {
		config := s.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
		p := reconcile.Process{Name: "forbidden", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler {
			return []reconcile.Reconciler{one{watches: []reconcile.Watch{{GVK: configMaps, Options: clusterapi.ListOptions{Namespace: "default"}}}}}
		}}
		m, _ := run(t, config, controllers.Options{}, p)
		await(t, "it is not ready", 20*time.Second, func() bool {
			err := m.ready["forbidden"](nil)
			return err != nil && strings.Contains(err.Error(), "watching ConfigMap: ") && strings.Contains(err.Error(), "forbidden")
		})
	})

	t.Run("CannotBeMade", func(t *testing.T) {
		p := reconcile.Process{Name: "bad", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { panic("boom") }}
		m, stop := run(t, s.Config(), controllers.Options{}, p)
		await(t, "its end", 20*time.Second, func() bool { return m.health["bad"](nil) != nil })
		checktest.ErrorHas(t, "process bad: panic: boom", stop())
	})

	t.Run("Events", func(t *testing.T) {
		p := reconcile.Process{Name: "events", New: func(clusterapi.ClusterAPI) []reconcile.Reconciler { return nil }}
		m, _ := run(t, s.Config(), controllers.Options{}, p)
		about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "after"}}
		controllers.Record(m.GetEventRecorder("test"), about, clusterapi.Event{
			Type: reconcile.EventFailed, Subject: "r/k", Err: errors.New("no luck"), Data: &reconcile.Attempt{Process: "p"},
		})
		await(t, "the Event", 20*time.Second, func() bool {
			list := checktest.Get(api.List(t.Context(),
				schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, clusterapi.ListOptions{Namespace: "default"}))(t)
			return slices.ContainsFunc(list.Items, func(e unstructured.Unstructured) bool {
				regarding, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
				return regarding == "after" && e.Object["reason"] == "Failed" && e.Object["type"] == "Warning" && e.Object["note"] == `no luck (r/k {"process":"p"})`
			})
		})
	})
}

// count reads a metric of a controller.
func count(t *testing.T, metric, controller string) (n float64) {
	t.Helper()
	families := checktest.Get(metrics.Registry.Gather())(t)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == metric && l.GetName() == "controller" && l.GetValue() == controller {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func TestRecord(t *testing.T) {
	for _, tc := range []struct {
		name  string
		event clusterapi.Event
		want  []string
	}{
		{"failed", clusterapi.Event{Type: "Failed", Time: time.Now(), Subject: "r/k", Message: "drain", Err: errors.New("no luck")}, []string{"Warning Failed drain: no luck (r/k)"}},
		{"recovered", clusterapi.Event{Type: "Recovered"}, []string{"Normal Recovered Recovered"}},
		{"none", clusterapi.Event{}, nil},
		{"long", clusterapi.Event{Type: "Fault", Message: strings.Repeat("x", 5000)}, []string{"Normal Fault " + strings.Repeat("x", 1003) + "... (3997 more bytes)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := events.NewFakeRecorder(10)
			controllers.Record(r, &corev1.ConfigMap{}, tc.event)
			close(r.Events)
			var got []string
			for e := range r.Events {
				got = append(got, e)
			}
			checktest.Same(t, tc.want, got)
		})
	}
}
