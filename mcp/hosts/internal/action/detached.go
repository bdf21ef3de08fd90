package action

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/mcp/hosts"
)

// maxRecorded is the most bytes of a journal that an error has.
const maxRecorded = 2000

// exitStatus returns the status of a command that ran and failed.
func exitStatus(err error) (*hosts.ExitError, bool) { return errors.AsType[*hosts.ExitError](err) }

// PermanentExit marks the error of a command that ran and failed as one that trying again
// does not mend: see [hosts.Permanent]. It returns all else as it is.
func PermanentExit(err error) error {
	if _, failed := exitStatus(err); failed {
		return hosts.Permanent(err)
	}
	return err
}

// unitPrefix stands before the names of the units that RunDetached starts.
const unitPrefix = "clusterupdate-"

// RunDetached runs a command as a unit of the host's systemd, so that neither a lost
// connection nor a crash of this program ends it half way, and waits for nothing: done
// reports that it has ended well. It is called again until then, also after a crash,
// with the same name; a command that is running, or has ended well, is not started again
// until [Forget], or until the host is restarted. That it failed is an
// [*hosts.ExitError], once: the next call starts it again. The other errors are those of
// [hosts.Runner].
func RunDetached(ctx context.Context, h hosts.Runner, n *corev1.Node, name string, argv ...string) (done bool, err error) {
	unit := unitOf(name)
	out, err := h.Run(ctx, n, "systemctl", "show", unit, "--property=LoadState,ActiveState,SubState,ExecMainStatus")
	if err != nil {
		return false, err
	}
	state := properties(out)
	switch {
	case state["LoadState"] == "not-found":
		_, err = h.Run(ctx, n, append([]string{"systemd-run", "--quiet", "--unit=" + unit, "--remain-after-exit", "--"}, argv...)...)
		return false, err
	case state["ActiveState"] == "active" && state["SubState"] == "exited":
		return true, nil
	case state["ActiveState"] == "failed":
		failure := &hosts.ExitError{Command: strings.Join(argv, " "), Status: -1}
		if _, err := fmt.Sscanf(state["ExecMainStatus"], "%d", &failure.Status); err != nil {
			failure.Status = -1
		}
		failure.Stderr, err = h.Run(ctx, n, "journalctl", "--unit="+unit, "--lines=20", "--output=cat")
		if err != nil {
			failure.Stderr = ""
		}
		failure.Stderr = bounded.Text(failure.Stderr, maxRecorded)
		if _, err := h.Run(ctx, n, "systemctl", "reset-failed", unit); err != nil {
			return false, err
		}
		return false, failure
	}
	return false, nil // it runs
}

// Forget makes the next [RunDetached] of a name start its command again. Its errors
// are those of [hosts.Runner].
func Forget(ctx context.Context, h hosts.Runner, n *corev1.Node, name string) error {
	_, err := h.Run(ctx, n, "systemctl", "stop", unitOf(name))
	if exit, ok := exitStatus(err); ok && exit.Status == unitNotLoaded {
		return nil
	}
	return err
}

// unitNotLoaded is the exit status of systemctl for a unit that there is not.
const unitNotLoaded = 5

func unitOf(name string) string { return unitPrefix + name + ".service" }

// properties reads the output of systemctl show.
func properties(out string) map[string]string {
	p := map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			p[name] = value
		}
	}
	return p
}

// BootID returns the identity of the present boot of a host. Its errors are
// those of [hosts.Runner].
func BootID(ctx context.Context, h hosts.Runner, n *corev1.Node) (string, error) {
	out, err := h.Run(ctx, n, "cat", "/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	out = strings.TrimSpace(out)
	if out == "" {
		return "", errors.New("the host has no boot ID")
	}
	return out, nil
}

// bootPoll is how long to wait between two looks at a host that starts.
const bootPoll = 15 * time.Second

// Reboot restarts a host whose boot had the ID before, and waits until its node
// is Ready after that. The result is the step of an [Action] whose progress stays
// progress meanwhile. A host that does not answer is waited for. Its error is
// that the host refuses to restart.
func Reboot(ctx context.Context, h hosts.Runner, n *corev1.Node, before, progress string) (Step, error) {
	wait := Step{Progress: progress, After: bootPoll, Waiting: "its host to come back"}
	now, err := BootID(ctx, h, n)
	if err != nil && hosts.IsPermanent(err) {
		return Step{}, err
	}
	if err != nil {
		return wait, nil // it is down, or coming up
	}
	if now == before {
		_, err := h.Run(ctx, n, "systemctl", "reboot")
		if exit, ok := exitStatus(err); ok && exit.Status > 0 {
			return Step{}, err
		}
		return wait, nil // the connection may go with the host
	}
	var started bool
	started, wait.Waiting = Started(n, before)
	if !started {
		return wait, nil
	}
	return Step{Done: true}, nil
}
