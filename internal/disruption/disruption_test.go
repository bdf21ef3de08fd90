package disruption_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/disruption"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

func pod(phase corev1.PodPhase, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "web"}}}
	p.Status.Phase = phase
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	return p
}

func budget(name string, allowed, healthy, desired int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Generation: 3},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 3, DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: desired},
	}
}

func TestDecide(t *testing.T) {
	running := func() *corev1.Pod { return pod(corev1.PodRunning, true) }
	unready := func() *corev1.Pod { return pod(corev1.PodRunning, false) }
	ending := running()
	ending.DeletionTimestamp = &metav1.Time{Time: now}
	with := func(b *policyv1.PodDisruptionBudget, f func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		f(b)
		return b
	}
	always, healthy := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	none := budget("b", 0, 1, 1)
	unconfirmed := func(n int) *policyv1.PodDisruptionBudget {
		return with(budget("b", 1, 2, 1), func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = make(map[string]metav1.Time)
			for i := range n {
				b.Status.DisruptedPods[fmt.Sprint("p", i)] = metav1.NewTime(now)
			}
		})
	}
	tests := []struct {
		name    string
		pod     *corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		spends  string // the budget
		code    int32  // of a refusal
		budget  string // that refuses
		text    string
	}{
		{name: "no budget", pod: running()},
		{name: "succeeded", pod: pod(corev1.PodSucceeded, true), budgets: []*policyv1.PodDisruptionBudget{none}},
		{name: "failed", pod: pod(corev1.PodFailed, true), budgets: []*policyv1.PodDisruptionBudget{none}},
		{name: "pending", pod: pod(corev1.PodPending, true), budgets: []*policyv1.PodDisruptionBudget{none, none}},
		{name: "ending", pod: ending, budgets: []*policyv1.PodDisruptionBudget{none}},
		{name: "of others", pod: running(), budgets: []*policyv1.PodDisruptionBudget{
			with(budget("b", 0, 1, 1), func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "other" })}},
		{name: "absent selector", pod: running(), budgets: []*policyv1.PodDisruptionBudget{
			with(budget("b", 0, 1, 1), func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })}},
		{name: "invalid selector", pod: running(), budgets: []*policyv1.PodDisruptionBudget{
			with(budget("b", 0, 1, 1), func(b *policyv1.PodDisruptionBudget) {
				b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
			})}},
		{name: "empty selector", pod: running(), spends: "b", budgets: []*policyv1.PodDisruptionBudget{
			with(budget("b", 1, 2, 1), func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })}},
		{name: "two", pod: running(), budgets: []*policyv1.PodDisruptionBudget{budget("a", 1, 2, 1), budget("b", 1, 2, 1)}, code: 500,
			text: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."},
		{name: "allowed", pod: running(), budgets: []*policyv1.PodDisruptionBudget{budget("b", 1, 2, 1)}, spends: "b"},
		{name: "none allowed", pod: running(), budgets: []*policyv1.PodDisruptionBudget{budget("b", 0, 2, 2)}, code: 429, budget: "b",
			text: "The disruption budget b needs 2 healthy pods and has 2 currently"},
		{name: "behind", pod: running(), code: 429, budget: "b", text: "The disruption budget b is still being processed by the server.",
			budgets: []*policyv1.PodDisruptionBudget{with(budget("b", 1, 2, 1), func(b *policyv1.PodDisruptionBudget) { b.Generation = 4 })}},
		{name: "as many unconfirmed as may be", pod: running(), spends: "b", budgets: []*policyv1.PodDisruptionBudget{unconfirmed(2000)}},
		{name: "too many unconfirmed", pod: running(), code: 403, text: `poddisruptionbudgets.policy "b" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller`, budgets: []*policyv1.PodDisruptionBudget{unconfirmed(2001)}},
		{name: "negative", pod: running(), budgets: []*policyv1.PodDisruptionBudget{budget("b", -1, 1, 2)}, code: 403,
			text: `poddisruptionbudgets.policy "b" is forbidden: pdb disruptions allowed is negative`},
		{name: "unready, healthy application", pod: unready(), budgets: []*policyv1.PodDisruptionBudget{budget("b", 0, 2, 2)}},
		{name: "unready, unhealthy application", pod: unready(), budgets: []*policyv1.PodDisruptionBudget{budget("b", 0, 1, 2)}, code: 429, budget: "b",
			text: "The disruption budget b needs 2 healthy pods and has 1 currently"},
		{name: "unready, none desired", pod: unready(), budgets: []*policyv1.PodDisruptionBudget{budget("b", 0, 0, 0)}, code: 429, budget: "b",
			text: "The disruption budget b needs 0 healthy pods and has 0 currently"},
		{name: "unready, always allowed", pod: unready(), budgets: []*policyv1.PodDisruptionBudget{
			with(budget("b", 0, 0, 1), func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always })}},
		{name: "unready, if healthy", pod: unready(), code: 429, budget: "b", text: "The disruption budget b needs 1 healthy pods and has 0 currently",
			budgets: []*policyv1.PodDisruptionBudget{
				with(budget("b", 0, 0, 1), func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &healthy })}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spends, err := disruption.Decide(tt.pod, tt.budgets)
			name := ""
			if spends != nil {
				name = spends.Name
			}
			checktest.Equal(t, tt.spends, name, "spends of")
			var status apierrors.APIStatus
			if (err != nil) != (tt.code != 0) || err != nil && (!errors.As(err, &status) || status.Status().Code != tt.code) {
				t.Fatalf("error %v, want code %d", err, tt.code)
			}
			if err == nil {
				return
			}
			if d := status.Status().Details; tt.name == "behind" && d.RetryAfterSeconds != 10 {
				t.Errorf("try again after %d s", d.RetryAfterSeconds)
			}
			if name, text := disruption.Refusal(err); name != tt.budget || text != tt.text {
				t.Errorf("refused by %q: %q\nwant %q: %q", name, text, tt.budget, tt.text)
			}
		})
	}
}

// The cause that an API server names may quote the budget, and other errors have
// no cause.
func TestRefusal(t *testing.T) {
	quoted := apierrors.NewTooManyRequests("no", 0)
	quoted.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: `The disruption budget "b" says no`}}
	other := apierrors.NewTooManyRequests("no", 0)
	other.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "busy"}}
	for _, tt := range []struct {
		err          error
		budget, text string
	}{
		{quoted, "b", `The disruption budget "b" says no`},
		{other, "", "busy"},
		{apierrors.NewTooManyRequests("slow down", 0), "", "slow down"},
		{errors.New("no connection"), "", "no connection"},
	} {
		if budget, text := disruption.Refusal(tt.err); budget != tt.budget || text != tt.text {
			t.Errorf("%v: %q, %q; want %q, %q", tt.err, budget, text, tt.budget, tt.text)
		}
	}
}

func TestSpend(t *testing.T) {
	b := budget("b", 2, 3, 1)
	before := b.DeepCopy()
	b.Status = disruption.Spend(b, "one", now)
	got := disruption.Spend(b, "two", now.Add(time.Minute))
	want := before.Status
	want.DisruptionsAllowed = 0
	want.DisruptedPods = map[string]metav1.Time{"one": metav1.NewTime(now.Truncate(time.Second)), "two": metav1.NewTime(now.Add(time.Minute).Truncate(time.Second))}
	checktest.Same(t, want, got)
	checktest.Equal(t, 1, len(b.Status.DisruptedPods), "Spend changed its argument")
}

func TestStatus(t *testing.T) {
	number, percent := intstr.FromInt32, intstr.FromString
	type state struct{ unready, ending, disrupted, expired bool }
	all := func(n int) []state { return make([]state, n) }
	tests := []struct {
		name     string
		min, max *intstr.IntOrString
		pods     []state
		scale    int32
		want     [4]int32 // expected, desired, healthy, allowed
		reason   string
	}{
		{"minAvailable 1 of 1", new(number(1)), nil, all(1), 1, [4]int32{1, 1, 1, 0}, "InsufficientPods"},
		{"maxUnavailable 0", nil, new(number(0)), all(3), 3, [4]int32{3, 3, 3, 0}, "InsufficientPods"},
		{"minAvailable 100%", new(percent("100%")), nil, all(3), 3, [4]int32{3, 3, 3, 0}, "InsufficientPods"},
		{"maxUnavailable 1 of 1", nil, new(number(1)), all(1), 1, [4]int32{1, 0, 1, 1}, "SufficientPods"},
		{"maxUnavailable 1 of 3, one crash-looping", nil, new(number(1)), []state{{}, {}, {unready: true}}, 3, [4]int32{3, 2, 2, 0}, "InsufficientPods"},
		{"minAvailable counts the pods that are there", new(number(2)), nil, all(4), 3, [4]int32{4, 2, 4, 2}, "SufficientPods"},
		{"minAvailable 50% of 5 is 3", new(percent("50%")), nil, all(5), 5, [4]int32{5, 3, 5, 2}, "SufficientPods"},
		{"maxUnavailable 50% of 5 is 3", nil, new(percent("50%")), all(5), 5, [4]int32{5, 2, 5, 3}, "SufficientPods"},
		{"maxUnavailable above the scale", nil, new(number(9)), all(2), 2, [4]int32{2, 0, 2, 2}, "SufficientPods"},
		{"more pods than the scale", nil, new(number(1)), all(4), 3, [4]int32{3, 2, 4, 2}, "SufficientPods"},
		{"an ending pod", nil, new(number(1)), []state{{}, {}, {ending: true}}, 3, [4]int32{3, 2, 2, 0}, "InsufficientPods"},
		{"a granted eviction", nil, new(number(1)), []state{{}, {}, {disrupted: true}}, 3, [4]int32{3, 2, 2, 0}, "InsufficientPods"},
		{"a granted eviction of a pod that ends", nil, new(number(1)), []state{{}, {}, {disrupted: true, ending: true}}, 3, [4]int32{3, 2, 2, 0}, "InsufficientPods"},
		{"one that is forgotten", nil, new(number(1)), []state{{}, {}, {expired: true}}, 3, [4]int32{3, 2, 3, 1}, "SufficientPods"},
		{"nothing expected", nil, new(number(1)), nil, 0, [4]int32{0, 0, 0, 0}, "InsufficientPods"},
		{"no number", nil, nil, all(2), 2, [4]int32{0, 0, 2, 0}, "InsufficientPods"},
		{"not a percentage", nil, new(percent("many")), all(2), 2, [4]int32{2, 2, 2, 0}, "SyncFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := budget("b", 7, 7, 7)
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = tt.min, tt.max
			b.Status.DisruptedPods = map[string]metav1.Time{"gone": metav1.NewTime(now)}
			var matched []*corev1.Pod
			var pending map[string]metav1.Time
			again := time.Duration(0)
			for i, s := range tt.pods {
				p := pod(corev1.PodRunning, !s.unready)
				p.Name = string(rune('a' + i))
				if s.ending {
					p.DeletionTimestamp = &metav1.Time{Time: now}
				}
				if s.disrupted {
					at := metav1.NewTime(now.Add(-30 * time.Second))
					b.Status.DisruptedPods[p.Name] = at
					if !s.ending {
						pending, again = map[string]metav1.Time{p.Name: at}, 90*time.Second
					}
				}
				if s.expired {
					b.Status.DisruptedPods[p.Name] = metav1.NewTime(now.Add(-disruption.Timeout))
				}
				matched = append(matched, p)
			}
			s, after := disruption.Status(b, matched, tt.scale, now)
			if got := [4]int32{s.ExpectedPods, s.DesiredHealthy, s.CurrentHealthy, s.DisruptionsAllowed}; got != tt.want || s.ObservedGeneration != 3 {
				t.Errorf("expected, desired, healthy, allowed = %v of generation %d, want %v of 3", got, s.ObservedGeneration, tt.want)
			}
			if len(s.Conditions) != 1 || s.Conditions[0].Reason != tt.reason || (s.Conditions[0].Status == metav1.ConditionTrue) != (tt.want[3] > 0) {
				t.Errorf("conditions %+v, want reason %s", s.Conditions, tt.reason)
			}
			if diff := cmp.Diff(pending, s.DisruptedPods); diff != "" || after != again {
				t.Errorf("disrupted pods (-want +got):\n%s; again after %v, want %v", diff, after, again)
			}
			b.Status = s
			next, _ := disruption.Status(b, matched, tt.scale, now.Add(time.Second))
			checktest.FailIf(t, cmp.Diff(s, next) != "", "a second time it differs:\n%s", cmp.Diff(s, next))
		})
	}
}

func TestStays(t *testing.T) {
	owned := func(version, kind string) *corev1.Pod {
		p := pod(corev1.PodRunning, true)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "owner", Controller: new(true)}}
		return p
	}
	with := func(p *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
		f(p)
		return p
	}
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	failed := errors.New("cannot be read")
	tests := []struct {
		name   string
		pod    *corev1.Pod
		exists bool
		err    error
		want   bool
	}{
		{name: "nobody's", pod: pod(corev1.PodRunning, true)},
		{name: "of a ReplicaSet", pod: owned("apps/v1", "ReplicaSet"), exists: true},
		{name: "of a DaemonSet", pod: owned("apps/v1", "DaemonSet"), exists: true, want: true},
		{name: "of a DaemonSet that is gone", pod: owned("apps/v1", "DaemonSet")},
		{name: "of another API's DaemonSet", pod: owned("apps.kruise.io/v1alpha1", "DaemonSet"), exists: true},
		{name: "a DaemonSet that only owns", pod: with(owned("apps/v1", "DaemonSet"), func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }), exists: true},
		{name: "finished, of a DaemonSet", pod: with(owned("apps/v1", "DaemonSet"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), exists: true},
		{name: "cannot be told", pod: owned("apps/v1", "DaemonSet"), err: failed},
		{name: "static", pod: with(pod(corev1.PodRunning, true), mirror), want: true},
		{name: "static, of a DaemonSet that is gone", pod: with(owned("apps/v1", "DaemonSet"), mirror), want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := disruption.Stays(tt.pod, func(key types.NamespacedName) (bool, error) {
				if want := (types.NamespacedName{Namespace: "ns", Name: "owner"}); key != want {
					t.Errorf("asked for %s, want %s", key, want)
				}
				return tt.exists, tt.err
			})
			checktest.FailIf(t, got != tt.want || !errors.Is(err, tt.err),
				"got %t, %v; want %t, %v", got, err, tt.want, tt.err)
		})
	}
}
