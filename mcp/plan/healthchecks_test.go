package plan_test

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

const machines = "openshift-machine-api"

func healthCheck(name string, condition corev1.NodeConditionType, annotations map[string]string) *machinev1beta1.MachineHealthCheck {
	c := &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machines, Name: name, Annotations: annotations}}
	c.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: condition, Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: time.Minute}}}
	return c
}

// A plan pauses the MachineHealthChecks that would replace nodes while they reboot, and
// resumes them in the end, or when it is undone. Those of others stay as they are.
func TestHealthChecks(t *testing.T) {
	const paused, pausedFor = "cluster.x-k8s.io/paused", "clusterupdate.github.io/paused-for"
	before := map[string]map[string]string{
		"active": nil, "paused": {paused: "by ann"}, "updating": {paused: "", pausedFor: "registry.example/release"}, "termination": nil,
	}
	for _, stop := range []bool{false, true} {
		objects := []any{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: machines}}}
		for name, annotations := range before {
			condition := corev1.NodeReady
			if name == "termination" {
				condition = "Terminating"
			}
			objects = append(objects, healthCheck(name, condition, annotations))
		}
		w := alone(t, objects...)
		defer w.Close()
		c := checktest.Get(plan.ReadCluster(w.context(), w.memory))(t)
		checktest.Same(t, []string{"active"}, c.HealthChecks)
		state := clusterOf(2)
		state.HealthChecks = c.HealthChecks
		built, _, err := plan.PlanNodes(state, custom("p", manual("by-hand")))
		checktest.OK(t, err)
		first, last := built.Steps[0], built.Steps[len(built.Steps)-1]
		checktest.Equal(t, "pause-health-checks resume-health-checks", first.ID+" "+last.ID, "steps")
		p := custom("p", first, manual("wait"), last)
		r := w.start("runner", plan.Options{Plan: p})
		w.pass(t, time.Minute)
		now := func() map[string]map[string]string {
			out := map[string]map[string]string{}
			for _, c := range checktest.Get(clusterapi.List[machinev1beta1.MachineHealthCheck](w.context(), w.memory, clusterapi.ListOptions{}))(t) {
				delete(c.Annotations, "clusterupdate.github.io/plan")
				delete(c.Annotations, "clusterupdate.github.io/before")
				if len(c.Annotations) == 0 {
					c.Annotations = nil
				}
				out[c.Name] = c.Annotations
			}
			return out
		}
		during := map[string]map[string]string{
			"active": {paused: "", pausedFor: "plan/p"}, "paused": before["paused"], "updating": before["updating"], "termination": nil,
		}
		checktest.Same(t, during, now())
		if stop {
			w.Stop("runner")
			r = w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Restore})
		} else {
			checktest.OK(t, plan.Confirm(w.context(), w.memory, "", "p", "wait"))
		}
		w.pass(t, time.Minute)
		checktest.Equal(t, true, r.Progress().State.Ended(), "%s", r.Progress().State)
		checktest.Same(t, before, now())
	}
}

// Somebody removes the marks from a pool: the plan still takes back what its record has,
// whether it continues or is undone.
func TestMarksAreRemoved(t *testing.T) {
	yes, no := true, false
	steps := []plan.Step{
		{ID: "pause", Kind: plan.SetPaused, Args: plan.Args{Pools: []string{"worker"}, Paused: &yes}}, manual("wait"),
		{ID: "unpause", Kind: plan.SetPaused, Args: plan.Args{Pools: []string{"worker"}, Paused: &no}}, manual("end"),
	}
	for _, stop := range []bool{false, true} {
		pool := resting("worker")
		w := alone(t, &pool)
		defer w.Close()
		p := custom("p", steps...)
		w.start("runner", plan.Options{Plan: p})
		w.pass(t, time.Minute)
		checktest.Get(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("", "worker"), clusterapi.ModifyOptions{},
			func(p *mcfgv1.MachineConfigPool) error { p.Annotations = nil; return nil }))(t)
		if stop {
			w.Stop("runner")
			r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: plan.Restore})
			w.pass(t, time.Minute)
			checktest.Equal(t, plan.StateRestored, r.Progress().State, "%s", w.log)
		} else {
			checktest.OK(t, plan.Confirm(w.context(), w.memory, "", "p", "wait"))
			w.pass(t, time.Minute)
		}
		is := checktest.Get(clusterapi.Get[mcfgv1.MachineConfigPool](w.context(), w.memory, clusterapi.Key("", "worker")))(t)
		checktest.Equal(t, false, is.Spec.Paused, "the pool is paused, stopped %v: %q", stop, w.log)
	}
}

// Somebody removes the mark of a node that the plan has labelled. What its labels were is
// not known then: a stop reports them.
func TestMarksOfLabelsAreRemoved(t *testing.T) {
	move := plan.Step{ID: "move", Kind: plan.LabelNodes,
		Args: plan.Args{Pool: "worker", Nodes: []string{"w0", "w1"}, Add: map[string]string{"app/new": "x", "app/both": "x"}, Remove: []string{"app/old"}}}
	back := plan.Step{ID: "back", Kind: plan.LabelNodes, Args: plan.Args{Pool: "worker", Nodes: []string{"w0", "w1"}, Remove: []string{"app/both"}}}
	for _, mode := range []plan.Mode{plan.Hold, plan.RestoreWithReboots} {
		pool := resting("worker", func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount, p.Status.UpdatedMachineCount = 2, 2 })
		nodes := []corev1.Node{mcptest.Worker("w0", mcptest.Label("app/old", "y")), mcptest.Worker("w1", mcptest.Label("app/old", "y"))}
		w := alone(t, &pool, &nodes[0], &nodes[1])
		defer w.Close()
		p := custom("p", move, back, manual("wait"))
		w.start("runner", plan.Options{Plan: p})
		w.pass(t, time.Minute)
		checktest.Get(clusterapi.Modify(w.context(), w.memory, clusterapi.Key("", "w0"), clusterapi.ModifyOptions{},
			func(n *corev1.Node) error {
				delete(n.Annotations, "clusterupdate.github.io/plan")
				delete(n.Annotations, "clusterupdate.github.io/before")
				return nil
			}))(t)
		w.Stop("runner")
		r := w.start("stopper", plan.Options{Plan: p, Claim: plan.TakeOver, Mode: mode})
		w.pass(t, time.Minute)
		var left []string
		for _, i := range r.Progress().Report.Left {
			if i.Object == "Node/w0" {
				left = append(left, i.Field+" "+i.Text)
			}
		}
		checktest.Same(t, []string{
			"/metadata/labels/app~1new was added, and somebody removed the mark that has what it was",
			"/metadata/labels/app~1old was removed, and somebody removed the mark that has what it was",
		}, left)
	}
}
