package rollout

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
)

// A clock that is set back, in an attempt or between two, delays a drain by no more
// than a wait between two attempts.
func TestDrainClockSetBack(t *testing.T) {
	node := mcptest.Worker("w0", mcptest.Cordoned)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web-0", Labels: map[string]string{"app": "web"}}}
	pod.Spec.NodeName = "w0"
	pod.Status.Phase = corev1.PodRunning
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: pod.Labels}
	for _, at := range []time.Duration{time.Minute, 2 * time.Minute, 12 * time.Minute} {
		for _, back := range []time.Duration{time.Minute, 20 * time.Minute, 24 * time.Hour} {
			c := memory.NewOpenShift(memory.Options{Clock: reconcile.NewClock(mcptest.Epoch)})
			for _, o := range []any{&node, pod, budget} {
				u := checktest.Get(clusterapi.ToUnstructured(o))(t)
				checktest.OK(t, c.Load(u))
			}
			r := checktest.Get(New(Options{}))(t)
			x := &drainer{run: newRun(r, c), ctx: t.Context(), node: "w0", d: &nodeDrain{}}
			for elapsed := time.Duration(0); elapsed < 40*time.Minute; {
				x.now = mcptest.Epoch.Add(elapsed)
				if elapsed >= at {
					x.now = x.now.Add(-back)
				}
				wait := drainWait(t, x)
				if wait <= 0 || wait > 5*time.Minute {
					t.Fatalf("set back by %s after %s: %s later next in %s", back, at, elapsed, wait)
				}
				elapsed += wait
			}
		}
	}
}

// drainWait does what is due for a node that cannot be drained, and returns how long to
// wait.
func drainWait(t *testing.T, x *drainer) time.Duration {
	t.Helper()
	x.run.lock(x.now)
	x.run.release()
	if x.d.attempt == nil {
		if !x.run.o.Delays.isDue(x.d.due, x.now) {
			return x.d.due.Sub(x.now)
		}
		x.d.due = time.Time{}
		x.beginAttempt("", x.now.Sub(mcptest.Epoch))
	}
	at := checktest.Get(x.proceed())(t)
	if x.d.attempt == nil {
		at = x.d.due
	}
	return at.Sub(x.now)
}
