package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestEvict(t *testing.T) {
	const (
		running  = `phase: Running, conditions: [{type: Ready, status: "True"}]`
		notReady = `phase: Running, conditions: [{type: Ready, status: "False"}]`
		matching = `selector: {matchLabels: {app: a}}`
	)
	status := func(allowed, healthy, desired, observed int) string {
		return fmt.Sprintf("disruptionsAllowed: %d, currentHealthy: %d, desiredHealthy: %d, observedGeneration: %d, expectedPods: 2", allowed, healthy, desired, observed)
	}
	crowd := func(n int) string {
		var sb strings.Builder
		for i := range n {
			fmt.Fprintf(&sb, "p%d: 2026-01-01T00:00:00Z, ", i)
		}
		return status(1, 2, 1, 1) + ", disruptedPods: {" + sb.String() + "}"
	}
	type budget struct{ spec, status string }
	for _, tc := range []struct {
		name    string
		meta    string // of the pod
		status  string
		budgets []budget
		code    int32 // 0: evicted
		message string
		cause   string
		retry   int32
		left    string // status of the first budget afterwards
	}{
		{name: "1 succeeded", status: "phase: Succeeded", budgets: []budget{{matching, status(0, 1, 1, 1)}}},
		{name: "1 failed", status: "phase: Failed", budgets: []budget{{matching, status(0, 1, 1, 1)}}},
		{name: "1 pending", status: "phase: Pending", budgets: []budget{{matching, status(0, 1, 1, 1)}, {matching, status(0, 1, 1, 1)}}},
		{name: "1 terminating", meta: `deletionTimestamp: "2026-01-01T00:00:00Z"`, status: running, budgets: []budget{{matching, status(0, 1, 1, 1)}}},
		{name: "2 two budgets", status: running, budgets: []budget{{matching, status(1, 2, 1, 1)}, {"selector: {}", status(1, 2, 1, 1)}}, code: 500,
			message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."},
		{name: "3 no budget", status: running},
		{name: "3 another selector", status: running, budgets: []budget{{"selector: {matchLabels: {app: b}}", status(0, 1, 1, 1)}}},
		{name: "3 absent selector", status: running, budgets: []budget{{"minAvailable: 1", status(0, 1, 1, 1)}}},
		{name: "3 invalid selector", status: running, budgets: []budget{{"selector: {matchExpressions: [{key: app, operator: Odd}]}", status(0, 1, 1, 1)}}},
		{name: "4 not ready, always allowed", status: notReady, budgets: []budget{{matching + ", unhealthyPodEvictionPolicy: AlwaysAllow", status(0, 0, 1, 0)}}},
		{name: "4 ready, always allowed", status: running, budgets: []budget{{matching + ", unhealthyPodEvictionPolicy: AlwaysAllow", status(0, 1, 1, 1)}}, code: 429,
			cause: "The disruption budget b0 needs 1 healthy pods and has 1 currently"},
		{name: "5 not ready, application healthy", status: notReady, budgets: []budget{{matching, status(0, 2, 2, 0)}}},
		{name: "5 no condition at all", status: "phase: Running", budgets: []budget{{matching, status(0, 2, 2, 1)}}},
		{name: "5 none desired", status: notReady, budgets: []budget{{matching, status(0, 0, 0, 1)}}, code: 429,
			cause: "The disruption budget b0 needs 0 healthy pods and has 0 currently"},
		{name: "6 behind", status: running, budgets: []budget{{matching, status(1, 2, 1, 0)}}, code: 429, retry: 10,
			cause: "The disruption budget b0 is still being processed by the server."},
		{name: "7 negative", status: running, budgets: []budget{{matching, status(-1, 2, 1, 1)}}, code: 403},
		{name: "7 too many unconfirmed", status: running, budgets: []budget{{matching, crowd(2001)}}, code: 403},
		{name: "9 as many unconfirmed as may be", status: running, budgets: []budget{{matching, crowd(2000)}}},
		{name: "8 none allowed, selector of all", status: running, budgets: []budget{{"selector: {}", status(0, 1, 3, 1)}}, code: 429,
			message: "Cannot evict pod as it would violate the pod's disruption budget.",
			cause:   "The disruption budget b0 needs 3 healthy pods and has 1 currently"},
		{name: "9 allowed", status: running, budgets: []budget{{matching, status(2, 3, 1, 1)}}, left: "1 p 2026-05-01T00:00:00Z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := memory.New(memory.Options{Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))})
			finalizer := ""
			if strings.Contains(tc.meta, "deletion") {
				finalizer = ", finalizers: [a/b]"
			}
			mustLoad(t, c, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns, labels: {app: a}%s, %s}, status: {%s}}`, finalizer, tc.meta, tc.status))
			// A budget of another namespace does not count.
			mustLoad(t, c, fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x, namespace: other}, spec: {selector: {}}, status: {%s}}`, status(0, 1, 1, 1)))
			for i, b := range tc.budgets {
				mustLoad(t, c, fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b%d, namespace: ns, generation: 1}, spec: {%s}, status: {%s}}`, i, b.spec, b.status))
			}
			err := c.Evict(t.Context(), clusterapi.Key("ns", "p"), clusterapi.EvictOptions{})
			if tc.code == 0 && err != nil || tc.code != 0 && err == nil {
				t.Fatalf("got %v, want code %d", err, tc.code)
			}
			if err != nil {
				s := err.(apierrors.APIStatus).Status()
				if s.Code != tc.code || tc.message != "" && s.Message != tc.message {
					t.Errorf("got %d %q, want %d %q", s.Code, s.Message, tc.code, tc.message)
				}
				if tc.cause != "" {
					if len(s.Details.Causes) != 1 || s.Details.Causes[0].Message != tc.cause || s.Details.Causes[0].Type != policyv1.DisruptionBudgetCause {
						t.Errorf("causes %+v, want %q", s.Details.Causes, tc.cause)
					}
					if s.Details.RetryAfterSeconds != tc.retry {
						t.Errorf("retry after %d s, want %d", s.Details.RetryAfterSeconds, tc.retry)
					}
				}
			}
			_, err = c.Get(t.Context(), podGVK, clusterapi.Key("ns", "p"))
			if gone := apierrors.IsNotFound(err); finalizer == "" && gone != (tc.code == 0) {
				t.Errorf("the pod is gone: %t", gone)
			}
			if tc.left != "" {
				b, err := clusterapi.Get[policyv1.PodDisruptionBudget](t.Context(), c, clusterapi.Key("ns", "b0"))
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for pod, at := range b.Status.DisruptedPods {
					got = append(got, fmt.Sprint(b.Status.DisruptionsAllowed, " ", pod, " ", at.UTC().Format(time.RFC3339)))
				}
				if diff := cmp.Diff([]string{tc.left}, got); diff != "" {
					t.Errorf("budget (-want +got):\n%s", diff)
				}
				if b.Generation != 1 {
					t.Errorf("generation %d, want 1", b.Generation)
				}
			}
		})
	}
}

// Evictions at the same time spend a budget once each.
func TestEvictAtOnce(t *testing.T) {
	c := memory.New(memory.Options{})
	const n, allowed = 8, 3
	for i := range n {
		mustLoad(t, c, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, i))
	}
	mustLoad(t, c, fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns, generation: 1}, spec: {selector: {}}, status: {disruptionsAllowed: %d, observedGeneration: 1, currentHealthy: 8, desiredHealthy: 5, expectedPods: 8}}`, allowed))
	results := make(chan error, n)
	for i := range n {
		go func() {
			results <- c.Evict(t.Context(), clusterapi.Key("ns", fmt.Sprintf("p%d", i)), clusterapi.EvictOptions{})
		}()
	}
	evicted := 0
	for range n {
		switch err := <-results; {
		case err == nil:
			evicted++
		case !apierrors.IsTooManyRequests(err):
			t.Error(err)
		}
	}
	if evicted != allowed {
		t.Errorf("%d pods were evicted, want %d", evicted, allowed)
	}
}

// What happens between the look at a budget and the write of it counts.
func TestEvictMeetsAnotherWriter(t *testing.T) {
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`
	for _, tc := range []struct {
		name  string
		other func(*testing.T, *memory.Cluster) // while the budget is being written
		want  func(error) bool
	}{
		{"who spends the budget", func(t *testing.T, c *memory.Cluster) {
			_, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("ns", "b"), clusterapi.ModifyOptions{Status: true}, func(b *policyv1.PodDisruptionBudget) error {
				b.Status.DisruptionsAllowed = 0
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}, apierrors.IsTooManyRequests},
		{"who replaces the pod", func(t *testing.T, c *memory.Cluster) {
			if err := c.Delete(t.Context(), podGVK, clusterapi.Key("ns", "p"), clusterapi.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			mustLoad(t, c, pod)
		}, apierrors.IsNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c *memory.Cluster
			met := false
			c = memory.New(memory.Options{Validate: func(_, u *unstructured.Unstructured) error {
				if u.GetKind() == "PodDisruptionBudget" && !met {
					met = true
					tc.other(t, c)
				}
				return nil
			}})
			mustLoad(t, c, pod, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: ns, generation: 1}, spec: {selector: {}}, status: {disruptionsAllowed: 1, observedGeneration: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2}}`)
			if err := c.Evict(t.Context(), clusterapi.Key("ns", "p"), clusterapi.EvictOptions{}); !tc.want(err) || !met {
				t.Errorf("got %v", err)
			}
			mustGet(t, c, podGVK, "ns", "p")
		})
	}
}
