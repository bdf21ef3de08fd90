package clusterapitest

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest/internal/probe"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// budget is the status that the suite gives a PodDisruptionBudget.
type budget struct {
	allowed, healthy, desired int64
	behind                    bool // its observedGeneration is
	policy                    string
}

func testEvict(t *testing.T, s *suite) {
	const (
		goes     = "none" // the class of no error
		later    = "TooManyRequests"
		refused  = "Forbidden"
		broken   = "InternalError"
		noBudget = -1
	)
	for _, tc := range []struct {
		name    string
		running bool
		ready   bool
		budgets []budget
		want    string
		left    int64 // disruptionsAllowed afterwards
	}{
		{"NoBudget", true, true, nil, goes, noBudget},
		{"Pending", false, false, []budget{{allowed: 0, healthy: 1, desired: 1}}, goes, 0},
		{"Allowed", true, true, []budget{{allowed: 1, healthy: 2, desired: 1}}, goes, 0},
		{"NotAllowed", true, true, []budget{{allowed: 0, healthy: 1, desired: 1}}, later, 0},
		{"BehindItsGeneration", true, true, []budget{{allowed: 1, healthy: 2, desired: 1, behind: true}}, later, 1},
		{"NegativeIsForbidden", true, true, []budget{{allowed: -1, healthy: 1, desired: 1}}, refused, noBudget},
		{"TwoBudgets", true, true, []budget{{allowed: 1, healthy: 2, desired: 1}, {allowed: 1, healthy: 2, desired: 1}}, broken, 1},
		{"NotReadyOfAHealthyApplication", true, false, []budget{{allowed: 0, healthy: 2, desired: 2}}, goes, 0},
		{"NotReadyOfAnUnhealthyApplication", true, false, []budget{{allowed: 0, healthy: 0, desired: 1}}, later, 0},
		{"NotReadyWithoutAnyDesired", true, false, []budget{{allowed: 0, healthy: 0, desired: 0}}, later, 0},
		{"NotReadyAlwaysAllowed", true, false, []budget{{allowed: 0, healthy: 0, desired: 1, policy: "AlwaysAllow"}}, goes, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := "evict-" + strings.ToLower(tc.name)
			pod := s.pod(t, name, tc.running, tc.ready)
			var first *unstructured.Unstructured
			for i, b := range tc.budgets {
				if b.allowed < 0 && !s.negative(t, name) {
					t.Skip("the server takes no negative disruptionsAllowed")
				}
				u := s.budget(t, name, i, b)
				if first == nil {
					first = u
				}
			}
			err := s.api.Evict(s.ctx, clusterapi.KeyOf(pod), clusterapi.EvictOptions{UID: pod.GetUID()})
			class := probe.Class(err)
			if apierrors.IsInternalError(err) { // it may have a code and no reason
				class = broken
			}
			checktest.FailIf(t, class != tc.want, "got %v, want an error of the class %s", err, tc.want)
			if gone := s.gone(t, pod); gone != (tc.want == goes) {
				t.Errorf("the pod is gone: %t, want %t", gone, tc.want == goes)
			}
			if first != nil && tc.left != noBudget {
				wantAt(t, s.get(t, first), tc.left, "status", "disruptionsAllowed")
			}
		})
	}
	t.Run("SpendsTheBudget", func(t *testing.T) {
		one, two := s.pod(t, "evict-spend", true, true), s.pod(t, "evict-spend-too", true, true, "evict-spend")
		s.budget(t, "evict-spend", 0, budget{allowed: 1, healthy: 2, desired: 1})
		s.must(t, probe.Of("Evict", one))
		s.refused(t, "TooManyRequests", probe.Of("Evict", two))
	})
	t.Run("OtherUID", func(t *testing.T) {
		pod := s.pod(t, "evict-uid", true, true)
		c := probe.Of("Evict", pod)
		c.UID = probe.OtherUID
		s.refused(t, "Conflict", c)
		checktest.FailIf(t, s.gone(t, pod), "the pod is gone")
	})
	t.Run("RightUID", func(t *testing.T) {
		pod := s.pod(t, "evict-right-uid", true, true)
		if err := s.api.Evict(s.ctx, clusterapi.KeyOf(pod), clusterapi.EvictOptions{UID: pod.GetUID()}); err != nil || !s.gone(t, pod) {
			t.Errorf("got %v, want the pod to be gone", err)
		}
	})
	t.Run("Grace", func(t *testing.T) { testGrace(t, s) })
	t.Run("NotFound", func(t *testing.T) {
		s.refused(t, "NotFound", probe.Call{Verb: "Evict", Kind: pods, Key: clusterapi.Key(s.ns, "evict-nothing")})
	})
}

// testGrace: a pod on a node ends after its grace period, which nobody is there
// to wait for, so it stays. A backend may end all pods at once instead.
func testGrace(t *testing.T, s *suite) {
	on := func(name string, seconds int) *unstructured.Unstructured {
		return s.create(t, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: grace-%s, namespace: %s}
spec:
  nodeName: node-grace-%s
  terminationGracePeriodSeconds: %d
  containers: [{name: one, image: registry.example/one}]
`, name, s.ns, s.id, seconds))
	}
	call := func(verb string, seconds ...int64) func(*unstructured.Unstructured) error {
		return func(pod *unstructured.Unstructured) error {
			c := probe.Of(verb, pod)
			if len(seconds) > 0 {
				c.Grace = &seconds[0]
			}
			_, err := c.Do(s.ctx, s.api)
			return err
		}
	}
	const gone = -1
	atOnce, graceful := 0, 0
	for _, tc := range []struct {
		name string
		own  int
		call func(*unstructured.Unstructured) error
		want int64
	}{
		{"delete", 45, call("Delete"), 45},
		{"delete-sooner", 45, call("Delete", 7), 7},
		{"delete-now", 45, call("Delete", 0), gone},
		{"evict", 45, call("Evict"), 45},
		{"evict-sooner", 45, call("Evict", 7), 7},
		{"evict-later", 5, call("Evict", 60), 60},
		{"evict-now", 45, call("Evict", 0), gone},
		{"delete-none", 0, call("Delete"), gone},
		{"evict-none", 0, call("Evict"), gone},
	} {
		pod := on(tc.name, tc.own)
		if err := tc.call(pod); err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if s.gone(t, pod) {
			if tc.want != gone {
				atOnce++
				t.Logf("%s: the pod is gone at once, its grace period is %d s", tc.name, tc.want)
			}
			continue
		}
		got := s.get(t, pod)
		defer func() { _ = call("Evict", 0)(pod) }()
		if tc.want == gone || got.GetDeletionTimestamp() == nil || probe.At(got, "metadata", "deletionGracePeriodSeconds") != tc.want {
			t.Errorf("%s: deletionTimestamp %v and grace period %v, want %d", tc.name, got.GetDeletionTimestamp(), probe.At(got, "metadata", "deletionGracePeriodSeconds"), tc.want)
		}
		graceful++
	}
	checktest.FailIf(t, atOnce > 0 && graceful > 0,
		"%d pods ended at once, %d did not: want one or the other", atOnce, graceful)
}

// pod makes a pod on no node, so that it ends at once; its label is its name,
// or app.
func (s *suite) pod(t *testing.T, name string, running, ready bool, app ...string) *unstructured.Unstructured {
	t.Helper()
	label := name
	if len(app) > 0 {
		label = app[0]
	}
	pod := s.create(t, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {app: %s}}
spec:
  containers: [{name: one, image: registry.example/one}]
`, name, s.ns, label))
	if !running {
		return pod
	}
	state := "False"
	if ready {
		state = "True"
	}
	set(t, pod, "Running", "status", "phase")
	set(t, pod, []any{map[string]any{"type": "Ready", "status": state}}, "status", "conditions")
	return s.updateStatus(t, pod)
}

// budget makes a PodDisruptionBudget for the pods with that label.
func (s *suite) budget(t *testing.T, app string, n int, b budget) *unstructured.Unstructured {
	t.Helper()
	in := object(t, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %s-%d, namespace: %s}
spec: {minAvailable: 1, selector: {matchLabels: {app: %[1]s}}}
`, app, n, s.ns)
	if b.policy != "" {
		set(t, in, b.policy, "spec", "unhealthyPodEvictionPolicy")
	}
	u := s.create(t, in)
	observed := u.GetGeneration()
	if b.behind {
		observed--
	}
	u.Object["status"] = map[string]any{
		"observedGeneration": observed, "disruptionsAllowed": b.allowed,
		"currentHealthy": b.healthy, "desiredHealthy": b.desired, "expectedPods": int64(2),
	}
	return s.updateStatus(t, u)
}

// negative reports whether the server stores a negative disruptionsAllowed:
// validation may refuse what only a broken controller would write.
func (s *suite) negative(t *testing.T, app string) bool {
	t.Helper()
	u := s.create(t, object(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s-probe, namespace: %s}, spec: {minAvailable: 1, selector: {matchLabels: {app: nothing}}}}`, app, s.ns))
	defer s.discard(t, budgets, s.ns, u.GetName())
	u.Object["status"] = map[string]any{
		"observedGeneration": u.GetGeneration(), "disruptionsAllowed": int64(-1),
		"currentHealthy": int64(1), "desiredHealthy": int64(1), "expectedPods": int64(1),
	}
	_, err := s.api.UpdateStatus(s.ctx, u, clusterapi.UpdateOptions{})
	return err == nil
}
