package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// daemons plays each node's machine-config daemon, kubelet and host. The daemon
// talks with the controller by annotations; it takes the same steps in the same
// order as the machine-config operator's daemon.
func (p *process) daemons() *behaviour {
	runs := make(map[string]*daemonRun)
	return &behaviour{
		name:    partNodes,
		watches: []reconcile.Watch{p.watch(kindNode, unless(alike(sameForDaemon), wakeChanged(p.c.timing.Daemon)))},
		look: func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			stored := p.nodes.Get(named(r.Key))
			if stored == nil {
				delete(runs, r.Key.Name)
				return reconcile.Result{}, nil
			}
			run := runs[r.Key.Name]
			if run == nil {
				run = new(daemonRun)
				runs[r.Key.Name] = run
			}
			return p.lookAtNode(ctx, run, stored, r)
		},
	}
}

// sameForDaemon reports whether nothing of a node changed that a daemon, kubelet or
// host looks at.
func sameForDaemon(a, b *corev1.Node) bool {
	return a.UID == b.UID && a.Spec.Unschedulable == b.Spec.Unschedulable && isUp(a) == isUp(b) &&
		a.Status.NodeInfo.BootID == b.Status.NodeInfo.BootID && maps.Equal(a.Annotations, b.Annotations)
}

// daemonRun is what a daemon remembers of the update it is at. After a restart
// it is derived again from the node's annotations.
type daemonRun struct {
	config string    // being applied; empty when none is
	staged time.Time // when applying began; zero before
	asked  string    // the drain or uncordon that was asked for
	since  time.Time // when
	poll   time.Time // when to look at it next
}

// nodeStep is one decision about a node: what to write, and when to look
// again.
type nodeStep struct {
	annotations map[string]string // an empty value deletes the annotation, but not AnnotationReason's
	status      func(*corev1.NodeStatus)
	remove      bool // delete the Node
	again       time.Duration
	shown       bool // the fault has an effect
}

func (s *nodeStep) set(key, value string) {
	if s.annotations == nil {
		s.annotations = make(map[string]string)
	}
	s.annotations[key] = value
}

func (p *process) lookAtNode(ctx context.Context, run *daemonRun, stored *clusterapi.Object, r reconcile.Request) (reconcile.Result, error) {
	none := reconcile.Result{}
	node, err := clusterapi.As[corev1.Node](stored)
	if err != nil {
		return none, err
	}
	next := *run // kept once it is written what follows from it
	d := &daemon{p: p, ctx: ctx, node: node, run: &next, now: r.Now, fault: p.c.faults.of("node/"+node.Name, nil, r.Now)}
	step, err := d.decide()
	if err != nil {
		return none, err
	}
	if step.shown && d.fault != nil {
		step.again = shorter(step.again, p.c.faults.shows(d.fault, r.Now))
	}
	if step.remove {
		return none, p.remove(ctx, stored)
	}
	if len(step.annotations) > 0 {
		stored, err = p.annotate(ctx, stored, step.annotations, mcp.AnnotationReason, mcp.AnnotationPostConfigAction)
		if err != nil {
			return none, err
		}
	}
	if step.status != nil {
		if _, err := change(ctx, p, stored, true, func(n *corev1.Node) { step.status(&n.Status) }); err != nil {
			return none, err
		}
	}
	*run = next
	return later(r, step.again), nil
}

// daemon decides what happens next on one node.
type daemon struct {
	p     *process
	ctx   context.Context
	node  *corev1.Node // shared, must not be changed
	run   *daemonRun
	now   time.Time
	fault *Fault
}

func (d *daemon) annotation(key string) string { return d.node.Annotations[key] }

// onDisk is the config on the host's disk.
func (d *daemon) onDisk() string {
	if disk := d.annotation(annotationDisk); disk != "" {
		return disk
	}
	return d.annotation(mcp.AnnotationCurrentConfig)
}

func (d *daemon) decide() (*nodeStep, error) {
	if d.annotation(mcp.AnnotationPostConfigAction) == mcp.PostConfigActionRebooting {
		return d.reboot()
	}
	if !isUp(d.node) {
		return &nodeStep{}, nil // no daemon runs
	}
	current, desired := d.annotation(mcp.AnnotationCurrentConfig), d.annotation(mcp.AnnotationDesiredConfig)
	step := &nodeStep{}
	switch {
	case desired == "":
		return step, nil // not targeted yet
	case current == "":
		// A node that has just joined booted into what its pool wants.
		step.set(mcp.AnnotationCurrentConfig, desired)
		step.set(mcp.AnnotationState, mcp.StateDone)
		step.set(mcp.AnnotationReason, "")
		return step, nil
	}
	if d.waits(step) {
		return step, nil
	}
	disk := d.onDisk()
	switch {
	case disk != current && disk == desired:
		d.finish(step, disk)
	case disk != current:
		return step, d.update(step, disk, desired) // retargeted in the meantime: on without uncordoning
	case desired != current || d.run.config != "" || d.inFlight() != "":
		return step, d.update(step, current, desired)
	case d.fault.is(FaultNodeDegraded):
		d.degrade(step, mcp.StateDegraded, d.fault.message())
		step.shown = true
	case d.state() == mcp.StateDegraded && !d.node.Spec.Unschedulable:
		// Drift that has been put right: done without drain and reboot.
		step.set(mcp.AnnotationState, mcp.StateDone)
		step.set(mcp.AnnotationReason, "")
	case d.state() != mcp.StateDone:
		d.finish(step, current)
	}
	return step, nil
}

// state is the daemon's; absent reads as Done.
func (d *daemon) state() string {
	if s := d.annotation(mcp.AnnotationState); s != "" {
		return s
	}
	return mcp.StateDone
}

// inFlight is the config that the daemon asked a drain for and has not
// finished, for a daemon that has been restarted.
func (d *daemon) inFlight() string {
	config, ok := strings.CutPrefix(d.annotation(mcp.AnnotationDesiredDrain), mcp.DrainVerbDrain+"-")
	if !ok || config == d.onDisk() || d.state() != mcp.StateWorking {
		return ""
	}
	return config
}

// waits reports whether a drain or uncordon that the daemon asked for is awaited;
// it looks every DrainPoll, not when something changes.
func (d *daemon) waits(step *nodeStep) bool {
	asked := d.annotation(mcp.AnnotationDesiredDrain)
	if asked == "" {
		return false
	}
	t := &d.p.c.timing
	if d.run.asked != asked { // restarted, or asked by another
		if asked == d.annotation(mcp.AnnotationLastAppliedDrain) {
			return false
		}
		d.run.asked, d.run.since, d.run.poll = asked, d.now, d.now.Add(t.DrainPoll)
	}
	if left := d.run.poll.Sub(d.now); left > 0 {
		step.again = left
		return true
	}
	if asked == d.annotation(mcp.AnnotationLastAppliedDrain) {
		return false
	}
	d.run.poll = d.now.Add(max(t.DrainPoll, time.Millisecond))
	step.again = d.run.poll.Sub(d.now)
	waited := d.now.Sub(d.run.since)
	uncordon := strings.HasPrefix(asked, mcp.DrainVerbUncordon+"-")
	if !uncordon && waited >= t.DrainLimit {
		d.run.config = "" // failed: afterwards the target is read again
	}
	switch {
	case uncordon && waited >= t.UncordonLimit:
		d.degrade(step, mcp.StateDegraded, fmt.Sprintf("failed to uncordon node: %s after %s. Please see machine-config-controller logs for more information", d.node.Name, durationText(t.UncordonLimit)))
	case !uncordon && waited >= t.DrainLimit:
		d.degrade(step, mcp.StateDegraded, fmt.Sprintf("failed to drain node: %s after %s. Please see machine-config-controller logs for more information", d.node.Name, durationText(t.DrainLimit)))
	}
	return true
}

// durationText writes a duration as the daemon's messages do: "1 hour", "10 minutes".
func durationText(d time.Duration) string {
	n, unit := int(d/time.Minute), "minute"
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		n, unit = int(d/time.Hour), "hour"
	case d%time.Minute != 0:
		return d.String()
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// ask writes a request for the drain controller.
func (d *daemon) ask(step *nodeStep, verb, config string) {
	asked := verb + "-" + config
	poll := max(d.p.c.timing.DrainPoll, time.Millisecond)
	d.run.asked, d.run.since, d.run.poll = asked, d.now, d.now.Add(poll)
	step.set(mcp.AnnotationDesiredDrain, asked)
	step.again = poll
}

// degrade reports a failure.
func (d *daemon) degrade(step *nodeStep, state, reason string) {
	const longest = 2000
	if len(reason) > longest {
		reason = reason[:longest]
	}
	if d.annotation(mcp.AnnotationState) != state || d.annotation(mcp.AnnotationReason) != reason {
		step.set(mcp.AnnotationState, state)
		step.set(mcp.AnnotationReason, reason)
	}
}

// finish asks for the uncordon and then reports the config on disk as current.
func (d *daemon) finish(step *nodeStep, disk string) {
	asked := mcp.DrainVerbUncordon + "-" + disk
	if d.annotation(mcp.AnnotationDesiredDrain) != asked {
		d.ask(step, mcp.DrainVerbUncordon, disk)
		return
	}
	*d.run = daemonRun{}
	step.set(mcp.AnnotationState, mcp.StateDone)
	step.set(mcp.AnnotationCurrentConfig, disk)
	step.set(mcp.AnnotationReason, "")
	step.set(annotationDisk, "")
}

// update brings the node from one config towards another.
func (d *daemon) update(step *nodeStep, from, desired string) error {
	if d.run.config == "" {
		d.run.config = d.inFlight()
	}
	if d.run.config == "" || d.run.config == from {
		d.run.config, d.run.staged = desired, time.Time{}
	}
	to := d.run.config
	target, err := d.config(to)
	if err != nil {
		return err
	}
	if target == nil {
		d.run.config = ""
		d.degrade(step, mcp.StateDegraded, fmt.Sprintf("machineconfig.machineconfiguration.openshift.io %q not found", to))
		step.again = d.p.c.timing.DrainPoll
		return nil
	}
	if d.fault.is(FaultNodeReturnsOld) && d.state() == mcp.StateDegraded {
		d.run.config = ""
		step.shown = true
		return nil
	}
	if s := d.state(); s != mcp.StateWorking && s != mcp.StateDegraded && s != mcp.StateUnreconcilable {
		step.set(mcp.AnnotationState, mcp.StateWorking)
		step.again = d.p.c.timing.Daemon
		return nil
	}
	if d.fault.is(FaultNodeUnreconcilable) {
		d.run.config = ""
		d.degrade(step, mcp.StateUnreconcilable, fmt.Sprintf("can't reconcile config %s with %s: %s", from, to, d.fault.message()))
		step.shown = true
		return nil
	}
	old, err := d.config(from)
	if err != nil {
		return err
	}
	reboots := old == nil || !equality.Semantic.DeepEqual(old.Object["spec"], target.Object["spec"])
	drained := mcp.DrainVerbDrain + "-" + to
	if reboots && d.annotation(mcp.AnnotationControlPlaneTopology) != mcp.TopologySingleReplica &&
		d.annotation(mcp.AnnotationLastAppliedDrain) != drained {
		d.ask(step, mcp.DrainVerbDrain, to)
		return nil
	}
	if reboots {
		if d.run.staged.IsZero() {
			d.run.staged = d.now
		}
		if left := d.run.staged.Add(d.p.c.takes(WorkApply, d.node.Name, to, d.p.c.timing.Apply)).Sub(d.now); left > 0 {
			step.again = left
			return nil
		}
	}
	d.run.config, d.run.staged = "", time.Time{}
	if d.fault.is(FaultNodeDegraded) {
		d.degrade(step, mcp.StateDegraded, d.fault.message())
		step.shown = true
		return nil
	}
	step.set(annotationDisk, to)
	if reboots {
		step.set(mcp.AnnotationPostConfigAction, mcp.PostConfigActionRebooting)
		step.set(annotationBoot, d.node.Status.NodeInfo.BootID)
	}
	return nil
}

// config reads a rendered config, nil if absent.
func (d *daemon) config(name string) (*unstructured.Unstructured, error) {
	o, err := clusterapi.GetShared(d.ctx, d.p.api, kindMachineConfig, clusterapi.Key("", name))
	if clusterapi.IsMissing(err) {
		return nil, nil
	}
	return o.Unstructured(), err
}

// reboot plays the host from the daemon's last words to its first.
func (d *daemon) reboot() (*nodeStep, error) {
	step := &nodeStep{}
	ready := nodeCondition(&d.node.Status, corev1.NodeReady)
	down := ready != nil && ready.Status != corev1.ConditionTrue
	bootID := d.node.Status.NodeInfo.BootID
	takes := d.p.c.takes(WorkReboot, d.node.Name, bootID, d.p.c.timing.Reboot)
	switch {
	case !down && bootID != d.annotation(annotationBoot):
		// Up again: the daemon takes over.
		step.set(mcp.AnnotationPostConfigAction, "")
		step.set(annotationBoot, "")
		if d.fault.is(FaultNodeReturnsOld) {
			desired := d.annotation(mcp.AnnotationDesiredConfig)
			d.degrade(step, mcp.StateDegraded, fmt.Sprintf("unexpected on-disk state validating against %s: %s", desired, d.fault.message()))
			step.shown = true
		}
	case !down:
		step.status = func(s *corev1.NodeStatus) {
			setNodeReady(s, corev1.ConditionFalse, "KubeletNotReady", "node is shutting down", metav1.NewTime(d.now))
		}
		step.again = takes
		if d.fault.is(FaultNodeReturnsOld) {
			step.set(annotationDisk, "")
			step.shown = true
		}
	case d.fault.is(FaultNodeVanishes):
		step.remove, step.shown = true, true
	case d.fault.is(FaultNodeStaysNotReady):
		step.shown = true
	default:
		if left := ready.LastTransitionTime.Add(takes).Sub(d.now); left > 0 {
			step.again = left
			return step, nil
		}
		config, err := d.config(d.onDisk())
		if err != nil {
			return nil, err
		}
		var release *release
		if config != nil {
			release = d.p.c.releaseByVersion(config.GetAnnotations()[mcp.AnnotationReleaseImageVersion])
		}
		step.status = func(s *corev1.NodeStatus) {
			setNodeReady(s, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", metav1.NewTime(d.now))
			s.NodeInfo.BootID = nextBootID(d.node.Name, bootID)
			if release != nil {
				s.NodeInfo.KubeletVersion = cmp.Or(release.KubeVersion, s.NodeInfo.KubeletVersion)
				s.NodeInfo.OSImage = osName(release)
			}
		}
	}
	return step, nil
}
