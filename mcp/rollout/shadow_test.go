package rollout_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// shadowed is a cluster whose nodes a controller updates, and a rollout that compares
// the decisions of that.
type shadowed struct {
	*simulated
	found []told
}

// shadow prepares a cluster. mutant is what the controller's calls go through.
func shadow(seed uint64, f reconcile.Faults, mutant func(clusterapi.ClusterAPI) clusterapi.ClusterAPI) *shadowed {
	two := intstr.FromInt32(2)
	clock := reconcile.NewClock(mcptest.Epoch)
	c, err := simulation.New(simulation.Options{Clock: clock, Release: machineConfig("4.20.3"),
		Pools: []simulation.Pool{{Nodes: 5, MaxUnavailable: &two}, {Name: "infra", Nodes: 2}}})
	if err != nil {
		panic(err)
	}
	s := &shadowed{simulated: &simulated{cluster: c, clock: clock, limits: map[string]int{}}}
	make := func(o rollout.Options) *rollout.Rollout {
		r, err := rollout.New(o)
		if err != nil {
			panic(err)
		}
		return r
	}
	controller := make(rollout.Options{Mode: rollout.Drive}).Process()
	controller.Name = "controller"
	if mutant != nil {
		honest := controller.New
		controller.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler { return honest(mutant(api)) }
	}
	observer := make(rollout.Options{Shadow: &mcp.ShadowOptions{Grace: 5 * time.Minute}, Observe: func(e clusterapi.Event) {
		if e.Type == rollout.EventDifference {
			s.found = append(s.found, toldOf(e))
		}
	}}).Process()
	observer.Name = "shadow"
	f.Processes = []string{"controller", "shadow"}
	o := reconcile.VirtualOptions{Cluster: c, Clock: clock, Seed: seed, Faults: f, Latency: reconcile.Latency{Watch: 500 * time.Millisecond}}
	if seed%2 == 0 {
		o.Order = reconcile.Random
	}
	s.Virtual = reconcile.NewVirtual(o, c.Process(), controller, observer)
	clock.AfterFunc(10*time.Minute, func() {
		to := machineConfig("4.21.1")
		c.Expect(to)
		if _, err := c.Apply(context.Background(), to.Operators[0].Workloads[0], clusterapi.ApplyOptions{FieldManager: clusterapi.ManagerPayload}); err != nil {
			panic(err)
		}
	})
	if seed%3 != 0 {
		clock.AfterFunc(time.Minute, func() { s.administrate(rand.New(rand.NewPCG(seed, 7))) })
	}
	return s
}

func (s *shadowed) until(end time.Duration) error {
	for {
		at, ok := s.Next()
		if !ok || at.After(mcptest.Epoch.Add(end)) {
			return nil
		}
		if _, err := s.Step(); err != nil {
			return err
		}
	}
}

// A controller that goes by the rules never differs, whatever else happens.
func TestShadowAgrees(t *testing.T) {
	simtest.Test(t, 0.05, func(seed uint64, only map[string]bool) ([]string, error) {
		s := shadow(seed, reconcile.Faults{
			Before: 0.02, After: 0.02, Conflict: 0.02, Stale: 0.03, Late: 0.1, Double: 0.05, Merge: 0.05, Crash: 0.005, Until: time.Hour, Only: only,
		}, nil)
		defer s.Close()
		if err := s.until(2 * time.Hour); err != nil {
			return s.Faults(), err
		}
		if len(s.found) > 0 {
			return s.Faults(), fmt.Errorf("%d differences, the first: %s: %s", len(s.found), s.found[0].Time.Sub(mcptest.Epoch), s.found[0].Message)
		}
		if !s.updated() {
			return s.Faults(), fmt.Errorf("the nodes are not updated")
		}
		return s.Faults(), nil
	})
}

// updated says whether all nodes have got the new release.
func (s *shadowed) updated() bool {
	nodes, err := clusterapi.ReadAll[corev1.Node](context.Background(), s.cluster, clusterapi.ListOptions{})
	return err == nil && !slices.ContainsFunc(nodes, func(n *corev1.Node) bool {
		return n.Status.NodeInfo.KubeletVersion != "v1.34.0" || !mcp.NodeStateOf(n).Done()
	})
}

// wrongNode changes each node that a controller writes.
type wrongNode struct {
	clusterapi.ClusterAPI
	change func(api clusterapi.ClusterAPI, n *corev1.Node, targeted bool)
}

func (w wrongNode) Update(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if obj.GetKind() != "Node" {
		return w.ClusterAPI.Update(ctx, obj, o)
	}
	stored, err := w.ClusterAPI.Get(ctx, obj.GroupVersionKind(), clusterapi.Key("", obj.GetName()))
	if err != nil {
		return nil, err
	}
	const desired = mcp.AnnotationDesiredConfig
	n, err := clusterapi.FromUnstructured[corev1.Node](obj)
	if err != nil {
		return nil, err
	}
	w.change(w.ClusterAPI, n, stored.GetAnnotations()[desired] != n.Annotations[desired])
	u, err := clusterapi.ToUnstructured(n)
	if err != nil {
		return nil, err
	}
	return w.ClusterAPI.Update(ctx, u, o)
}

// wrongStatus changes the status of each pool that a controller writes.
type wrongStatus struct{ clusterapi.ClusterAPI }

func (w wrongStatus) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, o clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	if obj.GetKind() == "MachineConfigPool" {
		obj = obj.DeepCopy()
		ready, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyMachineCount")
		if err := unstructured.SetNestedField(obj.Object, ready+1, "status", "readyMachineCount"); err != nil {
			return nil, err
		}
	}
	return w.ClusterAPI.UpdateStatus(ctx, obj, o)
}

// target tells a node what to reach, as a controller might that does not count.
func target(api clusterapi.ClusterAPI, node, config string) {
	_, err := clusterapi.Modify(context.Background(), api, clusterapi.Key("", node), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
		n.Annotations[mcp.AnnotationDesiredConfig] = config
		return nil
	})
	if err != nil {
		panic(err)
	}
}

var update = flag.Bool("update", false, "write the golden files")

// mutants are controllers that do not go by the rules, each in one way.
var mutants = []struct {
	name string
	api  func(clusterapi.ClusterAPI) clusterapi.ClusterAPI
	want string
}{
	{"targets all workers at once", mutateNodes(func(api clusterapi.ClusterAPI, n *corev1.Node, targeted bool) {
		for i := range 5 {
			if other := fmt.Sprint("worker-", i); targeted && isWorker(n) && other != n.Name {
				target(api, other, n.Annotations[mcp.AnnotationDesiredConfig])
			}
		}
	}), "NotSelected"},
	{"targets workers to another pool's config", mutateNodes(func(_ clusterapi.ClusterAPI, n *corev1.Node, targeted bool) {
		if targeted && isWorker(n) {
			n.Annotations[mcp.AnnotationDesiredConfig] = "rendered-infra-0123"
		}
	}), "Target"},
	{"leaves taints where they are", mutateNodes(func(_ clusterapi.ClusterAPI, n *corev1.Node, _ bool) { mcptest.Taint(n) }), "Taint"},
	{"targets no worker", mutateNodes(func(_ clusterapi.ClusterAPI, n *corev1.Node, targeted bool) {
		if targeted && isWorker(n) {
			n.Annotations[mcp.AnnotationDesiredConfig] = n.Annotations[mcp.AnnotationCurrentConfig]
		}
	}), "Idle"},
	{"counts a ready machine too many", func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return wrongStatus{api} }, "Status"},
}

func mutateNodes(change func(clusterapi.ClusterAPI, *corev1.Node, bool)) func(clusterapi.ClusterAPI) clusterapi.ClusterAPI {
	return func(api clusterapi.ClusterAPI) clusterapi.ClusterAPI { return wrongNode{api, change} }
}

func isWorker(n *corev1.Node) bool { return strings.HasPrefix(n.Name, "worker-") }

// Controllers that do not go by the rules are found out, by whatever seed. What is told
// of them is in testdata/transcripts/shadow.txt.
func TestShadowFindsMutants(t *testing.T) {
	var transcript strings.Builder
	for _, m := range mutants {
		for _, seed := range []uint64{3, 6} {
			s := shadow(seed, reconcile.Faults{}, m.api)
			if err := s.until(40 * time.Minute); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if !slices.ContainsFunc(s.found, func(e told) bool {
				return e.Reason == m.want && e.Difference.Kind == m.want && !e.Difference.Time.IsZero() && e.Warning
			}) {
				t.Errorf("%s, seed %d: no %s in %d differences", m.name, seed, m.want, len(s.found))
			}
			if seed != 3 {
				continue
			}
			fmt.Fprintf(&transcript, "a controller that %s\n", m.name)
			for i, e := range s.found {
				if i == 3 {
					fmt.Fprintf(&transcript, "  and %d more\n", len(s.found)-i)
					break
				}
				fmt.Fprintf(&transcript, "  %s %s: %s\n", e.Time.Sub(mcptest.Epoch).Round(time.Second), e.Reason, e.Message)
			}
		}
	}
	path := filepath.Join("testdata", "transcripts", "shadow.txt")
	if *update {
		if err := os.WriteFile(path, []byte(transcript.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), transcript.String()); diff != "" {
		t.Errorf("%s differs; write it with -update:\n%s", path, diff)
	}
}

// Shadow mode is one of a rollout that watches others.
func TestShadowNeedsObserve(t *testing.T) {
	if _, err := rollout.New(rollout.Options{Mode: rollout.Drive, Shadow: &mcp.ShadowOptions{}}); err == nil {
		t.Error("Drive with Shadow is accepted")
	}
}
