package mcp_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// The first node that cannot be targeted stops the sync, which is tried again.
func TestTargetFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
		tainted := []change{taint, annotate(mcp.AnnotationControlPlaneTopology, mcp.TopologyHighlyAvailable)}
		p, w1, w2 := pool("worker", "N", atMost(2)), worker("w1", tainted...), worker("w2", tainted...)
		load(t, c, topology(mcp.TopologyHighlyAvailable), &p, &w1, &w2)
		boom := errors.New("boom")
		f.set("Update Node/w1", boom)
		var r recorder
		stop := runRollout(t, c, &r)
		defer stop()
		time.Sleep(20 * time.Second)
		found := false
		for _, e := range r.all() {
			var target *mcp.TargetError
			if errors.As(e.Err, &target) {
				found = true
				if target.Error() != "setting desired N for node w1: boom" || target.Node != "w1" || target.Config != "N" || !errors.Is(e.Err, boom) {
					t.Errorf("%+v", target)
				}
			}
		}
		if !found {
			t.Error("no TargetError")
		}
		if s := nodeState(t, c, "w2"); s.DesiredConfig != "O" {
			t.Errorf("%+v", s)
		}
		f.set("Update Node/w1", nil)
		time.Sleep(2 * time.Minute)
		if got := r.nodes(mcp.EventNodeTargeted, "worker"); !cmp.Equal(got, []string{"w1", "w2"}) {
			t.Errorf("targeted %v", got)
		}
	})
}

// A taint that cannot be set does not keep nodes from being targeted.
func TestTaintFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
		p, w1, w2 := pool("worker", "N"), worker("w1"), worker("w2")
		load(t, c, topology(mcp.TopologyHighlyAvailable), &p, &w1, &w2)
		f.set("Update Node/w2", errors.New("boom"))
		var r recorder
		stop := runRollout(t, c, &r)
		defer stop()
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w1"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
		texts := r.texts(func(e mcp.Event) bool { return e.Type == mcp.EventError })
		if len(texts) == 0 || texts[0] != "failed applying UpdateInProgress taint for node w2: boom" {
			t.Errorf("%q", texts)
		}
		f.set("Update Node/w2", nil)
		time.Sleep(2 * time.Minute)
		if s := nodeState(t, c, "w2"); !s.UpdateTaint {
			t.Errorf("%+v", s)
		}
	})
}

// breaking ends every watch after a minute, and says that some kinds do not
// exist.
type breaking struct{ *memory.Cluster }

func (b breaking) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.Event, error] {
	return func(yield func(clusterapi.Event, error) bool) {
		if strings.HasPrefix(gvk.Kind, "MachineOS") {
			yield(clusterapi.Event{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()})
			return
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for e, err := range b.Cluster.Watch(ctx, gvk, o) {
			if e.Type == clusterapi.Deleted {
				continue // lost
			}
			if !yield(e, err) {
				return
			}
		}
		if context.Cause(ctx) == context.DeadlineExceeded {
			yield(clusterapi.Event{}, errors.New("watch expired"))
		}
	}
}

// What went while a watch was broken is noticed when it is begun again.
func TestWatchBreaks(t *testing.T) {
	for _, api := range []func(*memory.Cluster) clusterapi.ClusterAPI{
		func(c *memory.Cluster) clusterapi.ClusterAPI { return breaking{c} },
		func(c *memory.Cluster) clusterapi.ClusterAPI { return polled{c} },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := smallCluster(t, memory.Options{})
			rollout := mcp.NewRollout(mcp.RolloutOptions{API: api(c), Mode: mcp.Drive})
			ended := make(chan error, 1)
			go func() { ended <- rollout.Run(ctx) }()
			time.Sleep(30 * time.Second)
			view := func(want ...string) {
				t.Helper()
				var got []string
				if !rollout.View(func(s *mcp.State) { got = append(s.Pools(), s.Nodes("worker")...) }) {
					t.Fatal("no view")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
			view("infra", "master", "worker", "w0", "w1", "w2", "w3")
			node, _ := clusterapi.KindOf[corev1.Node]()
			pool, _ := clusterapi.KindOf[mcfgv1.MachineConfigPool]()
			for _, err := range []error{
				c.Delete(ctx, node, clusterapi.Key("", "w0"), clusterapi.DeleteOptions{}), // targeted first
				c.Delete(ctx, pool, clusterapi.Key("", "infra"), clusterapi.DeleteOptions{}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			w4 := worker("w4")
			load(t, c, &w4)
			time.Sleep(2 * time.Minute)
			// Without their pool the infra nodes are plain workers.
			view("master", "worker", "i0", "i1", "w1", "w2", "w3", "w4")
			// The unit of the node that went is free again.
			nodes, err := clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			targeted := slices.DeleteFunc(nodes, func(n corev1.Node) bool {
				return n.Annotations[mcp.AnnotationDesiredConfig] != "N" || strings.HasPrefix(n.Name, "m")
			})
			if len(targeted) == 0 {
				t.Error("nothing goes on")
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A node that is deleted while it is drained is forgotten.
func TestNodeGoesInDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{})
		load(t, c, app("web-0", "w0"), budget(0))
		var r recorder
		stop := runRollout(t, c, &r)
		defer stop()
		time.Sleep(time.Minute)
		gvk, _ := clusterapi.KindOf[corev1.Node]()
		if err := c.Delete(t.Context(), gvk, clusterapi.Key("", "w0"), clusterapi.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		before := len(r.all())
		time.Sleep(30 * time.Minute)
		if after := r.all(); len(after) > before {
			t.Errorf("%+v", after[before:])
		}
	})
}

func TestLayeredImageMode(t *testing.T) {
	in := snapshot(pools(pool("worker", "N")), worker("a"), worker("b"), worker("c"))
	layered(&in, "i", "Succeeded")
	in.Options.ImageModeStatusReporting = true
	reached := func(name, image string) mcfgv1.MachineConfigNode {
		m := mcn(name, says("Updated", ""))
		m.Status.ConfigImage.DesiredImage = mcfgv1.ImageDigestFormat(image)
		return m
	}
	in.MachineConfigNodes = []mcfgv1.MachineConfigNode{reached("a", "i"), reached("b", "h"), reached("c", "")}
	if st := mcp.PoolStatus(in, "worker"); st.UpdatedMachineCount != 1 {
		t.Errorf("%s", brief(st))
	}
	in.MachineOSConfigs = nil
	if st := mcp.PoolStatus(in, "worker"); st.UpdatedMachineCount != 1 {
		t.Errorf("not layered: %s", brief(st))
	}
}
