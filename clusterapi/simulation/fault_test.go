package simulation_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// Failures that strike the simulation itself delay it, no more; and an
// Intercept of the caller can tell its calls from the program's.
func TestSimulationSurvivesFaults(t *testing.T) {
	random := rand.New(rand.NewPCG(0, 0))
	own, others := make(chan struct{}, 1), make(chan struct{}, 1)
	to := release("4.21.1", "machine-config", "dns")
	c := start(t, simulation.Options{
		Release:   release("4.20.3", "machine-config", "dns"),
		Workloads: []simulation.Workload{{Name: "web", Replicas: 3}},
		Memory: memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			mark := others
			if simulation.FromSimulation(ctx) {
				mark = own
			}
			select {
			case mark <- struct{}{}:
			default:
			}
			if slices.Contains([]string{"Get", "List", "Update", "UpdateStatus", "Watch"}, call.Verb) && random.Float64() < 0.3 {
				return errBroken
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
