package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// budget returns a PodDisruptionBudget of the app's pods as the disruption
// controller would leave it.
func budget(allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{}
	b.Namespace, b.Name, b.Generation = "app", "web-pdb", 1
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed,
		CurrentHealthy: 1, DesiredHealthy: 1 - allowed, ExpectedPods: 1}
	return b
}

// drainCluster has one worker that asks to be drained.
func drainCluster(t *testing.T, o memory.Options, changes ...mcptest.Change) *memory.Cluster {
	c := memory.NewOpenShift(o)
	w := mcptest.Pool("worker", "N")
	n := mcptest.Worker("w0", append([]mcptest.Change{mcptest.Desired("N"), mcptest.State(mcp.StateWorking), mcptest.Annotate(mcp.AnnotationDesiredDrain, "drain-N",
		mcp.AnnotationLastAppliedDrain, "uncordon-O")}, changes...)...)
	load(t, c, mcptest.Topology("HighlyAvailable"), &w, &n)
	return c
}

func nodeState(t *testing.T, c *memory.Cluster, name string) mcp.NodeState {
	t.Helper()
	n := checktest.Get(clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", name)))(t)
	return mcp.NodeStateOf(n)
}

// One blocked drain: at first attempts follow each other back to back, since
// the cordon queues the node again; then they slow down; after an hour the
// drain is reported as failed, and goes on.
func TestBlockedDrain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []mcptest.Change
		want    []string
	}{
		{"schedulable before", nil, []string{"0:00", "1:30", "3:00", "4:30", "6:00", "7:30", "9:00", "10:30", "12:00",
			"17:00", "23:30", "30:00", "36:30", "43:00", "49:30", "56:00", "62:30"}},
		{"cordoned before", []mcptest.Change{mcptest.Cordoned}, []string{"0:00", "2:30", "5:00", "7:30", "10:00",
			"16:30", "23:00", "29:30", "36:00", "42:30", "49:00", "55:30", "62:00"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var attempts []string
				var began, failedAt time.Time
				c := drainCluster(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
					if call.Verb == "List" && call.GVK.Kind == "Pod" && call.Key.Namespace == "" {
						mu.Lock()
						if began.IsZero() {
							began = time.Now()
						}
						attempts = append(attempts, clockText(time.Since(began)))
						mu.Unlock()
					}
					return do(ctx)
				}}, tt.changes...)
				load(t, c, app("web-0", "w0"), budget(0))
				r := driving(t, c)
				time.Sleep(63 * time.Minute)
				for _, e := range r.all() {
					if e.Reason == rollout.ReasonDrainFailed {
						failedAt = e.Time
					}
				}
				r.stop()
				checktest.Same(t, tt.want, attempts)
				if got := clockText(failedAt.Sub(began)); got != tt.want[len(tt.want)-1] {
					t.Errorf("DrainFailed at %s", got)
				}
				if s := nodeState(t, c, "w0"); !s.Unschedulable || s.LastAppliedDrain != "uncordon-O" {
					t.Errorf("%+v", s)
				}
				checkBlockedEvents(t, r.recorder)
			})
		})
	}
}

func clockText(d time.Duration) string {
	d = d.Round(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func checkBlockedEvents(t *testing.T, r *recorder) {
	t.Helper()
	var blocked, slow, failed int
	for _, e := range r.all() {
		var d *rollout.DrainError
		switch {
		case e.Type == rollout.EventDrainBlocked:
			blocked++
			if !errors.As(e.Err, &d) || d.Node != "w0" || d.Pod != "app/web-0" || d.Budget != "web-pdb" || d.Kind != "Budget" {
				t.Errorf("%+v", e)
			}
		case e.Reason == rollout.ReasonDrainThresholdExceeded:
			slow++
			want := "Drain failed. Drain has been failing for more than 10 minutes. Waiting 5 minutes then retrying. Error message from drain: " +
				`error when evicting pods/"web-0" -n "app": global timeout reached: 1m30s`
			if e.Message != want || !e.Warning {
				t.Errorf("%q", e.Message)
			}
		case e.Reason == rollout.ReasonDrainFailed:
			failed++
			if e.Message != "node w0: drain exceeded timeout: 1h0m0s. Will continue to retry." {
				t.Errorf("%q", e.Message)
			}
		}
	}
	if blocked == 0 || slow == 0 || failed != 1 {
		t.Errorf("%d times blocked, %d slow, %d failed", blocked, slow, failed)
	}
}

// The budget frees in the middle of an attempt: the pod goes within 5 s.
func TestDrainSucceedsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{})
		load(t, c, app("web-0", "w0"), budget(0))
		r := driving(t, c)
		time.Sleep(4 * time.Minute)
		if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("app", "web-pdb"), clusterapi.ModifyOptions{Status: true},
			func(b *policyv1.PodDisruptionBudget) error { b.Status = budget(1).Status; return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" || !s.Unschedulable {
			t.Errorf("%+v", s)
		}
		if len(r.nodes(rollout.EventDrained, "worker")) != 1 {
			t.Error("no event")
		}
	})
}

func TestWhichPodsGo(t *testing.T) {
	controller := func(kind, name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = kind, name }
	}
	phase := func(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{})
		ds := &appsv1.DaemonSet{}
		ds.Namespace, ds.Name = "app", "agent"
		load(t, c, ds,
			app("agent", "w0", controller("DaemonSet", "agent")),
			app("agent-finished", "w0", controller("DaemonSet", "agent"), phase(corev1.PodSucceeded)),
			app("agent-orphan", "w0", controller("DaemonSet", "gone")),
			app("mirror", "w0", func(p *corev1.Pod) {
				p.OwnerReferences = nil
				p.Annotations = map[string]string{"kubernetes.io/config.mirror": ""}
			}),
			app("local", "w0", func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			}),
			app("bare", "w0", func(p *corev1.Pod) { p.OwnerReferences = nil }),
			app("failed", "w0", phase(corev1.PodFailed)),
			app("elsewhere", "w1"),
		)
		driving(t, c)
		time.Sleep(30 * time.Second)
		pods := checktest.Get(clusterapi.List[corev1.Pod](t.Context(), c, clusterapi.ListOptions{}))(t)
		var left []string
		for _, p := range pods {
			left = append(left, p.Name)
		}
		checktest.Same(t, []string{"agent", "elsewhere", "mirror"}, left)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" {
			t.Errorf("%+v", s)
		}
	})
}

// faults answers calls in place of the cluster.
type faults struct {
	mu     sync.Mutex
	answer map[string]error // "Verb Kind/name", for every call
	count  map[string]int
}

func (f *faults) intercept(ctx context.Context, call memory.Call, do func(context.Context) error) error {
	key := call.Verb + " " + call.GVK.Kind + "/" + call.Key.Name
	f.mu.Lock()
	f.count[key]++
	err, ok := f.answer[key]
	f.mu.Unlock()
	if ok {
		return err
	}
	return do(ctx)
}

func (f *faults) set(key string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.answer, key)
	} else {
		f.answer[key] = err
	}
}

func (f *faults) calls(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[key]
}

func newFaults() *faults { return &faults{answer: map[string]error{}, count: map[string]int{}} }

func drainTexts(r *recorder) []string {
	seen := map[string]bool{}
	for _, text := range r.texts(func(e told) bool { return e.Type == rollout.EventDrainRetry || e.Type == rollout.EventError }) {
		seen[text] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func TestDrainFaults(t *testing.T) {
	boom := errors.New("boom")
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "web-0", boom)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	evicted := "Evict Pod/web-0"
	for _, tt := range []struct {
		name  string
		fault string
		err   error
		calls int // of the eviction in the first 12 s; an attempt that fails at once is followed by a second
		want  string
	}{
		{"eviction fails", evicted, boom, 2, `node w0: drain failed, trying again: error when evicting pods/"web-0" -n "app": boom`},
		{"pod is gone", evicted, apierrors.NewNotFound(pods, "web-0"), 1, ""},
		{"namespace is terminating", evicted, terminating, 3, ""},
		{"forbidden otherwise", evicted, apierrors.NewForbidden(pods, "web-0", boom), 2,
			`node w0: drain failed, trying again: error when evicting pods/"web-0" -n "app": pods "web-0" is forbidden: boom`},
		{"not now", evicted, apierrors.NewTooManyRequests("wait", 10), 3, ""},
		{"DaemonSet cannot be read", "Get DaemonSet/agent", boom, 0, "node w0: drain failed, trying again: pod app/agent: boom"},
		{"pods cannot be listed", "List Pod/", boom, 0, "node w0: drain failed, trying again: boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaults()
				c := drainCluster(t, memory.Options{Intercept: f.intercept})
				load(t, c, app("web-0", "w0"), app("agent", "w0", func(p *corev1.Pod) {
					p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = "DaemonSet", "agent"
				}))
				r := driving(t, c)
				time.Sleep(3 * time.Second) // the node is queued for 5 s
				f.set(tt.fault, tt.err)
				time.Sleep(14 * time.Second)
				if got := f.calls(evicted); got != tt.calls {
					t.Errorf("%d evictions (%v)", got, f.count)
				}
				want := []string(nil)
				if tt.want != "" {
					want = []string{tt.want}
				}
				checktest.Same(t, want, drainTexts(r.recorder))
				f.set(tt.fault, nil)
				time.Sleep(5 * time.Minute)
				if tt.name == "pod is gone" {
					return // it was only said to be
				}
				if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" {
					t.Errorf("never drained: %+v", s)
				}
			})
		})
	}
}

// A pod that takes long to end fails attempts, but the drain succeeds over
// several of them.
func TestSlowPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{GracefulPods: true})
		load(t, c, app("web-0", "w0"))
		r := driving(t, c)
		time.Sleep(4 * time.Minute)
		texts := drainTexts(r.recorder)
		want := `node w0: drain failed, trying again: error when waiting for pod "web-0" in namespace "app" to terminate: global timeout reached: 1m30s`
		if !slices.Equal(texts, []string{want}) {
			t.Errorf("%q", texts)
		}
		gvk, _ := clusterapi.KindOf[corev1.Pod]()
		checktest.OK(t, c.Remove(gvk, clusterapi.Key("app", "web-0")))
		time.Sleep(2 * time.Second)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" {
			t.Errorf("%+v", s)
		}
	})
}

func TestDrainRequests(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   []mcptest.Change
		cordoned bool
		applied  string
		text     string
	}{
		{"uncordon", []mcptest.Change{mcptest.Cordoned, mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-N")}, false, "uncordon-N", ""},
		{"nothing asked", []mcptest.Change{mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-O")}, false, "uncordon-O", ""},
		{"unknown verb", []mcptest.Change{mcptest.Annotate(mcp.AnnotationDesiredDrain, "dance-N")}, false, "uncordon-O", "node w0: non-recognized drain verb detected dance"},
		{"two custom pools", []mcptest.Change{mcptest.Cordoned, mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-N"), mcptest.Label(mcp.LabelNodeRolePrefix+"infra", ""), mcptest.Label(mcp.LabelNodeRolePrefix+"gpu", "")},
			true, "uncordon-O", "node w0 belongs to 2 custom roles, cannot proceed with this Node: pools gpu, infra"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := drainCluster(t, memory.Options{}, tt.change...)
				infra, gpu := mcptest.Pool("infra", "N"), mcptest.Pool("gpu", "N")
				load(t, c, &infra, &gpu)
				r := driving(t, c)
				time.Sleep(20 * time.Second)
				s := nodeState(t, c, "w0")
				if s.Unschedulable != tt.cordoned || s.LastAppliedDrain != tt.applied {
					t.Errorf("cordoned %v, applied %s", s.Unschedulable, s.LastAppliedDrain)
				}
				want := []string(nil)
				if tt.text != "" {
					want = []string{tt.text}
				}
				checktest.Same(t, want, drainTexts(r.recorder))
			})
		})
	}
}

// A cordon is tried five times, 10, 20, 40 and 80 s apart, and then again.
func TestCordonFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := drainCluster(t, memory.Options{Intercept: f.intercept})
		f.set("Update Node/w0", errors.New("boom"))
		r := driving(t, c)
		time.Sleep(154 * time.Second)
		if texts := drainTexts(r.recorder); slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "failed to cordon") }) {
			t.Errorf("too early: %q", texts)
		}
		time.Sleep(5 * time.Second)
		if texts := drainTexts(r.recorder); !slices.Contains(texts, "node w0: failed to cordon (5 tries): boom") {
			t.Errorf("%q", texts)
		}
		f.set("Update Node/w0", nil)
		time.Sleep(2 * time.Minute)
		if s := nodeState(t, c, "w0"); !s.Unschedulable || s.LastAppliedDrain != "drain-N" {
			t.Errorf("%+v", s)
		}
	})
}

// Somebody uncordons the node while it is drained: it is not reported as
// drained, but cordoned again.
func TestUncordonedInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{GracefulPods: true, Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if call.Verb == "Update" && call.GVK.Kind == "Node" &&
				call.Object.GetAnnotations()[mcp.AnnotationLastAppliedDrain] == "drain-N" {
				if on, _, _ := unstructured.NestedBool(call.Object.Object, "spec", "unschedulable"); !on {
					t.Error("a node that is not cordoned is reported as drained")
				}
			}
			return do(ctx)
		}})
		load(t, c, app("web-0", "w0"))
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "w0"), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			n.Spec.Unschedulable = false
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		gvk, _ := clusterapi.KindOf[corev1.Pod]()
		checktest.OK(t, c.Remove(gvk, clusterapi.Key("app", "web-0")))
		time.Sleep(10 * time.Second)
		if s := nodeState(t, c, "w0"); !s.Unschedulable || s.LastAppliedDrain != "drain-N" {
			t.Errorf("%+v", s)
		}
		if got := r.nodes(rollout.EventDrained, "worker"); len(got) != 1 {
			t.Errorf("reported as drained %d times", len(got))
		}
	})
}
