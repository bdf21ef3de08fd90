package preconditions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// operatorCase runs one check of the operator on one ClusterVersion.
type operatorCase struct {
	name   string
	cv     *configv1.ClusterVersion
	target string
	want   string
}

func runOperatorCases(t *testing.T, check string, cases []operatorCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			report := run(t, preconditions.Operator(), input(reader(t, tt.cv), tt.cv, tt.target))
			result, ok := report.Result(check)
			checktest.FatalIf(t, !ok, "no result of %s", check)
			checktest.Same(t, tt.want, text(result))
		})
	}
}

func TestOperatorOrder(t *testing.T) {
	var names []string
	for _, c := range preconditions.Operator() {
		names = append(names, c.Name())
		for _, kind := range []preconditions.Kind{"", preconditions.Patch, preconditions.Rollback, preconditions.Same} {
			if !c.Applies(preconditions.Transition{Kind: kind}) {
				t.Errorf("%s does not apply to %q", c.Name(), kind)
			}
		}
	}
	want := []string{"ClusterVersionRollback", "ClusterVersionGiantHop", "ClusterVersionUpgradeable", "ClusterVersionRecommendedUpdate"}
	checktest.Same(t, want, names)
}

func TestRollback(t *testing.T) {
	const low = "Failed\nBlocking LowDesiredVersion: "
	runOperatorCases(t, "ClusterVersionRollback", []operatorCase{
		{"newer", clusterVersion("4.2.3@B"), "4.2.4", "Passed"},
		{"equal", clusterVersion("4.2.3@B"), "4.2.3", "Passed"},
		{"equal but for build metadata", clusterVersion("4.2.3+b@B"), "4.2.3+a", "Passed"},
		{"release after its candidate", clusterVersion("4.2.3-rc.1@B"), "4.2.3", "Passed"},
		{"candidate of the current one", clusterVersion("4.2.3@B"), "4.2.3-rc.1",
			low + "4.2.3-rc.1 is less than the current target 4.2.3, and the cluster has no previous Semantic Version"},
		{"no history", clusterVersion("4.2.3@B"), "4.2.1",
			low + "4.2.1 is less than the current target 4.2.3, and the cluster has no previous Semantic Version"},
		{"previous of the same minor", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.1@A C")), "4.2.1", "Passed"},
		{"previous by precedence", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.1+x@A C")), "4.2.1", "Passed"},
		{"not the previous", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.1@A C")), "4.2.0",
			low + "4.2.0 is less than the current target 4.2.3, and the only supported rollback is to the cluster's previous version 4.2.1 (A)"},
		{"same image of another version is the previous", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.2@B C", "4.2.1@A C")), "4.2.1",
			low + "4.2.1 is less than the current target 4.2.3, and the only supported rollback is to the cluster's previous version 4.2.2 (B)"},
		{"newest entry is another release", clusterVersion("4.2.3@B", history("4.2.1@A C")), "4.2.1", "Passed"},
		{"older history entry", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.2@C P", "4.2.1@A C")), "4.2.1",
			low + "4.2.1 is less than the current target 4.2.3, and the only supported rollback is to the cluster's previous version 4.2.2 (C)"},
		{"previous of another minor", clusterVersion("4.3.1@B", history("4.3.1@B P", "4.2.3@A C")), "4.2.3",
			low + "4.2.3 is less than the current target 4.3.1 and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended"},
		{"previous of another major", clusterVersion("5.2.1@B", history("5.2.1@B P", "4.2.3@A C")), "4.2.3",
			low + "4.2.3 is less than the current target 5.2.1 and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended"},
		{"same version of another image is the previous", clusterVersion("4.2.3@B", history("4.2.3@B C", "4.2.3@A C", "4.2.1@Z C")), "4.2.1",
			low + "4.2.1 is less than the current target 4.2.3, and the only supported rollback is to the cluster's previous version 4.2.3 (A)"},
		{"previous is not a version: older ones are not tried", clusterVersion("4.2.3@B", history("4.2.3@B C", "@X P", "4.2.1@A C")), "4.2.1",
			low + "4.2.1 is less than the current target 4.2.3, and the cluster has no previous Semantic Version"},
		{"current is not a version", clusterVersion("4.2@B"), "4.2.1",
			"Failed\nWarning InvalidCurrentVersion: No Major.Minor.Patch elements found"},
		{"target is not a version", clusterVersion("4.2.3@B"), "4.08.1",
			"Failed\nBlocking InvalidDesiredVersion: Minor number must not contain leading zeroes \"08\""},
		{"neither is", clusterVersion("@B"), "", "Failed\nWarning InvalidCurrentVersion: Version string empty"},
	})
}

func TestGiantHop(t *testing.T) {
	runOperatorCases(t, "ClusterVersionGiantHop", []operatorCase{
		{"patch", clusterVersion("4.2.3"), "4.2.9", "Passed"},
		{"minor", clusterVersion("4.2.3"), "4.3.1", "Passed"},
		{"older", clusterVersion("4.2.3"), "4.1.1", "Passed"},
		{"two minors", clusterVersion("4.2.3"), "4.4.0",
			"Failed\nBlocking MultipleMinorVersionsUpdate: 4.4.0 is more than one minor version beyond the current target 4.2.3 (4.4 > 4.(2+1)), and only updates within the current minor version or to the next minor version are supported."},
		{"four to five", clusterVersion("4.22.9"), "5.0.1", "Passed"},
		{"an old four to five", clusterVersion("4.17.9"), "5.0.1", "Passed"},
		{"four to five, candidate", clusterVersion("4.17.9"), "5.0.0-rc.1", "Passed"},
		{"four to 5.1", clusterVersion("4.22.9"), "5.1.0",
			"Failed\nBlocking MajorVersionUpdate: 5.1.0 has a larger major version than the current target 4.22.9 (5 > 4), and only updates within the current major version or to 5.0 are supported."},
		{"four to six", clusterVersion("4.22.9"), "6.0.0",
			"Failed\nBlocking MajorVersionUpdate: 6.0.0 has a larger major version than the current target 4.22.9 (6 > 4), and only updates within the current major version are supported."},
		{"five to six", clusterVersion("5.0.1"), "6.0.0",
			"Failed\nBlocking MajorVersionUpdate: 6.0.0 has a larger major version than the current target 5.0.1 (6 > 5), and only updates within the current major version are supported."},
		{"majors are not compared downward", clusterVersion("5.0.1"), "4.20.3",
			"Failed\nBlocking MultipleMinorVersionsUpdate: 4.20.3 is more than one minor version beyond the current target 5.0.1 (4.20 > 5.(0+1)), and only updates within the current minor version or to the next minor version are supported."},
		{"two minors of five", clusterVersion("5.0.1"), "5.2.0",
			"Failed\nBlocking MultipleMinorVersionsUpdate: 5.2.0 is more than one minor version beyond the current target 5.0.1 (5.2 > 5.(0+1)), and only updates within the current minor version or to the next minor version are supported."},
		{"greatest minor", clusterVersion("4.18446744073709551615.0"), "4.2.0", "Passed"},
		{"current is not a version", clusterVersion("x.1.2"), "4.2.1",
			"Failed\nWarning InvalidCurrentVersion: Invalid character(s) found in major number \"x\""},
		{"target is not a version", clusterVersion("4.2.3"), "4.3.1-",
			"Failed\nBlocking InvalidDesiredVersion: Prerelease is empty"},
	})
}

func TestUpgradeableCheck(t *testing.T) {
	no := cond("Upgradeable", "False", "R", "m")
	updating := cond("Progressing", "True", "", "Working")
	overridesWarning := func(from, to string) string {
		return "Failed\nWarning ClusterVersionOverridesSet: Retarget from " + from + " to " + to + " is not blocked by ClusterVersionOverridesSet. But the cluster-version operator is not managing these resources; they are currently the responsibility of the agent that set the overrides: Disabling ownership via cluster version overrides prevents upgrades between minor or major versions. Please remove overrides before requesting a minor or major version update."
	}
	const blocked = "Failed\nBlocking R: m"
	runOperatorCases(t, "ClusterVersionUpgradeable", []operatorCase{
		{"no condition", clusterVersion("4.2.3"), "4.3.1", "Passed"},
		{"no condition, bad versions", clusterVersion("x"), "y", "Passed"},
		{"True", clusterVersion("4.2.3", cond("Upgradeable", "True", "", "")), "4.3.1", "Passed"},
		{"Unknown", clusterVersion("4.2.3", cond("Upgradeable", "Unknown", "EvaluationFailed", "e")), "4.3.1", "Passed"},
		{"True, bad target", clusterVersion("4.2.3", cond("Upgradeable", "True", "", "")), "y", "Passed"},
		{"False, bad current", clusterVersion("x", no), "4.3.1", "Failed\nWarning InvalidCurrentVersion: No Major.Minor.Patch elements found"},
		{"False, bad target", clusterVersion("4.2.3", no), "y", "Failed\nBlocking InvalidDesiredVersion: No Major.Minor.Patch elements found"},
		{"minor", clusterVersion("4.2.3", no), "4.3.1", blocked},
		{"major", clusterVersion("4.2.3", no), "5.2.1", blocked},
		{"patch", clusterVersion("4.2.3", no), "4.2.4", "Passed"},
		{"older minor", clusterVersion("4.2.3", no), "4.1.4", "Passed"},
		{"older major with greater minor", clusterVersion("5.0.1", no), "4.20.1", "Passed"},
		{"patch with overrides", clusterVersion("4.2.3", no, override(true)), "4.2.4", overridesWarning("4.2.3", "4.2.4")},
		{"older minor with overrides", clusterVersion("4.2.3", no, override(true)), "4.1.4", overridesWarning("4.2.3", "4.1.4")},
		{"patch with managed overrides", clusterVersion("4.2.3", no, override(false)), "4.2.4", "Passed"},
		{"second override is unmanaged", clusterVersion("4.2.3", no, override(false), override(true)), "4.2.4", overridesWarning("4.2.3", "4.2.4")},
		{"same version with overrides", clusterVersion("4.2.3", no, override(true)), "4.2.3", overridesWarning("4.2.3", "4.2.3")},
		{"older major with greater minor, with overrides", clusterVersion("5.0.1", no, override(true)), "4.20.1", overridesWarning("5.0.1", "4.20.1")},
		{"same version in a minor update", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.2.3 C")), "4.3.1",
			"Failed\nWarning MinorVersionClusterUpdateInProgress: Retarget to 4.3.1 while a minor version update from 4.2.3 to 4.3.1 is in progress"},
		{"older patch in a minor update", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.2.3 C")), "4.3.0",
			"Failed\nWarning MinorVersionClusterUpdateInProgress: Retarget to 4.3.0 while a minor version update from 4.2.3 to 4.3.1 is in progress"},
		{"newest completed entry counts", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.3.0 C", "4.2.3 C")), "4.3.2", "Passed"},
		{"minor with overrides", clusterVersion("4.2.3", no, override(true)), "4.3.1", blocked},
		{"overrides go before the update in progress", clusterVersion("4.3.1", no, updating, override(true), history("4.3.1 P", "4.2.3 C")), "4.3.2", overridesWarning("4.3.1", "4.3.2")},
		{"retarget in a minor update", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.2.3 C")), "4.3.2",
			"Failed\nWarning MinorVersionClusterUpdateInProgress: Retarget to 4.3.2 while a minor version update from 4.2.3 to 4.3.1 is in progress"},
		{"retarget in a major update", clusterVersion("5.0.1", no, updating, history("5.0.1 P", "4.22.3 C")), "5.0.2",
			"Failed\nWarning MajorVersionClusterUpdateInProgress: Retarget to 5.0.2 while a major version update from 4.22.3 to 5.0.1 is in progress"},
		{"retarget in a patch update", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.3.0 C")), "4.3.2", "Passed"},
		{"nothing completed: the oldest entry counts", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.3.0 P", "4.2.0 P")), "4.3.2",
			"Failed\nWarning MinorVersionClusterUpdateInProgress: Retarget to 4.3.2 while a minor version update from 4.2.0 to 4.3.1 is in progress"},
		{"completed version is none", clusterVersion("4.3.1", no, updating, history("4.3.1 P", " C")), "4.3.2", "Passed"},
		{"no history", clusterVersion("4.3.1", no, updating), "4.3.2", "Passed"},
		{"not progressing", clusterVersion("4.3.1", no, cond("Progressing", "False", "", ""), history("4.3.1 P", "4.2.3 C")), "4.3.2", "Passed"},
		{"a step down is not a step up", clusterVersion("4.2.3", no, updating, history("4.2.3 P", "4.3.1 C")), "4.2.4", "Passed"},
		{"minor update in progress, next minor", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.2.3 C")), "4.4.0", blocked},
		{"minor update in progress, back", clusterVersion("4.3.1", no, updating, history("4.3.1 P", "4.2.3 C")), "4.2.3", "Passed"},
	})
}

func TestRecommendedUpdate(t *testing.T) {
	recommended := func(status, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Recommended", Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
	}
	const from = "from 4.2.3 to 4.3.1"
	runOperatorCases(t, "ClusterVersionRecommendedUpdate", []operatorCase{
		{"available", clusterVersion("4.2.3", available("4.2.4", "4.3.1")), "4.3.1", "Passed"},
		{"available as well as conditional", clusterVersion("4.2.3", available("4.3.1"), conditional("4.3.1", recommended("False", "R", "m"))), "4.3.1", "Passed"},
		{"compared as text", clusterVersion("4.2.3", available("4.3.1+a"), channel("")), "4.3.1",
			"Failed\nWarning NoChannel: Configured channel is unset, so the recommended status of updating " + from + " is unknown."},
		{"conditional, recommended", clusterVersion("4.2.3", conditional("4.3.1", recommended("True", "R", "m"))), "4.3.1", "Passed"},
		{"conditional, not recommended", clusterVersion("4.2.3", conditional("4.3.1", recommended("False", "DiskFull", "It fills. https://x"))), "4.3.1",
			"Failed\nWarning DiskFull: Update " + from + " is not recommended:\n\nIt fills. https://x"},
		{"conditional, unknown", clusterVersion("4.2.3", conditional("4.3.1", recommended("Unknown", "EvaluationFailed", "m"))), "4.3.1",
			"Failed\nWarning EvaluationFailed: Update " + from + " is Recommended=Unknown: EvaluationFailed: m"},
		{"conditional without condition", clusterVersion("4.2.3", conditional("4.3.1")), "4.3.1",
			"Failed\nWarning UnknownConditionType: Update " + from + " has a status.conditionalUpdates entry, but no Recommended condition."},
		{"first conditional decides", clusterVersion("4.2.3", conditional("4.3.0"), conditional("4.3.1", recommended("True", "", "")), conditional("4.3.1")), "4.3.1", "Passed"},
		{"no channel", clusterVersion("4.2.3", channel(""), cond("RetrievedUpdates", "False", "NoChannel", "")), "4.3.1",
			"Failed\nWarning NoChannel: Configured channel is unset, so the recommended status of updating " + from + " is unknown."},
		{"other conditional updates do not matter", clusterVersion("4.2.3", conditional("4.3.0", recommended("True", "", "")), available("4.3.2")), "4.3.1",
			"Failed\nWarning UnknownUpdate: No RetrievedUpdates, so the recommended status of updating " + from + " is unknown."},
		{"conditional goes before no channel", clusterVersion("4.2.3", channel(""), conditional("4.3.1")), "4.3.1",
			"Failed\nWarning UnknownConditionType: Update " + from + " has a status.conditionalUpdates entry, but no Recommended condition."},
		{"retrieval unknown", clusterVersion("4.2.3", cond("RetrievedUpdates", "Unknown", "Attempting", "")), "4.3.1",
			"Failed\nWarning UnknownUpdate: RetrievedUpdates=Unknown (Attempting), so the recommended status of updating " + from + " is unknown."},
		{"never retrieved", clusterVersion("4.2.3"), "4.3.1",
			"Failed\nWarning UnknownUpdate: No RetrievedUpdates, so the recommended status of updating " + from + " is unknown."},
		{"retrieved", clusterVersion("4.2.3", cond("RetrievedUpdates", "True", "", "")), "4.3.1",
			"Failed\nWarning UnknownUpdate: RetrievedUpdates=True (), so the update " + from + " is probably neither recommended nor supported."},
		{"not retrieved", clusterVersion("4.2.3", cond("RetrievedUpdates", "False", "RemoteFailed", "")), "4.3.1",
			"Failed\nWarning UnknownUpdate: RetrievedUpdates=False (RemoteFailed), so the recommended status of updating " + from + " is unknown."},
		{"not versions", clusterVersion("x", available("y")), "y", "Passed"},
	})
}

// TestOperatorReads: an absent object passes; an unreadable one blocks, except
// in the fourth.
func TestOperatorReads(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "config.openshift.io", Resource: "clusterversions"}, "version", errors.New("no"))
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "config.openshift.io", Kind: "ClusterVersion"}, SearchedVersions: []string{"v1"}}
	summary := func(text string) string {
		out := "Multiple precondition checks failed:"
		for _, n := range []string{"Rollback", "GiantHop", "Upgradeable", "RecommendedUpdate"} {
			out += "\n* Precondition \"ClusterVersion" + n + "\" failed because of \"UnknownError\": " + text
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		err     error
		state   preconditions.State
		reason  string
		summary string
	}{
		{"absent", nil, preconditions.Passed, "", ""},
		{"no such kind", noKind, preconditions.Passed, "", ""},
		{"broken", errors.New("boom"), preconditions.Unknown, "UnknownError", summary("boom")},
		{"forbidden", forbidden, preconditions.Unknown, "NotAllowed", summary(forbidden.Error())},
		{"not in the dump", clusterapi.ErrNotCollected, preconditions.Unknown, "NotCollected", summary("not collected in this recording")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := reader(t)
			if tt.err != nil {
				r.failing("ClusterVersion", tt.err)
			}
			report := run(t, preconditions.Operator(), input(r, nil, "4.3.1"))
			for _, result := range report.Results {
				checktest.Equal(t, tt.state, result.State, "%s", result.Check)
				if tt.reason != "" && (result.Findings[0].Reason != tt.reason || !errors.Is(result.Err, tt.err)) {
					t.Errorf("%s: %s, %v", result.Check, result.Findings[0].Reason, result.Err)
				}
			}
			d := report.Decide(preconditions.Policy{})
			if d.Blocked != (tt.summary != "") || d.Summary != tt.summary {
				t.Errorf("blocked %v: %s", d.Blocked, d.Summary)
			}
			if got := r.calls["get ClusterVersion/version"]; got != 1 {
				t.Errorf("ClusterVersion was read %d times", got)
			}
			// The fourth alone never blocks.
			alone := run(t, preconditions.Operator()[3:], input(r, nil, "4.3.1")).Decide(preconditions.Policy{})
			checktest.FailIf(t, alone.Blocked, "the fourth blocks: %s", alone.Summary)
		})
	}
}

// TestTargetVersion: the payload's version is judged, and a request by image
// alone has no other.
func TestTargetVersion(t *testing.T) {
	cv := clusterVersion("4.2.3@B")
	in := input(reader(t, cv), cv, "@C")
	in.TargetPayload = payload("4.4.0")
	got := text(run(t, preconditions.Operator()[1:2], in).Results[0])
	if want := "Failed\nBlocking MultipleMinorVersionsUpdate: 4.4.0 is"; len(got) < len(want) || got[:len(want)] != want {
		t.Error(got)
	}
	// A Transition written by hand has but the parsed version.
	in = &preconditions.Input{Reader: reader(t, cv), Transition: preconditions.Transition{Target: semver.MustParse("4.5.0")}}
	if got := run(t, preconditions.Operator()[1:2], in).Results[0].State; got != preconditions.Failed {
		t.Error(got)
	}
}

// checkNamed returns a check of the documentation.
func checkNamed(t testing.TB, name string, o ...rules.Options) preconditions.Check {
	t.Helper()
	for _, c := range rules.Default(append(o, rules.Options{})[0]) {
		if c.Name() == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return nil
}

// The remedy of the operator's own check names what is offered on the way, and the offer
// that comes nearest.
func TestRecommendedRemedy(t *testing.T) {
	recommendedIs := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: "Recommended", Status: status, Reason: reason, Message: "m"}
	}
	retrieved := cond("RetrievedUpdates", "True", "", "")
	const none = "Prefer a recommended update; there is none now"
	for _, tt := range []struct {
		name, target string
		edits        []cvEdit
		remedy       string // empty: nothing is found
	}{
		{name: "recommended", target: "4.18.6", edits: []cvEdit{available("4.18.6")}},
		{name: "recommended by its condition", target: "4.18.6", edits: []cvEdit{conditional("4.18.6", recommendedIs("True", ""))}},
		{name: "at risk", target: "4.19.2", edits: []cvEdit{available("4.18.6", "4.19.1", "4.19.3", "4.19.4", "4.20.1"), conditional("4.19.2", recommendedIs("False", "DiskFull")), conditional("4.18.7", recommendedIs("False", "R")), conditional("4.18.8", recommendedIs("Unknown", "U")), conditional("4.18.9")},
			remedy: "Prefer 4.19.1, the nearest recommended update. On the way: 4.18.6 (recommended), 4.18.7 (not recommended: R), 4.18.8 (not known to be recommended: U), 4.18.9 (not known to be recommended: no condition says so), 4.19.1 (recommended)"},
		{name: "the next above in the minor", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.6", "4.19.3", "4.19.4")}, remedy: "Prefer 4.19.3, the nearest recommended update. On the way: 4.18.6 (recommended)"},
		{name: "the greatest below", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.6", "4.18.7", "4.20.1")}, remedy: "Prefer 4.18.7, the nearest recommended update. On the way: 4.18.6 (recommended), 4.18.7 (recommended)"},
		{name: "the least above", target: "4.19.2", edits: []cvEdit{retrieved, available("4.20.2", "4.20.1")}, remedy: "Prefer 4.20.1, the nearest recommended update"},
		{name: "10 is above 9", target: "4.18.11", edits: []cvEdit{retrieved, available("4.18.9", "4.18.10")}, remedy: "Prefer 4.18.10, the nearest recommended update. On the way: 4.18.9 (recommended), 4.18.10 (recommended)"},
		{name: "not what the cluster has left behind", target: "4.19.2", edits: []cvEdit{retrieved, available("4.18.4", "4.18.5")}, remedy: none},
		{name: "offers that are no versions", target: "4.19.2", edits: []cvEdit{retrieved, available("", "x", "4.18")}, remedy: none},
		{name: "no channel", target: "4.19.2", edits: []cvEdit{channel("")}, remedy: none},
		{name: "target is not a version", target: "x", edits: []cvEdit{available("4.18.6")}, remedy: "Prefer 4.18.6, the nearest recommended update"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cv := clusterVersion("4.18.5@A", tt.edits...)
			result, _ := run(t, preconditions.Operator(), input(reader(t, cv), cv, tt.target)).Result("ClusterVersionRecommendedUpdate")
			var remedies []string
			for _, f := range result.Findings {
				remedies = append(remedies, f.Remedy)
			}
			checktest.Equal(t, tt.remedy, strings.Join(remedies, "; "), "remedy")
		})
	}
}

func TestBootLoader(t *testing.T) {
	runCases(t, checkNamed(t, "BootLoader"), []checkCase{
		{name: "4.4", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.4.9@Z C")), want: "Passed\nInfo BootLoaderNotAdopted: The cluster was installed with 4.4.9, so bootupd may not manage the boot loader of its nodes"},
		{name: "4.1", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.1.0@Z C")), want: "Passed\nInfo BootLoaderNotAdopted: The cluster was installed with 4.1.0, so bootupd may not manage the boot loader of its nodes"},
		{name: "4.5", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.5.0-rc.1@Z C")), want: "Passed"},
		{name: "5.0", cv: clusterVersion("5.0.1@A", history("5.0.1@A C")), want: "Passed"},
		{name: "older entry in the middle", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.4.0@Y P", "4.6.1@Z C")), want: "Passed"},
		{name: "no history", cv: clusterVersion("4.18.5@A"), want: "Passed"},
		{name: "not a version", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "@Z C")), want: `Unknown
Warning UnknownError: the oldest version of the history, "": Version string empty`},
		{name: "forbidden", fail: map[string]error{"ClusterVersion": noKind("ClusterVersion")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no ClusterVersion"},
	})
}

func TestReleasePrevious(t *testing.T) {
	const refused = "Failed\nBlocking ReleaseNotApplicable: "
	runCases(t, checkNamed(t, "ReleasePrevious"), []checkCase{
		{name: "listed", cv: clusterVersion("4.18.5@A"), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4", "4.18.5"), want: "Passed"},
		{name: "listed by precedence", cv: clusterVersion("4.18.5+x@A"), target: "4.18.6@B", payload: payload("4.18.6", "4.18.5+y"), want: "Passed"},
		{name: "not listed", cv: clusterVersion("4.18.5@A"), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4", "4.18.3"), want: refused + "release 4.18.6 lists 2 previous versions and 4.18.5 is not among them"},
		{name: "not listed, minor", cv: clusterVersion("4.18.5@A"), target: "4.19.6@B", payload: payload("4.19.6", "4.18.4"), want: refused + "release 4.19.6 lists 1 previous versions and 4.18.5 is not among them"},
		{name: "not listed, major", cv: clusterVersion("4.22.5@A"), target: "5.0.6@B", payload: payload("5.0.6", "4.18.4"), want: refused + "release 5.0.6 lists 1 previous versions and 4.22.5 is not among them"},
		{name: "empty list", cv: clusterVersion("4.18.5@A"), target: "4.18.6@B", payload: payload("4.18.6"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 lists no previous versions"},
		{name: "rollback", cv: clusterVersion("4.18.5@A"), target: "4.18.4@B", payload: payload("4.18.4", "4.18.3"), want: "NotApplicable"},
		{name: "same version", cv: clusterVersion("4.18.5@A"), target: "4.18.5@B", payload: payload("4.18.5", "4.18.3"), want: "NotApplicable"},
		{name: "no payload", cv: clusterVersion("4.18.5@A"), target: "4.18.6@B", want: "Unknown\nWarning NoSource: no source given for TargetPayload"},
		{name: "offered", cv: clusterVersion("4.18.5@A", available("4.18.6@B")), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions, but the update service offers it"},
		{name: "offered, mirrored", cv: clusterVersion("4.18.5@A", available("4.18.6@quay.io/r@sha256:1")), target: "4.18.6@mirror.local/r@sha256:1", payload: payload("4.18.6", "4.18.4"),
			want: "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions, but the update service offers it"},
		{name: "rollback by image alone", cv: clusterVersion("4.18.5@A"), target: "@B", payload: payload("4.18.4", "4.18.3"), want: "NotApplicable"},
		{name: "offered conditionally", cv: clusterVersion("4.18.5@A", conditional("4.18.6")), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions, but the update service offers it"},
		{name: "another image is offered", cv: clusterVersion("4.18.5@A", available("4.18.6@C")), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: refused + "release 4.18.6 lists 1 previous versions and 4.18.5 is not among them"},
		{name: "retarget: completed version is listed", cv: clusterVersion("4.18.5@A", history("4.18.5@A P", "4.18.4@Z C")), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 lists 4.18.4, the version that the update in progress started from, but not 4.18.5"},
		{name: "retarget of a minor update within the new minor", cv: clusterVersion("4.18.5@A", history("4.18.5@A P", "4.17.4@Z C")), target: "4.18.6@B", payload: payload("4.18.6", "4.17.4"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 lists 4.17.4, the version that the update in progress started from, but not 4.18.5"},
		{name: "retarget to another minor", cv: clusterVersion("4.18.5@A", history("4.18.5@A P", "4.17.4@Z C")), target: "4.19.6@B", payload: payload("4.19.6", "4.17.4"), want: refused + "release 4.19.6 lists 1 previous versions and 4.18.5 is not among them"},
		{name: "completed long ago", cv: clusterVersion("4.18.5@A", history("4.18.5@A C", "4.18.4@Z C")), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: refused + "release 4.18.6 lists 1 previous versions and 4.18.5 is not among them"},
	})
	runCases(t, preconditions.AllowUnlisted(), []checkCase{
		{name: "hotfix", cv: clusterVersion("4.18.5@A"), target: "4.18.6@B", payload: payload("4.18.6", "4.18.4"), want: "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions; unlisted versions are allowed"},
	})
	cv := clusterVersion("4.18.5@A")
	broken := reader(t).failing("ClusterVersion", errors.New("boom"))
	// Where the release lists the version nothing else matters.
	in := input(broken, cv, "4.18.6@B")
	in.TargetPayload = payload("4.18.6", "4.18.5")
	if got := text(run(t, []preconditions.Check{checkNamed(t, "ReleasePrevious")}, in).Results[0]); got != "Passed" {
		t.Error(got)
	}
	// A Transition that knows of no current version: that of the cluster counts.
	for _, tt := range []struct {
		objects []any
		want    string
	}{
		{[]any{clusterVersion("4.18.4+x@A")}, "Passed"},
		{[]any{clusterVersion("4.18.3@A")}, refused + "release 4.18.6 lists 1 previous versions and 4.18.3 is not among them"},
		{[]any{clusterVersion("@A")}, "Unknown\nWarning UnknownError: the cluster does not say what version it runs"},
		{nil, "NotApplicable\nInfo NotApplicable: the cluster has no ClusterVersion"},
	} {
		in = &preconditions.Input{Reader: reader(t, tt.objects...), TargetPayload: payload("4.18.6", "4.18.4")}
		checktest.Same(t, tt.want, text(run(t, []preconditions.Check{checkNamed(t, "ReleasePrevious")}, in).Results[0]))
	}
	in = input(broken, cv, "4.18.6@B")
	in.TargetPayload = payload("4.18.6", "4.18.4")
	if got := text(run(t, []preconditions.Check{checkNamed(t, "ReleasePrevious")}, in).Results[0]); got != "Unknown\nWarning UnknownError: boom" {
		t.Error(got)
	}
}

func TestReleaseNewer(t *testing.T) {
	runCases(t, checkNamed(t, "ReleaseNewer"), []checkCase{
		{name: "another image", target: "4.18.5@B", want: "Failed\nWarning SameVersionOtherImage: release 4.18.5 is the version that the cluster runs, but of another image: B instead of A"},
		{name: "the same image", target: "4.18.5@A", want: "Passed"},
		{name: "the same image, mirrored", current: "4.18.5@quay.io/r@sha256:1", target: "4.18.5@mirror.local/r@sha256:1", want: "Passed"},
		{name: "image not known", current: "4.18.5", target: "4.18.5@B", want: "Passed"},
		{name: "to several architectures", target: "4.18.5@B", arch: configv1.ClusterVersionArchitectureMulti, want: "NotApplicable"},
		{name: "newer", target: "4.18.6@B", want: "NotApplicable"},
		{name: "older", target: "4.18.4@B", want: "NotApplicable"},
	})
}

func TestSets(t *testing.T) {
	for name, tt := range map[string]struct {
		checks []preconditions.Check
		first  string
		last   string
		least  int
	}{
		"Operator": {preconditions.Operator(), "ClusterVersionRollback", "ClusterVersionRecommendedUpdate", 4},
		"AtLoad":   {preconditions.AtLoad(), "ClusterVersionRollback", "MultiArch", 8},
		"Default":  {rules.Default(rules.Options{}), "ClusterVersionRollback", "BootLoader", 39},
	} {
		if len(tt.checks) < tt.least || tt.checks[0].Name() != tt.first || tt.last != "" && tt.checks[len(tt.checks)-1].Name() != tt.last {
			t.Errorf("%s: %d checks", name, len(tt.checks))
		}
		if _, err := preconditions.Run(t.Context(), tt.checks, nil, preconditions.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewTransition(t *testing.T) {
	const multi = configv1.ClusterVersionArchitectureMulti
	for _, tt := range []struct {
		current  string
		fromArch configv1.ClusterVersionArchitecture
		target   string
		arch     configv1.ClusterVersionArchitecture
		want     preconditions.Kind
	}{
		{"4.18.5", "", "4.18.6", "", preconditions.Patch},
		{"4.18.5-rc.1", "", "4.18.5", "", preconditions.Patch},
		{"4.18.5", "", "4.19.0-rc.1", "", preconditions.Minor},
		{"4.18.5", "", "5.18.6", "", preconditions.Major},
		{"5.0.1", "", "4.20.6", "", preconditions.Rollback},
		{"4.18.5", "", "4.18.4", "", preconditions.Rollback},
		{"4.18.5", "", "4.18.5", "", preconditions.Same},
		{"4.18.5+a", "", "4.18.5+b", "", preconditions.Same},
		{"4.18.5", "", "4.18.5", multi, preconditions.Multi},
		{"4.18.5", multi, "4.18.5", multi, preconditions.Same},
		{"4.18.5", multi, "4.18.5", "amd64", preconditions.Same},
		{"4.18.5", "", "4.19.1", multi, preconditions.Minor},
		{"4.18", "", "4.18.5", "", ""},
		{"4.18.5", "", "", "", ""},
	} {
		cv := clusterVersion(tt.current+"@A", history(tt.current+"@A P", "4.17.1@B C", "4.16.1@C C"))
		cv.Status.Desired.Architecture = tt.fromArch
		tr := preconditions.NewTransition(cv, configv1.Release{Version: tt.target, Image: "T", Architecture: tt.arch}, true, preconditions.Canary)
		checktest.Equal(t, tt.want, tr.Kind, "%s %s to %s %s", tt.current, tt.fromArch, tt.target, tt.arch)
		if tr.CurrentImage != "A" || tr.TargetImage != "T" || !tr.Force || tr.Plan != preconditions.Canary || tr.Completed.String() != "4.17.1" {
			t.Errorf("%+v", tr)
		}
	}
	if tr := preconditions.NewTransition(nil, configv1.Release{Version: "4.18.5"}, false, 0); tr.Kind != "" || tr.Current != nil || tr.Target == nil {
		t.Errorf("%+v", tr)
	}
	if tr := preconditions.NewTransition(clusterVersion("4.18.5", history("4.18.5 P")), configv1.Release{}, false, 0); tr.Completed != nil {
		t.Errorf("%+v", tr)
	}
}

func TestSkipsMinors(t *testing.T) {
	runCases(t, checkNamed(t, "SkipsMinors"), []checkCase{
		{name: "the last minor version of 4", current: "4.22.5", target: "5.0.1@B", want: "Passed"},
		{name: "beside 5.0", current: "4.23.1", target: "5.0.1@B", want: "Passed"},
		{name: "one before", current: "4.21.5", target: "5.0.1@B", want: "Failed\nWarning MinorVersionsSkipped: 5.0 is 2 minor versions after 4.21, and updates lead from one minor version to the next"},
		{name: "long before", current: "4.18.5", target: "5.0.0-rc.1@B", want: "Failed\nWarning MinorVersionsSkipped: 5.0 is 5 minor versions after 4.18, and updates lead from one minor version to the next"},
		{name: "within a major version", current: "4.18.5", target: "4.20.1@B", want: "NotApplicable"},
		{name: "back", current: "5.0.1", target: "4.18.5@B", want: "NotApplicable"},
	})
}
