package mcp

import (
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is how far a node has come from its target to its end, by its annotations
// and conditions.
type Phase string

// The phases of a node.
const (
	PhaseJoining     Phase = "Joining"     // no daemon has reported from it
	PhaseTargeted    Phase = "Targeted"    // has a target, not started
	PhasePreparing   Phase = "Preparing"   // judges the difference, or applies it without a drain
	PhaseCordoning   Phase = "Cordoning"   // has asked to be drained
	PhaseDraining    Phase = "Draining"    // cordoned, pods are leaving
	PhaseApplying    Phase = "Applying"    // drained, writes files and the OS
	PhaseRebooting   Phase = "Rebooting"   //
	PhaseUncordoning Phase = "Uncordoning" // applied, has asked to be uncordoned
	PhaseDone        Phase = "Done"
	PhaseFailed      Phase = "Failed" // the last step failed; the daemon keeps retrying
)

// PhaseOf returns the phase of a node. For PhaseFailed, stuck is the phase in
// which it fails, empty for a node that reached its config and drifted from it.
//
// Of a drain request only the verb counts: after a node was given another
// target in the middle of a drain, the request still names the old one.
func PhaseOf(n NodeState) (phase, stuck Phase) {
	if n.CurrentConfig == "" || n.DesiredConfig == "" || n.State == "" {
		return PhaseJoining, ""
	}
	phase = n.phase()
	if n.Degraded() || n.Unreconcilable() {
		if phase == PhasePreparing && n.ConfigDone() {
			phase = ""
		}
		return PhaseFailed, phase
	}
	return phase, ""
}

func (n NodeState) phase() Phase {
	verb, config, ok := strings.Cut(n.DesiredDrain, "-")
	asked := n.DesiredDrain != n.LastAppliedDrain
	drain, uncordon := ok && verb == DrainVerbDrain, ok && verb == DrainVerbUncordon
	switch {
	case n.PostConfigAction == PostConfigActionRebooting:
		return PhaseRebooting
	case asked && drain && !n.Unschedulable:
		return PhaseCordoning
	case asked && drain:
		return PhaseDraining
	case asked && uncordon:
		return PhaseUncordoning
	case n.State == StateDone && n.ConfigDone() && n.ImageDone():
		return PhaseDone
	case n.State == StateDone:
		return PhaseTargeted
	case !asked && drain && n.ReadyStatus != "" && n.ReadyStatus != "True":
		return PhaseRebooting
	case !asked && drain:
		return PhaseApplying
	case !asked && uncordon && config == n.DesiredConfig && !n.ConfigDone():
		return PhaseUncordoning
	}
	return PhasePreparing
}

// Phase returns the phase of a node as [PhaseOf] does, refined by what its
// MachineConfigNode adds if there is one: that a node is applied or rebooted, which
// its annotations do not say, as in an update without a drain. A node that is not
// known is PhaseJoining.
func (s *State) Phase(node string) (phase, stuck Phase) {
	n := s.nodes[node]
	if n == nil {
		return PhaseJoining, ""
	}
	phase, stuck = PhaseOf(n.state)
	if m := s.mcns[node]; m != nil && m.Spec.ConfigVersion.Desired == n.state.DesiredConfig {
		if phase == PhaseFailed {
			return phase, refine(stuck, m)
		}
		phase = refine(phase, m)
	}
	return phase, stuck
}

// refine moves on from phases that say little to what is in progress, the
// latest first.
func refine(p Phase, m *mcfgv1.MachineConfigNode) Phase {
	is := func(types ...mcfgv1.StateProgress) bool {
		return slices.ContainsFunc(m.Status.Conditions, func(c metav1.Condition) bool {
			return c.Status == metav1.ConditionUnknown && slices.Contains(types, mcfgv1.StateProgress(c.Type))
		})
	}
	switch {
	case p != PhasePreparing && p != PhaseApplying:
		return p
	case p == PhasePreparing && is(mcfgv1.MachineConfigNodeUpdateUncordoned):
		return PhaseUncordoning
	case is(mcfgv1.MachineConfigNodeUpdateRebooted):
		return PhaseRebooting
	case is(mcfgv1.MachineConfigNodeUpdateFilesAndOS, mcfgv1.MachineConfigNodeUpdateFiles,
		mcfgv1.MachineConfigNodeUpdateOS, mcfgv1.MachineConfigNodeImagePulledFromRegistry):
		return PhaseApplying
	}
	return p
}

// In names a phase and the one that it is stuck in.
func (p Phase) In(stuck Phase) string {
	if stuck == "" {
		return string(p)
	}
	return string(p) + " in " + string(stuck)
}
