package rollout_test

import (
	"context"
	"errors"
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
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// watchLimits fails if more nodes of a pool are unavailable than allowed.
func watchLimits(ctx context.Context, t *testing.T, c *memory.Cluster, limit map[string]int) {
	gvk, _ := clusterapi.KindOf[corev1.Node]()
	down := map[string]map[string]bool{}
	for e, err := range c.Watch(ctx, gvk, clusterapi.ListOptions{}) {
		if err != nil || e.Object == nil {
			continue
		}
		n, err := clusterapi.FromUnstructured[corev1.Node](e.Object)
		if err != nil {
			t.Error(err)
			return
		}
		role := map[byte]string{'m': "master", 'w': "worker", 'i': "infra"}[n.Name[0]]
		if down[role] == nil {
			down[role] = map[string]bool{}
		}
		delete(down[role], n.Name)
		if mcp.NodeStateOf(n).Unavailable() {
			down[role][n.Name] = true
		}
		if len(down[role]) > limit[role] {
			t.Errorf("%v of pool %s are unavailable", down[role], role)
		}
	}
}

// polled hides that a cluster can watch.
type polled struct{ clusterapi.ClusterAPI }

func TestDrive(t *testing.T) {
	for _, tt := range []struct {
		name string
		api  func(*memory.Cluster) clusterapi.ClusterAPI
	}{
		{"watching", func(c *memory.Cluster) clusterapi.ClusterAPI { return c }},
		{"polling", func(c *memory.Cluster) clusterapi.ClusterAPI { return polled{c} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { drive(t, tt.api) })
		})
	}
}

func drive(t *testing.T, wrap func(*memory.Cluster) clusterapi.ClusterAPI) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()

	c := smallCluster(t, memory.Options{})
	load(t, c, app("web-0", "w0"), app("web-1", "i1"))
	if _, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "infra"), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
		p.Spec.Paused = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	startDaemons(ctx, t, c, &group, time.Second, 2*time.Minute)
	group.Go(func() { watchLimits(ctx, t, c, map[string]int{"master": 1, "worker": 1, "infra": 1}) })

	r := start(t, rollout.Options{API: wrap(c), Mode: rollout.Drive})

	start := time.Now()
	for !rolledOut(ctx, t, c, "N", "infra") {
		time.Sleep(10 * time.Second)
		if time.Since(start) > time.Hour {
			t.Fatalf("not done:\n%s", describeNodes(ctx, t, c))
		}
	}
	checktest.Same(t, []string{"m0", "m1", "m2"}, r.nodes(rollout.EventNodeTargeted, "master"))
	checktest.Same(t, []string{"w0", "w2", "w1", "w3"}, r.nodes(rollout.EventNodeTargeted, "worker"))
	if got := r.nodes(rollout.EventNodeTargeted, "infra"); len(got) > 0 {
		t.Errorf("pool infra is paused: %v", got)
	}
	infra, err := clusterapi.Get[mcfgv1.MachineConfigPool](ctx, c, clusterapi.Key("", "infra"))
	checktest.OK(t, err)
	if got := mcptest.ConditionOf(infra.Status, "Updating"); got.Status != corev1.ConditionFalse || got.Message != "Pool is paused; will not update to MachineConfig N" {
		t.Errorf("infra: %s", mcptest.Brief(infra.Status))
	}
	if _, err := clusterapi.Get[corev1.Pod](ctx, c, clusterapi.Key("app", "web-0")); err == nil {
		t.Error("the pod on w0 was not evicted")
	}
	checktest.Good(t, checktest.Err(clusterapi.Get[corev1.Pod](ctx, c, clusterapi.Key("app", "web-1"))))

	// Unpaused, the pool follows.
	if _, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "infra"), clusterapi.ModifyOptions{}, func(p *mcfgv1.MachineConfigPool) error {
		p.Spec.Paused = false
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for start = time.Now(); !rolledOut(ctx, t, c, "N"); time.Sleep(10 * time.Second) {
		if time.Since(start) > time.Hour {
			t.Fatalf("infra not done:\n%s", describeNodes(ctx, t, c))
		}
	}
	time.Sleep(time.Minute)
	ok := r.View(func(s *mcp.State) {
		if v := s.Explain("worker", "w0"); v.Kind != "UpToDate" {
			t.Errorf("%+v", v)
		}
	})
	if !ok {
		t.Error("there is no view of a running rollout")
	}
	nodes := checktest.Get(clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}))(t)
	for i := range nodes {
		s := mcp.NodeStateOf(&nodes[i])
		if !s.Done() || s.CurrentConfig != "N" || s.Unschedulable || s.UpdateTaint || s.Topology != "HighlyAvailable" {
			t.Errorf("%+v", s)
		}
	}
	checkEvents(t, r.recorder)

	r.stop()
	if r.View(func(*mcp.State) {}) {
		t.Error("a rollout that ended has no view")
	}
}

func checkEvents(t *testing.T, r *recorder) {
	t.Helper()
	first := func(pool string, e told) bool { return e.Pool == pool && e.Type == rollout.EventPool }
	checktest.Same(t, []string{
		"Targeted node w0 to MachineConfig: N", "Targeted node w2 to MachineConfig: N",
		"Targeted node w1 to MachineConfig: N", "Targeted node w3 to MachineConfig: N",
		"Pool worker has completed update to MachineConfig N",
	}, r.texts(func(e told) bool { return first("worker", e) }))
	m0 := r.texts(func(e told) bool {
		return e.Reason == rollout.ReasonAnnotationChange && e.Node == "m0"
	})
	checktest.Same(t, []string{
		"Node m0 now has machineconfiguration.openshift.io/desiredConfig=N",
		"Node m0 now has machineconfiguration.openshift.io/state=Working",
	}, m0)
	var phases []mcp.Phase
	for _, e := range r.all() {
		if e.Type == rollout.EventNodePhase && e.Node == "w0" {
			phases = append(phases, e.Phase)
		}
		if e.Type == rollout.EventError {
			t.Errorf("%+v", e)
		}
	}
	want := []mcp.Phase{mcp.PhaseTargeted, mcp.PhaseRebooting, mcp.PhaseUncordoning, mcp.PhaseDone}
	phases = slices.DeleteFunc(phases, func(p mcp.Phase) bool { return !slices.Contains(want, p) })
	checktest.Same(t, want, slices.Compact(phases))
	if got := r.nodes(rollout.EventPoolBlocked, "infra"); len(got) != 1 {
		t.Errorf("%d times blocked", len(got))
	}
}

func TestObserveWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		var mu sync.Mutex
		var writes []string
		c := smallCluster(t, memory.Options{Intercept: func(ctx context.Context, call memory.Call, do func(context.Context) error) error {
			mu.Lock()
			defer mu.Unlock()
			if call.Verb != "Get" && call.Verb != "List" && call.Verb != "Watch" {
				writes = append(writes, call.Verb+" "+call.Key.Name)
			}
			return do(ctx)
		}})
		if _, err := clusterapi.Modify(ctx, c, clusterapi.Key("", "w0"), clusterapi.ModifyOptions{}, func(n *corev1.Node) error {
			mcptest.Desired("N")(n)
			mcptest.Annotate(mcp.AnnotationState, mcp.StateWorking, mcp.AnnotationDesiredDrain, "drain-N")(n)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		writes = nil
		r := start(t, rollout.Options{API: c})
		time.Sleep(2 * time.Hour)
		r.View(func(s *mcp.State) {
			if v := s.Explain("worker", "w2"); v.Kind != "NoCapacity" || !cmp.Equal(v.Holders, []string{"w0"}) {
				t.Errorf("%+v", v)
			}
		})
		r.stop()
		if len(writes) > 0 {
			t.Error(writes)
		}
		var stalled *rollout.StalledError
		for _, e := range r.all() {
			if e.Type == rollout.EventStalled && !errors.As(e.Err, &stalled) {
				t.Errorf("%+v", e)
			}
		}
		if stalled == nil || stalled.Node != "w0" || stalled.Phase != mcp.PhaseCordoning {
			t.Errorf("stalled: %+v", stalled)
		}
	})
}

func TestControllerActive(t *testing.T) {
	pod := mcptest.OperatorPod("mcc", "m0")
	pod.Labels[mcp.LabelApp] = mcp.AppController
	pod.Status.Phase = corev1.PodRunning
	ended := *pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	lease := func(renewed time.Time) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		l.Namespace, l.Name = mcp.OperatorNamespace, "machine-config-controller"
		holder, seconds, at := "mcc-1", int32(60), metav1.NewMicroTime(renewed)
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &holder, &seconds, &at
		return l
	}
	for _, tt := range []struct {
		name   string
		obj    any
		active bool
	}{
		{"running pod", &pod, true},
		{"ended pod", &ended, false},
		{"lease", lease(time.Now()), true},
		{"expired lease", lease(time.Now().Add(-time.Hour)), false},
	} {
		c := smallCluster(t, memory.Options{})
		load(t, c, tt.obj)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := newRollout(t, rollout.Options{API: c, Mode: rollout.Drive}).Run(ctx)
		cancel()
		if errors.Is(err, rollout.ErrControllerActive) != tt.active {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "mcc") {
			t.Errorf("%s: %v does not say which", tt.name, err)
		}
	}
	if err := newRollout(t, rollout.Options{}).Run(t.Context()); err == nil {
		t.Error("no API")
	}
}

// A rollout runs once at a time, but again after its end.
func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		roll := newRollout(t, rollout.Options{API: smallCluster(t, memory.Options{})})
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- roll.Run(ctx) }()
			time.Sleep(10 * time.Second)
			if err := roll.Run(ctx); err == nil || !strings.Contains(err.Error(), "already running") {
				t.Errorf("%v", err)
			}
			if !roll.View(func(*mcp.State) {}) {
				t.Error("no view")
			}
			cancel()
			checktest.Good(t, <-ended)
		}
	})
}
