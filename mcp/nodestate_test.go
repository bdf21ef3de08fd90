package mcp_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

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

func stateOf(changes ...mcptest.Change) mcp.NodeState {
	n := mcptest.Node("n", "worker", "O", changes...)
	return mcp.NodeStateOf(&n)
}

func none(n *corev1.Node) { n.Annotations = nil }

func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []mcptest.Change
		want    string // text, "" = Ready
	}{
		{"ready", nil, ""},
		{"no conditions", []mcptest.Change{func(n *corev1.Node) { n.Status.Conditions = nil }}, ""},
		{"not ready", []mcptest.Change{mcptest.Condition(corev1.NodeReady, isFalse)}, "node n is reporting NotReady=False"},
		{"unknown", []mcptest.Change{mcptest.Condition(corev1.NodeReady, unknown)}, "node n is reporting NotReady=Unknown"},
		{"disk", []mcptest.Change{mcptest.Condition(corev1.NodeDiskPressure, isTrue)}, "node n is reporting OutOfDisk=True"},
		{"disk unknown", []mcptest.Change{mcptest.Condition(corev1.NodeDiskPressure, unknown)}, "node n is reporting OutOfDisk=Unknown"},
		{"network", []mcptest.Change{mcptest.Condition(corev1.NodeNetworkUnavailable, isTrue)}, "node n is reporting NetworkUnavailable=True"},
		{"memory and PIDs do not matter", []mcptest.Change{mcptest.Condition(corev1.NodeMemoryPressure, isTrue), mcptest.Condition(corev1.NodePIDPressure, isTrue)}, ""},
		{"cordoned", []mcptest.Change{mcptest.Cordoned}, "node n is reporting Unschedulable"},
		{"conditions before cordon, in their order", []mcptest.Change{mcptest.Cordoned,
			mcptest.Condition(corev1.NodeNetworkUnavailable, isTrue), mcptest.Condition(corev1.NodeDiskPressure, isTrue)}, "node n is reporting NetworkUnavailable=True"},
		{"deleting and tainted", []mcptest.Change{mcptest.Deleting, mcptest.Taint}, ""},
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
		changes []mcptest.Change
		want    bools
	}{
		{"done", nil, bools{true, true, true, false, false, true}},
		{"working on the same config", []mcptest.Change{mcptest.State("Working")}, bools{true, true, false, false, true, true}},
		{"drifted", []mcptest.Change{mcptest.State("Degraded")}, bools{true, true, false, false, true, true}},
		{"state absent", []mcptest.Change{mcptest.Without(mcp.AnnotationState)}, bools{true, true, false, false, true, true}},
		{"targeted", []mcptest.Change{mcptest.Desired("N")}, bools{false, true, false, false, true, true}},
		{"working", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Working")}, bools{false, true, false, false, true, true}},
		{"degraded on the way", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Degraded")}, bools{false, true, false, true, false, true}},
		{"unreconcilable", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Unreconcilable")}, bools{false, true, false, true, false, true}},
		{"degraded on the way, cordoned", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Degraded"), mcptest.Cordoned}, bools{false, true, false, true, true, true}},
		{"desired missing", []mcptest.Change{mcptest.Without(des)}, bools{false, true, false, false, true, true}},
		{"desired missing, degraded", []mcptest.Change{mcptest.Without(des), mcptest.State("Degraded")}, bools{false, true, false, true, false, true}},
		{"both empty", []mcptest.Change{mcptest.Annotate(cur, "", des, "")}, bools{false, true, false, false, true, false}},
		{"no annotations", []mcptest.Change{none}, bools{false, true, false, false, true, false}},
		{"images equal", []mcptest.Change{mcptest.Annotate(curI, "i", desI, "i")}, bools{true, true, true, false, false, true}},
		{"images differ", []mcptest.Change{mcptest.Annotate(curI, "i", desI, "j")}, bools{true, false, false, false, true, true}},
		{"one image", []mcptest.Change{mcptest.Annotate(desI, "j")}, bools{true, false, false, false, true, true}},
		{"images empty", []mcptest.Change{mcptest.Annotate(curI, "", desI, "")}, bools{true, false, false, false, true, true}},
		{"windows", []mcptest.Change{mcptest.Label(mcp.LabelOS, "windows")}, bools{true, true, true, false, false, false}},
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
	onN := []mcptest.Change{mcptest.Annotate(mcp.AnnotationCurrentConfig, "N", mcp.AnnotationDesiredConfig, "N")}
	with := func(more ...mcptest.Change) []mcptest.Change {
		return append(append([]mcptest.Change{}, onN...), more...)
	}
	for _, tt := range []struct {
		name                       string
		goal                       mcp.Goal
		changes                    []mcptest.Change
		pool, build, updated, cand bool
	}{
		{"old", plain, nil, false, false, false, true},
		{"updated", plain, onN, true, false, true, false},
		{"still has an image", plain, with(mcptest.Annotate(desI, "i", curI, "i")), true, false, false, true},
		{"working", plain, with(mcptest.State("Working")), true, false, false, false},
		{"layered, updated", layered, with(mcptest.Annotate(desI, "i", curI, "i")), true, true, true, false},
		{"layered, no image yet", layered, onN, true, false, false, true},
		{"layered, other image", layered, with(mcptest.Annotate(desI, "h", curI, "h")), true, false, false, true},
		{"layered, targeted", layered, with(mcptest.Annotate(desI, "i", curI, "h")), true, true, false, false},
		{"layered, image empty", mcp.Goal{Config: "N", Layered: true, HasBuild: true, BuildConfig: "N"}, with(mcptest.Annotate(desI, "")), true, false, false, true},
		{"layered, no build", mcp.Goal{Config: "N", Layered: true, Image: "i"}, with(mcptest.Annotate(desI, "i", curI, "i")), true, false, false, true},
		{"layered, build of another config", mcp.Goal{Config: "N", Layered: true, Image: "i", HasBuild: true, BuildConfig: "M"}, with(mcptest.Annotate(desI, "i", curI, "i")), true, false, false, true},
		{"unmanaged", plain, []mcptest.Change{none}, false, false, false, true},
		{"deleting", plain, []mcptest.Change{mcptest.Deleting}, false, false, false, false},
		{"deleting, layered", layered, []mcptest.Change{mcptest.Deleting}, false, false, false, false},
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
	post := mcptest.Annotate(mcp.AnnotationPostConfigAction, mcp.PostConfigActionRebooting)
	way := func(more ...mcptest.Change) []mcptest.Change {
		return append([]mcptest.Change{mcptest.Desired("N"), mcptest.State("Working")}, more...)
	}
	for _, tt := range []struct {
		name         string
		changes      []mcptest.Change
		phase, stuck mcp.Phase
	}{
		{"no annotations", []mcptest.Change{none}, mcp.PhaseJoining, ""},
		{"no state", []mcptest.Change{mcptest.Without(mcp.AnnotationState)}, mcp.PhaseJoining, ""},
		{"desired empty", []mcptest.Change{mcptest.Desired("")}, mcp.PhaseJoining, ""},
		{"done", nil, mcp.PhaseDone, ""},
		{"done, old uncordon", []mcptest.Change{mcptest.Annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhaseDone, ""},
		{"targeted", []mcptest.Change{mcptest.Desired("N"), mcptest.Annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhaseTargeted, ""},
		{"image targeted", []mcptest.Change{mcptest.Annotate(mcp.AnnotationDesiredImage, "i")}, mcp.PhaseTargeted, ""},
		{"preparing", way(mcptest.Annotate(d, "uncordon-O", l, "uncordon-O")), mcp.PhasePreparing, ""},
		{"cordoning", way(mcptest.Annotate(d, "drain-N", l, "uncordon-O")), mcp.PhaseCordoning, ""},
		{"draining", way(mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "uncordon-O")), mcp.PhaseDraining, ""},
		{"draining for an older target", way(mcptest.Cordoned, mcptest.Annotate(d, "drain-M", l, "uncordon-O")), mcp.PhaseDraining, ""},
		{"applying", way(mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "drain-N")), mcp.PhaseApplying, ""},
		{"down without a word", way(mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "drain-N"), mcptest.Condition(corev1.NodeReady, unknown)), mcp.PhaseRebooting, ""},
		{"rebooting", way(mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "drain-N"), post), mcp.PhaseRebooting, ""},
		{"uncordon asked", way(mcptest.Cordoned, mcptest.Annotate(d, "uncordon-N", l, "drain-N")), mcp.PhaseUncordoning, ""},
		{"uncordoned", way(mcptest.Annotate(d, "uncordon-N", l, "uncordon-N")), mcp.PhaseUncordoning, ""},
		{"no verb", way(mcptest.Annotate(d, "drain", l, "uncordon-O")), mcp.PhasePreparing, ""},
		{"uncordoned for an older target", way(mcptest.Annotate(d, "uncordon-M", l, "uncordon-M")), mcp.PhasePreparing, ""},
		{"same config again", []mcptest.Change{mcptest.State("Working"), mcptest.Annotate(d, "uncordon-O", l, "uncordon-O")}, mcp.PhasePreparing, ""},
		{"drift", []mcptest.Change{mcptest.State("Degraded")}, mcp.PhaseFailed, ""},
		{"failed early", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Unreconcilable")}, mcp.PhaseFailed, mcp.PhasePreparing},
		{"failed in drain", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Degraded"), mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "uncordon-O")}, mcp.PhaseFailed, mcp.PhaseDraining},
		{"failed in reboot", []mcptest.Change{mcptest.Desired("N"), mcptest.State("Degraded"), post}, mcp.PhaseFailed, mcp.PhaseRebooting},
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
	preparing := []mcptest.Change{mcptest.Desired("N"), mcptest.State("Working")}
	applying := append([]mcptest.Change{mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "drain-N")}, preparing...)
	draining := append([]mcptest.Change{mcptest.Cordoned, mcptest.Annotate(d, "drain-N", l, "uncordon-O")}, preparing...)
	for _, tt := range []struct {
		name         string
		changes      []mcptest.Change
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
		{"failed", append(preparing, mcptest.State("Degraded")), "N", "AppliedOSImage", mcp.PhaseFailed, mcp.PhaseApplying},
	} {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")), mcptest.Worker("n", tt.changes...))
		m := mcptest.Mcn("n", metav1.Condition{Type: tt.inProgress, Status: metav1.ConditionUnknown})
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
