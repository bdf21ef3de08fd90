package vmhardware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/vmhardware"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
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
		return nil, hosts.Permanent(fmt.Errorf("no virtual machine of node %s", n.Name))
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

// worldOf has nodes on hardware 13, a worker with a pod.
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
	p.w = actiontest.New(objs...)
	return p.w, p
}

func newAction(t testing.TB, m vmhardware.Machines) action.Action {
	t.Helper()
	return action.Of(checktest.Get(vmhardware.New(vmhardware.Options{Machines: m}))(t))
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

// What fails stops the plan; after it is mended, the plan is resumed and finishes.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		set     func(m *machine)
		mend    func(p *platform, m *machine)
		halts   string
		checked bool // before anything is done to the machine
	}{
		{name: "the tools do not run", set: func(m *machine) { m.Tools = false }, mend: func(_ *platform, m *machine) { m.Tools = true },
			halts: "cannot be asked to shut down: its tools do not run", checked: true},
		{name: "the login is refused", set: failing("State", hosts.Permanent(errors.New("login refused"))), halts: "login refused", checked: true},
		{name: "the host is too old", set: func(m *machine) { m.Problem = "its host has ESXi 6.7" }, mend: func(_ *platform, m *machine) { m.Problem = "" },
			halts: "its host has ESXi 6.7", checked: true},
		{name: "suspended", set: func(m *machine) { m.Power = vmhardware.Suspended }, mend: func(_ *platform, m *machine) { m.Power = vmhardware.On },
			halts: "neither on nor off: Suspended", checked: true},
		{name: "the guest does not shut down", set: func(m *machine) { m.deaf = true }, mend: func(_ *platform, m *machine) { m.deaf = false },
			halts: "it waits for the guest of virtual machine vm-m0 to shut down"},
		{name: "shutting down fails", set: failing("ShutDownGuest", errors.New("busy")), halts: "busy"},
		{name: "the upgrade fails", set: failing("Upgrade", hosts.Permanent(errors.New("task fault"))), halts: "task fault"},
		{name: "power on fails", set: failing("PowerOn", hosts.Permanent(errors.New("no memory"))), halts: "no memory"},
		{name: "the node never becomes Ready", set: func(m *machine) { m.neverUp = true }, mend: func(p *platform, _ *machine) { p.up("m0") },
			halts: "it waits for the node to start anew"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p, built := planned(t)
			m := p.machines["m0"]
			tt.set(m)
			err := w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, p), plan.Options{Plan: built})
			if said := strings.Join(w.Lines, "\n"); err == nil || err.Error() != "the plan is Failed" || !strings.Contains(said, tt.halts) {
				t.Fatalf("%v\n%s", err, said)
			}
			if tt.checked && len(m.calls) > 0 || !w.NodeOf("m0").Spec.Unschedulable {
				t.Errorf("calls %v, or the node is not left cordoned", m.calls)
			}
			if other := p.machines["w0"]; len(other.calls) > 0 || w.NodeOf("w0").Spec.Unschedulable {
				t.Error("w0 was touched")
			}
			m.errs = nil
			if tt.mend != nil {
				tt.mend(p, m)
			}
			err = w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, p), plan.Options{Plan: built, Mode: plan.Resume})
			if err := errors.Join(err, p.upgraded()); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}

func failing(call string, err error) func(m *machine) {
	return func(m *machine) { m.errs[call] = err }
}

// planned is a world in which a plan upgrades the machine of a master and a worker.
func planned(t testing.TB) (*actiontest.World, *platform, plan.Plan) {
	t.Helper()
	w, p := worldOf("m0", "w0")
	built, _, err := hosts.PlanVSphereHardware(w.State(), hosts.VSphereHardwareOptions{ID: "hardware", Action: "update"})
	checktest.OK(t, err)
	return w, p, built
}

// The action in a plan: the master is cordoned, the worker drained too.
func TestPlan(t *testing.T) {
	w, p, built := planned(t)
	checktest.OK(t, w.Play(0, reconcile.Faults{}, 3*time.Hour, newAction(t, p), plan.Options{Plan: built}))
	checktest.Good(t, p.upgraded())
	w.Golden(t, "plan.txt")
}

// Without a client for the machines, a person reads what to do. That may take longer
// than anything may stall, and it is seen when the person confirms it and the node has
// been started again.
func TestPlanByHand(t *testing.T) {
	w, p, built := planned(t)
	confirm := func(name string) {
		w.Say("# Somebody confirms that the machine of %s is upgraded.", name)
		checktest.Good(t, hosts.Confirm(context.Background(), w.Cluster, "vmhardware", name))
	}
	upgrade := func(name string) {
		w.Say("# The machine of %s is upgraded and started.", name)
		p.machines[name].Hardware, p.machines[name].boots = 15, 1
		p.up(name)
	}
	w.Clock.AfterFunc(5*time.Hour, func() { upgrade("m0") })
	w.Clock.AfterFunc(6*time.Hour, func() { confirm("m0") })
	w.Clock.AfterFunc(10*time.Hour, func() { confirm("w0") })
	w.Clock.AfterFunc(12*time.Hour, func() { upgrade("w0") })
	if err := w.Play(0, reconcile.Faults{}, 24*time.Hour, newAction(t, nil), plan.Options{Plan: built}); err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(w.Lines, "\n"))
	}
	if err := p.upgraded(); err != nil || action.Confirmed(w.NodeOf("w0"), "vmhardware") {
		t.Error(err, w.NodeOf("w0").Annotations)
	}
	w.Golden(t, "manual.txt")
}

// Whatever goes wrong, the plan upgrades each machine once.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		w, p, built := planned(t)
		return w.Storm(seed, only, newAction(t, p), built, p.upgraded)
	})
}

// Wherever the program crashes, before or after a call took effect, the next one
// finishes, and no machine is started twice.
func TestCrashAtEachCall(t *testing.T) {
	actiontest.CrashAtEachCall(t, func() (*actiontest.World, func() error) {
		w, p, built := planned(t)
		return w, func() error {
			err := w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, p), plan.Options{Plan: built})
			return errors.Join(err, p.upgraded())
		}
	})
}
