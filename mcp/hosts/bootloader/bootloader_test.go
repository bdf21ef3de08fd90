package bootloader_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/bootloader"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/hosttest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

const (
	oldLoader = "grub2-efi-x64-1:2.02-99.el8.x86_64,shim-x64-15-2.el8.x86_64"
	newLoader = "grub2-efi-x64-1:2.04-31.el8_4.1.x86_64,shim-x64-15-8.el8_1.x86_64"
)

// newWorld has a master whose boot loader is to be adopted, a worker whose loader
// can be updated, and one that is up to date.
func newWorld() (*actiontest.World, hosttest.Hosts) {
	w := actiontest.New(actiontest.Node("m0", "master"), actiontest.Node("w0", "worker"), actiontest.Node("w1", "worker"),
		actiontest.Pod("web", "w0"))
	hosts := hosttest.Hosts{
		"m0": {Name: "m0", Adoptable: newLoader},
		"w0": {Name: "w0", BootLoader: oldLoader, BootUpdate: newLoader},
		"w1": {Name: "w1", BootLoader: newLoader},
	}
	for _, h := range hosts {
		h.Long, h.Boot = 20*time.Second, 2*time.Minute
		h.After = func(d time.Duration, f func()) { w.Clock.AfterFunc(d, f) }
		h.Changed = func(h *hosttest.Host) {
			if h.Down() {
				w.SetNode(h.Name, false, "", "")
				return
			}
			w.Clock.AfterFunc(20*time.Second, func() { w.SetNode(h.Name, true, h.BootID(), "") })
		}
	}
	return w, hosts
}

func newAction(t testing.TB, o bootloader.Options) action.Action {
	t.Helper()
	return action.Of(checktest.Get(bootloader.New(o))(t))
}

// newPlan does the action to all nodes, and cordons and drains them if they are
// restarted.
func newPlan(reboot bool) plan.Plan {
	p := plan.Plan{Version: plan.Format, ID: "loaders", Kind: "Custom"}
	for _, node := range []string{"m0", "w0", "w1"} {
		step := func(id string, kind plan.StepKind) {
			p.Steps = append(p.Steps, plan.Step{ID: id + "-" + node, Kind: kind, Args: plan.Args{Node: node}})
		}
		if reboot {
			step("cordon", plan.Cordon)
			step("drain", plan.Drain)
		}
		step("update", plan.Hook)
		p.Steps[len(p.Steps)-1].Args.Action = "update"
		if reboot {
			step("uncordon", plan.Uncordon)
		}
	}
	return p
}

func updated(hosts hosttest.Hosts) error {
	for name, h := range hosts {
		if h.BootLoader != newLoader || h.Adoptable != "" || h.BootUpdate != "" {
			return fmt.Errorf("host %s: %q, adoptable %q, update %q", name, h.BootLoader, h.Adoptable, h.BootUpdate)
		}
	}
	return nil
}

// The transcript: without restarts no node is disturbed; then one whose nodes are
// restarted.
func TestTranscript(t *testing.T) {
	w, hosts := newWorld()
	w.Say("# Boot loaders are updated, and take effect whenever the hosts restart. No node is cordoned.")
	err := w.Play(0, reconcile.Faults{}, time.Hour, newAction(t, bootloader.Options{Hosts: hosts}), plan.Options{Plan: newPlan(false)})
	checktest.OK(t, errors.Join(err, updated(hosts)))
	lines := w.Lines
	for _, name := range []string{"m0", "w0", "w1"} {
		lines = append(lines, fmt.Sprintf("          # on host %s: %s", name, strings.Join(hosts[name].Log(), "; ")))
	}
	w, hosts = newWorld()
	w.Lines = append(lines, "")
	w.Say("# In another cluster, nodes are drained and restarted so that the update takes effect.")
	a := newAction(t, bootloader.Options{Hosts: hosts, Reboot: true})
	err = w.Play(0, reconcile.Faults{}, time.Hour, a, plan.Options{Plan: newPlan(true)})
	checktest.OK(t, errors.Join(err, updated(hosts)))
	want := []string{"systemd-run --quiet --unit=clusterupdate-bootupctl-update.service --remain-after-exit -- bootupctl update", "systemctl reboot"}
	checktest.Same(t, want, hosts["w0"].Log())
	w.Golden(t, "transcript.txt")
}

func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		w, hosts := newWorld()
		reboot := seed%2 == 0
		a := newAction(t, bootloader.Options{Hosts: hosts, Reboot: reboot})
		return w.Storm(seed, only, a, newPlan(reboot), func() error { return updated(hosts) })
	})
}

func TestCrashAtEachCall(t *testing.T) {
	actiontest.CrashAtEachCall(t, func() (*actiontest.World, func() error) {
		w, hosts := newWorld()
		return w, func() error {
			a := newAction(t, bootloader.Options{Hosts: hosts})
			err := w.Play(0, reconcile.Faults{}, time.Hour, a, plan.Options{Plan: newPlan(false)})
			return errors.Join(err, updated(hosts))
		}
	})
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		host  string
		set   func(h *hosttest.Host)
		mend  func(h *hosttest.Host)
		halts string // "": it continues by itself
	}{
		{name: "no bootupd", host: "m0", set: fail(hosttest.Failure{Command: "bootupctl status", Status: 127, Stderr: "command not found"}), halts: "bootupctl status: exit status 127: command not found"},
		{name: "not understood", host: "w0", set: func(h *hosttest.Host) { h.BootLoader, h.BootUpdate = "x\n  Update: Maybe", "" },
			mend: func(h *hosttest.Host) { h.BootLoader, h.BootUpdate = oldLoader, newLoader }, halts: `component EFI: its update is not understood: "Maybe"`},
		{name: "adopting fails", host: "m0", set: fail(hosttest.Failure{Command: "unit bootupctl adopt-and-update", Status: 1}), halts: "bootupctl adopt-and-update: exit status 1: the last lines of the journal"},
		{name: "updating fails", host: "w0", set: fail(hosttest.Failure{Command: "unit bootupctl update", Status: 1}), halts: "bootupctl update: exit status 1: the last lines of the journal"},
		{name: "updating does nothing", host: "w0", set: fail(hosttest.Failure{Command: "unit bootupctl update", Status: 0}), halts: "bootupctl update has run on node w0, and bootupctl status still asks for update"},
		{name: "the connection is lost while it runs", host: "w0", set: fail(hosttest.Failure{Command: "systemd-run", Lost: true, Ran: true, Times: 1})},
		{name: "the connection is lost when it has run", host: "w0", set: fail(hosttest.Failure{Command: "systemctl stop", Lost: true, Ran: true, Times: 1})},
		{name: "the connection is lost before it runs", host: "m0", set: fail(hosttest.Failure{Command: "systemd-run", Lost: true, Times: 3})},
		{name: "the host does not answer", host: "m0", set: fail(hosttest.Failure{Lost: true}), halts: "connection lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, hosts := newWorld()
			tt.set(hosts[tt.host])
			a := newAction(t, bootloader.Options{Hosts: hosts})
			err := w.Play(0, reconcile.Faults{}, 6*time.Hour, a, plan.Options{Plan: newPlan(false)})
			if tt.halts != "" {
				said := strings.Join(w.Lines, "\n")
				if err == nil || err.Error() != "the plan is Failed" || !strings.Contains(said, "step update-"+tt.host) || !strings.Contains(said, tt.halts) {
					t.Fatalf("%v\n%s", err, said)
				}
				hosts[tt.host].Mend()
				if tt.mend != nil {
					tt.mend(hosts[tt.host])
				}
				err = w.Play(0, reconcile.Faults{}, 6*time.Hour, a, plan.Options{Plan: newPlan(false), Mode: plan.Resume})
			}
			checktest.Good(t, errors.Join(err, updated(hosts)))
			started := 0
			for _, line := range hosts["w0"].Log() {
				if strings.HasSuffix(line, "bootupctl update") {
					started++
				}
			}
			if tt.halts == "" && started != 1 {
				t.Errorf("bootupctl update was started %d times", started)
			}
		})
	}
}

func fail(f hosttest.Failure) func(h *hosttest.Host) { return func(h *hosttest.Host) { h.Fail(f) } }
