package mcp_test

import (
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/mcp"
)

const (
	isTrue  = corev1.ConditionTrue
	isFalse = corev1.ConditionFalse
	unknown = corev1.ConditionUnknown
)

func stateOf(changes ...change) mcp.NodeState {
	n := node("n", "worker", "O", changes...)
	return mcp.NodeStateOf(&n)
}

func none(n *corev1.Node) { n.Annotations = nil }

func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []change
		want    string // text, "" = Ready
	}{
		{"ready", nil, ""},
		{"no conditions", []change{func(n *corev1.Node) { n.Status.Conditions = nil }}, ""},
		{"not ready", []change{condition(corev1.NodeReady, isFalse)}, "node n is reporting NotReady=False"},
		{"unknown", []change{condition(corev1.NodeReady, unknown)}, "node n is reporting NotReady=Unknown"},
		{"disk", []change{condition(corev1.NodeDiskPressure, isTrue)}, "node n is reporting OutOfDisk=True"},
		{"disk unknown", []change{condition(corev1.NodeDiskPressure, unknown)}, "node n is reporting OutOfDisk=Unknown"},
		{"network", []change{condition(corev1.NodeNetworkUnavailable, isTrue)}, "node n is reporting NetworkUnavailable=True"},
		{"memory and PIDs do not matter", []change{condition(corev1.NodeMemoryPressure, isTrue), condition(corev1.NodePIDPressure, isTrue)}, ""},
		{"cordoned", []change{cordoned}, "node n is reporting Unschedulable"},
		{"conditions before cordon, in their order", []change{cordoned,
			condition(corev1.NodeNetworkUnavailable, isTrue), condition(corev1.NodeDiskPressure, isTrue)}, "node n is reporting NetworkUnavailable=True"},
		{"deleting and tainted", []change{deleting, taint}, ""},
	} {
		s := stateOf(tt.changes...)
		if got := s.NotReadyText(); got != tt.want || s.Ready() != (tt.want == "") {
			t.Errorf("%s: %q, ready %v", tt.name, got, s.Ready())
		}
	}
}

func TestPredicates(t *testing.T) {
	type bools struct{ configDone, imageDone, done, failing, unavailable, managed bool }
	cur, des := mcp.AnnotationCurrentConfig, mcp.AnnotationDesiredConfig
	curI, desI := mcp.AnnotationCurrentImage, mcp.AnnotationDesiredImage
	for _, tt := range []struct {
		name    string
		changes []change
		want    bools
	}{
		{"done", nil, bools{true, true, true, false, false, true}},
		{"working on the same config", []change{state("Working")}, bools{true, true, false, false, true, true}},
		{"drifted", []change{state("Degraded")}, bools{true, true, false, false, true, true}},
		{"state absent", []change{without(mcp.AnnotationState)}, bools{true, true, false, false, true, true}},
		{"targeted", []change{desired("N")}, bools{false, true, false, false, true, true}},
		{"working", []change{desired("N"), state("Working")}, bools{false, true, false, false, true, true}},
		{"degraded on the way", []change{desired("N"), state("Degraded")}, bools{false, true, false, true, false, true}},
		{"unreconcilable", []change{desired("N"), state("Unreconcilable")}, bools{false, true, false, true, false, true}},
		{"degraded on the way, cordoned", []change{desired("N"), state("Degraded"), cordoned}, bools{false, true, false, true, true, true}},
		{"desired missing", []change{without(des)}, bools{false, true, false, false, true, true}},
		{"desired missing, degraded", []change{without(des), state("Degraded")}, bools{false, true, false, true, false, true}},
		{"both empty", []change{annotate(cur, "", des, "")}, bools{false, true, false, false, true, false}},
		{"no annotations", []change{none}, bools{false, true, false, false, true, false}},
		{"images equal", []change{annotate(curI, "i", desI, "i")}, bools{true, true, true, false, false, true}},
		{"images differ", []change{annotate(curI, "i", desI, "j")}, bools{true, false, false, false, true, true}},
		{"one image", []change{annotate(desI, "j")}, bools{true, false, false, false, true, true}},
		{"images empty", []change{annotate(curI, "", desI, "")}, bools{true, false, false, false, true, true}},
		{"windows", []change{label(mcp.LabelOS, "windows")}, bools{true, true, true, false, false, false}},
	} {
		s := stateOf(tt.changes...)
		got := bools{s.ConfigDone(), s.ImageDone(), s.Done(), s.MCDFailing(), s.Unavailable(), s.Managed()}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestPoolPredicates(t *testing.T) {
	desI, curI := mcp.AnnotationDesiredImage, mcp.AnnotationCurrentImage
	plain := mcp.Goal{Config: "N"}
	layered := mcp.Goal{Config: "N", Layered: true, Image: "i", HasBuild: true, BuildConfig: "N"}
	onN := []change{annotate(mcp.AnnotationCurrentConfig, "N", mcp.AnnotationDesiredConfig, "N")}
	with := func(more ...change) []change { return append(append([]change{}, onN...), more...) }
	for _, tt := range []struct {
		name                       string
		goal                       mcp.Goal
		changes                    []change
		pool, build, updated, cand bool
	}{
		{"old", plain, nil, false, false, false, true},
		{"updated", plain, onN, true, false, true, false},
		{"still has an image", plain, with(annotate(desI, "i", curI, "i")), true, false, false, true},
		{"working", plain, with(state("Working")), true, false, false, false},
		{"layered, updated", layered, with(annotate(desI, "i", curI, "i")), true, true, true, false},
		{"layered, no image yet", layered, onN, true, false, false, true},
		{"layered, other image", layered, with(annotate(desI, "h", curI, "h")), true, false, false, true},
		{"layered, targeted", layered, with(annotate(desI, "i", curI, "h")), true, true, false, false},
		{"layered, image empty", mcp.Goal{Config: "N", Layered: true, HasBuild: true, BuildConfig: "N"}, with(annotate(desI, "")), true, false, false, true},
		{"layered, no build", mcp.Goal{Config: "N", Layered: true, Image: "i"}, with(annotate(desI, "i", curI, "i")), true, false, false, true},
		{"layered, build of another config", mcp.Goal{Config: "N", Layered: true, Image: "i", HasBuild: true, BuildConfig: "M"}, with(annotate(desI, "i", curI, "i")), true, false, false, true},
		{"unmanaged", plain, []change{none}, false, false, false, true},
		{"deleting", plain, []change{deleting}, false, false, false, false},
		{"deleting, layered", layered, []change{deleting}, false, false, false, false},
	} {
		s := stateOf(tt.changes...)
		if s.TargetsPool(tt.goal) != tt.pool || s.TargetsBuild(tt.goal) != tt.build || s.Updated(tt.goal) != tt.updated || s.Candidate(tt.goal) != tt.cand {
			t.Errorf("%s: pool %v build %v updated %v candidate %v", tt.name,
				s.TargetsPool(tt.goal), s.TargetsBuild(tt.goal), s.Updated(tt.goal), s.Candidate(tt.goal))
		}
	}
}

func TestPhaseOf(t *testing.T) {
	d, l := mcp.AnnotationDesiredDrain, mcp.AnnotationLastAppliedDrain
	post := annotate(mcp.AnnotationPostConfigAction, mcp.PostConfigActionRebooting)
	way := func(more ...change) []change { return append([]change{desired("N"), state("Working")}, more...) }
	for _, tt := range []struct {
		name         string
		changes      []change
		phase, stuck mcp.Phase
	}{
		{"no annotations", []change{none}, mcp.PhaseJoining, ""},
		{"no state", []change{without(mcp.AnnotationState)}, mcp.PhaseJoining, ""},
		{"desired empty", []change{desired("")}, mcp.PhaseJoining, ""},
		{"done", nil, mcp.PhaseDone, ""},
		{"done, old uncordon", []change{annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhaseDone, ""},
		{"targeted", []change{desired("N"), annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhaseTargeted, ""},
		{"image targeted", []change{annotate(mcp.AnnotationDesiredImage, "i")}, mcp.PhaseTargeted, ""},
		{"preparing", way(annotate(d, "uncordon-O", l, "uncordon-O")), mcp.PhasePreparing, ""},
		{"cordoning", way(annotate(d, "drain-N", l, "uncordon-O")), mcp.PhaseCordoning, ""},
		{"draining", way(cordoned, annotate(d, "drain-N", l, "uncordon-O")), mcp.PhaseDraining, ""},
		{"draining for an older target", way(cordoned, annotate(d, "drain-M", l, "uncordon-O")), mcp.PhaseDraining, ""},
		{"applying", way(cordoned, annotate(d, "drain-N", l, "drain-N")), mcp.PhaseApplying, ""},
		{"down without a word", way(cordoned, annotate(d, "drain-N", l, "drain-N"), condition(corev1.NodeReady, unknown)), mcp.PhaseRebooting, ""},
		{"rebooting", way(cordoned, annotate(d, "drain-N", l, "drain-N"), post), mcp.PhaseRebooting, ""},
		{"uncordon asked", way(cordoned, annotate(d, "uncordon-N", l, "drain-N")), mcp.PhaseUncordoning, ""},
		{"uncordoned", way(annotate(d, "uncordon-N", l, "uncordon-N")), mcp.PhaseUncordoning, ""},
		{"no verb", way(annotate(d, "drain", l, "uncordon-O")), mcp.PhasePreparing, ""},
		{"uncordoned for an older target", way(annotate(d, "uncordon-M", l, "uncordon-M")), mcp.PhasePreparing, ""},
		{"same config again", []change{state("Working"), annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhasePreparing, ""},
		{"drift", []change{state("Degraded")}, mcp.PhaseFailed, ""},
		{"failed early", []change{desired("N"), state("Unreconcilable")}, mcp.PhaseFailed, mcp.PhasePreparing},
		{"failed in drain", []change{desired("N"), state("Degraded"), cordoned, annotate(d, "drain-N", l, "uncordon-O")}, mcp.PhaseFailed, mcp.PhaseDraining},
		{"failed in reboot", []change{desired("N"), state("Degraded"), post}, mcp.PhaseFailed, mcp.PhaseRebooting},
	} {
		phase, stuck := mcp.PhaseOf(stateOf(tt.changes...))
		if phase != tt.phase || stuck != tt.stuck {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, phase, stuck, tt.phase, tt.stuck)
		}
	}
}

// A MachineConfigNode tells more of an update without a drain.
func TestPhaseRefined(t *testing.T) {
	d, l := mcp.AnnotationDesiredDrain, mcp.AnnotationLastAppliedDrain
	preparing := []change{desired("N"), state("Working")}
	applying := append([]change{cordoned, annotate(d, "drain-N", l, "drain-N")}, preparing...)
	draining := append([]change{cordoned, annotate(d, "drain-N", l, "uncordon-O")}, preparing...)
	for _, tt := range []struct {
		name         string
		changes      []change
		desired      string
		inProgress   string
		phase, stuck mcp.Phase
	}{
		{"nothing more", preparing, "N", "UpdatePrepared", mcp.PhasePreparing, ""},
		{"files", preparing, "N", "AppliedFilesAndOS", mcp.PhaseApplying, ""},
		{"files alone", preparing, "N", "AppliedFiles", mcp.PhaseApplying, ""},
		{"image", preparing, "N", "ImagePulledFromRegistry", mcp.PhaseApplying, ""},
		{"reboot", preparing, "N", "RebootedNode", mcp.PhaseRebooting, ""},
		{"reboot after a drain", applying, "N", "RebootedNode", mcp.PhaseRebooting, ""},
		{"uncordon", preparing, "N", "Uncordoned", mcp.PhaseUncordoning, ""},
		{"annotations go first", draining, "N", "RebootedNode", mcp.PhaseDraining, ""},
		{"of another target", preparing, "M", "RebootedNode", mcp.PhasePreparing, ""},
		{"done is done", nil, "O", "RebootedNode", mcp.PhaseDone, ""},
		{"failed", append(preparing, state("Degraded")), "N", "AppliedOSImage", mcp.PhaseFailed, mcp.PhaseApplying},
	} {
		in := snapshot(pools(pool("worker", "N")), worker("n", tt.changes...))
		m := mcn("n", metav1.Condition{Type: tt.inProgress, Status: metav1.ConditionUnknown})
		m.Spec.ConfigVersion.Desired = tt.desired
		in.MachineConfigNodes = []mcfgv1.MachineConfigNode{m}
		phase, stuck := mcp.NewState(in.Objects, in.Options).Phase("n")
		if phase != tt.phase || stuck != tt.stuck {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, phase, stuck, tt.phase, tt.stuck)
		}
	}
	if phase, stuck := mcp.NewState(mcp.Objects{}, mcp.Options{}).Phase("nobody"); phase != mcp.PhaseJoining || stuck != "" {
		t.Errorf("%s, %q", phase, stuck)
	}
}
