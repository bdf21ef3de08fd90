package vmhardware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/mcp/hosts"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/action"
	"github.com/clusterupdate/clusterupdate/mcp/hosts/internal/annotation"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// Machines drives the virtual machines of nodes. Package vsphere has one for vCenter. It finds a machine by the node's
// spec.providerID, and must be safe for concurrent use.
//
// An error is tried again, unless it is [hosts.Permanent]: a machine that there is
// not, a login that is refused, a task that failed for good. An error never
// contains a credential.
type Machines interface {
	// State returns what is to be known of a node's machine.
	State(ctx context.Context, n *corev1.Node) (State, error)
	// ShutDownGuest asks the operating system to shut down, and does not wait for
	// it. It is called again while the machine stays on. It must never power the
	// machine off.
	ShutDownGuest(ctx context.Context, n *corev1.Node) error
	// Upgrade upgrades the hardware of a machine that is off, and returns when that
	// is done.
	Upgrade(ctx context.Context, n *corev1.Node, version int) error
	// PowerOn starts a machine that is off.
	PowerOn(ctx context.Context, n *corev1.Node) error
}

// Power reports whether a machine runs.
type Power string

// The power states.
const (
	On        Power = "On"
	Off       Power = "Off"
	Suspended Power = "Suspended"
)

// State is what is to be known of a virtual machine.
type State struct {
	Name     string // for people
	Power    Power
	Hardware int // the version of its virtual hardware: 13 for vmx-13
	// Tools: the guest's tools run, so that it can be asked to shut down.
	Tools bool
	// Problem describes what keeps the hardware from being upgraded, such as a host
	// that is too old; "": nothing.
	Problem string
}

// Options are the options of [New].
type Options struct {
	// Machines drives the machines; nil: a person does, and the action waits for
	// that: see [hosts.Confirm].
	Machines Machines
	// Version is the hardware version to reach; 0 means [MinVersion], the oldest
	// that OpenShift supports.
	Version int
}

// MinVersion is the oldest version of virtual hardware that OpenShift supports
// on vSphere. It needs ESXi 7.0 Update 2 or later.
const MinVersion = 15

// name is the name of the action.
const name = "vmhardware"

// upgrader is an [action.Action] that upgrades the virtual hardware of nodes. It
// is safe for concurrent use if its Machines are.
type upgrader struct{ o Options }

// New returns the action, and an error for options that cannot work.
func New(o Options) (plan.Action, error) {
	if o.Version == 0 {
		o.Version = MinVersion
	}
	if o.Version < MinVersion {
		return nil, fmt.Errorf("vmhardware.Options: Version %d is too old: OpenShift needs %d or later", o.Version, MinVersion)
	}
	return action.New(&upgrader{o}), nil
}

// Name implements [action.Action].
func (a *upgrader) Name() string { return name }

// Needed implements [action.Checker]. It finds out what stands in the way before
// anything is done to the node. If a person does the work, it is always needed:
// nothing shows whether it is.
func (a *upgrader) Needed(ctx context.Context, n *corev1.Node) (bool, error) {
	if a.o.Machines == nil {
		return true, nil
	}
	s, err := a.state(ctx, n)
	if err != nil || s.Hardware >= a.o.Version && s.Power == On {
		return false, err
	}
	if s.Power == On && !s.Tools {
		return false, fmt.Errorf("the guest of virtual machine %s cannot be asked to shut down: its tools do not run", s.Name)
	}
	return true, nil
}

// state returns the state of a machine that can be upgraded.
func (a *upgrader) state(ctx context.Context, n *corev1.Node) (State, error) {
	s, err := a.o.Machines.State(ctx, n)
	switch {
	case err != nil:
		return s, err
	case s.Hardware < a.o.Version && s.Problem != "":
		return s, hosts.Permanent(fmt.Errorf("the hardware of virtual machine %s cannot be upgraded: %s", s.Name, s.Problem))
	case s.Power != On && s.Power != Off:
		return s, hosts.Permanent(fmt.Errorf("virtual machine %s is neither on nor off: %s", s.Name, s.Power))
	}
	return s, nil
}

// The progress of an upgrade.
const (
	begin  = ""
	boot   = "boot "   // with the boot ID before
	manual = "manual " // likewise, and a person does it
	poll   = 15 * time.Second
)

// Step implements [action.Action]. Its errors are those of [Machines].
func (a *upgrader) Step(ctx context.Context, n *corev1.Node, progress string) (action.Step, error) {
	before, driven := strings.CutPrefix(progress, boot)
	byHand, isManual := strings.CutPrefix(progress, manual)
	switch {
	case progress == begin && a.o.Machines == nil:
		return action.Step{Progress: manual + n.Status.NodeInfo.BootID}, nil
	case progress == begin:
		return action.Step{Progress: boot + n.Status.NodeInfo.BootID}, nil
	case isManual:
		return a.awaitPerson(n, byHand, progress), nil
	case !driven:
		return action.Step{}, hosts.Permanent(fmt.Errorf("the recorded progress is not known: %q", progress))
	case a.o.Machines == nil:
		return action.Step{}, hosts.Permanent(errors.New("an earlier runner began this with a client for the virtual machines, and there is none now"))
	}
	s, err := a.state(ctx, n)
	if err != nil {
		return action.Step{}, err
	}
	step := action.Step{Progress: progress, After: poll}
	switch upgraded := s.Hardware >= a.o.Version; {
	case s.Power == On && upgraded:
		step.Done, step.Waiting = action.Started(n, before)
		return step, nil
	case s.Power == On && !s.Tools:
		step.Waiting = fmt.Sprintf("the guest of virtual machine %s to shut down; its tools do not run, and it is never powered off", s.Name)
		return step, nil
	case s.Power == On:
		step.Waiting = fmt.Sprintf("the guest of virtual machine %s to shut down", s.Name)
		return step, a.o.Machines.ShutDownGuest(ctx, n)
	case upgraded:
		step.Waiting = fmt.Sprintf("virtual machine %s to start", s.Name)
		return step, a.o.Machines.PowerOn(ctx, n)
	default:
		step.After = 0
		return step, a.o.Machines.Upgrade(ctx, n, a.o.Version)
	}
}

// awaitPerson waits until somebody has confirmed that it is done, and the node
// has been started anew.
func (a *upgrader) awaitPerson(n *corev1.Node, before, progress string) action.Step {
	step := action.Step{Progress: progress, After: poll, Person: true}
	if action.Confirmed(n, name) {
		step.Done, step.Waiting = action.Started(n, before)
		return step
	}
	step.Waiting = fmt.Sprintf("somebody to upgrade the hardware of the virtual machine of node %s: shut down its guest (do not power it off), "+
		"upgrade its compatibility to hardware version %d or later, power it on, and annotate the node with %s=true",
		n.Name, a.o.Version, annotation.Confirmed+name)
	return step
}
