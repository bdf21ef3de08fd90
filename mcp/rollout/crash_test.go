package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// faulty counts the calls of a rollout and lets one of them fail, before or
// after its effect.
type faulty struct {
	*memory.Cluster
	mu    sync.Mutex
	calls int
	at    int // the call that fails; 0: none
	after bool
	hit   func() // called then
}

var errInjected = errors.New("injected fault")

func (f *faulty) around(do func() error) error {
	f.mu.Lock()
	f.calls++
	fails := f.calls == f.at
	f.mu.Unlock()
	if !fails {
		return do()
	}
	if f.after {
		_ = do()
	}
	f.hit()
	return errInjected
}

func (f *faulty) Shares(r clusterapi.Reader) bool { return r == clusterapi.Reader(f) }

func (f *faulty) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (u *clusterapi.Object, err error) {
	err = f.around(func() error { u, err = f.Cluster.GetShared(ctx, gvk, key); return err })
	return u, err
}

func (f *faulty) ListShared(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) (l []*clusterapi.Object, err error) {
	err = f.around(func() error { l, err = f.Cluster.ListShared(ctx, gvk, o); return err })
	return l, err
}

func (f *faulty) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (u *unstructured.Unstructured, err error) {
	err = f.around(func() error { u, err = f.Cluster.Update(ctx, obj, o); return err })
	return u, err
}

func (f *faulty) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (u *unstructured.Unstructured, err error) {
	err = f.around(func() error { u, err = f.Cluster.UpdateStatus(ctx, obj, o); return err })
	return u, err
}

func (f *faulty) Evict(ctx context.Context, pod types.NamespacedName, o clusterapi.EvictOptions) error {
	return f.around(func() error { return f.Cluster.Evict(ctx, pod, o) })
}

// tinyCluster has one master and two workers, one with a pod.
func tinyCluster(t *testing.T) *memory.Cluster {
	m, w := mcptest.Pool("master", "N"), mcptest.Pool("worker", "N")
	m0, w0, w1 := mcptest.Master("m0"), mcptest.Worker("w0"), mcptest.Worker("w1")
	c := highlyAvailable(t, &m, &w, &m0, &w0, &w1, app("web-0", "w1"))
	return c
}

// rollOut runs a rollout to its end, with a fault at the given call, and
// returns the end state and the number of calls. kill restarts it at the
// fault; runners run at the same time.
func rollOut(t *testing.T, at int, after, kill bool, runners int) (end string, calls int) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	c := tinyCluster(t)
	startDaemons(ctx, t, c, &group, 5*time.Second, 10*time.Second)
	group.Go(func() { watchLimits(ctx, t, c, map[string]int{"master": 1, "worker": 1}) })

	f := &faulty{Cluster: c, at: at, after: after}
	rolling, stop := context.WithCancel(ctx)
	f.hit = func() {
		if kill {
			stop()
		}
	}
	for range runners {
		group.Go(func() {
			checktest.Good(t, newRollout(t, rollout.Options{API: f, Mode: rollout.Drive}).Run(rolling))
			if ctx.Err() == nil { // killed: another one takes its place
				checktest.Good(t, newRollout(t, rollout.Options{API: f, Mode: rollout.Drive}).Run(ctx))
			}
		})
	}
	for start := time.Now(); !rolledOut(ctx, t, c, "N"); time.Sleep(10 * time.Second) {
		if time.Since(start) > 2*time.Hour {
			t.Fatalf("fault at call %d, after its effect %v, kill %v: not done:\n%s", at, after, kill, describeNodes(ctx, t, c))
		}
	}
	time.Sleep(2 * time.Minute)
	stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	return describeNodes(ctx, t, c) + describePools(ctx, t, c), f.calls
}

func describePools(ctx context.Context, t *testing.T, c *memory.Cluster) string {
	ps := checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](ctx, c, clusterapi.ListOptions{}))(t)
	var b strings.Builder
	for _, p := range ps {
		slices.SortFunc(p.Status.Conditions, func(a, b mcfgv1.MachineConfigPoolCondition) int {
			return strings.Compare(string(a.Type), string(b.Type))
		})
		fmt.Fprintf(&b, "%s %s\n", p.Name, mcptest.Brief(p.Status))
	}
	return b.String()
}

// Whatever call fails or is the last one of a process, the end is the same.
func TestFaultAtEveryCall(t *testing.T) {
	var want string
	var calls int
	synctest.Test(t, func(t *testing.T) { want, calls = rollOut(t, 0, false, false, 1) })
	if calls < 50 {
		t.Fatalf("only %d calls", calls)
	}
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 1; at <= calls; at += step {
		for mode := range 4 {
			after, kill := mode&1 > 0, mode&2 > 0
			if !kill && at%3 > 0 {
				continue // a failed call that is survived is much like the others
			}
			synctest.Test(t, func(t *testing.T) {
				end, _ := rollOut(t, at, after, kill, 1)
				if diff := cmp.Diff(want, end); diff != "" {
					t.Errorf("fault at call %d, after its effect %v, kill %v:\n%s", at, after, kill, diff)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

func TestTwoRunners(t *testing.T) {
	var want string
	synctest.Test(t, func(t *testing.T) { want, _ = rollOut(t, 0, false, false, 1) })
	for at := range 30 {
		synctest.Test(t, func(t *testing.T) {
			end, _ := rollOut(t, at*11, at%2 == 0, at%4 < 2, 2)
			checktest.Same(t, want, end)
		})
	}
}
