package rhel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/hosttest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/rhel"
	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

const release86 = "NAME=\"Red Hat Enterprise Linux\"\nVERSION=\"8.6 (Ootpa)\"\nID=\"rhel\"\nVERSION_ID=\"8.6\"\nPRETTY_NAME=\"Red Hat Enterprise Linux 8.6 (Ootpa)\"\n"

// newHost is a host of OpenShift 4.17 that can get 4.18.
func newHost(name string) *hosttest.Host {
	return &hosttest.Host{Name: name, Release: release86, Firewall: true, Arch: "x86_64",
		Repos: []string{"rhel-8-for-x86_64-baseos-rpms", "rhocp-4.17-for-rhel-8-x86_64-rpms"}, Kubelet: "v1.30.7", Running: "v1.30.7",
		Packages: map[string]string{"rhocp-4.17-for-rhel-8-x86_64-rpms": "v1.30.7", "rhocp-4.18-for-rhel-8-x86_64-rpms": "v1.31.4"}}
}

// worldOf has hosts whose nodes go with them, and a pod on each.
func worldOf(n int, objs ...any) (*actiontest.World, hosttest.Hosts) {
	hosts := hosttest.Hosts{}
	for i := range n {
		name := fmt.Sprint("w", i)
		node := actiontest.Node(name, "worker")
		node.Status.NodeInfo.OSImage = "Red Hat Enterprise Linux 8.6 (Ootpa)"
		objs = append(objs, node, actiontest.Pod("web-"+name, name))
		hosts[name] = newHost(name)
	}
	w := actiontest.New(objs...)
	for _, h := range hosts {
		h.Long, h.Boot = 3*time.Minute, 2*time.Minute
		h.After = func(d time.Duration, f func()) { w.Clock.AfterFunc(d, f) }
		h.Changed = func(h *hosttest.Host) {
			if h.Down() {
				w.SetNode(h.Name, false, "", "")
				return
			}
			w.Clock.AfterFunc(20*time.Second, func() { w.SetNode(h.Name, true, h.BootID(), h.Running) })
		}
	}
	return w, hosts
}

func newAction(t testing.TB, hosts hosts.Runner) action.Action {
	t.Helper()
	return action.Of(checktest.Get(rhel.New(rhel.Options{Hosts: hosts, Version: "4.18.15"}))(t))
}

// updated says what of the hosts is not as it should be after the update.
func updated(hosts hosttest.Hosts) error {
	for name, h := range hosts {
		if h.Running != "v1.31.4" || h.Firewall || !cmp.Equal(h.Repos, []string{"rhel-8-for-x86_64-baseos-rpms", "rhocp-4.18-for-rhel-8-x86_64-rpms"}) {
			return fmt.Errorf("host %s: kubelet %s, firewall %v, %v", name, h.Running, h.Firewall, h.Repos)
		}
		restarts := 0
		for _, line := range h.Log() {
			if line == "systemctl reboot" {
				restarts++
			}
		}
		if restarts != 1 {
			return fmt.Errorf("host %s was restarted %d times", name, restarts)
		}
	}
	return nil
}

func fail(command string, status int, stderr string) func(h *hosttest.Host) {
	return func(h *hosttest.Host) { h.Fail(hosttest.Failure{Command: command, Status: status, Stderr: stderr}) }
}

// planned is a world in which a plan updates two hosts.
func planned(t testing.TB) (*actiontest.World, hosttest.Hosts, plan.Plan) {
	w, machines := worldOf(2, actiontest.Version("4.18.15"))
	p, _, err := hosts.PlanRHEL(w.State(), hosts.RHELOptions{ID: "hosts", Update: "update", Prepared: true})
	checktest.OK(t, err)
	return w, machines, p
}

// The action in a plan: it waits where a person would, and a connection that is
// lost for some minutes does not matter.
func TestPlan(t *testing.T) {
	w, hosts, p := planned(t)
	hosts["w1"].Fail(hosttest.Failure{Lost: true, Times: 5})
	checktest.OK(t, w.Play(0, reconcile.Faults{}, 3*time.Hour, newAction(t, hosts), plan.Options{Plan: p}))
	checktest.Good(t, updated(hosts))
	for _, n := range w.State().Nodes {
		if left := n.Annotations["clusterupdate.github.io/progress.rhel"]; n.Spec.Unschedulable || !strings.HasPrefix(left, `{"version":1,"done":"plan hosts, step update-`+n.Name) {
			t.Errorf("node %s: unschedulable %v, %v", n.Name, n.Spec.Unschedulable, n.Annotations)
		}
	}
	w.Golden(t, "plan.txt")
}

// What may go wrong on a host, and what becomes of it: the step fails, the node stays
// cordoned and the next one is not begun, or it is tried again. After it is mended, the
// plan is resumed and finishes.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(h *hosttest.Host)
		halts string // "": it continues by itself
		mend  func(h *hosttest.Host)
		after time.Duration // since the action began
	}{
		{name: "the firewall cannot be stopped", set: fail("systemctl disable", 1, "Access denied"), halts: "systemctl disable --now firewalld.service: exit status 1: Access denied"},
		{name: "not registered", set: fail("subscription-manager repos --list-enabled", 1, "This system has no repositories available"), halts: "This system has no repositories available"},
		{name: "no such repository", set: func(h *hosttest.Host) { delete(h.Packages, "rhocp-4.18-for-rhel-8-x86_64-rpms") },
			mend:  func(h *hosttest.Host) { h.Packages["rhocp-4.18-for-rhel-8-x86_64-rpms"] = "v1.31.4" },
			halts: "'rhocp-4.18-for-rhel-8-x86_64-rpms' does not match a valid repository ID"},
		{name: "yum fails", set: fail("unit yum", 1, ""), halts: "yum --assumeyes update cri-o openshift-clients openshift-hyperkube openshift-kubelet: exit status 1: the last lines of the journal"},
		{name: "yum cannot be started", set: fail("systemd-run", 1, "Failed to start transient service unit"), halts: "Failed to start transient service unit"},
		{name: "yum brings the wrong kubelet", set: func(h *hosttest.Host) { h.Packages["rhocp-4.18-for-rhel-8-x86_64-rpms"] = "v1.30.9" },
			mend:  func(h *hosttest.Host) { h.Packages["rhocp-4.18-for-rhel-8-x86_64-rpms"] = "v1.31.4" },
			halts: "the packages were updated, and the kubelet is v1.30.9; 1.31 is expected"},
		{name: "the reboot is refused", set: fail("systemctl reboot", 1, "Call to Reboot failed"), halts: "systemctl reboot: exit status 1: Call to Reboot failed"},
		{name: "the host does not come back", set: func(h *hosttest.Host) { h.NeverBack = true },
			mend:  func(h *hosttest.Host) { h.NeverBack = false; h.Start() },
			halts: "; it waits for its host to come back", after: time.Hour},
		{name: "RHEL 7", set: func(h *hosttest.Host) { h.Release = strings.ReplaceAll(release86, "8.6", "7.9") },
			mend:  func(h *hosttest.Host) { h.Release = release86 },
			halts: "cannot be updated in place: replace the machine by one with RHEL 8.6 or later"},
		{name: "the host does not answer", set: func(h *hosttest.Host) { h.Fail(hosttest.Failure{Lost: true}) }, halts: "connection lost", after: 30 * time.Minute},
		{name: "it does not answer for some minutes", set: func(h *hosttest.Host) { h.Fail(hosttest.Failure{Lost: true, Times: 20}) }},
		{name: "the connection is lost while packages are updated", set: func(h *hosttest.Host) {
			h.Fail(hosttest.Failure{Command: "systemd-run", Lost: true, Ran: true, Times: 1})
		}},
		{name: "it is lost when the repositories have been switched", set: func(h *hosttest.Host) {
			h.Fail(hosttest.Failure{Command: "subscription-manager repos --disable", Lost: true, Ran: true, Times: 1})
		}},
		{name: "it is lost at the reboot", set: func(h *hosttest.Host) {
			h.Fail(hosttest.Failure{Command: "systemctl reboot", Lost: true, Ran: true, Times: 1})
		}},
		{name: "it is lost before the reboot", set: func(h *hosttest.Host) { h.Fail(hosttest.Failure{Command: "systemctl reboot", Lost: true, Times: 1}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, hosts, p := planned(t)
			tt.set(hosts["w0"])
			err := w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, hosts), plan.Options{Plan: p})
			if tt.halts != "" {
				if said := strings.Join(w.Lines, "\n"); err == nil || err.Error() != "the plan is Failed" || !strings.Contains(said, tt.halts) {
					t.Fatalf("%v\n%s", err, said)
				}
				if took := w.Now().Sub(mcptest.Epoch); took < tt.after || took > tt.after+10*time.Minute {
					t.Errorf("it failed after %s, not some minutes after %s", took, tt.after)
				}
				if !w.NodeOf("w0").Spec.Unschedulable || len(hosts["w1"].Log()) > 0 {
					t.Error("the node is not left cordoned, or the next one was begun")
				}
				hosts["w0"].Mend()
				if tt.mend != nil {
					tt.mend(hosts["w0"])
				}
				err = w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, hosts), plan.Options{Plan: p, Mode: plan.Resume})
			}
			checktest.Good(t, errors.Join(err, updated(hosts)))
		})
	}
}

// Whatever goes wrong with the cluster's API or the program, the plan updates all
// hosts one by one, and none twice.
func TestSimulation(t *testing.T) {
	simtest.Test(t, 0.25, func(seed uint64, only map[string]bool) ([]string, error) {
		w, hosts, p := planned(t)
		return w.Storm(seed, only, newAction(t, hosts), p, func() error { return updated(hosts) })
	})
}

// Wherever the program crashes, before or after a call took effect, the next one
// finishes, and no host is restarted twice.
func TestCrashAtEachCall(t *testing.T) {
	actiontest.CrashAtEachCall(t, func() (*actiontest.World, func() error) {
		w, hosts, p := planned(t)
		return w, func() error {
			err := w.Play(0, reconcile.Faults{}, 6*time.Hour, newAction(t, hosts), plan.Options{Plan: p})
			return errors.Join(err, updated(hosts))
		}
	})
}
