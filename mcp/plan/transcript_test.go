package plan_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// transcript runs a plan to its end and compares what was told with a golden
// file. people act at times after the start.
func transcript(t *testing.T, name string, w *world, p plan.Plan, warnings []string, o plan.Options, end ...plan.State) {
	t.Helper()
	o.Plan = p
	r := w.start("runner", o)
	err := w.ends(r, 10*24*time.Hour, append(end, plan.StateFailed)...)
	var b bytes.Buffer
	for _, warning := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for _, line := range w.log {
		fmt.Fprintf(&b, "%s\n", line)
	}
	b.WriteByte('\n')
	checktest.OK(t, plan.WriteProgress(&b, p, r.Progress()))
	if err != nil || r.Progress().State != end[0] {
		t.Errorf("the plan is %s: %v\n%s", r.Progress().State, err, b.String())
	}
	golden(t, "transcripts/"+name+".txt", b.String())
}

// quiet is a world that has come to rest.
func quiet(t *testing.T, o worldOptions) *world {
	t.Helper()
	o.seed = 1
	w := newWorld(o)
	t.Cleanup(w.Close)
	checktest.OK(t, w.RunUntil(w.Now().Add(5*time.Minute)))
	return w
}

// modifyNode changes a node, and its status.
func modifyNode(w *world, name string, change func(*corev1.Node)) {
	for _, status := range []bool{false, true} {
		if _, err := clusterapi.Modify(w.context(), w.cluster, clusterapi.Key("", name), clusterapi.ModifyOptions{Status: status}, func(n *corev1.Node) error {
			change(n)
			return nil
		}); err != nil {
			panic(err)
		}
	}
}

// From OpenShift 4 to 5 a control plane takes three hops, with one reboot of each compute
// node.
func TestTranscriptToOpenShift5(t *testing.T) {
	w := quiet(t, worldOptions{version: version2, pools: []simulation.Pool{{Nodes: 2}}})
	p, warnings, err := plan.PlanControlPlaneOnly(w.state(), plan.ControlPlaneOnlyOptions{ID: "eus", Versions: []string{"5.0.3", "5.1.2", "5.2.0"}})
	checktest.OK(t, err)
	transcript(t, "openshift-5", w, p, warnings, plan.Options{}, plan.StateFinished)
	checktest.OK(t, atRest(w.cluster, "5.2.0"))
}

// A canary of one node of six, then the others in two windows.
func TestTranscriptCanary(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 6}}, workloads: []simulation.Workload{{Name: "web", Replicas: 3}}})
	p, warnings, err := plan.PlanCanary(w.state(), plan.CanaryOptions{ID: "canary", Version: version1, Window: time.Hour, NodeTime: 20 * time.Minute, SparePercent: 20,
		Starts: []time.Time{w.Now().Add(time.Hour), w.Now().Add(25 * time.Hour), w.Now().Add(26 * time.Hour)}})
	checktest.OK(t, err)
	transcript(t, "canary", w, p, warnings, plan.Options{}, plan.StateFinished)
	checktest.Good(t, atRest(w.cluster, version1))
}

// A group overruns its window: its pool is paused again, and the next window continues with
// the nodes that are left. No node is begun outside of the windows.
func TestTranscriptCanaryOverruns(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 6}}})
	start := w.Now().Add(time.Hour)
	starts := []time.Time{start, start.Add(12 * time.Hour), start.Add(24 * time.Hour)}
	const window = 30 * time.Minute
	p, warnings, err := plan.PlanCanary(w.state(), plan.CanaryOptions{ID: "canary", Version: version1, Sizes: []int{1, 5}, Window: window,
		NodeTime: 16 * time.Minute, ClusterTime: 10 * time.Minute, SparePercent: 20, Starts: starts})
	checktest.OK(t, err)
	desired := func() map[string]string {
		out := map[string]string{}
		for _, n := range w.state().Nodes {
			out[n.Name] = n.Annotations[mcp.AnnotationDesiredConfig]
		}
		return out
	}
	for i := range starts[1:] {
		var closed map[string]string
		w.clock.AfterFunc(starts[i].Add(window).Sub(w.Now()), func() { closed = desired() })
		w.clock.AfterFunc(starts[i+1].Sub(w.Now()), func() { checktest.Same(t, closed, desired()) })
	}
	transcript(t, "canary-overruns", w, p, warnings, plan.Options{}, plan.StateFinished)
	checktest.OK(t, atRest(w.cluster, version1))
}

// Five nodes in two windows, the first of which is too short for all.
func TestTranscriptWindows(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 5}}})
	start := w.Now().Add(time.Hour)
	p, warnings, err := plan.PlanWindows(w.state(), plan.WindowsOptions{ID: "nights", Version: version1, NodeTime: 5 * time.Minute, ClusterTime: 20 * time.Minute,
		Windows: []plan.Window{{Start: start, Duration: 30 * time.Minute}, {Start: start.Add(24 * time.Hour), Duration: time.Hour}}})
	checktest.OK(t, err)
	transcript(t, "windows", w, p, warnings, plan.Options{}, plan.StateFinished)
	checktest.Good(t, atRest(w.cluster, version1))
}

// Two minor versions with one reboot of each compute node; operators in between.
func TestTranscriptControlPlaneOnly(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}, {Name: "infra", Nodes: 1}}})
	p, warnings, err := plan.PlanControlPlaneOnly(w.state(), plan.ControlPlaneOnlyOptions{ID: "eus", Versions: []string{version1, version2}, Operators: true, Hooks: []string{"storage"}})
	checktest.OK(t, err)
	calls := 0
	slow := plan.ActionFunc(func(context.Context, plan.Call) (plan.Outcome, error) {
		calls++
		return plan.Outcome{Done: calls%2 == 0, After: 5 * time.Minute, Text: "2 operators are being updated"}, nil
	})
	transcript(t, "control-plane-only", w, p, warnings, plan.Options{Actions: map[string]plan.Action{
		"UpdateCluster": plan.ActionFunc(updateCluster), "UpdateOperators": slow, "storage": slow}}, plan.StateFinished)
	checktest.Good(t, atRest(w.cluster, version2))
	reboots := map[string]int{}
	for _, n := range w.state().Nodes {
		reboots[n.Status.NodeInfo.KubeletVersion]++
	}
	if len(reboots) != 1 {
		t.Error(reboots)
	}
}

// Two RHEL hosts; somebody prepares, and a hook fails once: the plan stops with the
// node cordoned, and goes on when it is resumed.
func TestTranscriptRHEL(t *testing.T) {
	one := intstr.FromInt32(1)
	w := quiet(t, worldOptions{version: "4.18.7", pools: []simulation.Pool{{Nodes: 3}}, workloads: []simulation.Workload{{Name: "web", Replicas: 3, MaxUnavailable: &one}}})
	for _, name := range []string{"worker-0", "worker-1"} {
		modifyNode(w, name, func(n *corev1.Node) { n.Status.NodeInfo.OSImage = "Red Hat Enterprise Linux 8.8 (Ootpa)" })
	}
	p, warnings, err := plan.PlanNodes(w.state(), hostPlan(t, "rhel-hooks"))
	checktest.OK(t, err)
	fails := true
	ok := func(_ context.Context, c plan.Call) (plan.Outcome, error) {
		if c.Step.Args.Node == "worker-1" && c.Step.Args.Action == "pre-upgrade" && fails {
			fails = false
			return plan.Outcome{}, fmt.Errorf("disk is full")
		}
		return plan.Outcome{Done: true}, nil
	}
	hooks := map[string]plan.Action{}
	for _, name := range []string{"playbook", "pre-cordon", "pre-upgrade", "pre-uncordon", "post-upgrade"} {
		hooks[name] = plan.ActionFunc(ok)
	}
	for i := range 4 {
		w.clock.AfterFunc(time.Duration(10*(i+1))*time.Minute, func() {
			checktest.Good(t, plan.Confirm(w.context(), w.cluster, "", "hosts", fmt.Sprint("prepare-", i+1)))
		})
	}
	transcript(t, "rhel", w, p, warnings, plan.Options{Actions: hooks}, plan.StateFailed)
	for _, n := range w.state().Nodes {
		if n.Spec.Unschedulable != (n.Name == "worker-1") {
			t.Errorf("node %s: unschedulable %v", n.Name, n.Spec.Unschedulable)
		}
	}
	w.log = nil
	transcript(t, "rhel-resumed", w, p, nil, plan.Options{Actions: hooks, Mode: plan.Resume}, plan.StateFinished)
}

// The virtual hardware of all nodes, one after another; a person does what no
// action does.
func TestTranscriptVSphereHardware(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 2}}, workloads: []simulation.Workload{{Name: "web", Replicas: 2}}})
	p, warnings, err := plan.PlanNodes(w.state(), hostPlan(t, "vsphere-nodes"))
	checktest.OK(t, err)
	vm := plan.ActionFunc(func(_ context.Context, c plan.Call) (plan.Outcome, error) {
		up := corev1.ConditionFalse
		if strings.HasPrefix(c.Step.ID, "upgrade") {
			up = corev1.ConditionTrue // it boots
		}
		modifyNode(w, c.Step.Args.Node, func(n *corev1.Node) {
			for i := range n.Status.Conditions {
				if n.Status.Conditions[i].Type == corev1.NodeReady {
					n.Status.Conditions[i].Status = up
				}
			}
		})
		return plan.Outcome{Done: true}, nil
	})
	for i, step := range []string{"power-on-master-0", "power-on-worker-0", "template"} {
		w.clock.AfterFunc(time.Duration(10*(i+1))*time.Minute, func() {
			checktest.Good(t, plan.Confirm(w.context(), w.cluster, "", "hardware", step))
		})
	}
	transcript(t, "vsphere-hardware", w, p, warnings, plan.Options{Actions: map[string]plan.Action{"vm": vm}}, plan.StateFinished)
}

// A plan is stopped in the middle of an update, and put back as far as nodes
// need not reboot; then all of it.
func TestTranscriptRestore(t *testing.T) {
	w := quiet(t, worldOptions{pools: []simulation.Pool{{Nodes: 4}}})
	before := fields(w.cluster)
	p, warnings, err := plan.PlanCanary(w.state(), plan.CanaryOptions{ID: "canary", Version: version1, Sizes: []int{1, 2}, SparePercent: 25})
	checktest.OK(t, err)
	for _, warning := range warnings {
		t.Error(warning)
	}
	w.start("plan canary", plan.Options{Plan: p})
	checktest.OK(t, w.RunUntil(w.Now().Add(20*time.Minute)))
	w.Stop("plan canary")
	transcript(t, "restore", w, p, nil, plan.Options{Claim: plan.TakeOver, Mode: plan.Restore}, plan.StateRestored)
	w.log = nil
	r := w.start("again", plan.Options{Plan: p, Mode: plan.RestoreWithReboots})
	checktest.OK(t, w.ends(r, time.Hour, plan.StateRestored))
	checktest.OK(t, w.RunUntil(w.Now().Add(2*time.Hour)))
	golden(t, "transcripts/restore-with-reboots.txt", strings.Join(w.log, "\n")+"\n")
	if diff := diffFields(before, fields(w.cluster)); diff != "" {
		t.Error(diff)
	}
	checktest.Good(t, atRest(w.cluster, version1))
}
