package upgrade_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// brokenWatch goes wrong the first time.
type brokenWatch struct {
	clusterapi.ClusterAPI
	goWrong func()
	watches atomic.Int64
}

func (b *brokenWatch) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		if b.watches.Add(1) == 1 {
			b.goWrong()
		}
		for e, err := range b.ClusterAPI.(clusterapi.Watcher).Watch(ctx, gvk, o) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestPanicsAreFailures: a hook, an observer, or a watch that panics does not
// end the program. The step of the hook has failed, and is tried again.
func TestPanicsAreFailures(t *testing.T) {
	for name, goWrong := range map[string]func(){"panic": func() { panic("no way") }, "Goexit": runtime.Goexit} {
		checktest.Bubble(t, name, func(t *testing.T) {
			w := newSite(t, nil)
			watched := &brokenWatch{ClusterAPI: w, goWrong: goWrong}
			o := upgrade.Options{}
			calls := 0
			o.Health = func(context.Context, *upgradeconfig.UpgradeConfig) ([]string, error) {
				if calls++; calls == 1 {
					panic("no health")
				}
				return nil, nil
			}
			var failed []error
			m := must(upgradeconfig.NewManager(upgradeconfig.ManagerOptions{API: w, Provider: w.provider, Observe: func(clusterapi.Event) { panic("no paper") }}))
			must(m.Sync(t.Context()))
			o.API, o.Notifier, o.Refresh = watched, m, m.Refresh
			o.Observe = func(e clusterapi.Event) {
				if e.Type == upgradeconfig.EventFailed {
					failed = append(failed, e.Err)
				}
				panic("no paper")
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- must(upgrade.New(o)).Run(ctx) }()
			for range 120 {
				time.Sleep(time.Minute)
				synctest.Wait()
				w.play()
			}
			cancel()
			checktest.ErrorIs(t, context.Canceled, <-ended)
			caught := new(clusterapi.PanicError)
			if len(failed) == 0 || !errors.As(failed[0], &caught) || caught.Value != "no health" || len(caught.Stack) == 0 {
				t.Errorf("failures: %v", failed)
			}
			checktest.Equal(t, upgradeconfig.PhaseUpgraded, stored(t, w).Status.Phase(target), "after the failures")
			if watched.watches.Load() < 2 {
				t.Error("the watch was not begun again")
			}
		})
	}
}

// allPods lists pods whatever node is asked for.
type allPods struct{ *memory.Cluster }

func (c allPods) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	o.NodeName = ""
	return c.Cluster.List(ctx, gvk, o)
}

func (c allPods) ListShared(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	return clusterapi.ListShared(ctx, struct{ clusterapi.Reader }{c}, gvk, o)
}

// TestForcedDrainOfOneNode: a backend that does not select by node does not
// make a forced drain empty the others.
func TestForcedDrainOfOneNode(t *testing.T) {
	cluster := serving(memory.NewOpenShift(memory.Options{}))
	for _, name := range []string{"stuck", "other"} {
		n := &corev1.Node{}
		n.Name = name
		if name == "stuck" {
			n.Annotations = map[string]string{mcp.AnnotationDesiredDrain: "drain-1"}
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: time.Now().Add(-time.Hour)}}}
		}
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName = "shop", "web-"+name, name
		for _, o := range []any{n, p} {
			u, err := clusterapi.ToUnstructured(o)
			if err == nil {
				err = cluster.Load(u)
			}
			checktest.OK(t, err)
		}
	}
	drain := &upgrade.ForcedDrain{API: allPods{cluster}}
	checktest.OK(t, drain.ForceDrain(t.Context(), nil, 0))
	pods := checktest.Get(clusterapi.List[corev1.Pod](t.Context(), cluster, clusterapi.ListOptions{}))(t)
	checktest.Equal(t, 1, len(pods), "len(pods) of %v", pods)
	checktest.Equal(t, "web-other", pods[0].Name, "pods[0].Name of %v", pods)
}
