package rollout_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// fragile is a cluster whose verbs each go wrong once before they work.
type fragile struct {
	*memory.Cluster
	goWrong                                   func()
	watched, listed, gotten, evicted, updated atomic.Bool
}

func (f *fragile) once(done *atomic.Bool) {
	if done.CompareAndSwap(false, true) {
		f.goWrong()
	}
}

func (f *fragile) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		f.once(&f.watched)
		for e, err := range f.Cluster.Watch(ctx, gvk, o) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f *fragile) Shares(r clusterapi.Reader) bool { return r == clusterapi.Reader(f) }

func (f *fragile) ListShared(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	if o.NodeName != "" {
		f.once(&f.listed)
	}
	return f.Cluster.ListShared(ctx, gvk, o)
}

func (f *fragile) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	if gvk.Kind == "Node" {
		f.once(&f.gotten)
	}
	return f.Cluster.GetShared(ctx, gvk, key)
}

func (f *fragile) Evict(ctx context.Context, pod types.NamespacedName, o clusterapi.EvictOptions) error {
	f.once(&f.evicted)
	return f.Cluster.Evict(ctx, pod, o)
}

func (f *fragile) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	f.once(&f.updated)
	return f.Cluster.UpdateStatus(ctx, o, opts)
}

// A backend or an observer that panics is a failure that is reported and tried
// again; it ends neither the program nor the rollout. Neither does one that
// ends the goroutine it is called in.
func TestPanicsAreFailures(t *testing.T) {
	for name, goWrong := range map[string]func(){
		"panic":  func() { panic("no such node") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &corev1.Pod{}
				pod.Namespace, pod.Name, pod.Spec.NodeName = "app", "web-0", "w0"
				pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "quay.io/app/web:1"}}
				c := drainCluster(t, memory.Options{})
				load(t, c, pod)
				f := &fragile{Cluster: c, goWrong: goWrong}
				if name == "Goexit" {
					f.updated.Store(true) // called in the goroutine of Run's caller, who may end it
				}
				var r recorder
				var told atomic.Int64
				roll := newRollout(t, rollout.Options{API: f, Mode: rollout.Drive, Observe: func(e clusterapi.Event) {
					r.observe(e)
					if told.Add(1)%2 == 0 {
						panic("out of paper")
					}
				}})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- roll.Run(ctx) }()
				time.Sleep(30 * time.Minute)
				cancel()
				checktest.Good(t, <-ended)
				if n := nodeState(t, c, "w0"); n.LastAppliedDrain != "drain-N" {
					t.Errorf("not drained: %+v", n)
				}
				for verb, called := range map[string]*atomic.Bool{"Watch": &f.watched, "List": &f.listed, "Get": &f.gotten, "Evict": &f.evicted, "UpdateStatus": &f.updated} {
					if !called.Load() {
						t.Errorf("%s was not called", verb)
					}
				}
				reported := 0
				for _, e := range r.all() {
					if errors.As(e.Err, new(*clusterapi.PanicError)) {
						reported++
					}
				}
				if reported < 4 {
					t.Errorf("%d panics were reported", reported)
				}
			})
		})
	}
}

// fragileUpdater goes wrong each time.
type fragileUpdater struct{ goWrong func() }

func (u fragileUpdater) Step(context.Context, string, mcp.Target, mcp.Phase) (mcp.Phase, time.Duration, error) {
	u.goWrong()
	return "", 0, errors.New("no way in")
}

// An update that fails is tried again each minute; the pool's next node is not touched.
func TestNodeUpdaterFails(t *testing.T) {
	for name, goWrong := range map[string]func(){"error": func() {}, "panic": func() { panic("no way in") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, rollout.Options{API: smallCluster(t, memory.Options{}), Mode: rollout.Drive, NodeUpdater: fragileUpdater{goWrong}})
				time.Sleep(5*time.Minute + 30*time.Second)
				r.stop()
				if failed := r.nodes(rollout.EventNodeFailed, "worker"); len(failed) < 4 || len(failed) > 6 || len(slices.Compact(failed)) != 1 {
					t.Errorf("failed: %v", failed)
				}
			})
		})
	}
}
