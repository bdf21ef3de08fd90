package clusterupdate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// killer is a process's way to its cluster, and its end at the n-th call:
// before the call takes effect, or after, but before the answer arrives.
type killer struct {
	api   clusterapi.ClusterAPI
	at    int
	after bool
	kill  context.CancelFunc

	mu    sync.Mutex
	calls int
	dead  bool
}

var errKilled = errors.New("the process was killed")

func (k *killer) call(do func() error) error {
	k.mu.Lock()
	if k.dead {
		k.mu.Unlock()
		return errKilled
	}
	k.calls++
	last := k.calls == k.at
	if last {
		k.dead = true
	}
	k.mu.Unlock()
	if !last {
		return do()
	}
	defer k.kill()
	if k.after {
		do()
	}
	return errKilled
}

func called[T any](k *killer, f func() (T, error)) (out T, err error) {
	err = k.call(func() (err error) {
		out, err = f()
		return err
	})
	return out, err
}

func (k *killer) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return called(k, func() (*unstructured.Unstructured, error) { return k.api.Get(ctx, gvk, key) })
}

func (k *killer) List(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	return called(k, func() (*unstructured.UnstructuredList, error) { return k.api.List(ctx, gvk, o) })
}

func (k *killer) Create(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return called(k, func() (*unstructured.Unstructured, error) { return k.api.Create(ctx, obj, o) })
}

func (k *killer) Apply(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return called(k, func() (*unstructured.Unstructured, error) { return k.api.Apply(ctx, obj, o) })
}

func (k *killer) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return called(k, func() (*unstructured.Unstructured, error) { return k.api.Update(ctx, obj, o) })
}

func (k *killer) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return called(k, func() (*unstructured.Unstructured, error) { return k.api.UpdateStatus(ctx, obj, o) })
}

func (k *killer) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, o clusterapi.DeleteOptions) error {
	return k.call(func() error { return k.api.Delete(ctx, gvk, key, o) })
}

func (k *killer) Evict(ctx context.Context, pod types.NamespacedName, o clusterapi.EvictOptions) error {
	return k.call(func() error { return k.api.Evict(ctx, pod, o) })
}

// kill runs an update, ends it at the n-th call, and lets a second process
// finish it. It reports whether the first one came to that call.
func kill(t *testing.T, from, to *manifest.Payload, n int, after bool, workers int) (reached bool) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, from, to, func(cv *configv1.ClusterVersion) {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: sample.ToVersion}
			cv.Status.AvailableUpdates = []configv1.Release{{Version: sample.ToVersion, Image: sample.ToImage}}
		})
		order := newOrderCheck(to, sample.To())
		finish := func(ctx context.Context, api clusterapi.ClusterAPI) error {
			u, err := clusterupdate.New(clusterupdate.Options{
				API: api, Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure(), Workers: workers, Observe: order.observe,
			})
			if err != nil {
				return err
			}
			for range 30 {
				r, err := u.Sync(ctx)
				if err != nil {
					return err
				}
				if r.Done {
					return nil
				}
				time.Sleep(r.After)
			}
			return errors.New("the update does not end")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k := &killer{api: c.Cluster, at: n, after: after, kill: cancel}
		err := finish(ctx, k)
		reached = k.dead
		if reached {
			err = finish(t.Context(), c.Cluster)
		}
		if err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		cv := c.version(t)
		if got := historyOf(cv); got != completedHistory {
			t.Errorf("call %d, after=%v: history %s", n, after, got)
		}
		order.check(t)
		checkApplied(t, c, to)
	})
	return reached
}

// TestKilled ends an update at every fifth call that it makes.
func TestKilled(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%v", after), func(t *testing.T) {
			t.Parallel()
			step, n := 5, 1 // calls in between: the seeds of TestVirtualFaults
			if after {
				n = 3
			}
			if israce.Enabled {
				step = 23
			}
			for ; kill(t, from, to, n, after, 1); n += step {
				if t.Failed() {
					return
				}
			}
			t.Logf("%d calls", n)
			if n < 150 {
				t.Errorf("the update took only %d calls", n)
			}
		})
	}
}

// TestKilledWorkers does the same with all workers, at a sample of the calls:
// which call is the n-th is left to chance.
func TestKilledWorkers(t *testing.T) {
	from, to := loadSample(t, sample.From(), sample.FromImage), loadSample(t, sample.To(), sample.ToImage)
	for n := 3; kill(t, from, to, n, n%2 == 0, 0); n += 17 {
		if t.Failed() {
			return
		}
	}
}
