package sshhost_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/bootloader"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/hosttest"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/rhel"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/sshhost"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

func node() *corev1.Node { return actiontest.Node("w0", "worker") }

func echo(argv []string) answer { return answer{stdout: strings.Join(argv, "|")} }

func TestRun(t *testing.T) {
	s := serve(t, echo)
	for _, user := range []string{"", "root"} {
		h := s.hosts(t, func(o *sshhost.Options) { o.User = user })
		words := []string{"printf", "", "a b", "it's", `"$HOME" $(id) \n`, "-x", "ä\n", "*", "~", "a=b", "!"}
		got, err := h.Run(t.Context(), node(), words...)
		if err != nil || got != strings.Join(words, "|") {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := s.hosts(t).Run(t.Context(), node(), "a\x00b"); err == nil {
		t.Error("a NUL")
	}
}

func TestExit(t *testing.T) {
	long := strings.Repeat("e", 100<<10)
	s := serve(t, func(argv []string) answer {
		if argv[0] == "killed" {
			return answer{signal: "KILL"}
		}
		return answer{stdout: "half", stderr: long, status: 3}
	})
	_, err := s.hosts(t).Run(t.Context(), node(), "yum", "update")
	exit, ok := errors.AsType[*hosts.ExitError](err)
	if !ok || exit.Status != 3 || exit.Command != "yum update" || hosts.IsPermanent(err) || len(err.Error()) > 3000 {
		t.Errorf("%.200v", err)
	}
	_, err = s.hosts(t).Run(t.Context(), node(), "killed")
	if exit, ok := errors.AsType[*hosts.ExitError](err); !ok || exit.Status != -1 || exit.Error() != "killed: ended by a signal" {
		t.Errorf("%v", err)
	}
}

// A host that is not the one it should be gets no command, and no password.
func TestHostKey(t *testing.T) {
	s := serve(t, echo)
	asked := false
	h := s.hosts(t, func(o *sshhost.Options) {
		o.HostKeys = ssh.FixedHostKey(newKey(t).PublicKey())
		o.Auth = []ssh.AuthMethod{ssh.PasswordCallback(func() (string, error) { asked = true; return password, nil })}
	})
	_, err := h.Run(t.Context(), node(), "true")
	if !hosts.IsPermanent(err) || !strings.Contains(err.Error(), "the key of host") || asked || len(s.lines) > 0 {
		t.Errorf("%v, asked %v, ran %q", err, asked, s.lines)
	}
}

func TestLoginRefused(t *testing.T) {
	s := serve(t, echo)
	const wrong = "battery staple"
	h := s.hosts(t, func(o *sshhost.Options) { o.Auth = []ssh.AuthMethod{ssh.Password(wrong)} })
	_, err := h.Run(t.Context(), node(), "true")
	if !hosts.IsPermanent(err) || !strings.HasSuffix(err.Error(), "refuses the login of core") || strings.Contains(err.Error(), wrong) {
		t.Errorf("%v", err)
	}
}

func TestConnectionLost(t *testing.T) {
	s := serve(t, func([]string) answer { return answer{lost: true} })
	_, err := s.hosts(t).Run(t.Context(), node(), "true")
	if _, exit := errors.AsType[*hosts.ExitError](err); err == nil || exit || hosts.IsPermanent(err) {
		t.Errorf("in mid-command: %v", err)
	}
	nobody := s.hosts(t, func(o *sshhost.Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	})
	if _, err := nobody.Run(t.Context(), node(), "true"); err == nil || hosts.IsPermanent(err) || err.Error() != "node w0: connection refused" {
		t.Errorf("nobody answers: %v", err)
	}
}

// A command that does not end is given up when the context ends, or the time is
// over.
func TestHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func([]string) answer { cancel(); return answer{hang: true} })
	if _, err := s.hosts(t).Run(ctx, node(), "sleep"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	started := make(chan struct{})
	s = serve(t, func([]string) answer { close(started); return answer{hang: true} })
	late := reconcile.WithClock(t.Context(), lateClock{clock.RealClock{}, started})
	if _, err := s.hosts(t).Run(late, node(), "sleep"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of time: %v", err)
	}
}

// lateClock is a clock whose timers end when something has happened.
type lateClock struct {
	clock.RealClock
	when <-chan struct{}
}

func (c lateClock) NewTimer(time.Duration) clock.Timer { return lateTimer(c) }

func (c lateClock) AfterFunc(_ time.Duration, f func()) clock.Timer {
	go func() { <-c.when; f() }()
	return lateTimer(c)
}

type lateTimer lateClock

func (t lateTimer) C() <-chan time.Time {
	c := make(chan time.Time, 1)
	go func() { <-t.when; c <- time.Time{} }()
	return c
}
func (t lateTimer) Stop() bool               { return true }
func (t lateTimer) Reset(time.Duration) bool { return true }

func TestOutput(t *testing.T) {
	s := serve(t, func([]string) answer { return answer{stdout: strings.Repeat("x", 100)} })
	if out, err := s.hosts(t, func(o *sshhost.Options) { o.MaxOutput = 100 }).Run(t.Context(), node(), "cat"); err != nil || len(out) != 100 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if _, err := s.hosts(t, func(o *sshhost.Options) { o.MaxOutput = 99 }).Run(t.Context(), node(), "cat"); !errors.As(err, new(*sshhost.LimitError)) {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	auth, keys := []ssh.AuthMethod{ssh.Password("")}, ssh.FixedHostKey(newKey(t).PublicKey())
	for name, o := range map[string]sshhost.Options{
		"no auth":      {HostKeys: keys},
		"no host keys": {Auth: auth},
		"negative":     {Auth: auth, HostKeys: keys, Timeout: -1},
	} {
		if _, err := sshhost.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// act steps an action by SSH until it is done, as a run does: what is lost is
// tried again.
func act(t *testing.T, a action.Action, n *corev1.Node, h *hosttest.Host) error {
	t.Helper()
	progress := ""
	for range 100 {
		n.Status.NodeInfo.BootID, n.Status.NodeInfo.KubeletVersion = h.BootID(), h.Running
		step, err := a.Step(t.Context(), n, progress)
		if hosts.IsPermanent(err) {
			return err
		}
		if err == nil {
			if progress = step.Progress; step.Done {
				return nil
			}
		}
	}
	return errors.New("it does not end")
}

// Actions on a host by SSH, where the connection is lost at each command in turn,
// before or after it ran, and where each command fails.
func TestActions(t *testing.T) {
	newHosts := map[string]func() *hosttest.Host{
		"rhel": func() *hosttest.Host {
			return &hosttest.Host{Name: "w0", Release: "ID=\"rhel\"\nVERSION_ID=\"8.8\"\n", Firewall: true, Arch: "x86_64",
				Repos: []string{"rhocp-4.17-for-rhel-8-x86_64-rpms"}, Kubelet: "v1.30.7", Running: "v1.30.7",
				Packages: map[string]string{"rhocp-4.18-for-rhel-8-x86_64-rpms": "v1.31.4"}}
		},
		"bootloader": func() *hosttest.Host {
			return &hosttest.Host{Name: "w0", BootLoader: "grub2-1", BootUpdate: "grub2-2"}
		},
	}
	actions := map[string]func(hosts.Runner) (plan.Action, error){
		"rhel": func(h hosts.Runner) (plan.Action, error) {
			return rhel.New(rhel.Options{Hosts: h, Version: "4.18"})
		},
		"bootloader": func(h hosts.Runner) (plan.Action, error) {
			return bootloader.New(bootloader.Options{Hosts: h, Reboot: true})
		},
	}
	for name, newAction := range actions {
		play := func(at int, f hosttest.Failure) (h *hosttest.Host, calls int, err error) {
			h = newHosts[name]()
			s := serve(t, func(argv []string) answer {
				if calls++; calls == at {
					f.Times = 1
					h.Fail(f)
				}
				stdout, stderr, status, lost := h.Exec(argv)
				return answer{stdout: stdout, stderr: stderr, status: uint32(status), lost: lost}
			})
			a := action.Of(checktest.Get(newAction(s.hosts(t)))(t))
			err = act(t, a, node(), h)
			return h, calls, err
		}
		_, calls, err := play(0, hosttest.Failure{})
		if err != nil || calls < 8 {
			t.Fatalf("%s: %d calls, %v", name, calls, err)
		}
		for at := 1; at <= calls; at++ {
			for _, f := range []hosttest.Failure{{Lost: true}, {Lost: true, Ran: true}} {
				h, _, err := play(at, f)
				reboots := strings.Count(strings.Join(h.Log(), "\n"), "systemctl reboot")
				if err != nil || h.Running != h.Kubelet || h.BootUpdate != "" || reboots != 1 {
					t.Errorf("%s, call %d lost, ran %v: %v, %d reboots, %q", name, at, f.Ran, err, reboots, h.Log())
				}
			}
			_, _, err := play(at, hosttest.Failure{Status: 1, Stderr: "no"})
			if exit, ok := errors.AsType[*hosts.ExitError](err); err != nil && (!ok || exit.Status != 1) {
				t.Errorf("%s, call %d fails: %v", name, at, err)
			}
		}
	}
}
