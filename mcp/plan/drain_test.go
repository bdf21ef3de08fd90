package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

func pod(name, owner string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "app", name
	p.Labels = map[string]string{"app": owner}
	p.Spec.NodeName = "w0"
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: owner, UID: "ds", Controller: new(true)}}
	}
	for _, f := range changes {
		f(p)
	}
	return p
}

// A step evicts what a drain evicts, waits for budgets, and leaves
// alone what comes back or does not count.
func TestDrain(t *testing.T) {
	agent := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "agent"}}
	agent.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	agent.Spec.Template.Labels = agent.Spec.Selector.MatchLabels
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "db"}}
	budget.Generation, budget.Status = 1, policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DesiredHealthy: 1, CurrentHealthy: 1, ExpectedPods: 1}
	budget.Spec.MinAvailable, budget.Spec.Selector = new(intstr.FromInt32(1)), &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "db"}}
	node, other := mcptest.Worker("w0"), mcptest.Worker("w1")
	db := pod("db", "", func(p *corev1.Pod) { p.Labels = map[string]string{"kind": "db"} })
	w := alone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, agent, budget, &node, &other, db,
		pod("agent-1", "agent"), pod("orphan", "gone"), pod("web", ""), pod("elsewhere", "", func(p *corev1.Pod) { p.Spec.NodeName = "w1" }),
		pod("static", "", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }))
	defer w.Close()
	r := w.start("runner", plan.Options{Plan: custom("p", plan.Step{ID: "cordon", Kind: plan.Cordon, Args: plan.Args{Node: "w0"}}, plan.Step{ID: "drain", Kind: plan.Drain, Args: plan.Args{Node: "w0"}})})
	w.pass(t, 2*time.Hour) // however long it takes
	left := func() string {
		var names []string
		for _, p := range must(clusterapi.List[corev1.Pod](w.context(), w.memory, clusterapi.ListOptions{})) {
			names = append(names, p.Name)
		}
		return strings.Join(names, " ")
	}
	if got := left(); got != "agent-1 db elsewhere static" {
		t.Errorf("left are %s", got)
	}
	if !w.has(plan.EventDrainBlocked, "node w0: pod app/db may not be evicted now: The disruption budget db needs 1 healthy pods and has 1 currently", nil) {
		t.Errorf("%q", w.log)
	}
	if n := len(w.events); n > 12 {
		t.Errorf("%d events, it is told again and again", n)
	}
	must(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("app", "db"), clusterapi.ModifyOptions{Status: true}, func(b *policyv1.PodDisruptionBudget) error {
		b.Status.DisruptionsAllowed, b.Status.ObservedGeneration = 1, b.Generation
		return nil
	}))
	w.pass(t, time.Minute)
	if got := left(); got != "agent-1 elsewhere static" || r.Progress().State != plan.StateFinished {
		t.Errorf("left are %s, the plan is %s", got, r.Progress().State)
	}
}

// What needs no drain is done at once. Steps about a node that somebody has deleted since the plan
// was made are left out, and so is a node that somebody has moved to another pool.
func TestNodesWithoutSteps(t *testing.T) {
	role := mcp.LabelNodeRolePrefix + "blue"
	gone := plan.Args{Node: "gone"}
	for _, tt := range []struct {
		name string
		step plan.Step
		text string
	}{
		{"a single node", plan.Step{Kind: plan.Drain, Args: plan.Args{Node: "w0"}}, ""},
		{"drain", plan.Step{Kind: plan.Drain, Args: gone}, "node gone does not exist"},
		{"cordon", plan.Step{Kind: plan.Cordon, Args: gone}, "node gone does not exist"},
		{"uncordon", plan.Step{Kind: plan.Uncordon, Args: gone}, "node gone does not exist"},
		{"hook", plan.Step{Kind: plan.Hook, Args: plan.Args{Node: "gone", Action: "hook"}}, "node gone does not exist"},
		{"label", plan.Step{Kind: plan.LabelNodes,
			Args: plan.Args{Pool: "blue", Nodes: []string{"i0"}, Add: map[string]string{role: ""}}},
			"node i0 is in pool infra by now"},
		{"unlabel", plan.Step{Kind: plan.LabelNodes,
			Args: plan.Args{Pool: "worker", Nodes: []string{"i0"}, Remove: []string{role}}},
			"node i0 is in pool infra by now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			single := mcptest.Worker("w0", mcptest.Annotate(mcp.AnnotationControlPlaneTopology, mcp.TopologySingleReplica))
			infra := mcptest.Node("i0", "infra", "O")
			worker, other, blue := resting("worker"), resting("infra"), resting("blue")
			worker.Status.MachineCount, other.Status.MachineCount = 1, 1
			w := alone(t, &single, &infra, &worker, &other, &blue,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, pod("web", ""))
			defer w.Close()
			tt.step.ID = "a"
			hook := hookIs(func(context.Context, plan.Call) (plan.Outcome, error) { panic("called") })
			r := w.start("runner", plan.Options{Plan: custom("p", tt.step), Actions: hook})
			w.pass(t, 2*time.Minute)
			if r.Progress().State != plan.StateFinished || tt.text != "" && !w.has(plan.EventNodeGone, tt.text, nil) {
				t.Errorf("%s: %q", r.Progress().State, w.log)
			}
			n := checktest.Get(clusterapi.Get[corev1.Node](w.context(), w.memory, clusterapi.Key("", "i0")))(t)
			checktest.Same(t, infra.Labels, n.Labels)
		})
	}
}

// A plan that labels more nodes than one look does, some of which vanish.
func TestManyNodes(t *testing.T) {
	const n = 130
	var objects []any
	var names []string
	for i := range n {
		node := mcptest.Worker(fmt.Sprint("w", i))
		names = append(names, node.Name)
		if i%10 != 0 {
			objects = append(objects, &node)
		}
	}
	worker := resting("worker")
	worker.Status.MachineCount = n - n/10
	w := alone(t, append(objects, &worker)...)
	defer w.Close()
	r := w.start("runner", plan.Options{Plan: custom("p", plan.Step{ID: "label", Kind: plan.LabelNodes, Args: plan.Args{Pool: "worker", Nodes: names, Add: map[string]string{"a": "b"}}})})
	w.pass(t, time.Minute)
	labelled, gone := 0, 0
	for _, node := range must(clusterapi.List[corev1.Node](w.context(), w.memory, clusterapi.ListOptions{})) {
		if node.Labels["a"] == "b" && node.Annotations["clusterupdate.github.io/plan"] == "" {
			labelled++
		}
	}
	for _, e := range w.events {
		if e.Type == plan.EventNodeGone {
			gone++
		}
	}
	if labelled != n-n/10 || gone != n/10 || r.Progress().State != plan.StateFinished {
		t.Errorf("%d labelled, %d gone, the plan is %s", labelled, gone, r.Progress().State)
	}
}

// ApplyObject changes the fields that it names, and Restore puts them back; an object
// that it created goes.
func TestApplyObject(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 1}}})
	object := func(kind, api, name string, rest map[string]any) plan.Step {
		o := map[string]any{"apiVersion": api, "kind": kind, "metadata": map[string]any{"name": name, "labels": map[string]any{mcp.LabelRole: "worker"}}}
		for k, v := range rest {
			o[k] = v
		}
		return plan.Step{ID: name, Kind: plan.ApplyObject, Args: plan.Args{Object: o}}
	}
	p := custom("p", object("MachineConfig", "machineconfiguration.openshift.io/v1", "50-audit", map[string]any{"spec": map[string]any{"kernelArguments": []any{"audit=1"}}}),
		object("MachineConfigPool", "machineconfiguration.openshift.io/v1", "worker", map[string]any{"spec": map[string]any{"maxUnavailable": int64(2)}}), manual("wait"))
	before := fields(w.cluster)
	w.start("runner", plan.Options{Plan: p})
	w.pass(t, 30*time.Minute)
	w.Stop("runner")
	if got := w.pool("worker"); got.Spec.MaxUnavailable.IntValue() != 2 || got.Labels[mcp.LabelRole] != "worker" {
		t.Errorf("%+v", got)
	}
	r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Restore})
	checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
	if left := r.Progress().Report.Left; len(left) != 1 || left[0].Text != "was created: without it nodes drain and reboot" {
		t.Errorf("%+v", left)
	}
	r = w.start("again", plan.Options{Plan: p, Mode: plan.RestoreWithReboots})
	checktest.OK(t, w.ends(r, time.Minute, plan.StateRestored))
	w.pass(t, time.Hour)
	if diff := diffFields(before, fields(w.cluster)); diff != "" {
		t.Error(diff)
	}
	checktest.Good(t, atRest(w.cluster, version0))
}

// What a server adds to an object, also inside of lists, does not make it differ.
func TestApplyObjectWithDefaults(t *testing.T) {
	labels := map[string]any{"app": "web"}
	step := plan.Step{ID: "a", Kind: plan.ApplyObject, Args: plan.Args{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "openshift-config"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}}}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "web"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", ImagePullPolicy: corev1.PullAlways}}
	w := alone(t, d)
	defer w.Close()
	r := w.start("runner", plan.Options{Plan: custom("p", step)})
	w.pass(t, time.Minute)
	if got := r.Progress().Steps["a"].State; got != "Skipped" {
		t.Errorf("the step is %s", got)
	}
}

// held is a plan that takes a node out, calls an action, and puts it back.
func held(node string, drains bool) plan.Plan {
	args := plan.Args{Node: node}
	steps := []plan.Step{{ID: "cordon", Kind: plan.Cordon, Args: args}}
	if drains {
		steps = append(steps, plan.Step{ID: "drain", Kind: plan.Drain, Args: args})
	}
	steps = append(steps, plan.Step{ID: "act", Kind: plan.Hook, Args: plan.Args{Node: node, Action: "act"}},
		plan.Step{ID: "uncordon", Kind: plan.Uncordon, Args: args})
	return custom("p", steps...)
}

// A node is taken down only if its pool may lose one more, whoever took the others down.
func TestCordonKeepsMaxUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		other mcptest.Change // of the pool's other node
		limit int32
		state plan.State
		waits string
	}{
		"the other one is up":   {mcptest.State(mcp.StateDone), 1, plan.StateFinished, ""},
		"it is cordoned":        {mcptest.Cordoned, 1, plan.StateRunning, "w1"},
		"it is not Ready":       {mcptest.Condition(corev1.NodeReady, corev1.ConditionFalse), 1, plan.StateRunning, "w1"},
		"the daemon is at work": {mcptest.State(mcp.StateWorking), 1, plan.StateRunning, "w1"},
		"the pool may lose two": {mcptest.State(mcp.StateWorking), 2, plan.StateFinished, ""},
		"one that fails counts": {mcptest.State(mcp.StateDegraded), 1, plan.StateRunning, "w1"},
	} {
		t.Run(name, func(t *testing.T) {
			node, other, pool := mcptest.Worker("w0"), mcptest.Worker("w1", tt.other), resting("worker")
			pool.Spec.MaxUnavailable = &intstr.IntOrString{IntVal: tt.limit}
			w := alone(t, &node, &other, &pool)
			defer w.Close()
			r := w.start("runner", plan.Options{Plan: held("w0", false), Actions: map[string]plan.Action{
				"act": plan.ActionFunc(func(context.Context, plan.Call) (plan.Outcome, error) { return plan.Outcome{Done: true}, nil })}})
			w.pass(t, 5*time.Minute)
			checktest.Equal(t, tt.state, r.Progress().State, "%s", w.log)
			if tt.waits != "" && !w.has(plan.EventWaiting, "step cordon waits: node w0 stays up while 1 of the 1 nodes are down that pool worker may lose: "+tt.waits, nil) {
				t.Errorf("%q", w.log)
			}
		})
	}
}

// A node is left to its daemon while that is at work on it, or about to be.
func TestCordonWaitsForDaemon(t *testing.T) {
	for name, tt := range map[string]struct {
		changes []mcptest.Change
		waits   string
	}{
		"at work":          {[]mcptest.Change{mcptest.State(mcp.StateWorking)}, "Preparing"},
		"targeted":         {[]mcptest.Change{mcptest.Desired("N")}, "Targeted"},
		"drained by it":    {[]mcptest.Change{mcptest.State(mcp.StateWorking), mcptest.Cordoned, mcptest.Annotate(mcp.AnnotationDesiredDrain, "drain-N")}, "Draining"},
		"failed":           {[]mcptest.Change{mcptest.State(mcp.StateDegraded)}, ""},
		"down":             {[]mcptest.Change{mcptest.State(mcp.StateWorking), mcptest.Condition(corev1.NodeReady, corev1.ConditionUnknown)}, ""},
		"without a daemon": {[]mcptest.Change{mcptest.Without(mcp.AnnotationCurrentConfig, mcp.AnnotationState)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			node, pool := mcptest.Worker("w0", tt.changes...), resting("worker")
			w := alone(t, &node, &pool)
			defer w.Close()
			for i, kind := range []plan.StepKind{plan.Cordon, plan.Drain} {
				p := custom(fmt.Sprint("p", i), plan.Step{ID: "a", Kind: kind, Args: plan.Args{Node: "w0"}})
				r := w.start(p.ID, plan.Options{Plan: p})
				w.pass(t, time.Minute)
				checktest.Equal(t, tt.waits == "", r.Progress().State == plan.StateFinished, "%s is done: %q", kind, w.log)
				waits := w.has(plan.EventWaiting, "step a waits: node w0 is being updated: "+tt.waits, nil)
				checktest.Equal(t, tt.waits != "", waits, "%s waits: %q", kind, w.log)
			}
		})
	}
}

// stale is an API whose first write of a node takes effect and fails all the same, and
// whose next two reads of that node are older.
type stale struct {
	clusterapi.ClusterAPI
	old   *unstructured.Unstructured
	reads int // that are still to return old
	done  bool
}

func (s *stale) Update(
	ctx context.Context, u *unstructured.Unstructured, o clusterapi.UpdateOptions,
) (*unstructured.Unstructured, error) {
	if u.GetKind() != "Node" || s.done {
		return s.ClusterAPI.Update(ctx, u, o)
	}
	old, err := s.ClusterAPI.Get(ctx, u.GroupVersionKind(), clusterapi.KeyOf(u))
	if err != nil {
		return nil, err
	}
	if _, err := s.ClusterAPI.Update(ctx, u, o); err != nil {
		return nil, err
	}
	s.old, s.reads, s.done = old, 2, true
	return nil, errors.New("lost")
}

func (s *stale) Get(
	ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
) (*unstructured.Unstructured, error) {
	if s.reads > 0 && gvk.Kind == "Node" {
		s.reads--
		return s.old, nil
	}
	return s.ClusterAPI.Get(ctx, gvk, key)
}

// A node that the plan has cordoned is its own, also if a read does not show it yet.
func TestCordonSeenLate(t *testing.T) {
	node, pool := mcptest.Worker("w0"), resting("worker")
	w := alone(t, &node, &pool)
	defer w.Close()
	p := custom("p", plan.Step{ID: "a", Kind: plan.Cordon, Args: plan.Args{Node: "w0"}})
	r := checktest.Get(plan.New(plan.Options{Plan: p, Observe: w.observe("")}))(t)
	process := r.Process()
	inner := process.New
	process.New = func(api clusterapi.ClusterAPI) []reconcile.Reconciler { return inner(&stale{ClusterAPI: api}) }
	w.Add(process)
	w.pass(t, 10*time.Minute)
	checktest.Equal(t, plan.StateFinished, r.Progress().State, "%q", w.log)
	checktest.Equal(t, "Done", r.Progress().Steps["a"].State, "%q", w.log)
}

// Somebody uncordons a node while an action is under way: it is cordoned again, and
// drained again before the action is called again, if it is down once it is up.
func TestUncordonedDuringAction(t *testing.T) {
	for name, tt := range map[string]struct {
		drains, down, up bool
		left             int
	}{
		"drained":     {drains: true},
		"down":        {drains: true, down: true, left: 1},
		"down and up": {drains: true, down: true, up: true},
		"cordoned":    {left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			node, pool := mcptest.Worker("w0"), resting("worker")
			w := alone(t, &node, &pool, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
			defer w.Close()
			var wrong []string
			act := func(_ context.Context, c plan.Call) (plan.Outcome, error) {
				n := checktest.Get(clusterapi.Get[corev1.Node](w.context(), w.memory, clusterapi.Key("", "w0")))(t)
				if !n.Spec.Unschedulable || !c.Cordoned {
					wrong = append(wrong, fmt.Sprint("called at ", c.Now, " for a schedulable node"))
				}
				return plan.Outcome{Done: c.Now.Sub(c.Started) > 3*time.Minute, After: time.Second}, nil
			}
			r := w.start("runner", plan.Options{Plan: held("w0", tt.drains), Actions: map[string]plan.Action{"act": plan.ActionFunc(act)}})
			ready := func(s corev1.ConditionStatus) {
				checktest.Get(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("", "w0"), clusterapi.ModifyOptions{Status: true},
					func(n *corev1.Node) error {
						mcptest.Condition(corev1.NodeReady, s)(n)
						return nil
					}))(t)
			}
			w.pass(t, time.Minute)
			if tt.down {
				ready(corev1.ConditionUnknown)
			}
			checktest.Get(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("", "w0"), clusterapi.ModifyOptions{},
				func(n *corev1.Node) error { n.Spec.Unschedulable = false; return nil }))(t)
			checktest.OK(t, w.memory.Load(checktest.Get(clusterapi.ToUnstructured(pod("back", "")))(t)))
			w.pass(t, time.Minute)
			if tt.up {
				ready(corev1.ConditionTrue)
			}
			w.pass(t, 9*time.Minute)
			checktest.Equal(t, plan.StateFinished, r.Progress().State, "%s", w.log)
			checktest.Same(t, []string(nil), wrong)
			pods := checktest.Get(clusterapi.List[corev1.Pod](w.context(), w.memory, clusterapi.ListOptions{}))(t)
			checktest.Equal(t, tt.left, len(pods), "pods")
			n := checktest.Get(clusterapi.Get[corev1.Node](w.context(), w.memory, clusterapi.Key("", "w0")))(t)
			checktest.Equal(t, false, n.Spec.Unschedulable, "unschedulable in the end")
		})
	}
}

// Two plans find the place of one node at the same time, since what they read is old. The
// one that sees both cordoned puts its node back, and both plans finish.
func TestCordonIsPutBack(t *testing.T) {
	puts := 0
	for seed := range uint64(40) {
		nodes := []corev1.Node{mcptest.Worker("w0"), mcptest.Worker("w1")}
		pool := resting("worker")
		w := alone(t, &nodes[0], &nodes[1], &pool)
		w.Close()
		w.Virtual = reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: w.memory, Clock: w.clock, Seed: seed, Order: reconcile.Random,
			Faults: reconcile.Faults{Stale: 0.7, Late: 0.7, Until: time.Hour}})
		act := plan.ActionFunc(func(_ context.Context, c plan.Call) (plan.Outcome, error) {
			return plan.Outcome{Done: c.Now.Sub(c.Started) > 3*time.Minute}, nil
		})
		var runners []*plan.Runner
		for i := range nodes {
			p := held(nodes[i].Name, true)
			p.ID = fmt.Sprint("p", i)
			runners = append(runners, w.start(p.ID, plan.Options{Plan: p, Actions: map[string]plan.Action{"act": act}}))
		}
		var both time.Time // since when both are cordoned
		was := map[string]bool{}
		checktest.OK(t, w.RunWhile(time.Hour, func() bool {
			down := 0
			for _, n := range checktest.Get(clusterapi.List[corev1.Node](w.context(), w.memory, clusterapi.ListOptions{}))(t) {
				if n.Spec.Unschedulable {
					down++
				} else if was[n.Name] && w.clock.Now().Sub(mcptest.Epoch) < 3*time.Minute {
					puts++
				}
				was[n.Name] = n.Spec.Unschedulable
			}
			switch {
			case down < 2:
				both = time.Time{}
			case both.IsZero():
				both = w.clock.Now()
			case w.clock.Now().Sub(both) > 5*time.Second:
				t.Fatalf("seed %d: both nodes are cordoned\n%s", seed, strings.Join(w.log, "\n"))
			}
			return runners[0].Progress().State != plan.StateFinished || runners[1].Progress().State != plan.StateFinished
		}))
		w.Close()
	}
	if puts == 0 {
		t.Error("no seed puts a node back")
	}
}
