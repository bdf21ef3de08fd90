package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// steps is how far a counter counts.
const steps = 60

// counting counts in ConfigMaps of a label, a step every 100 ms, and keeps a
// history of who made which step. A job must have run before the first one.
type counting struct {
	api     clusterapi.ClusterAPI
	name    string
	say     func(line)
	allowed map[reconcile.Key]bool
}

func counter(o order, say func(line)) (reconcile.Process, error) {
	return reconcile.Process{Name: "counter", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		return []reconcile.Reconciler{&counting{api: api, name: o.Name, say: say, allowed: map[reconcile.Key]bool{}}}
	}}, nil
}

func (c *counting) Name() string { return "count" }

func (c *counting) Watches() []reconcile.Watch {
	return []reconcile.Watch{{GVK: configMaps, Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
		if new == nil || new.Unstructured().GetLabels()["count"] == "" {
			return nil
		}
		return []reconcile.Wake{{Key: reconcile.Key{Namespace: new.Key().Namespace, Name: new.Name()}}}
	}}}
}

func (c *counting) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	jobs := []reconcile.Job{{ID: "ask", Run: func(ctx context.Context, _ func(any)) (any, error) {
		return true, reconcile.Sleep(ctx, 100*time.Millisecond)
	}, Done: func(any, error) []reconcile.Wake {
		c.allowed[r.Key] = true
		return []reconcile.Wake{{Key: r.Key}}
	}}}
	if !c.allowed[r.Key] {
		return reconcile.Result{Jobs: jobs}, nil
	}
	o, err := clusterapi.Read[corev1.ConfigMap](ctx, c.api, clusterapi.Key(r.Key.Namespace, r.Key.Name))
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if last, err := time.Parse(time.RFC3339Nano, o.Data["last"]); err == nil && r.Now.Sub(last) < 100*time.Millisecond {
		return reconcile.Result{At: last.Add(100 * time.Millisecond), Jobs: jobs}, nil
	}
	n, _ := strconv.Atoi(o.Data["step"])
	if n >= steps {
		return reconcile.Result{}, nil
	}
	o = o.DeepCopy()
	o.Data["step"] = strconv.Itoa(n + 1)
	o.Data["last"] = r.Now.Format(time.RFC3339Nano)
	o.Data["history"] += fmt.Sprintf("%d %s\n", n+1, c.name)
	u, err := clusterapi.ToUnstructured(o)
	if err == nil {
		_, err = c.api.Update(ctx, u, clusterapi.UpdateOptions{}) // conditional on what was read
	}
	if err == nil {
		c.say(line{"step", r.Key.Name + " " + o.Data["step"]})
	}
	return reconcile.Result{At: r.Now.Add(100 * time.Millisecond), Jobs: jobs}, err
}

// TestReplicas has two replicas count. The leader is killed in mid-work, and
// again, and one is stopped for longer than its lease, and then goes on.
func TestReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	s := testserver.Start(t)
	api := checktest.Get(kubernetes.New(s.Config(), kubernetes.Options{}))(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		u, err := clusterapi.ToUnstructured(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"count": "yes"}},
			Data:       map[string]string{"step": "0"},
		})
		if err == nil {
			_, err = api.Create(t.Context(), u, clusterapi.CreateOptions{})
		}
		checktest.OK(t, err)
	}
	read := func(name string) *corev1.ConfigMap {
		return checktest.Get(clusterapi.Get[corev1.ConfigMap](t.Context(), api, clusterapi.Key("default", name)))(t)
	}
	reached := func(n int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(names, func(name string) bool {
				step, _ := strconv.Atoi(read(name).Data["step"])
				return step < n
			})
		}
	}

	permit(t, api, "counter", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "update"}})
	both := newReplicas(t, order{Kubeconfig: s.Kubeconfig(t), Process: "counter", Account: "counter"})
	for _, n := range []int{10, 20, 30} {
		leader := both.leader()
		await(t, fmt.Sprintf("step %d", n), time.Minute, reached(n))
		leader.kill()
		both.drop(leader)
	}
	leader := both.leader()
	await(t, "step 40", time.Minute, reached(40))
	leader.signal(syscall.SIGSTOP)
	both.drop(leader)
	both.leader()
	await(t, "step 45", time.Minute, reached(45))
	made := len(leader.said("step"))
	leader.signal(syscall.SIGCONT)
	await(t, "the end of the replica that was stopped", 30*time.Second, func() bool {
		select {
		case <-leader.ended:
			return true
		default:
			return false
		}
	})
	await(t, "the end", time.Minute, reached(steps))
	// One call a key was under way at most when it was stopped.
	late := len(leader.said("step")) - made
	checktest.FailIf(t, late > len(names), "the replica that was stopped made %d steps afterwards", late)
	for _, name := range names {
		history := strings.Split(strings.TrimSpace(read(name).Data["history"]), "\n")
		checktest.FailIf(t, len(history) != steps, "%s: %d steps in the history", name, len(history))
		by := map[string]bool{}
		for i, entry := range history {
			n, who, _ := strings.Cut(entry, " ")
			checktest.Equal(t, strconv.Itoa(i+1), n, "%s: entry %d of the history is %q", name, i+1, entry)
			by[who] = true
		}
		checktest.FailIf(t, len(by) != 5, "%s: %d replicas made steps, want 5: %v", name, len(by), by)
	}
}
