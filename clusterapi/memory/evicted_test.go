package memory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// An evicted pod that is still ending says why; a finished one goes at once.
func TestEvictedPods(t *testing.T) {
	c := memory.New(memory.Options{GracefulPods: true})
	for name, phase := range map[string]corev1.PodPhase{"running": corev1.PodRunning, "done": corev1.PodSucceeded} {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName, p.Status.Phase = "ns", name, "node", phase
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "quay.io/app/c:1"}}
		seconds := int64(30)
		p.Spec.TerminationGracePeriodSeconds = &seconds
		u, err := clusterapi.ToUnstructured(p)
		if err == nil {
			err = c.Load(u)
		}
		if err == nil {
			err = c.Evict(t.Context(), clusterapi.Key("ns", name), clusterapi.EvictOptions{})
		}
		checktest.OK(t, err)
	}
	p := checktest.Must(clusterapi.Get[corev1.Pod](t.Context(), c, clusterapi.Key("ns", "running")))
	target := false
	for _, cond := range p.Status.Conditions {
		target = target || cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue && cond.Reason == "EvictionByEvictionAPI"
	}
	checktest.FailIf(t, p.DeletionTimestamp == nil || !target, "%+v", p.Status)
	if _, err := clusterapi.Get[corev1.Pod](t.Context(), c, clusterapi.Key("ns", "done")); !apierrors.IsNotFound(err) {
		t.Errorf("the finished pod: %v", err)
	}
}
