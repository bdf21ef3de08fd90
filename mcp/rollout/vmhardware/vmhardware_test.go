package vmhardware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/vmhardware"
)

// machine is one virtual machine.
type machine struct {
	vmhardware.State
	boots    int
	stopping bool
	deaf     bool // the guest does not heed a request to shut down
	neverUp  bool // its node does not become Ready
	calls    []string
	errs     map[string]error // by call
}

// platform plays vCenter, and the kubelets of the machines.
type platform struct {
	w        *actiontest.World
	machines map[string]*machine
}

func (p *platform) of(n *corev1.Node, call string) (*machine, error) {
	m := p.machines[n.Name]
	if m == nil {
		return nil, nodeaction.Permanent(fmt.Errorf("no virtual machine of node %s", n.Name))
	}
	if call != "State" {
		m.calls = append(m.calls, call)
	}
	return m, m.errs[call]
}

func (p *platform) State(_ context.Context, n *corev1.Node) (vmhardware.State, error) {
	m, err := p.of(n, "State")
	if err != nil {
		return vmhardware.State{}, err
	}
	return m.State, nil
}

func (p *platform) ShutDownGuest(_ context.Context, n *corev1.Node) error {
	m, err := p.of(n, "ShutDownGuest")
	if err != nil {
		return err
	}
	if m.Power != vmhardware.On || !m.Tools {
		p.w.Wrong(fmt.Errorf("the guest of %s is asked to shut down: %+v", m.Name, m.State))
	}
	if m.stopping || m.deaf {
		return nil
	}
	m.stopping = true
	p.w.Clock.AfterFunc(50*time.Second, func() {
		m.Power, m.Tools, m.stopping = vmhardware.Off, false, false
		p.w.SetNode(n.Name, false, "", "")
	})
	return nil
}

func (p *platform) Upgrade(ctx context.Context, n *corev1.Node, version int) error {
	m, err := p.of(n, "Upgrade")
	if err != nil {
		return err
	}
	if m.Power != vmhardware.Off {
		p.w.Wrong(fmt.Errorf("%s is upgraded while it is on", m.Name))
	}
	m.Hardware = version
	return reconcile.Sleep(ctx, 10*time.Second)
}

func (p *platform) PowerOn(_ context.Context, n *corev1.Node) error {
	m, err := p.of(n, "PowerOn")
	if err != nil {
		return err
	}
	m.Power = vmhardware.On
	m.boots++
	if m.neverUp {
		return nil
	}
	p.w.Clock.AfterFunc(40*time.Second, func() { p.up(n.Name) })
	return nil
}

func (p *platform) up(node string) {
	m := p.machines[node]
	m.Tools = true
	p.w.SetNode(node, true, fmt.Sprintf("%s-boot-%d", node, m.boots+1), "")
}

// newWorld has three masters and two workers with a pod each, on hardware 13.
func newWorld() (*actiontest.World, *platform) { return worldOf("m0", "m1", "m2", "w0", "w1") }

func worldOf(nodes ...string) (*actiontest.World, *platform) {
	var objs []any
	p := &platform{machines: map[string]*machine{}}
	for _, name := range nodes {
		role := "worker"
		if name[0] == 'm' {
			role = "master"
		}
		objs = append(objs, actiontest.Node(name, role))
		if name[0] == 'w' {
			objs = append(objs, actiontest.Pod("web-"+name, name))
		}
		p.machines[name] = &machine{State: vmhardware.State{Name: "vm-" + name, Power: vmhardware.On, Hardware: 13, Tools: true}, errs: map[string]error{}}
	}
	p.w = actiontest.New("hardware-15", objs...)
	return p.w, p
}

func options(t testing.TB, m vmhardware.Machines) nodeaction.Options {
	t.Helper()
	a, err := vmhardware.New(vmhardware.Options{Machines: m})
	if err != nil {
		t.Fatal(err)
	}
	return nodeaction.Options{Action: a, Selector: labels.Everything()}
}

// upgraded says what of the machines is not as it should be in the end.
func (p *platform) upgraded() error {
	for name, m := range p.machines {
		if m.Hardware != 15 || m.Power != vmhardware.On || m.boots != 1 {
			return fmt.Errorf("%s: %+v, started %d times", name, m.State, m.boots)
		}
		n := p.w.NodeOf(name)
		if n.Spec.Unschedulable {
			return fmt.Errorf("%s is cordoned", name)
		}
		_, err := clusterapi.Get[corev1.Pod](context.Background(), p.w.Cluster, clusterapi.Key("app", "web-"+name))
		if name[0] == 'w' && err == nil {
			return fmt.Errorf("%s was not drained", name)
		}
	}
	return nil
}

// The transcript: the control plane one by one, one master's machine cannot be
// started at first, then the workers.
func TestTranscript(t *testing.T) {
	w, p := newWorld()
	w.Say("# Three masters and two workers on virtual hardware 13 are to have 15. The machine of m1 cannot be started.")
	p.machines["m1"].errs["PowerOn"] = nodeaction.Permanent(errors.New("no host has enough memory"))
	o := options(t, p)
	w.Start(0, reconcile.Faults{}, o)
	if err := w.Play(3 * time.Hour); err != nil {
		t.Fatal(err)
	}
	w.Say("# The run has halted, m2 is not touched. A host gets more memory, and the run is begun again.")
	p.machines["m1"].errs = nil
	w.Start(0, reconcile.Faults{}, o)
	if err := w.Play(3 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := p.upgraded(); err != nil || !w.Done {
		t.Error(err, w.Done)
	}
	w.Golden(t, "transcript.txt")
}

// Where nobody drives the machines, a person is told what to do, and it is seen
// when that is done.
func TestManual(t *testing.T) {
	w, p := newWorld()
	w.Say("# There is no client for the virtual machines.")
	o := options(t, nil)
	o.Selector, o.Nodes = nil, []string{"w1"}
	w.Start(0, reconcile.Faults{}, o)
	if err := w.Play(30 * time.Hour); err != nil { // longer than anything may stall
		t.Fatal(err)
	}
	record, _, err := nodeaction.RecordOf(w.NodeOf("w1"), w.ID)
	if err != nil || w.Done || w.Last != nil || !strings.Contains(record.Waiting, "upgrade its compatibility to hardware version 15 or later") {
		t.Errorf("%+v, %v, done %v, %v", record, err, w.Done, w.Last)
	}
	w.Say("# Somebody confirms, but has not done it: the node has not been started anew.")
	if err := nodeaction.Confirm(t.Context(), w.Cluster, "vmhardware", "w1"); err != nil {
		t.Fatal(err)
	}
	if err := w.Play(time.Hour); err != nil || w.Done {
		t.Fatal(err, w.Done)
	}
	w.Say("# The machine is shut down, upgraded and started.")
	p.machines["w1"].boots++
	w.SetNode("w1", false, "", "")
	w.Clock.AfterFunc(time.Minute, func() { p.up("w1") })
	if err := w.Play(time.Hour); err != nil {
		t.Fatal(err)
	}
	if !w.Done || w.NodeOf("w1").Spec.Unschedulable || nodeaction.Confirmed(w.NodeOf("w1"), "vmhardware") {
		t.Errorf("done %v, %v", w.Done, w.NodeOf("w1").Annotations)
	}
	w.Golden(t, "manual.txt")
}

// Whatever goes wrong with the cluster's API or the program, there are never two
// nodes of the control plane down, and each machine is started once.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		w, p := newWorld()
		return w.Storm(seed, only, options(t, p), p.upgraded)
	})
}

// Wherever the program crashes, before or after a call took effect, the next one
// finishes, and no machine is started twice.
func TestCrashAtEachCall(t *testing.T) {
	actiontest.CrashAtEachCall(t, func() (*actiontest.World, func() error) {
		w, p := worldOf("m0", "w0")
		w.Start(0, reconcile.Faults{}, options(t, p))
		return w, p.upgraded
	})
}

// Compute nodes go side by side only where the options say so, and the control
// plane even then does not.
func TestParallel(t *testing.T) {
	w, p := newWorld()
	w.Parallel = 2
	o := options(t, p)
	o.Parallel = 2
	w.Start(0, reconcile.Faults{}, o)
	if err := w.Play(3 * time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := p.upgraded(); err != nil || !w.Done {
		t.Error(err, w.Done)
	}
	begun := slices.IndexFunc(w.Lines, func(l string) bool { return strings.Contains(l, "node w1 is begun") })
	ended := slices.IndexFunc(w.Lines, func(l string) bool { return strings.Contains(l, "node w0 is finished") })
	if begun < 0 || begun > ended {
		t.Error("the two workers were not acted on side by side")
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(m *machine)
		mend  func(p *platform, m *machine)
		halts string // "": it goes on by itself
		phase string
	}{
		{name: "the tools do not run", set: func(m *machine) { m.Tools = false }, mend: func(_ *platform, m *machine) { m.Tools = true },
			halts: "cannot be asked to shut down: its tools do not run", phase: "Checking"},
		{name: "the login is refused", set: failing("State", nodeaction.Permanent(errors.New("login refused"))), halts: "login refused", phase: "Checking"},
		{name: "the host is too old", set: func(m *machine) { m.Problem = "its host has ESXi 6.7" }, mend: func(_ *platform, m *machine) { m.Problem = "" },
			halts: "its host has ESXi 6.7", phase: "Checking"},
		{name: "suspended", set: func(m *machine) { m.Power = vmhardware.Suspended }, mend: func(_ *platform, m *machine) { m.Power = vmhardware.On },
			halts: "neither on nor off: Suspended", phase: "Checking"},
		{name: "the guest does not shut down", set: func(m *machine) { m.deaf = true }, mend: func(_ *platform, m *machine) { m.deaf = false },
			halts: "it waits for the guest of virtual machine vm-m0 to shut down", phase: "Acting"},
		{name: "shutting down fails", set: failing("ShutDownGuest", errors.New("busy")), halts: "busy", phase: "Acting"},
		{name: "the upgrade fails", set: failing("Upgrade", nodeaction.Permanent(errors.New("task fault"))), halts: "task fault", phase: "Acting"},
		{name: "power on fails", set: failing("PowerOn", nodeaction.Permanent(errors.New("no memory"))), halts: "no memory", phase: "Acting"},
		{name: "the node never becomes Ready", set: func(m *machine) { m.neverUp = true }, mend: func(p *platform, _ *machine) { p.up("m0") },
			halts: "it waits for the node to start anew", phase: "Acting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld()
			m := p.machines["m0"]
			tt.set(m)
			o := options(t, p)
			w.Start(0, reconcile.Faults{}, o)
			if err := w.Play(6 * time.Hour); err != nil {
				t.Fatal(err)
			}
			failed, _ := errors.AsType[*nodeaction.FailedError](w.Last)
			if failed == nil || failed.Node != "m0" || failed.Phase != tt.phase || !strings.Contains(failed.Error(), tt.halts) {
				t.Fatalf("it halts with %v", w.Last)
			}
			if w.NodeOf("m0").Spec.Unschedulable != (tt.phase != "Checking") {
				t.Error("cordoned, or not")
			}
			for name, other := range p.machines {
				if name != "m0" && (len(other.calls) > 0 || w.NodeOf(name).Spec.Unschedulable) {
					t.Errorf("%s was touched", name)
				}
			}
			m.errs = nil
			if tt.mend != nil {
				tt.mend(p, m)
			}
			w.Start(0, reconcile.Faults{}, o)
			if err := w.Play(6 * time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := p.upgraded(); err != nil || !w.Done {
				t.Errorf("after it was mended: %v, done %v, %v", err, w.Done, w.Last)
			}
		})
	}
}

func failing(call string, err error) func(m *machine) {
	return func(m *machine) { m.errs[call] = err }
}

// Another master that is down, or cordoned, keeps all of them from being begun.
func TestControlPlaneWaits(t *testing.T) {
	for _, change := range []mcptest.Change{
		mcptest.Cordoned,
		mcptest.Condition(corev1.NodeReady, corev1.ConditionUnknown),
		mcptest.Desired("N"), // it is about to be updated
	} {
		w, p := newWorld()
		if _, err := clusterapi.Modify(t.Context(), w.Cluster, clusterapi.Key("", "m2"), clusterapi.ModifyOptions{}, func(n *corev1.Node) error { change(n); return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := clusterapi.Modify(t.Context(), w.Cluster, clusterapi.Key("", "m2"), clusterapi.ModifyOptions{Status: true}, func(n *corev1.Node) error { change(n); return nil }); err != nil {
			t.Fatal(err)
		}
		o := options(t, p)
		o.Selector, o.Nodes = nil, []string{"w0", "m0", "m1"}
		w.Start(0, reconcile.Faults{}, o)
		if err := w.Play(3 * time.Hour); err != nil {
			t.Fatal(err)
		}
		if w.Done || len(p.machines["m0"].calls)+len(p.machines["m1"].calls)+len(p.machines["w0"].calls) > 0 {
			t.Error("a node was acted on")
		}
		if len(w.Lines) != 1 || !strings.Contains(w.Lines[0], "node m0 waits: of the control plane, m2 is unavailable") {
			t.Errorf("%q", w.Lines)
		}
	}
}

// planned is a world in which a plan upgrades the machine of a master and a worker.
func planned(t testing.TB) (*actiontest.World, *platform, plan.Plan) {
	t.Helper()
	w, p := worldOf("m0", "w0")
	built, _, err := plan.PlanVSphereHardware(w.State(), plan.VSphereHardwareOptions{ID: "hardware", Action: "update"})
	if err != nil {
		t.Fatal(err)
	}
	return w, p, built
}

// The action in a plan: the master is cordoned, the worker drained too.
func TestPlan(t *testing.T) {
	w, p, built := planned(t)
	o := options(t, p)
	if err := w.PlayPlan(0, reconcile.Faults{}, 3*time.Hour, o.Action, plan.Options{Plan: built}); err != nil {
		t.Fatal(err)
	}
	if err := p.upgraded(); err != nil {
		t.Error(err)
	}
	w.Golden(t, "plan.txt")
}

// Whoever upgrades by hand takes his time, and confirms it.
func TestPlanByHand(t *testing.T) {
	w, p, built := planned(t)
	for i, name := range []string{"m0", "w0"} {
		w.Clock.AfterFunc(time.Duration(i+1)*5*time.Hour, func() {
			p.machines[name].Hardware, p.machines[name].boots = 15, 1
			p.up(name)
			if err := nodeaction.Confirm(context.Background(), w.Cluster, "vmhardware", name); err != nil {
				t.Error(err)
			}
		})
	}
	if err := w.PlayPlan(0, reconcile.Faults{}, 24*time.Hour, options(t, nil).Action, plan.Options{Plan: built}); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(w.Lines, "\n"))
	}
	if err := p.upgraded(); err != nil {
		t.Error(err)
	}
}

// Whatever goes wrong, the plan upgrades each machine once.
func TestSimulationPlan(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		w, p, built := planned(t)
		return w.StormPlan(seed, only, options(t, p).Action, built, p.upgraded)
	})
}
