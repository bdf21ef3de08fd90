package bootloader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Options are the options of [New].
type Options struct {
	// Hosts runs commands on the nodes; required.
	Hosts hosts.Runner
	// Reboot restarts each node after its boot loader was updated, so that the update
	// is in effect. The zero value leaves that to the next restart and disturbs no
	// node.
	Reboot bool
}

// name is the name of the action.
const name = "bootloader"

// updater is an [action.Action] that updates the boot loader of a RHCOS host.
// It is safe for concurrent use if its Hosts are.
type updater struct{ o Options }

// New returns the action, and an error for options that cannot work.
func New(o Options) (plan.Action, error) {
	if o.Hosts == nil {
		return nil, errors.New("bootloader.Options: Hosts is required")
	}
	return action.New(&updater{o}), nil
}

// Name implements [action.Action].
func (a *updater) Name() string { return name }

// Needed implements [action.Checker].
func (a *updater) Needed(ctx context.Context, n *corev1.Node) (bool, error) {
	s, err := a.status(ctx, n)
	return s.Needed(), action.PermanentExit(err)
}

// The progress of an update: what is being done.
const (
	begin   = ""
	adopt   = "adopt"
	update  = "update"
	forget  = "forget"
	restart = "reboot " // with the boot ID before
	poll    = 5 * time.Second
)

// Step implements [action.Action]. Its errors are permanent where bootupctl
// ran and failed, or did not do what it was asked for.
func (a *updater) Step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	step, err := a.step(ctx, n, progress)
	return step, action.PermanentExit(err)
}

func (a *updater) step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	switch progress {
	case begin:
		s, err := a.status(ctx, n)
		return action.Step{Done: !s.Needed(), Progress: next(s)}, err
	case adopt:
		return a.run(ctx, n, adopt, "adopt-and-update")
	case update:
		return a.run(ctx, n, update, "update")
	case forget:
		return action.Step{Done: true}, a.forget(ctx, n, "adopt-and-update", "update")
	}
	if before, ok := strings.CutPrefix(progress, restart); ok {
		return action.Reboot(ctx, a.o.Hosts, n, before, progress)
	}
	return action.Step{}, hosts.Permanent(fmt.Errorf("the recorded progress is not known: %q", progress))
}

// next describes what a boot loader needs; "": nothing.
func next(s status) string {
	switch {
	case len(s.Adoptable) > 0:
		return adopt
	case s.updates():
		return update
	}
	return ""
}

// run runs a verb of bootupctl to its end. It is not ended by a lost connection:
// an update that is interrupted can leave the host unable to start.
func (a *updater) run(ctx context.Context, n *corev1.Node, progress, verb string) (action.Step, error) {
	done, err := action.RunDetached(ctx, a.o.Hosts, n, unit+verb, "bootupctl", verb)
	if err != nil {
		return action.Step{}, err
	}
	if !done {
		return action.Step{Progress: progress, After: poll, Waiting: "bootupctl " + verb}, nil
	}
	s, err := a.status(ctx, n)
	if err != nil {
		return action.Step{}, err
	}
	switch todo := next(s); {
	case todo == progress || todo == adopt:
		if err := a.forget(ctx, n, verb); err != nil {
			return action.Step{}, err
		}
		return action.Step{}, hosts.Permanent(fmt.Errorf("bootupctl %s has run on node %s, and bootupctl status still asks for %s", verb, n.Name, todo))
	case todo != "":
		return action.Step{Progress: todo}, nil
	case !a.o.Reboot:
		return action.Step{Progress: forget}, nil
	}
	boot, err := action.BootID(ctx, a.o.Hosts, n)
	return action.Step{Progress: restart + boot}, err
}

// unit is the prefix of the names of detached commands.
const unit = "bootupctl-"

// forget lets verbs be run again, another time.
func (a *updater) forget(ctx context.Context, n *corev1.Node, verbs ...string) error {
	for _, verb := range verbs {
		if err := action.Forget(ctx, a.o.Hosts, n, unit+verb); err != nil {
			return err
		}
	}
	return nil
}

func (a *updater) status(ctx context.Context, n *corev1.Node) (status, error) {
	out, err := a.o.Hosts.Run(ctx, n, "bootupctl", "status")
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(out)
	return s, hosts.Permanent(err)
}
