package rollout_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// The first node that cannot be targeted stops the sync, which is tried again.
func TestTargetFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
		tainted := []mcptest.Change{mcptest.Taint, mcptest.Annotate(mcp.AnnotationControlPlaneTopology, "HighlyAvailable")}
		p, w1, w2 := mcptest.Pool("worker", "N", mcptest.AtMost(2)), mcptest.Worker("w1", tainted...), mcptest.Worker("w2", tainted...)
		load(t, c, mcptest.Topology("HighlyAvailable"), &p, &w1, &w2)
		boom := errors.New("boom")
		f.set("Update Node/w1", boom)
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		found := false
		for _, e := range r.all() {
			var target *rollout.TargetError
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
		if got := r.nodes(rollout.EventNodeTargeted, "worker"); !cmp.Equal(got, []string{"w1", "w2"}) {
			t.Errorf("targeted %v", got)
		}
	})
}

// A taint that cannot be set does not keep nodes from being targeted.
func TestTaintFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults()
		c := memory.NewOpenShift(memory.Options{Intercept: f.intercept})
		p, w1, w2 := mcptest.Pool("worker", "N"), mcptest.Worker("w1"), mcptest.Worker("w2")
		load(t, c, mcptest.Topology("HighlyAvailable"), &p, &w1, &w2)
		f.set("Update Node/w2", errors.New("boom"))
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w1"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
		texts := r.texts(func(e told) bool { return e.Type == rollout.EventError })
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

func (b breaking) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		if strings.HasPrefix(gvk.Kind, "MachineOS") {
			yield(clusterapi.WatchEvent{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind()})
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
			yield(clusterapi.WatchEvent{}, errors.New("watch expired"))
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
			ctx := t.Context()
			c := smallCluster(t, memory.Options{})
			roll := driving(t, api(c))
			time.Sleep(30 * time.Second)
			view := func(want ...string) {
				t.Helper()
				var got []string
				if !roll.View(func(s *mcp.State) { got = append(s.Pools(), s.Nodes("worker")...) }) {
					t.Fatal("no view")
				}
				checktest.Same(t, want, got)
			}
			view("infra", "master", "worker", "w0", "w1", "w2", "w3")
			node, _ := clusterapi.KindOf[corev1.Node]()
			pool, _ := clusterapi.KindOf[mcfgv1.MachineConfigPool]()
			for _, err := range []error{
				c.Delete(ctx, node, clusterapi.Key("", "w0"), clusterapi.DeleteOptions{}), // targeted first
				c.Delete(ctx, pool, clusterapi.Key("", "infra"), clusterapi.DeleteOptions{}),
			} {
				checktest.OK(t, err)
			}
			w4 := mcptest.Worker("w4")
			load(t, c, &w4)
			time.Sleep(2 * time.Minute)
			// Without their pool the infra nodes are plain workers.
			view("master", "worker", "i0", "i1", "w1", "w2", "w3", "w4")
			// The unit of the node that went is free again.
			nodes := checktest.Get(clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}))(t)
			targeted := slices.DeleteFunc(nodes, func(n corev1.Node) bool {
				return n.Annotations[mcp.AnnotationDesiredConfig] != "N" || strings.HasPrefix(n.Name, "m")
			})
			if len(targeted) == 0 {
				t.Error("nothing goes on")
			}
		})
	}
}

// A node that is deleted while it is drained is forgotten.
func TestNodeGoesInDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := drainCluster(t, memory.Options{})
		load(t, c, app("web-0", "w0"), budget(0))
		r := driving(t, c)
		time.Sleep(time.Minute)
		gvk, _ := clusterapi.KindOf[corev1.Node]()
		checktest.OK(t, c.Delete(t.Context(), gvk, clusterapi.Key("", "w0"), clusterapi.DeleteOptions{}))
		time.Sleep(3 * time.Minute)
		before := len(r.all())
		time.Sleep(30 * time.Minute)
		if after := r.all(); len(after) > before {
			t.Errorf("%+v", after[before:])
		}
	})
}

func TestLayeredImageMode(t *testing.T) {
	in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Worker("a"), mcptest.Worker("b"), mcptest.Worker("c"))
	mcptest.Layered(&in, "i", "Succeeded")
	in.Options.ImageModeStatusReporting = true
	reached := func(name, image string) mcfgv1.MachineConfigNode {
		m := mcptest.Mcn(name, mcptest.Says("Updated", ""))
		m.Status.ConfigImage.DesiredImage = mcfgv1.ImageDigestFormat(image)
		return m
	}
	in.MachineConfigNodes = []mcfgv1.MachineConfigNode{reached("a", "i"), reached("b", "h"), reached("c", "")}
	if st := mcp.PoolStatus(in, "worker"); st.UpdatedMachineCount != 1 {
		t.Errorf("%s", mcptest.Brief(st))
	}
	in.MachineOSConfigs = nil
	if st := mcp.PoolStatus(in, "worker"); st.UpdatedMachineCount != 1 {
		t.Errorf("not layered: %s", mcptest.Brief(st))
	}
}
