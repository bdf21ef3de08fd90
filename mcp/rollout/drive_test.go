package rollout_test

import (
	"context"
	"iter"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

func change1[T any](t *testing.T, c clusterapi.ClusterAPI, name string, f func(*T)) {
	t.Helper()
	if _, err := clusterapi.Modify(t.Context(), c, clusterapi.Key("", name), clusterapi.ModifyOptions{}, func(o *T) error {
		f(o)
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// A node that changes between decision and write is not targeted, and the
// decision is made again with what it has become.
func TestDecidesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		var c *memory.Cluster
		c = memory.NewOpenShift(memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			if call.Verb == "Update" && call.Key.Name == "w1" && call.Object.GetAnnotations()[mcp.AnnotationDesiredConfig] == "N" {
				once.Do(func() {
					change1(t, c, "w1", mcptest.Cordoned)
				})
			}
			return do(ctx)
		}})
		p, w1, w2 := mcptest.Pool("worker", "N"), mcptest.Worker("w1"), mcptest.Worker("w2")
		load(t, c, mcptest.Topology("HighlyAvailable"), &p, &w1, &w2)
		driving(t, c)
		time.Sleep(time.Minute)
		for _, n := range []string{"w1", "w2"} {
			if s := nodeState(t, c, n); s.DesiredConfig != "O" || !s.UpdateTaint {
				t.Errorf("%+v", s)
			}
		}
		change1(t, c, "w1", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		time.Sleep(time.Minute)
		if s := nodeState(t, c, "w1"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
		// A node loses the taint at the sync after it was targeted.
		if nodeState(t, c, "w1").UpdateTaint || !nodeState(t, c, "w2").UpdateTaint {
			t.Error("taints")
		}
	})
}

// lagging delays a node's events: those that show the target much more.
type lagging struct{ *memory.Cluster }

func (l lagging) Watch(ctx context.Context, gvk schema.GroupVersionKind, o clusterapi.ListOptions) iter.Seq2[clusterapi.WatchEvent, error] {
	if gvk.Kind != "Node" {
		return l.Cluster.Watch(ctx, gvk, o)
	}
	return func(yield func(clusterapi.WatchEvent, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		out := make(chan clusterapi.WatchEvent)
		send := func(e clusterapi.WatchEvent) {
			select {
			case out <- e:
			case <-ctx.Done():
			}
		}
		group.Go(func() {
			synced := false
			for e := range l.Cluster.Watch(ctx, gvk, o) {
				synced = synced || e.Type == clusterapi.Synced
				delay := time.Duration(0)
				if synced && e.Object != nil && e.Object.GetName() == "w1" {
					delay = 6 * time.Second
					if e.Object.GetAnnotations()[mcp.AnnotationDesiredConfig] == "N" {
						delay = time.Minute
					}
				}
				if delay == 0 {
					send(e)
					continue
				}
				group.Go(func() {
					time.Sleep(delay)
					send(e)
				})
			}
		})
		for {
			select {
			case e := <-out:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// A slow watch must not give one unit to two nodes.
func TestSlowWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w1 := mcptest.Pool("worker", "N"), mcptest.Worker("w1", mcptest.Taint, mcptest.Annotate(mcp.AnnotationControlPlaneTopology, "HighlyAvailable"))
		c := highlyAvailable(t, &p, &w1)
		driving(t, lagging{c})
		time.Sleep(4 * time.Second)
		change1(t, c, "w1", func(n *corev1.Node) { n.Labels["beat"] = "1" }) // seen after the write
		time.Sleep(5 * time.Second)
		if s := nodeState(t, c, "w1"); s.DesiredConfig != "N" {
			t.Fatalf("%+v", s)
		}
		time.Sleep(3 * time.Second)
		w0 := mcptest.Worker("w0", mcptest.Age(5)) // sorts earlier
		load(t, c, &w0)
		for range 90 {
			time.Sleep(time.Second)
			if s := nodeState(t, c, "w0"); s.DesiredConfig != "O" {
				t.Fatalf("two nodes have the one unit")
			}
		}
	})
}

func TestDriveLayered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewOpenShift(memory.Options{})
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Worker("w0"))
		mcptest.Layered(&in, "i", "Succeeded")
		in.MachineOSConfigs[0].Annotations = map[string]string{mcp.AnnotationCurrentMachineOSBuild: "gone", "other": "stays"}
		m := mcptest.Mcn("w0")
		load(t, c, mcptest.Topology("HighlyAvailable"), &in.Pools[0], &in.Nodes[0], &in.MachineOSConfigs[0], &in.MachineOSBuilds[0], &m)
		r := driving(t, c)
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w0"); s.DesiredConfig != "N" || s.DesiredImage != "i" {
			t.Errorf("%+v", s)
		}
		node, err := clusterapi.Get[mcfgv1.MachineConfigNode](t.Context(), c, clusterapi.Key("", "w0"))
		if err != nil || node.Spec.ConfigVersion.Desired != "N" || node.Spec.ConfigImage.DesiredImage != "i" {
			t.Errorf("%+v, %v", node, err)
		}
		config, err := clusterapi.Get[mcfgv1.MachineOSConfig](t.Context(), c, clusterapi.Key("", "mosc"))
		if err != nil || !cmp.Equal(config.Annotations, map[string]string{"other": "stays"}) {
			t.Errorf("%+v, %v", config, err)
		}
		want := []string{"Targeted node w0 to MachineConfig: N / Image: i"}
		got := r.texts(func(e told) bool { return e.Reason == rollout.ReasonSetDesiredConfigAndOSImage })
		checktest.Same(t, want, got)
		// The pool leaves layering: the image goes.
		gvk, _ := clusterapi.KindOf[mcfgv1.MachineOSConfig]()
		checktest.OK(t, c.Delete(t.Context(), gvk, clusterapi.Key("", "mosc"), clusterapi.DeleteOptions{}))
		change1(t, c, "w0", mcptest.Annotate(mcp.AnnotationCurrentConfig, "N", mcp.AnnotationCurrentImage, "i"))
		time.Sleep(20 * time.Second)
		if s := nodeState(t, c, "w0"); s.HasDesiredImage || s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
	})
}

func TestSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := mcptest.Pool("worker", "N", mcptest.AtMost(4))
		c := highlyAvailable(t, &p)
		for _, n := range []corev1.Node{mcptest.Worker("a", mcptest.Desired("N")), mcptest.Worker("b", mcptest.Zone("z2")), mcptest.Worker("c", mcptest.Zone("z1")), mcptest.Worker("d"), mcptest.Worker("e")} {
			load(t, c, &n)
		}
		r := driving(t, c)
		time.Sleep(30 * time.Second)
		got := r.texts(func(e told) bool { return e.Reason == rollout.ReasonSetDesiredConfig })
		checktest.Same(t, []string{"Set target for 3 nodes to MachineConfig: N"}, got)
		checktest.Same(t, []string{"c", "b", "d"}, r.nodes(rollout.EventNodeTargeted, "worker"))
	})
}

func TestSyncFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewOpenShift(memory.Options{})
		w := mcptest.Pool("worker", "N", mcptest.MaxUnavailable(intstr.FromString("3")))
		all := mcptest.Pool("all", "N", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = &metav1.LabelSelector{} })
		n := mcptest.Worker("w0")
		load(t, c, &w, &all, &n)
		r := driving(t, c)
		errs := func() []string {
			texts := r.texts(func(e told) bool { return e.Type == rollout.EventError })
			slices.Sort(texts)
			return slices.Compact(texts)
		}
		time.Sleep(10 * time.Minute)
		want := []string{`error getting controllerconfig "machine-config-controller", error: controllerconfigs.machineconfiguration.openshift.io "machine-config-controller" not found`}
		checktest.Same(t, want, errs())
		// 15 tries that double, then one a minute.
		if got := len(r.texts(func(e told) bool { return e.Type == rollout.EventError && e.Pool == "worker" })); got < 20 || got > 26 {
			t.Errorf("%d tries in 10 minutes", got)
		}
		load(t, c, mcptest.Topology("HighlyAvailable"))
		time.Sleep(time.Minute)
		want = append(want, "maxUnavailable: invalid value for IntOrString: invalid type: string is not a percentage")
		checktest.Same(t, want, errs())
		// The status is written all the same; a pool that selects all has none.
		p, err := clusterapi.Get[mcfgv1.MachineConfigPool](t.Context(), c, clusterapi.Key("", "worker"))
		if err != nil || p.Status.MachineCount != 1 || len(p.Status.Conditions) != 4 {
			t.Errorf("%+v, %v", p, err)
		}
		p, err = clusterapi.Get[mcfgv1.MachineConfigPool](t.Context(), c, clusterapi.Key("", "all"))
		if err != nil || len(p.Status.Conditions) > 0 {
			t.Errorf("%+v, %v", p, err)
		}
		warnings := r.texts(func(e told) bool { return e.Reason == rollout.ReasonSelectingAll && e.Warning })
		if len(warnings) == 0 || warnings[0] != "This machineconfigpool is selecting all nodes. A non-empty selector is required." {
			t.Errorf("%q", warnings)
		}
		change1(t, c, "worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = nil })
		time.Sleep(2 * time.Minute)
		if s := nodeState(t, c, "w0"); s.DesiredConfig != "N" {
			t.Errorf("%+v", s)
		}
	})
}

func TestDriveBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewOpenShift(memory.Options{})
		w, infra := mcptest.Pool("worker", "N"), mcptest.Pool("infra", "I")
		n := mcptest.Worker("w0", mcptest.Annotate(mcp.AnnotationFirstPivotConfig, "I0"))
		config := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
			"metadata": map[string]any{"name": "I0", "ownerReferences": []any{map[string]any{
				"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "name": "infra", "uid": "i"}}},
		}}
		load(t, c, mcptest.Topology("HighlyAvailable"), &w, &infra, &n)
		infra2, err := clusterapi.Get[mcfgv1.MachineConfigPool](t.Context(), c, clusterapi.Key("", "infra"))
		checktest.OK(t, err)
		config.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "infra", UID: infra2.UID}})
		checktest.OK(t, c.Load(config))
		driving(t, c)
		time.Sleep(time.Minute)
		node := checktest.Get(clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "w0")))(t)
		_, applied := node.Annotations[mcp.AnnotationCustomPoolLabelsApplied]
		if _, ok := node.Labels[mcp.LabelNodeRolePrefix+"infra"]; !ok || !applied {
			t.Errorf("%v %v", node.Labels, node.Annotations)
		}
		if got := node.Annotations[mcp.AnnotationDesiredConfig]; got != "I" {
			t.Errorf("desired %s", got)
		}
	})
}

func TestDriveArbiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer cancel()
		c := memory.NewOpenShift(memory.Options{})
		m, a := mcptest.Pool("master", "N"), mcptest.Pool("arbiter", "N")
		m0, m1, a0 := mcptest.Master("m0"), mcptest.Master("m1"), mcptest.Node("a0", "arbiter", "O")
		o := mcptest.OperatorPod("o", "m0")
		load(t, c, mcptest.Topology(mcp.TopologyHighlyAvailableArbiter), &m, &a, &m0, &m1, &a0, &o)
		startDaemons(ctx, t, c, &group, time.Second, time.Minute)
		r := driving(t, c)
		for start := time.Now(); !rolledOut(ctx, t, c, "N"); time.Sleep(10 * time.Second) {
			if time.Since(start) > time.Hour {
				t.Fatal(describeNodes(ctx, t, c))
			}
		}
		var order []string
		for _, e := range r.all() {
			if e.Type == rollout.EventNodeTargeted || e.Type == rollout.EventNodeDone {
				order = append(order, string(e.Type)+" "+e.Node)
			}
		}
		// The operator's pod did not move in this cluster, so its node is last
		// of the masters; the arbiter goes when they are done.
		want := "NodeTargeted m1, NodeDone m1, NodeTargeted m0, NodeDone m0, NodeTargeted a0, NodeDone a0"
		if got := strings.Join(order, ", "); got != want {
			t.Error(got)
		}
		deferred := r.texts(func(e told) bool { return e.Reason == rollout.ReasonDeferringOperatorNode })
		if len(deferred) == 0 || deferred[0] != "Deferring update of machine config operator node m0" {
			t.Errorf("%q", deferred)
		}
	})
}

// A NodeUpdater takes the place of the daemons.
type updater struct{ c clusterapi.ClusterAPI }

func (u updater) Step(ctx context.Context, node string, to mcp.Target, p mcp.Phase) (mcp.Phase, time.Duration, error) {
	if p != mcp.PhaseApplying {
		return mcp.PhaseApplying, time.Second, nil
	}
	_, err := clusterapi.Modify(ctx, u.c, clusterapi.Key("", node), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
		mcptest.Annotate(mcp.AnnotationCurrentConfig, to.Config, mcp.AnnotationState, mcp.StateDone)(n)
		return nil
	})
	return mcp.PhaseDone, 0, err
}

func TestNodeUpdater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := smallCluster(t, memory.Options{})
		r := start(t, rollout.Options{API: c, Mode: rollout.Drive, NodeUpdater: updater{c}})
		time.Sleep(10 * time.Minute)
		if !rolledOut(t.Context(), t, c, "N") {
			t.Error(describeNodes(t.Context(), t, c))
		}
		r.stop()
	})
}

// slowUpdater takes a minute for a node, and uncordons it.
type slowUpdater struct{ c clusterapi.ClusterAPI }

func (u slowUpdater) Step(ctx context.Context, node string, to mcp.Target, p mcp.Phase) (mcp.Phase, time.Duration, error) {
	if p != mcp.PhaseApplying {
		return mcp.PhaseApplying, time.Minute, nil
	}
	change := func(n *corev1.Node) error {
		mcptest.Annotate(mcp.AnnotationCurrentConfig, to.Config, mcp.AnnotationState, mcp.StateDone)(n)
		n.Spec.Unschedulable = false
		return nil
	}
	_, err := clusterapi.Modify(ctx, u.c, clusterapi.Key("", node), clusterapi.ModifyOptions{}, change)
	return mcp.PhaseDone, 0, err
}

// The pool's config changes while a NodeUpdater is at a node: it finishes, and goes on
// to the new one.
func TestNodeUpdaterRetargeted(t *testing.T) {
	for name, tt := range map[string]struct {
		change mcptest.Change // of the node that is under way
		paused bool
		want   []string
	}{
		"schedulable": {nil, false, []string{"N", "N2"}},
		"cordoned":    {mcptest.Cordoned, false, []string{"N", "N2"}},
		"paused":      {mcptest.Cordoned, true, []string{"N"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, w := mcptest.Pool("worker", "N"), mcptest.Worker("w0")
			c := highlyAvailable(t, &p, &w)
			r := start(t, rollout.Options{API: c, Mode: rollout.Drive, NodeUpdater: slowUpdater{c}})
			time.Sleep(30 * time.Second)
			if tt.change != nil {
				change1(t, c, "w0", tt.change)
			}
			change1(t, c, "worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name, p.Spec.Paused = "N2", tt.paused })
			time.Sleep(10 * time.Minute)
			r.stop()
			var got []string
			for _, text := range r.texts(func(e told) bool { return e.Type == rollout.EventNodeDone }) {
				got = append(got, strings.TrimPrefix(text, "node w0 has reached MachineConfig "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}
