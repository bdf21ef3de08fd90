package rollout_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// skipping loses those events of node w1 that a later one has made obsolete.
type skipping struct{ *memory.Cluster }

func (s skipping) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		synced := false
		for e, err := range s.Cluster.Watch(ctx, gvk, o) {
			synced = synced || e.Type == clusterapi.Synced
			if synced && gvk.Kind == "Node" && e.Object != nil && e.Object.GetName() == "w1" &&
				e.Object.GetAnnotations()[mcp.AnnotationDesiredConfig] == "O" {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// named gives nodes resourceVersions that cannot be compared.
type named struct{ clusterapi.Watcher }

func (w named) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		for e, err := range w.Watcher.Watch(ctx, gvk, o) {
			if e.Object != nil && gvk.Kind == "Node" {
				e.Object = e.Object.DeepCopy()
				e.Object.SetResourceVersion("v" + e.Object.GetResourceVersion())
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Somebody else targets a node that we have just written to, and the watch
// shows but the last of both writes.
func TestTargetedByAnother(t *testing.T) {
	for _, comparable := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p, w0, w1 := mcptest.Pool("worker", "N"), mcptest.Worker("w0", mcptest.Cordoned), mcptest.Worker("w1")
			c := highlyAvailable(t, &p, &w0, &w1)
			api := clusterapi.ClusterAPI(skipping{c})
			if !comparable {
				api = struct {
					clusterapi.ClusterAPI
					named
				}{c, named{skipping{c}}}
			}
			roll := driving(t, api)
			time.Sleep(6 * time.Second)
			if !nodeState(t, c, "w1").UpdateTaint {
				t.Fatal("nothing has been written to w1")
			}
			change1(t, c, "w1", mcptest.Desired("N"))
			time.Sleep(6 * time.Second)
			roll.View(func(s *mcp.State) {
				if n, _, _ := s.Node("w1"); n.DesiredConfig != "N" {
					t.Errorf("comparable %v: the other's target is not known: %+v", comparable, n)
				}
			})
		})
	}
}

func errorTexts(r *recorder) []string {
	texts := r.texts(func(e told) bool { return e.Type == rollout.EventError })
	slices.Sort(texts)
	return slices.Compact(texts)
}

func TestMarkFails(t *testing.T) {
	for _, tt := range []struct {
		node corev1.Node
		want string
	}{
		{mcptest.Worker("w", mcptest.Cordoned), "failed applying UpdateInProgress taint for node w: boom"},
		{mcptest.Updated(mcptest.Worker("w", mcptest.Taint)), "failed removing UpdateInProgress taint for node w: boom"},
		{mcptest.Updated(mcptest.Worker("w")), "failed setting annotation machineconfiguration.openshift.io/controlPlaneTopology of node w: boom"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFaults()
			c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
			p := mcptest.Pool("worker", "N")
			load(t, c, mcptest.Topology("HighlyAvailable"), &p, &tt.node)
			f.set("Update Node/w", errors.New("boom"))
			r := driving(t, c)
			time.Sleep(10 * time.Second)
			checktest.Same(t, []string{tt.want}, errorTexts(r.recorder))
			f.set("Update Node/w", nil)
			time.Sleep(2 * time.Minute)
			if s := nodeState(t, c, "w"); s.Topology != "HighlyAvailable" || s.UpdateTaint != s.Unschedulable {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The pool's config changes between the decision and the write of its status.
func TestNowTargeting(t *testing.T) {
	for _, image := range []string{"", "i"} {
		synctest.Test(t, func(t *testing.T) {
			var changed atomic.Bool
			var c *memory.Cluster
			c = memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
				if call.Verb == "Get" && call.GVK.Kind == "MachineConfigPool" && changed.CompareAndSwap(false, true) {
					change1(t, c, "worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "N2" })
				}
				return do(ctx)
			}})
			in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N", mcptest.Paused)), mcptest.Worker("w"))
			load(t, c, mcptest.Topology("HighlyAvailable"), &in.Pools[0], &in.Nodes[0])
			want := "Pool worker now targeting MachineConfig N2"
			if image != "" {
				mcptest.Layered(&in, image)
				load(t, c, &in.MachineOSConfigs[0])
				want += " / Image i"
			}
			r := driving(t, c)
			time.Sleep(time.Minute)
			checktest.Same(t, []string{want}, r.texts(func(e told) bool { return e.Reason == rollout.ReasonUpdating }))
			p, err := clusterapi.Get[mcfgv1.MachineConfigPool](t.Context(), c, clusterapi.Key("", "worker"))
			if err != nil || !strings.Contains(mcptest.ConditionOf(p.Status, "Updating").Message, "; w") {
				t.Errorf("%v %v", p.Status, err)
			}
		})
	}
}

// A pool that is seen only after it wants another configuration still says which one it
// has completed.
func TestCompletedNamesWhatWasReached(t *testing.T) {
	for wants, layered := range map[string]bool{"N": false, "N2": false, "N3": true} {
		synctest.Test(t, func(t *testing.T) {
			in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")))
			c := highlyAvailable(t, &in.Pools[0])
			if layered {
				mcptest.Layered(&in, "i")
				load(t, c, &in.MachineOSConfigs[0])
			}
			r := start(t, rollout.Options{API: polled{c}})
			time.Sleep(time.Minute + time.Millisecond) // between two lists
			if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "worker"), clusterapi.ModifyOptions{Status: true}, func(p *mcfgv1.MachineConfigPool) error {
				p.Status.Configuration.Name = "N"
				return nil
			}); err != nil {
				t.Error(err)
			}
			change1(t, c, "worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = wants })
			time.Sleep(time.Minute)
			r.stop()
			want := []string{"Pool worker has completed update to MachineConfig N"}
			if diff := cmp.Diff(want, r.texts(func(e told) bool { return e.Reason == rollout.ReasonCompleted })); diff != "" {
				t.Errorf("it wants %s: %s", wants, diff)
			}
		})
	}
}

// What the controller and the rollout tell of nodes.
func TestNodeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, m := mcptest.Pool("master", "N"), mcptest.Updated(mcptest.Master("m0", mcptest.Annotate(mcp.AnnotationCurrentImage, "i", mcp.AnnotationDesiredImage, "i")))
		c := highlyAvailable(t, &p, &m)
		r := start(t, rollout.Options{API: c})
		for _, f := range []mcptest.Change{
			mcptest.Without(mcp.AnnotationCurrentImage),
			mcptest.Annotate(mcp.AnnotationState, mcp.StateDegraded, mcp.AnnotationReason, "mode mismatch"),
			mcptest.Desired("N2"),
			func(n *corev1.Node) { // completes the update
				mcptest.Annotate(mcp.AnnotationCurrentConfig, "N2", mcp.AnnotationState, mcp.StateDone, mcp.AnnotationReason, "")(n)
				mcptest.Without(mcp.AnnotationDesiredImage)(n)
			},
		} {
			time.Sleep(time.Minute)
			change1(t, c, "m0", f)
		}
		time.Sleep(time.Minute)
		r.stop()
		const prefix = "machineconfiguration.openshift.io/"
		checktest.Same(t, []string{
			"Node m0 no longer has " + prefix + "currentImage",
			"Node m0 now has " + prefix + "state=Degraded",
			"Node m0 now has " + prefix + "reason=mode mismatch",
			"Node m0 now has " + prefix + "desiredConfig=N2",
		}, r.texts(func(e told) bool { return e.Reason == rollout.ReasonAnnotationChange }))
		checktest.Same(t, []string{"node m0 is to reach MachineConfig N2 / Image i", "node m0 is to reach MachineConfig N2"},
			r.texts(func(e told) bool {
				return e.Type == rollout.EventNodeTargeted && e.Pool == "master" && e.Node == "m0"
			}))
		checktest.Same(t, []string{"mode mismatch"}, r.texts(func(e told) bool { return e.Type == rollout.EventNodeFailed && e.Warning }))
		checktest.Same(t, []string{"node m0: Targeted", "node m0: Failed", "node m0: Failed in Preparing", "node m0: Done"},
			r.texts(func(e told) bool { return e.Type == rollout.EventNodePhase }))
	})
}

// A MachineConfigNode alone can tell that a node moves on.
func TestPhaseByMachineConfigNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := mcptest.Pool("worker", "N"), mcptest.Worker("w", mcptest.Desired("N"), mcptest.State(mcp.StateWorking))
		m := mcptest.Mcn("w")
		m.Spec.ConfigVersion.Desired = "N"
		c := highlyAvailable(t, &p, &w, &m)
		r := driving(t, c)
		time.Sleep(time.Minute)
		if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", "w"), clusterapi.ModifyOptions{Status: true}, func(m *mcfgv1.MachineConfigNode) error {
			m.Status.Conditions = []metav1.Condition{{Type: "RebootedNode", Status: metav1.ConditionUnknown, Reason: "r", LastTransitionTime: metav1.Now()}}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		want := []string{"node w: Preparing", "node w: Rebooting"}
		checktest.Same(t, want, r.texts(func(e told) bool { return e.Type == rollout.EventNodePhase }))
	})
}

// An object that cannot be read as what it is does not stop the others.
func TestUnreadableObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w := mcptest.Pool("worker", "N"), mcptest.Worker("w")
		c := highlyAvailable(t, &p, &w)
		odd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
			"metadata": map[string]any{"name": "odd"}, "spec": map[string]any{"paused": "perhaps"},
		}}
		checktest.OK(t, c.Load(odd))
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
		if texts := errorTexts(r.recorder); len(texts) != 1 || !strings.Contains(texts[0], "paused") {
			t.Errorf("%q", texts)
		}
	})
}

// Whether a controller runs is asked until the API answers.
func TestControllerUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
		p, w := mcptest.Pool("worker", "N"), mcptest.Worker("w")
		load(t, c, mcptest.Topology("HighlyAvailable"), &p, &w)
		f.set("Get Lease/machine-config-controller", errors.New("boom"))
		r := driving(t, c)
		time.Sleep(time.Minute)
		if s := nodeState(t, c, "w"); s.DesiredConfig != "O" || s.UpdateTaint {
			t.Errorf("written to: %+v", s)
		}
		checktest.Same(t, []string{"looking for a machine-config controller: boom"}, errorTexts(r.recorder))
		f.set("Get Lease/machine-config-controller", nil)
		time.Sleep(2 * time.Minute)
		if s := nodeState(t, c, "w"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
	})
}

func TestUncordonFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := drainCluster(t, memory.Options{Intercept: f.intercept}, mcptest.Cordoned, mcptest.Annotate(mcp.AnnotationDesiredDrain, "uncordon-N"))
		f.set("Update Node/w0", errors.New("boom"))
		r := driving(t, c)
		time.Sleep(160 * time.Second)
		if texts := drainTexts(r.recorder); !slices.Contains(texts, "node w0: failed to uncordon (5 tries): boom") {
			t.Errorf("%q", texts)
		}
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "uncordon-O" {
			t.Errorf("%+v", s)
		}
		f.set("Update Node/w0", nil)
		time.Sleep(2 * time.Minute)
		if s := nodeState(t, c, "w0"); s.Unschedulable || s.LastAppliedDrain != "uncordon-N" {
			t.Errorf("%+v", s)
		}
	})
}

// The pod's name belongs to another pod by now: that one was never to go.
func TestEvictConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := drainCluster(t, memory.Options{Intercept: f.intercept})
		load(t, c, app("web-0", "w0"))
		f.set("Evict Pod/web-0", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("uid")))
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "uncordon-O" {
			t.Errorf("the pod is still there: %+v", s)
		}
		gvk, _ := clusterapi.KindOf[corev1.Pod]()
		checktest.OK(t, c.Remove(gvk, clusterapi.Key("app", "web-0")))
		load(t, c, app("web-0", "w1"))
		time.Sleep(10 * time.Second)
		if s := nodeState(t, c, "w0"); s.LastAppliedDrain != "drain-N" {
			t.Errorf("%+v", s)
		}
		if texts := drainTexts(r.recorder); len(texts) > 0 {
			t.Errorf("%q", texts)
		}
	})
}

// The arbiter's turn comes after the masters', so its sync asks for theirs,
// unless they are paused where there is an arbiter indeed.
func TestArbiterQueuesMaster(t *testing.T) {
	for _, tt := range []struct {
		name     string
		topology string
		paused   bool
		want     int // more syncs of master
	}{
		{"its turn is after master", mcp.TopologyHighlyAvailableArbiter, false, 1},
		{"master is paused", mcp.TopologyHighlyAvailableArbiter, true, 0},
		{"there is no arbiter", "HighlyAvailable", false, 1},
		{"there is none, and master is paused", "HighlyAvailable", true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := memory.NewOpenShift(memory.Options{})
			// Each sync of a pool that selects all leaves an event.
			m := mcptest.Pool("master", "N", func(p *mcfgv1.MachineConfigPool) {
				p.Spec.NodeSelector = &metav1.LabelSelector{}
				p.Spec.Paused = tt.paused
			})
			a := mcptest.Pool("arbiter", "N")
			load(t, c, mcptest.Topology(tt.topology), &m, &a)
			r := driving(t, c)
			syncs := func() int {
				return len(r.texts(func(e told) bool { return e.Reason == rollout.ReasonSelectingAll }))
			}
			time.Sleep(time.Minute)
			before := syncs()
			change1(t, c, "arbiter", func(p *mcfgv1.MachineConfigPool) { p.Labels = map[string]string{"x": "y"} })
			time.Sleep(time.Minute)
			if got := syncs() - before; got != tt.want {
				t.Errorf("%s: %d syncs of master", tt.name, got)
			}
		})
	}
}

// Nodes that are deleted and made again, at once or after a while, are known as they are
// stored, and no more of them are targeted than may be down.
func TestNodesMadeAgain(t *testing.T) {
	for n := range 28 {
		comparable, pause := n%2 == 0, time.Duration(n/2)
		synctest.Test(t, func(t *testing.T) {
			p, w0, w1 := mcptest.Pool("worker", "N"), mcptest.Worker("w0"), mcptest.Worker("w1")
			c := highlyAvailable(t, &p, &w0, &w1)
			api := clusterapi.ClusterAPI(c)
			if !comparable {
				api = struct {
					clusterapi.ClusterAPI
					named
				}{c, named{c}}
			}
			roll := driving(t, api)
			time.Sleep(pause * 500 * time.Millisecond)
			for round := range time.Duration(3) {
				for _, name := range []string{"w0", "w1"} {
					node := mcptest.Worker(name)
					kind := corev1.SchemeGroupVersion.WithKind("Node")
					checktest.OK(t, c.Delete(t.Context(), kind, clusterapi.Key("", name), clusterapi.DeleteOptions{}))
					time.Sleep(round * pause * 50 * time.Millisecond)
					checktest.Get(clusterapi.Create(t.Context(), c, &node, clusterapi.CreateOptions{}))(t)
				}
			}
			time.Sleep(20 * time.Second)
			down := 0
			for _, name := range []string{"w0", "w1"} {
				stored := nodeState(t, c, name)
				roll.View(func(s *mcp.State) {
					known, _, _ := s.Node(name)
					checktest.FailIf(t, known != stored, "comparable %v, pause %d: %+v, stored %+v", comparable, pause, known, stored)
				})
				if stored.DesiredConfig == "N" {
					down++
				}
			}
			checktest.Equal(t, 1, down, "targeted: comparable %v, pause %d", comparable, pause)
		})
	}
}
