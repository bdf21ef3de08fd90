// Package hosttest plays the operating systems of nodes for the tests of node
// actions: what commands answer, how long they take, and how they fail.
package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts"
)

// Host is one host. Set its fields before it is used.
type Host struct {
	Name     string
	Release  string // os-release
	Firewall bool
	Repos    []string // enabled
	Kubelet  string   // installed
	Running  string   // since the last boot
	Arch     string
	// Packages is the kubelet that a repository brings.
	Packages map[string]string
	// BootLoader is installed, BootUpdate offered ("" none), Adoptable to be adopted.
	BootLoader, BootUpdate, Adoptable string

	// After calls f after a time; nil: at once.
	After func(d time.Duration, f func())
	// Changed is called when the host goes down or comes up.
	Changed func(h *Host)
	// Long is how long detached commands take, and Boot a restart.
	Long, Boot time.Duration
	// NeverBack: a restart does not end.
	NeverBack bool

	mu       sync.Mutex
	boots    int
	down     bool
	units    map[string]*unit
	failures []*Failure
	log      []string
}

type unit struct {
	state  string // running, exited, failed
	status int
}

// Failure is what goes wrong with commands that start so.
type Failure struct {
	Command string
	Times   int    // how often; 0: always
	Status  int    // exit status
	Stderr  string // of it
	// Lost loses the connection: before the command ran or, with Ran, after.
	Lost, Ran bool
}

// Fail makes commands fail.
func (h *Host) Fail(f Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = append(h.failures, &f)
}

// Mend takes all failures away.
func (h *Host) Mend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = nil
}

// Log are the commands that changed something, in order.
func (h *Host) Log() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

// Down reports whether the host is off or starting.
func (h *Host) Down() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down
}

// BootID is the present boot's.
func (h *Host) BootID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bootID()
}

func (h *Host) bootID() string { return fmt.Sprintf("%s-boot-%d", h.Name, h.boots+1) }

// ErrLost is a connection that is lost, or that there never was.
var ErrLost = errors.New("connection lost")

// Exec runs a command. lost reports that its end is not known.
func (h *Host) Exec(argv []string) (stdout, stderr string, status int, lost bool) {
	var later []func()
	defer func() {
		for _, f := range later {
			f()
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return "", "", 0, true
	}
	line := strings.Join(argv, " ")
	for i, f := range h.failures {
		if !strings.HasPrefix(line, f.Command) {
			continue
		}
		if f.Times == 1 {
			h.failures = slices.Delete(h.failures, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		if f.Lost && f.Ran {
			h.exec(argv, line, &later)
		}
		return "", f.Stderr, f.Status, f.Lost
	}
	stdout, status = h.exec(argv, line, &later)
	if status != 0 {
		stdout, stderr = "", stdout
	}
	return stdout, stderr, status, false
}

func (h *Host) exec(argv []string, line string, later *[]func()) (out string, status int) {
	note := func() { h.log = append(h.log, line) }
	switch {
	case line == "cat /etc/os-release":
		return h.Release, 0
	case line == "cat /proc/sys/kernel/random/boot_id":
		return h.bootID() + "\n", 0
	case line == "uname -m":
		return h.Arch + "\n", 0
	case line == "kubelet --version":
		return "Kubernetes " + h.Kubelet + "\n", 0
	case strings.HasPrefix(line, "systemctl show firewalld.service"):
		if h.Firewall {
			return "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n", 0
		}
		return "LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n", 0
	case line == "systemctl disable --now firewalld.service":
		note()
		h.Firewall = false
		return "", 0
	case line == "subscription-manager repos --list-enabled":
		out = "+----------------------------------------------------------+\n    Available Repositories in /etc/yum.repos.d/redhat.repo\n+----------------------------------------------------------+\n"
		for _, r := range h.Repos {
			out += "Repo ID:   " + r + "\nRepo Name: " + r + "\nEnabled:   1\n\n"
		}
		return out, 0
	case strings.HasPrefix(line, "subscription-manager repos "):
		note()
		return h.subscribe(argv[2:])
	case argv[0] == "systemctl" && argv[1] == "show":
		return h.show(argv[2]), 0
	case argv[0] == "systemctl" && (argv[1] == "stop" || argv[1] == "reset-failed"):
		if h.units[argv[2]] == nil {
			return "Unit " + argv[2] + " not loaded.", 5
		}
		delete(h.units, argv[2])
		return "", 0
	case argv[0] == "journalctl":
		return "the last lines of the journal\n", 0
	case argv[0] == "systemd-run":
		note()
		return h.detach(argv, later)
	case line == "systemctl reboot":
		note()
		h.down = true
		*later = append(*later, h.reboot)
		return "", 0
	case line == "bootupctl status":
		return h.bootStatus(), 0
	}
	return line + ": command not found", 127
}

func (h *Host) subscribe(argv []string) (string, int) {
	for _, a := range argv {
		if id, ok := strings.CutPrefix(a, "--disable="); ok {
			h.Repos = slices.DeleteFunc(h.Repos, func(r string) bool { return r == id })
		}
		if id, ok := strings.CutPrefix(a, "--enable="); ok {
			if _, known := h.Packages[id]; !known {
				return fmt.Sprintf("Error: '%s' does not match a valid repository ID.", id), 1
			}
			h.Repos = append(h.Repos, id)
		}
	}
	return "", 0
}

func (h *Host) show(name string) string {
	u := h.units[name]
	if u == nil {
		return "LoadState=not-found\nActiveState=inactive\nSubState=dead\nExecMainStatus=0\n"
	}
	active := "active"
	if u.state == "failed" {
		active = "failed"
	}
	return fmt.Sprintf("LoadState=loaded\nActiveState=%s\nSubState=%s\nExecMainStatus=%d\n", active, u.state, u.status)
}

// detach starts a unit.
func (h *Host) detach(argv []string, later *[]func()) (string, int) {
	at := slices.Index(argv, "--")
	name := ""
	for _, a := range argv[:at] {
		if n, ok := strings.CutPrefix(a, "--unit="); ok {
			name = n
		}
	}
	if h.units[name] != nil {
		return "Unit " + name + " was already loaded", 1
	}
	if h.units == nil {
		h.units = map[string]*unit{}
	}
	u := &unit{state: "running"}
	h.units[name] = u
	end := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.units[name] != u {
			return // the host was restarted
		}
		u.status = h.effect(strings.Join(argv[at+1:], " "))
		if u.status == 0 {
			u.state = "exited"
		} else {
			u.state = "failed"
		}
	}
	*later = append(*later, func() { h.after(h.Long, end) })
	return "", 0
}

// effect is what a detached command does in the end.
func (h *Host) effect(line string) int {
	for i, f := range h.failures {
		if strings.HasPrefix("unit "+line, f.Command) {
			if f.Times == 1 {
				h.failures = slices.Delete(h.failures, i, i+1)
			}
			return f.Status
		}
	}
	switch {
	case strings.HasPrefix(line, "yum --assumeyes update"):
		for _, r := range h.Repos {
			if v := h.Packages[r]; v != "" {
				h.Kubelet = v
			}
		}
	case line == "bootupctl adopt-and-update":
		if h.Adoptable != "" {
			h.BootLoader, h.Adoptable, h.BootUpdate = h.Adoptable, "", ""
		}
	case line == "bootupctl update":
		if h.BootUpdate != "" {
			h.BootLoader, h.BootUpdate = h.BootUpdate, ""
		}
	default:
		return 127
	}
	return 0
}

func (h *Host) bootStatus() string {
	out := "No components installed.\n"
	if h.BootLoader != "" {
		update := "At latest version"
		if h.BootUpdate != "" {
			update = "Available: " + h.BootUpdate
		}
		out = "Component EFI\n  Installed: " + h.BootLoader + "\n  Update: " + update + "\n"
	}
	if h.Adoptable == "" {
		return out + "No components are adoptable.\nBoot method: EFI\n"
	}
	return out + "Adoptable: EFI: " + h.Adoptable + "\nBoot method: EFI\n"
}

func (h *Host) after(d time.Duration, f func()) {
	if h.After == nil {
		f()
		return
	}
	h.After(d, f)
}

// reboot takes the host down and brings it up again.
func (h *Host) reboot() {
	h.changed()
	if h.NeverBack {
		return
	}
	h.after(h.Boot, h.Start)
}

// Start brings a host up that is down.
func (h *Host) Start() {
	h.mu.Lock()
	h.down, h.units, h.Running = false, nil, h.Kubelet
	h.boots++
	h.mu.Unlock()
	h.changed()
}

func (h *Host) changed() {
	if h.Changed != nil {
		h.Changed(h)
	}
}

// Hosts are hosts by the names of their nodes. It is a [hosts.Runner].
type Hosts map[string]*Host

// Run implements [hosts.Runner].
func (hs Hosts) Run(ctx context.Context, n *corev1.Node, argv ...string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	h := hs[n.Name]
	if h == nil {
		return "", fmt.Errorf("no host %s", n.Name)
	}
	stdout, stderr, status, lost := h.Exec(argv)
	if lost {
		return "", ErrLost
	}
	if status != 0 {
		return "", &hosts.ExitError{Command: strings.Join(argv, " "), Status: status, Stderr: stderr}
	}
	return stdout, nil
}
