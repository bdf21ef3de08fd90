package bootloader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// Options are the options of [New].
type Options struct {
	// Hosts runs commands on the nodes; required.
	Hosts nodeaction.Hosts
	// Reboot restarts each node after its boot loader was updated, so that the update
	// is in effect. The zero value leaves that to the next restart and disturbs no
	// node.
	Reboot bool
}

// name is the name of the action.
const name = "bootloader"

// Action is a [nodeaction.Action] that updates the boot loader of a RHCOS host.
// It is safe for concurrent use if its Hosts are.
type Action struct{ o Options }

// New returns the action, and an error for options that cannot work.
func New(o Options) (*Action, error) {
	if o.Hosts == nil {
		return nil, errors.New("bootloader.Options: Hosts is required")
	}
	return &Action{o}, nil
}

// Name implements [nodeaction.Action].
func (a *Action) Name() string { return name }

// Needed implements [nodeaction.Checker].
func (a *Action) Needed(ctx context.Context, n *corev1.Node) (bool, error) {
	s, err := a.status(ctx, n)
	return s.Needed(), permanent(err)
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

// Step implements [nodeaction.Action]. Its errors are permanent where bootupctl
// ran and failed, or did not do what it was asked for.
func (a *Action) Step(ctx context.Context, n *corev1.Node, progress string) (nodeaction.Step, error) {
	step, err := a.step(ctx, n, progress)
	return step, permanent(err)
}

func permanent(err error) error {
	if _, failed := errors.AsType[*nodeaction.ExitError](err); failed {
		return nodeaction.Permanent(err)
	}
	return err
}

func (a *Action) step(ctx context.Context, n *corev1.Node, progress string) (nodeaction.Step, error) {
	switch progress {
	case begin:
		s, err := a.status(ctx, n)
		return nodeaction.Step{Done: !s.Needed(), Progress: next(s)}, err
	case adopt:
		return a.run(ctx, n, adopt, "adopt-and-update")
	case update:
		return a.run(ctx, n, update, "update")
	case forget:
		return nodeaction.Step{Done: true}, a.forget(ctx, n, "adopt-and-update", "update")
	}
	if before, ok := strings.CutPrefix(progress, restart); ok {
		return nodeaction.Reboot(ctx, a.o.Hosts, n, before, progress)
	}
	return nodeaction.Step{}, nodeaction.Permanent(fmt.Errorf("the recorded progress is not known: %q", progress))
}

// next says what a boot loader needs; "": nothing.
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
func (a *Action) run(ctx context.Context, n *corev1.Node, progress, verb string) (nodeaction.Step, error) {
	done, err := nodeaction.RunDetached(ctx, a.o.Hosts, n, unit+verb, "bootupctl", verb)
	if err != nil {
		return nodeaction.Step{}, err
	}
	if !done {
		return nodeaction.Step{Progress: progress, After: poll, Waiting: "bootupctl " + verb}, nil
	}
	s, err := a.status(ctx, n)
	if err != nil {
		return nodeaction.Step{}, err
	}
	switch todo := next(s); {
	case todo == progress || todo == adopt:
		if err := a.forget(ctx, n, verb); err != nil {
			return nodeaction.Step{}, err
		}
		return nodeaction.Step{}, nodeaction.Permanent(fmt.Errorf("bootupctl %s has run on node %s, and bootupctl status still asks for %s", verb, n.Name, todo))
	case todo != "":
		return nodeaction.Step{Progress: todo}, nil
	case !a.o.Reboot:
		return nodeaction.Step{Progress: forget}, nil
	}
	boot, err := nodeaction.BootID(ctx, a.o.Hosts, n)
	return nodeaction.Step{Progress: restart + boot}, err
}

// unit begins the names of what is run detached.
const unit = "bootupctl-"

// forget lets verbs be run again, another time.
func (a *Action) forget(ctx context.Context, n *corev1.Node, verbs ...string) error {
	for _, verb := range verbs {
		if err := nodeaction.Forget(ctx, a.o.Hosts, n, unit+verb); err != nil {
			return err
		}
	}
	return nil
}

func (a *Action) status(ctx context.Context, n *corev1.Node) (status, error) {
	out, err := a.o.Hosts.Run(ctx, n, "bootupctl", "status")
	if err != nil {
		return status{}, err
	}
	s, err := parseStatus(out)
	return s, nodeaction.Permanent(err)
}
