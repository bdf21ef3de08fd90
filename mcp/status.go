package mcp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// PoolStatus returns the status that a pool should have, starting from the one
// that it has: see [State.Status]. A pool that does not exist has none.
func PoolStatus(in Snapshot, pool string) mcfgv1.MachineConfigPoolStatus {
	s := NewState(in.Objects, in.Options)
	p := s.Pool(pool)
	if p == nil {
		return mcfgv1.MachineConfigPoolStatus{}
	}
	return s.Status(pool, p.Status, in.Now.Time)
}

// Status returns the status that a pool should have now, given the one that is
// stored. Feeding the result back changes nothing. A pool whose configuration
// is not rendered yet, or whose selector is exactly {} or invalid, keeps its
// status: it has no nodes, but it must not say that all of them are updated. It
// costs O(degraded nodes). prev is not changed.
func (s *State) Status(pool string, prev mcfgv1.MachineConfigPoolStatus, now time.Time) mcfgv1.MachineConfigPoolStatus {
	st := *prev.DeepCopy()
	p := s.pools[pool]
	if p == nil || p.goal.Config == "" || SelectsAll(p.pool.Spec.NodeSelector) || s.selectorError(pool) != nil {
		return st
	}
	w := statusWriter{s: s, p: p, prev: &prev, st: &st, now: metav1.NewTime(now)}
	w.counts()
	w.progress()
	nodes := w.nodeDegraded()
	build := w.imageBuildDegraded()
	w.degraded(nodes, build)
	w.synchronizers()
	return st
}

type statusWriter struct {
	s    *State
	p    *poolRecord
	prev *mcfgv1.MachineConfigPoolStatus
	st   *mcfgv1.MachineConfigPoolStatus
	now  metav1.Time
}

func (w *statusWriter) counts() {
	n := w.p.n
	w.st.ObservedGeneration = w.p.pool.Generation
	w.st.MachineCount = int32(n.total)
	w.st.UpdatedMachineCount = int32(n.updated)
	w.st.ReadyMachineCount = int32(n.ready)
	w.st.UnavailableMachineCount = int32(n.unavailable)
	w.st.DegradedMachineCount = int32(n.degraded)
	if w.s.o.ImageModeStatusReporting {
		w.st.UpdatedMachineCount = int32(n.mcnUpdated)
		w.st.DegradedMachineCount = int32(n.mcnDegraded)
	}
	if w.s.hasControllerConfig || w.st.CertExpirys == nil {
		w.st.CertExpirys = []mcfgv1.CertExpiry{}
		for _, c := range w.s.certificates {
			w.st.CertExpirys = append(w.st.CertExpirys, *c.DeepCopy())
		}
	}
}

func (w *statusWriter) allUpdated() bool {
	st := w.st
	return st.UpdatedMachineCount == st.MachineCount && st.ReadyMachineCount == st.MachineCount &&
		st.UnavailableMachineCount == 0 && !w.p.build.building()
}

// progress sets Updated and Updating.
func (w *statusWriter) progress() {
	line := w.p.goal.Label()
	updating := mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolUpdating}
	if w.allUpdated() {
		w.set(mcfgv1.MachineConfigPoolUpdated, true, "", "All nodes are updated with "+line)
		spec, status := &w.p.pool.Spec.Configuration, &w.st.Configuration
		if spec.Name != status.Name || !equality.Semantic.DeepEqual(spec.Source, status.Source) {
			*status = *spec.DeepCopy()
		}
		updating.Status = corev1.ConditionFalse
	} else {
		w.set(mcfgv1.MachineConfigPoolUpdated, false, "", "")
		if w.p.pool.Spec.Paused {
			updating.Status, updating.Message = corev1.ConditionFalse, "Pool is paused; will not update to "+line
		} else {
			updating.Status, updating.Message = corev1.ConditionTrue, "All nodes are updating to "+line
		}
	}
	if w.s.o.Compat {
		// The controller writes the condition, then overwrites it.
		w.put(updating)
	}
	if status, text := w.buildProgress(); text != "" {
		updating.Status, updating.Message = status, text
	}
	w.put(updating)
}

// buildProgress is what Updating says instead in a layered pool; no text: what it
// says otherwise.
func (w *statusWriter) buildProgress() (corev1.ConditionStatus, string) {
	b := w.p.build
	if b.config == nil {
		return "", ""
	}
	paused := w.p.pool.Spec.Paused
	if !paused && w.otherwiseDegraded() {
		return corev1.ConditionFalse, "Pool update paused due to degraded condition"
	}
	state := func(updating corev1.ConditionStatus, text string, stopped corev1.ConditionStatus, pausedText string) (corev1.ConditionStatus, string) {
		status, format := updating, text
		if paused {
			status, format = stopped, pausedText
		}
		if b.build == nil {
			return status, fmt.Sprintf(format+" (mosc: %s)", b.config.Name)
		}
		return status, fmt.Sprintf(format+" (mosb: %s)", b.build.Name)
	}
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	switch {
	case b.build == nil:
		return state(yes, "Pool is waiting for a new OS image build to start",
			yes, "Pool is paused; waiting for a new OS image build to start")
	case b.is(mcfgv1.MachineOSBuildPrepared):
		return state(yes, "Pool is waiting for OS image build to start",
			yes, "Pool is paused; OS image build has been prepared but will not rollout")
	case b.is(mcfgv1.MachineOSBuilding):
		return state(yes, "Pool is waiting for OS image build to complete",
			yes, "Pool is paused; OS image build in progress")
	case b.is(mcfgv1.MachineOSBuildSucceeded):
		if !paused && w.allUpdated() {
			return "", ""
		}
		return state(yes, "Pool is waiting for nodes to apply OS image",
			no, "Pool is paused; OS image build completed successfully")
	case b.is(mcfgv1.MachineOSBuildFailed):
		return state(no, "Pool update stopped due to OS image build failure",
			no, "Pool is paused; OS image build failed")
	case b.is(mcfgv1.MachineOSBuildInterrupted):
		return state(no, "Pool update stopped due to OS image build being interrupted",
			no, "Pool is paused; OS image build was interrupted")
	}
	return state(yes, "Pool is waiting for OS image build to start",
		yes, "Pool is paused; OS image build has been created but not yet started")
}

// otherwiseDegraded reports that something else than the build is wrong. The
// controller takes the conditions of its previous sync.
func (w *statusWriter) otherwiseDegraded() bool {
	nodes := w.st.DegradedMachineCount > 0
	if w.s.o.Compat {
		nodes = isTrue(w.prev, mcfgv1.MachineConfigPoolNodeDegraded)
	}
	return nodes || isTrue(w.prev, mcfgv1.MachineConfigPoolRenderDegraded) ||
		isTrue(w.prev, mcfgv1.MachineConfigPoolPinnedImageSetsDegraded)
}

// nodeDegraded sets NodeDegraded and returns it.
func (w *statusWriter) nodeDegraded() mcfgv1.MachineConfigPoolCondition {
	if w.st.DegradedMachineCount == 0 {
		return w.set(mcfgv1.MachineConfigPoolNodeDegraded, false, "", "")
	}
	count, texts := w.degradedTexts()
	return w.set(mcfgv1.MachineConfigPoolNodeDegraded, true,
		fmt.Sprintf("%d nodes are reporting degraded status on sync", count), bounded.Join(texts, ", ", maxMessage))
}

// maxMessage is the most bytes that the message of a condition has. Pools are
// written at each of their changes and read by many clients: what hundreds of
// nodes have to say does not fit.
const maxMessage = 32 << 10

// maxNodeMessage is the most bytes of it that what one node says gets: room
// enough for the reason that a daemon writes, which has up to 2,000 characters.
const maxNodeMessage = 8 << 10

// degradedTexts returns how many nodes are degraded, and what each has to say.
// Texts that the condition has no room for anyway are empty.
func (w *statusWriter) degradedTexts() (count int, texts []string) {
	size := 0
	add := func(node, text string) {
		line := ""
		if size <= maxMessage {
			// Quoting can make a text four times as long.
			line = bounded.Text(fmt.Sprintf("Node %s is reporting: %q", node, bounded.Text(text, maxNodeMessage)), maxMessage/2)
		}
		size += len(line)
		texts = append(texts, line)
	}
	if w.s.o.Compat {
		for n := range w.p.mcnBad.All() {
			add(n.state.Name, mcnDegradedMessage(w.s.mcns[n.state.Name]))
		}
		for n := range w.p.mcnBad.All() {
			if n.state.Reason != "" {
				add(n.state.Name, n.state.Reason)
			}
		}
		return w.p.mcnBad.Len(), texts
	}
	nodes := w.p.degraded
	if w.s.o.ImageModeStatusReporting {
		nodes = w.p.mcnBad
	}
	for n := range nodes.All() {
		if text := joinReasons(mcnDegradedMessage(w.s.mcns[n.state.Name]), n.state.Reason); text != "" {
			add(n.state.Name, text)
		}
	}
	return int(w.st.DegradedMachineCount), texts
}

// joinReasons says once what a MachineConfigNode and a node's annotation say.
func joinReasons(message, reason string) string {
	switch {
	case message == "" || reason == "":
		return message + reason
	case strings.Contains(message, reason):
		return message
	}
	return message + "; " + reason
}

// imageBuildDegraded keeps ImageBuildDegraded up to date as far as this
// controller does, and returns whether it is True.
func (w *statusWriter) imageBuildDegraded() bool {
	const condition = mcfgv1.MachineConfigPoolImageBuildDegraded
	b, was := w.p.build, isTrue(w.prev, condition)
	switch {
	case b.is(mcfgv1.MachineOSBuilding) || b.is(mcfgv1.MachineOSBuildPrepared):
		w.set(condition, false, "Building", "New build started")
	case b.is(mcfgv1.MachineOSBuildSucceeded):
		w.set(condition, false, "BuildSuccess", "Build completed successfully")
	case b.build == nil && b.config != nil && was:
		w.set(condition, false, "BuildPending", "MachineOSConfig updated/created, waiting for MachineOSBuild")
	case b.build == nil && b.config == nil && was:
		w.set(condition, false, "NoLayeredObjects", "No layered pool objects found, clearing stale build degraded condition")
	}
	return isTrue(w.st, condition)
}

func (w *statusWriter) degraded(nodes mcfgv1.MachineConfigPoolCondition, build bool) {
	byNodes := nodes.Status == corev1.ConditionTrue
	switch {
	case byNodes:
		w.set(mcfgv1.MachineConfigPoolDegraded, true, "", nodes.Message)
	case build:
		w.set(mcfgv1.MachineConfigPoolDegraded, true, "", "Custom OS image build failed")
	default:
		w.set(mcfgv1.MachineConfigPoolDegraded, isTrue(w.st, mcfgv1.MachineConfigPoolRenderDegraded), "", "")
	}
}

func (w *statusWriter) synchronizers() {
	i := slices.IndexFunc(w.st.PoolSynchronizersStatus, func(p mcfgv1.PoolSynchronizerStatus) bool {
		return p.PoolSynchronizerType == mcfgv1.PinnedImageSets
	})
	if i < 0 && !w.s.o.PoolSynchronizers {
		return
	}
	n := w.p.n
	entry := mcfgv1.PoolSynchronizerStatus{PoolSynchronizerType: mcfgv1.PinnedImageSets}
	if i >= 0 {
		entry = w.st.PoolSynchronizersStatus[i]
	}
	entry.MachineCount = int64(n.total)
	entry.ReadyMachineCount = int64(n.ready)
	entry.UnavailableMachineCount = int64(n.unavailable)
	entry.AvailableMachineCount = int64(n.total - n.unavailable)
	entry.UpdatedMachineCount = int64(n.pinned)
	w.st.PoolSynchronizersStatus = []mcfgv1.PoolSynchronizerStatus{entry}
}

// set writes a condition of this status and returns it.
func (w *statusWriter) set(t mcfgv1.MachineConfigPoolConditionType, is bool, reason, message string) mcfgv1.MachineConfigPoolCondition {
	c := mcfgv1.MachineConfigPoolCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if is {
		c.Status = corev1.ConditionTrue
	}
	w.put(c)
	return c
}

// put writes a condition as the controller does: one that is as it was stays
// in its place; else it moves to the end, and its transition time moves only
// with its status.
func (w *statusWriter) put(c mcfgv1.MachineConfigPoolCondition) {
	i := slices.IndexFunc(w.st.Conditions, func(o mcfgv1.MachineConfigPoolCondition) bool { return o.Type == c.Type })
	c.LastTransitionTime = w.now
	if i >= 0 {
		old := w.st.Conditions[i]
		if old.Status == c.Status {
			if old.Reason == c.Reason && old.Message == c.Message {
				return
			}
			c.LastTransitionTime = old.LastTransitionTime
		}
		w.st.Conditions = slices.DeleteFunc(w.st.Conditions, func(o mcfgv1.MachineConfigPoolCondition) bool { return o.Type == c.Type })
	}
	w.st.Conditions = append(w.st.Conditions, c)
}

func isTrue(st *mcfgv1.MachineConfigPoolStatus, t mcfgv1.MachineConfigPoolConditionType) bool {
	for _, c := range st.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
