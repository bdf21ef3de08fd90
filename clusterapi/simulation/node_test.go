package simulation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// short names of what a node shows.
func nodeText(n *corev1.Node, old, next string) string {
	name := strings.NewReplacer(old, "OLD", next, "NEW").Replace
	ready := "NotReady"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			ready = "Ready"
		}
	}
	a := n.Annotations
	text := fmt.Sprintf("%s %s→%s", a[mcp.AnnotationState], name(a[mcp.AnnotationCurrentConfig]), name(a[mcp.AnnotationDesiredConfig]))
	text += fmt.Sprintf(" asked %s got %s %s %s", name(a[mcp.AnnotationDesiredDrain]), name(a[mcp.AnnotationLastAppliedDrain]), ready, n.Status.NodeInfo.KubeletVersion)
	if n.Spec.Unschedulable {
		text += " cordoned"
	}
	if p := a[mcp.AnnotationPostConfigAction]; p != "" {
		text += " " + p
	}
	if r := a[mcp.AnnotationReason]; r != "" {
		text += " (" + name(r) + ")"
	}
	return text
}

// expectNode wants a node to show what begins so.
func expectNode(t *testing.T, c *cluster, name, old, next, when, want string) {
	t.Helper()
	if got := nodeText(get[corev1.Node](t, c, "", name), old, next); !strings.HasPrefix(got, want) {
		t.Errorf("%s: %s\nwant %s", when, got, want)
	}
}

// updateTo lets the machine-config operator go to 4.21.1, and targets a node.
func updateTo(t *testing.T, c *cluster, pool string, nodes ...string) (old, next string) {
	t.Helper()
	old = get[mcfgv1.MachineConfigPool](t, c, "", pool).Spec.Configuration.Name
	to := release("4.21.1", "machine-config")
	c.Expect(to)
	apply(t, c, to.Operators[0].Workloads[0])
	c.pass(3 * time.Minute)
	return old, retarget(t, c, pool, nodes...)
}

// record collects the distinct things that a node shows from now on.
func record(t *testing.T, c *cluster, name, old, next string) func() []string {
	t.Helper()
	seen := []string{nodeText(get[corev1.Node](t, c, "", name), old, next)}
	changes := c.Follow()
	return func() []string {
		defer changes.Close()
		for change, ok := changes.Next(); ok; change, ok = changes.Next() {
			if change.New == nil || change.New.Kind().Kind != "Node" || change.New.Name() != name {
				continue
			}
			n := checktest.Get(clusterapi.As[corev1.Node](change.New))(t)
			if text := nodeText(n, old, next); seen[len(seen)-1] != text {
				seen = append(seen, text)
			}
		}
		return seen
	}
}

func TestNodeSequence(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
	drainer(t, c)
	old := get[mcfgv1.MachineConfigPool](t, c, "", "worker").Spec.Configuration.Name
	updateTo(t, c, "worker")
	next := get[mcfgv1.MachineConfigPool](t, c, "", "worker").Spec.Configuration.Name
	stop := record(t, c, "worker-1", old, next)
	c.pass(0)
	retarget(t, c, "worker", "worker-1")
	began := c.Now()
	c.pass(20 * time.Minute)
	want := []string{
		"Done OLD→OLD asked uncordon-OLD got uncordon-OLD Ready v1.33.0",
		"Done OLD→NEW asked uncordon-OLD got uncordon-OLD Ready v1.33.0",
		"Working OLD→NEW asked uncordon-OLD got uncordon-OLD Ready v1.33.0",
		"Working OLD→NEW asked drain-NEW got uncordon-OLD Ready v1.33.0",
		"Working OLD→NEW asked drain-NEW got uncordon-OLD Ready v1.33.0 cordoned",
		"Working OLD→NEW asked drain-NEW got drain-NEW Ready v1.33.0 cordoned",
		"Working OLD→NEW asked drain-NEW got drain-NEW Ready v1.33.0 cordoned Rebooting",
		"Working OLD→NEW asked drain-NEW got drain-NEW NotReady v1.33.0 cordoned Rebooting",
		"Working OLD→NEW asked drain-NEW got drain-NEW Ready v1.34.0 cordoned Rebooting",
		"Working OLD→NEW asked drain-NEW got drain-NEW Ready v1.34.0 cordoned",
		"Working OLD→NEW asked uncordon-NEW got drain-NEW Ready v1.34.0 cordoned",
		"Working OLD→NEW asked uncordon-NEW got drain-NEW Ready v1.34.0",
		"Working OLD→NEW asked uncordon-NEW got uncordon-NEW Ready v1.34.0",
		"Done NEW→NEW asked uncordon-NEW got uncordon-NEW Ready v1.34.0",
	}
	checktest.SameIn(t, "the node's sequence", want, stop())
	n := get[corev1.Node](t, c, "", "worker-1")
	for _, c := range n.Status.Conditions {
		// Drain 10 s, apply 1 min, reboot 3 min, a few reactions of 1 s.
		if took := c.LastTransitionTime.Sub(began); c.Type == corev1.NodeReady && (took < 4*time.Minute+10*time.Second || took > 4*time.Minute+20*time.Second) {
			t.Errorf("Ready again after %v, want about 4m10s", took)
		}
	}
	for _, a := range []string{annotationDisk, annotationBoot} {
		if _, ok := n.Annotations[a]; ok {
			t.Errorf("annotation %s is left", a)
		}
	}
	if n := get[corev1.Node](t, c, "", "worker-0"); nodeText(n, old, next) != want[0] {
		t.Errorf("a node that was not targeted: %s", nodeText(n, old, next))
	}
}

// The simulation may be stopped at any moment and goes on where it was.
func TestNodeSequenceWithRestarts(t *testing.T) {
	for _, every := range []time.Duration{700 * time.Millisecond, 13 * time.Second, 70 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			timing := simulation.Timing{Daemon: 100 * time.Millisecond, DrainPoll: 100 * time.Millisecond, Apply: 500 * time.Millisecond}
			if every > 10*time.Second {
				timing = simulation.Timing{Apply: 5 * time.Second}
			}
			c := made(t, simulation.Options{Release: release("4.20.3", "machine-config"), Timing: timing})
			stop := c.run(t)
			drainer(t, c)
			old, next := updateTo(t, c, "worker", "worker-0")
			for range 60 {
				c.pass(every)
				stop()
				stop = c.run(t)
			}
			c.pass(5 * time.Minute)
			expectNode(t, c, "worker-0", old, next, "in the end", "Done NEW→NEW asked uncordon-NEW got uncordon-NEW Ready v1.34.0")
		})
	}
}

func TestNodeFaults(t *testing.T) {
	tests := []struct {
		fault  simulation.Fault
		want   string // what the node shows while the fault lasts; "" is gone
		healed string
	}{
		{simulation.Fault{Kind: simulation.FaultNodeDegraded, Message: "disk full"},
			"Degraded OLD→NEW asked drain-NEW got drain-NEW Ready v1.33.0 cordoned (disk full)", ""},
		{simulation.Fault{Kind: simulation.FaultNodeUnreconcilable, Message: "fips changed"},
			"Unreconcilable OLD→NEW asked uncordon-OLD got uncordon-OLD Ready v1.33.0 (can't reconcile config OLD with NEW: fips changed)", ""},
		{simulation.Fault{Kind: simulation.FaultNodeStaysNotReady},
			"Working OLD→NEW asked drain-NEW got drain-NEW NotReady v1.33.0 cordoned Rebooting", ""},
		{simulation.Fault{Kind: simulation.FaultNodeReturnsOld, Message: "content mismatch for file \"/etc/x\""},
			"Degraded OLD→NEW asked drain-NEW got drain-NEW Ready v1.33.0 cordoned (unexpected on-disk state validating against NEW: content mismatch for file \"/etc/x\")", ""},
		{simulation.Fault{Kind: simulation.FaultNodeVanishes}, "", "gone"},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault.Kind), func(t *testing.T) {
			c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
			drainer(t, c)
			if tt.fault.Kind != simulation.FaultNodeDegraded { // which strikes at rest, too
				c.SetNodeFault("worker-0", &tt.fault)
			}
			old, next := updateTo(t, c, "worker", "worker-0")
			if tt.fault.Kind == simulation.FaultNodeDegraded {
				c.pass(20 * time.Second)
				c.SetNodeFault("worker-0", &tt.fault)
			}
			c.pass(30 * time.Minute)
			n, err := clusterapi.Get[corev1.Node](t.Context(), c, clusterapi.Key("", "worker-0"))
			if tt.healed == "gone" {
				if !apierrors.IsNotFound(err) {
					t.Errorf("the node is still there: %v", err)
				}
				return
			}
			checktest.OK(t, err)
			if got := nodeText(n, old, next); got != tt.want {
				t.Errorf("shows %s\nwant  %s", got, tt.want)
			}
			c.SetNodeFault("worker-0", nil)
			c.pass(30 * time.Minute)
			expectNode(t, c, "worker-0", old, next, "once repaired", "Done NEW→NEW asked uncordon-NEW got uncordon-NEW Ready v1.34.0")
		})
	}
}

func TestNodeFaultEndsByItself(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
	c.SetNodeFault("worker-0", &simulation.Fault{Kind: simulation.FaultNodeStaysNotReady, For: 30 * time.Minute})
	drainer(t, c)
	old, next := updateTo(t, c, "worker", "worker-0")
	c.pass(20 * time.Minute)
	if got := nodeText(get[corev1.Node](t, c, "", "worker-0"), old, next); !strings.Contains(got, "NotReady") {
		t.Errorf("after 20 minutes %s", got)
	}
	c.pass(20 * time.Minute)
	expectNode(t, c, "worker-0", old, next, "after 40 minutes", "Done NEW→NEW")
}

func TestDriftAtRest(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	config := get[mcfgv1.MachineConfigPool](t, c, "", "worker").Spec.Configuration.Name
	c.SetNodeFault("worker-2", &simulation.Fault{Kind: simulation.FaultNodeDegraded, Message: "mode mismatch for file: \"/etc/x\"", For: time.Hour})
	c.pass(time.Minute)
	expectNode(t, c, "worker-2", config, "no such", "drifted", `Degraded OLD→OLD asked uncordon-OLD got uncordon-OLD Ready v1.33.0 (mode mismatch for file: "/etc/x")`)
	c.pass(time.Hour)
	expectNode(t, c, "worker-2", config, "no such", "put right", "Done OLD→OLD asked uncordon-OLD got uncordon-OLD Ready v1.33.0")
}

func TestDrainTakesTooLong(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
	old, next := updateTo(t, c, "worker", "worker-0") // nobody drains
	c.pass(59 * time.Minute)
	expectNode(t, c, "worker-0", old, next, "before an hour", "Working")
	c.pass(2 * time.Minute)
	expectNode(t, c, "worker-0", old, next, "after an hour", "Degraded OLD→NEW asked drain-NEW got uncordon-OLD Ready v1.33.0 (failed to drain node: worker-0 after 1 hour. Please see machine-config-controller logs for more information)")
	// The request stands; once it is fulfilled the update goes on.
	drainer(t, c)
	c.pass(time.Minute)
	expectNode(t, c, "worker-0", old, next, "drained at last", "Degraded OLD→NEW asked drain-NEW got drain-NEW")
	c.pass(20 * time.Minute)
	expectNode(t, c, "worker-0", old, next, "in the end", "Done NEW→NEW")
}

// After a drain has failed, the daemon takes up a newer target, not the one
// that it asked the drain for.
func TestRetargetAfterFailedDrain(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
	_, first := updateTo(t, c, "worker", "worker-0")
	c.pass(61 * time.Minute)
	addMachineConfig(t, c, "99-worker-motd", "worker", "hello")
	c.pass(10 * time.Second)
	second := retarget(t, c, "worker", "worker-0")
	stop := record(t, c, "worker-0", first, second)
	drainer(t, c)
	c.pass(30 * time.Minute)
	rebooted := 0
	for _, text := range stop() {
		if strings.Contains(text, "NotReady") {
			rebooted++
		}
	}
	if got := nodeText(get[corev1.Node](t, c, "", "worker-0"), first, second); !strings.HasPrefix(got, "Done NEW→NEW") || rebooted != 1 {
		t.Errorf("in the end, after %d reboots: %s", rebooted, got)
	}
}

func TestRetargetInFlight(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config")})
	drainer(t, c)
	_, first := updateTo(t, c, "worker", "worker-0")
	c.pass(30 * time.Second) // drained, applying
	addMachineConfig(t, c, "99-worker-motd", "worker", "hello")
	c.pass(10 * time.Second)
	second := retarget(t, c, "worker", "worker-0")
	if first == second {
		t.Fatal("no second config")
	}
	stop := record(t, c, "worker-0", first, second)
	c.pass(30 * time.Minute)
	for _, text := range stop() {
		if strings.Contains(text, "uncordon-OLD") || strings.Contains(text, "OLD→NEW") {
			t.Errorf("uncordoned between the configs, or the first became current: %s", text)
		}
	}
	expectNode(t, c, "worker-0", first, second, "in the end", "Done NEW→NEW")
}

func TestEqualContentNeedsNoReboot(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3"), Pools: []simulation.Pool{{Nodes: 1}, {Name: "infra", Nodes: 1}}})
	drainer(t, c)
	config := get[mcfgv1.MachineConfigPool](t, c, "", "infra").Spec.Configuration.Name
	boot := get[corev1.Node](t, c, "", "worker-0").Status.NodeInfo.BootID
	modify(t, c, "", "worker-0", func(n *corev1.Node) { n.Annotations[mcp.AnnotationDesiredConfig] = config })
	c.pass(30 * time.Second)
	n := get[corev1.Node](t, c, "", "worker-0")
	if n.Annotations[mcp.AnnotationCurrentConfig] != config || n.Annotations[mcp.AnnotationState] != mcp.StateDone {
		t.Errorf("after 30 s: %v", n.Annotations)
	}
	if n.Status.NodeInfo.BootID != boot {
		t.Error("it rebooted")
	}
}

func TestSingleNodeIsNotDrained(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3", "machine-config"), ControlPlane: 1, Pools: []simulation.Pool{}})
	drainer(t, c)
	old := get[mcfgv1.MachineConfigPool](t, c, "", "master").Spec.Configuration.Name
	updateTo(t, c, "master")
	next := get[mcfgv1.MachineConfigPool](t, c, "", "master").Spec.Configuration.Name
	stop := record(t, c, "master-0", old, next)
	retarget(t, c, "master", "master-0")
	c.pass(20 * time.Minute)
	for _, text := range stop() {
		if strings.Contains(text, "drain-NEW ") || strings.Contains(text, "cordoned") {
			t.Errorf("drained: %s", text)
		}
	}
	expectNode(t, c, "master-0", old, next, "in the end", "Done NEW→NEW")
}

func TestMissingConfig(t *testing.T) {
	c := start(t, simulation.Options{Release: release("4.20.3")})
	modify(t, c, "", "worker-0", func(n *corev1.Node) { n.Annotations[mcp.AnnotationDesiredConfig] = "rendered-worker-none" })
	c.pass(time.Minute)
	n := get[corev1.Node](t, c, "", "worker-0")
	if n.Annotations[mcp.AnnotationState] != mcp.StateDegraded ||
		n.Annotations[mcp.AnnotationReason] != `machineconfig.machineconfiguration.openshift.io "rendered-worker-none" not found` {
		t.Errorf("state %q, reason %q", n.Annotations[mcp.AnnotationState], n.Annotations[mcp.AnnotationReason])
	}
	modify(t, c, "", "worker-0", func(n *corev1.Node) {
		n.Annotations[mcp.AnnotationDesiredConfig] = n.Annotations[mcp.AnnotationCurrentConfig]
	})
	c.pass(time.Minute)
	if n = get[corev1.Node](t, c, "", "worker-0"); n.Annotations[mcp.AnnotationState] != mcp.StateDone {
		t.Errorf("back on the old target: %v", n.Annotations)
	}
}
