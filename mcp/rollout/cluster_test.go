package rollout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// load fills a memory cluster with typed objects.
func load(t testing.TB, c *memory.Cluster, objs ...any) {
	t.Helper()
	for _, o := range objs {
		u := checktest.Get(clusterapi.ToUnstructured(o))(t)
		checktest.OK(t, c.Load(u))
	}
}

// highlyAvailable has objects, and the topology of its control plane.
func highlyAvailable(t testing.TB, objs ...any) *memory.Cluster {
	t.Helper()
	c := memory.NewOpenShift(memory.Options{})
	load(t, c, append([]any{mcptest.Topology("HighlyAvailable")}, objs...)...)
	return c
}

// smallCluster has 3 masters, 4 workers and 2 infra nodes on config O; their
// pools want N.
func smallCluster(t testing.TB, o memory.Options) *memory.Cluster {
	c := memory.NewOpenShift(o)
	load(t, c, mcptest.Topology("HighlyAvailable"))
	for _, name := range []string{"master", "worker", "infra"} {
		p := mcptest.Pool(name, "N", func(p *mcfgv1.MachineConfigPool) { p.Status.Configuration.Name = "O" })
		load(t, c, &p)
	}
	for i := range 3 {
		n := mcptest.Master(fmt.Sprint("m", i))
		load(t, c, &n)
	}
	for i := range 4 {
		n := mcptest.Worker(fmt.Sprint("w", i), mcptest.Zone(fmt.Sprint("z", i%2)))
		load(t, c, &n)
	}
	for i := range 2 {
		n := mcptest.Node(fmt.Sprint("i", i), "infra", "O", mcptest.Label(mcp.LabelNodeRolePrefix+"worker", ""))
		load(t, c, &n)
	}
	return c
}

// app returns a running pod of a ReplicaSet.
func app(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "app", name
	p.Labels = map[string]string{"app": "web"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}
	p.Spec.NodeName = node
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, f := range changes {
		f(p)
	}
	return p
}

// daemon plays a machine-config daemon, its kubelet and its host: it asks for a
// drain, reboots, asks to be uncordoned, and is done.
type daemon struct {
	api    clusterapi.ClusterAPI
	node   string
	poll   time.Duration
	reboot time.Duration
	back   time.Time // when the reboot is over
	polled time.Time
}

func (d *daemon) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.step(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			panic(err)
		}
		select {
		case <-time.After(d.poll):
		case <-ctx.Done():
		}
	}
}

func (d *daemon) step(ctx context.Context) error {
	key := clusterapi.Key("", d.node)
	n, err := clusterapi.Get[corev1.Node](ctx, d.api, key)
	if err != nil {
		return err
	}
	s := mcp.NodeStateOf(n)
	set := func(kv ...string) error {
		_, err := clusterapi.Modify(ctx, d.api, key, clusterapi.ModifyOptions{FieldManager: "daemon"}, func(n *corev1.Node) error {
			mcptest.Annotate(kv...)(n)
			return nil
		})
		return err
	}
	ready := func(is corev1.ConditionStatus) error {
		_, err := clusterapi.Modify(ctx, d.api, key, clusterapi.ModifyOptions{Status: true, FieldManager: "kubelet"}, func(n *corev1.Node) error {
			mcptest.Condition(corev1.NodeReady, is)(n)
			return nil
		})
		return err
	}
	uncordon := mcp.DrainVerbUncordon + "-" + s.DesiredConfig
	switch {
	case s.Done():
		return nil
	case s.PostConfigAction == mcp.PostConfigActionRebooting:
		if time.Now().Before(d.back) {
			return nil
		}
		if err := ready(corev1.ConditionTrue); err != nil {
			return err
		}
		return set(mcp.AnnotationPostConfigAction, "", mcp.AnnotationDesiredDrain, uncordon)
	case s.DesiredDrain == uncordon:
		if s.LastAppliedDrain != uncordon || time.Since(d.polled) < 10*time.Second {
			if s.LastAppliedDrain != uncordon {
				d.polled = time.Now()
			}
			return nil
		}
		return set(mcp.AnnotationState, mcp.StateDone, mcp.AnnotationCurrentConfig, s.DesiredConfig, mcp.AnnotationReason, "")
	case s.State == mcp.StateDone:
		return set(mcp.AnnotationState, mcp.StateWorking)
	case !strings.HasPrefix(s.DesiredDrain, mcp.DrainVerbDrain):
		return set(mcp.AnnotationDesiredDrain, mcp.DrainVerbDrain+"-"+s.DesiredConfig)
	case s.DesiredDrain == s.LastAppliedDrain:
		d.back = time.Now().Add(d.reboot)
		if err := set(mcp.AnnotationPostConfigAction, mcp.PostConfigActionRebooting); err != nil {
			return err
		}
		return ready(corev1.ConditionUnknown)
	}
	return nil
}

// startDaemons runs a daemon for every node until ctx ends.
func startDaemons(ctx context.Context, t testing.TB, c clusterapi.ClusterAPI, group *sync.WaitGroup, poll, reboot time.Duration) {
	nodes := checktest.Get(clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}))(t)
	for i := range nodes {
		d := &daemon{api: c, node: nodes[i].Name, poll: poll, reboot: reboot}
		group.Go(func() { d.run(ctx) })
	}
}

// told is an event with its data.
type told struct {
	clusterapi.Event
	rollout.EventData
}

func toldOf(e clusterapi.Event) told {
	t := told{e, *e.Data.(*rollout.EventData)}
	if t.Node != "" && e.Subject != "node/"+t.Node || t.Node == "" && t.Pool != "" && e.Subject != "pool/"+t.Pool {
		panic("an event about " + e.Subject)
	}
	return t
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []told
}

func (r *recorder) observe(e clusterapi.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, toldOf(e))
}

func (r *recorder) all() []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) texts(keep func(told) bool) []string {
	var out []string
	for _, e := range r.all() {
		if keep(e) {
			out = append(out, e.Message)
		}
	}
	return out
}

func (r *recorder) nodes(t clusterapi.EventType, pool string) []string {
	var out []string
	for _, e := range r.all() {
		if e.Type == t && e.Pool == pool {
			out = append(out, e.Node)
		}
	}
	return out
}

// newRollout fails the test if the options cannot work.
func newRollout(t testing.TB, o rollout.Options) *rollout.Rollout {
	t.Helper()
	return checktest.Get(rollout.New(o))(t)
}

// running is a rollout that runs in the background until it is stopped or its test ends.
type running struct {
	*rollout.Rollout
	*recorder
	stop func()
}

func start(t *testing.T, o rollout.Options) running {
	t.Helper()
	r := running{recorder: &recorder{}}
	o.Observe = r.observe
	r.Rollout = newRollout(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		checktest.Good(t, <-ended)
	})
	t.Cleanup(r.stop)
	return r
}

func driving(t *testing.T, api clusterapi.ClusterAPI) running {
	t.Helper()
	return start(t, rollout.Options{API: api, Mode: rollout.Drive})
}

// rolledOut says that every pool but those named is Updated on config.
func rolledOut(ctx context.Context, t testing.TB, c clusterapi.ClusterAPI, config string, except ...string) bool {
	t.Helper()
	ps := checktest.Get(clusterapi.List[mcfgv1.MachineConfigPool](ctx, c, clusterapi.ListOptions{}))(t)
	for _, p := range ps {
		if slices.Contains(except, p.Name) {
			continue
		}
		if mcptest.ConditionOf(p.Status, mcfgv1.MachineConfigPoolUpdated).Status != corev1.ConditionTrue || p.Status.Configuration.Name != config {
			return false
		}
	}
	return true
}

// describeNodes prints what a rollout has made of the nodes.
func describeNodes(ctx context.Context, t testing.TB, c clusterapi.ClusterAPI) string {
	t.Helper()
	nodes := checktest.Get(clusterapi.List[corev1.Node](ctx, c, clusterapi.ListOptions{}))(t)
	var b strings.Builder
	for i := range nodes {
		s := mcp.NodeStateOf(&nodes[i])
		phase, stuck := mcp.PhaseOf(s)
		fmt.Fprintf(&b, "%s %s->%s %s %s %s cordoned=%v taint=%v %s %s\n", s.Name, s.CurrentConfig, s.DesiredConfig, s.State, phase, stuck,
			s.Unschedulable, s.UpdateTaint, s.LastAppliedDrain, s.Topology)
	}
	return b.String()
}
