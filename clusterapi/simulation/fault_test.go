package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

func TestAPIFaults(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name   string
		faults []simulation.APIFault
		want   []string // of five times: Get node a, Create ConfigMap
	}{
		{"none", nil, []string{"ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"}},
		{"the third call", []simulation.APIFault{{Nth: 3, Err: broken}}, []string{"ok", "ok", "broken", "ok", "ok", "ok", "ok", "ok", "ok", "ok"}},
		{"the second Create", []simulation.APIFault{{Verbs: []string{"Create"}, Nth: 2, Err: broken}}, []string{"ok", "ok", "ok", "broken", "ok", "ok", "ok", "ok", "ok", "ok"}},
		{"the first of a kind, server error", []simulation.APIFault{{Kind: "Node", Nth: 1}}, []string{"InternalError", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"}},
		{"all of a name", []simulation.APIFault{{Name: "worker-0", Rate: 1, Err: broken}}, []string{"broken", "ok", "broken", "ok", "broken", "ok", "broken", "ok", "broken", "ok"}},
		{"the first of two that strike", []simulation.APIFault{{Nth: 1, Err: broken}, {Rate: 1}}, []string{"broken", "InternalError", "InternalError", "InternalError", "InternalError", "InternalError", "InternalError", "InternalError", "InternalError", "InternalError"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := made(t, simulation.Options{Release: release("4.20.3", "dns"), APIFaults: tt.faults})
			if diff := cmp.Diff(tt.want, calls(t, c.Cluster)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func calls(t *testing.T, c *simulation.Cluster) []string {
	t.Helper()
	var got []string
	note := func(err error) {
		switch {
		case err == nil:
			got = append(got, "ok")
		case apierrors.IsInternalError(err):
			got = append(got, "InternalError")
		default:
			got = append(got, err.Error())
		}
	}
	for i := range 5 {
		_, err := c.Get(t.Context(), corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.Key("", "worker-0"))
		note(err)
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetNamespace("default")
		u.SetName("m" + string(rune('0'+i)))
		_, err = c.Create(t.Context(), u, clusterapi.CreateOptions{})
		note(err)
	}
	return got
}

func TestAPIFaultRate(t *testing.T) {
	results := func(seed uint64) []string {
		c := made(t, simulation.Options{Release: release("4.20.3"), Seed: seed, APIFaults: []simulation.APIFault{{Rate: 0.5}}})
		var all []string
		for range 20 {
			_, err := c.Get(t.Context(), corev1.SchemeGroupVersion.WithKind("Node"), clusterapi.Key("", "worker-0"))
			all = append(all, map[bool]string{true: "ok", false: "failed"}[err == nil])
		}
		return all
	}
	one := results(1)
	if diff := cmp.Diff(one, results(1)); diff != "" {
		t.Errorf("equal seeds differ:\n%s", diff)
	}
	if cmp.Equal(one, results(2)) {
		t.Error("different seeds fail alike")
	}
	failed := 0
	for _, r := range one {
		if r == "failed" {
			failed++
		}
	}
	if failed < 4 || failed > 16 {
		t.Errorf("%d of 20 calls failed at a rate of 0.5", failed)
	}
}

func TestAPIFaultLate(t *testing.T) {
	c := made(t, simulation.Options{Release: release("4.20.3"), APIFaults: []simulation.APIFault{{Verbs: []string{"Create"}, Nth: 1, Late: true}}})
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetNamespace("default")
	u.SetName("m")
	if _, err := c.Create(t.Context(), u, clusterapi.CreateOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("first Create: %v", err)
	}
	if _, err := c.Create(t.Context(), u, clusterapi.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second Create: %v, want AlreadyExists", err)
	}
}

// Failures that strike the simulation itself delay it, no more; and an
// Intercept of the caller can tell its calls from the program's.
func TestSimulationSurvivesAPIFaults(t *testing.T) {
	own, others := make(chan struct{}, 1), make(chan struct{}, 1)
	to := release("4.21.1", "machine-config", "dns")
	c := start(t, simulation.Options{
		Release:   release("4.20.3", "machine-config", "dns"),
		Workloads: []simulation.Workload{{Name: "web", Replicas: 3}},
		APIFaults: []simulation.APIFault{{Rate: 0.3, Simulated: true, Verbs: []string{"Get", "List", "Update", "UpdateStatus", "Watch"}}},
		Memory: memory.Options{Intercept: func(ctx context.Context, _ memory.Call, do func(context.Context) error) error {
			mark := others
			if simulation.FromSimulation(ctx) {
				mark = own
			}
			select {
			case mark <- struct{}{}:
			default:
			}
			return do(ctx)
		}},
	})
	c.Expect(to)
	for _, o := range to.Operators {
		for { // the test's calls fail, too
			if _, err := c.Apply(t.Context(), o.Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err == nil {
				break
			}
		}
	}
	c.pass(time.Hour)
	for range 100 {
		co, err := clusterapi.Get[configv1.ClusterOperator](t.Context(), c, clusterapi.Key("", "dns"))
		if err != nil {
			continue
		}
		if got := conditions(co) + " " + version(co); got != "ATrue PFalse DFalse 4.21.1" {
			t.Errorf("dns %s", got)
		}
		break
	}
	for range 100 {
		if p, err := clusterapi.List[corev1.Pod](t.Context(), c, clusterapi.ListOptions{Namespace: "default"}); err == nil {
			if len(p) != 3 {
				t.Errorf("%d pods, want 3", len(p))
			}
			break
		}
	}
	if len(own) == 0 || len(others) == 0 {
		t.Errorf("calls seen of the simulation: %v, of the program: %v", len(own) > 0, len(others) > 0)
	}
}
