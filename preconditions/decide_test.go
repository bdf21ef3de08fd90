package preconditions_test

import (
	"context"
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

func payload(version string, previous ...string) *manifest.Payload {
	return &manifest.Payload{Release: configv1.Release{Version: version}, Previous: previous}
}

// stub is a check with a fixed answer.
type stub struct {
	name     string
	findings []preconditions.Finding
	err      error
	applies  func(preconditions.Transition) bool
	run      func(context.Context, *preconditions.Input) ([]preconditions.Finding, error)
}

func (s stub) Name() string { return s.name }
func (s stub) Applies(t preconditions.Transition) bool {
	return s.applies == nil || s.applies(t)
}
func (s stub) Run(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	if s.run != nil {
		return s.run(ctx, in)
	}
	return s.findings, s.err
}

func finding(s preconditions.Severity, reason, message string) preconditions.Finding {
	return preconditions.Finding{Severity: s, Reason: reason, Message: message}
}

// TestDecideOperator: decisions and texts of the four checks together.
func TestDecideOperator(t *testing.T) {
	ackUnknown := cond("Upgradeable", "False", "AdminAckUnknown", "m")
	retrieved := cond("RetrievedUpdates", "True", "", "")
	updating := cond("Progressing", "True", "", "")
	const refused = `Precondition "ClusterVersionUpgradeable" failed because of "AdminAckUnknown": m`
	const unknownUpdate = `Precondition "ClusterVersionRecommendedUpdate" failed because of "UnknownUpdate": RetrievedUpdates=True (), so the update from 4.2.3 to `
	for _, tt := range []struct {
		name     string
		cv       *configv1.ClusterVersion
		target   string
		force    bool
		blocked  bool
		forced   bool
		summary  string
		accepted string
	}{
		{name: "minor refused", cv: clusterVersion("4.2.3@A", ackUnknown, available("4.3.1")), target: "4.3.1", blocked: true, summary: refused},
		{name: "minor forced", cv: clusterVersion("4.2.3@A", ackUnknown, available("4.3.1")), target: "4.3.1", force: true, forced: true,
			summary: "Forced through blocking failures: " + refused, accepted: "Forced through blocking failures: " + refused},
		{name: "patch allowed", cv: clusterVersion("4.2.3@A", ackUnknown, available("4.2.4")), target: "4.2.4"},
		{name: "two minors", cv: clusterVersion("4.2.3@A", retrieved), target: "4.4.0", blocked: true,
			summary: "Multiple precondition checks failed:\n" +
				"* Precondition \"ClusterVersionGiantHop\" failed because of \"MultipleMinorVersionsUpdate\": 4.4.0 is more than one minor version beyond the current target 4.2.3 (4.4 > 4.(2+1)), and only updates within the current minor version or to the next minor version are supported.\n* " +
				unknownUpdate + "4.4.0 is probably neither recommended nor supported."},
		{name: "rollback in the minor version", cv: clusterVersion("4.2.3@B", retrieved, history("4.2.3@B C", "4.2.1@A C")), target: "4.2.1",
			summary:  unknownUpdate + "4.2.1 is probably neither recommended nor supported.",
			accepted: unknownUpdate + "4.2.1 is probably neither recommended nor supported."},
		{name: "warnings with force have no prefix", cv: clusterVersion("4.2.3@B", retrieved, history("4.2.3@B C", "4.2.1@A C")), target: "4.2.1", force: true,
			summary:  unknownUpdate + "4.2.1 is probably neither recommended nor supported.",
			accepted: unknownUpdate + "4.2.1 is probably neither recommended nor supported."},
		{name: "retarget in a minor update", cv: clusterVersion("4.3.1@B", cond("Upgradeable", "False", "ClusterVersionUpdating", "u"), updating, available("4.3.2"), history("4.3.1@B P", "4.2.3@A C")), target: "4.3.2",
			summary:  `Precondition "ClusterVersionUpgradeable" failed because of "MinorVersionClusterUpdateInProgress": Retarget to 4.3.2 while a minor version update from 4.2.3 to 4.3.1 is in progress`,
			accepted: `Precondition "ClusterVersionUpgradeable" failed because of "MinorVersionClusterUpdateInProgress": Retarget to 4.3.2 while a minor version update from 4.2.3 to 4.3.1 is in progress`},
		{name: "turning around a minor update", cv: clusterVersion("4.3.1@B", cond("Upgradeable", "False", "ClusterVersionUpdating", "u"), updating, available("4.2.3"), history("4.3.1@B P", "4.2.3@A C")), target: "4.2.3", blocked: true,
			summary: `Precondition "ClusterVersionRollback" failed because of "LowDesiredVersion": 4.2.3 is less than the current target 4.3.1 and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended`},
		{name: "next minor in a minor update", cv: clusterVersion("4.3.1@B", cond("Upgradeable", "False", "ClusterVersionUpdating", "u"), updating, available("4.4.0"), history("4.3.1@B P", "4.2.3@A C")), target: "4.4.0", blocked: true,
			summary: `Precondition "ClusterVersionUpgradeable" failed because of "ClusterVersionUpdating": u`},
		{name: "to five", cv: clusterVersion("4.22.9@A", available("5.0.1")), target: "5.0.1"},
		{name: "to five from afar", cv: clusterVersion("4.17.9@A", available("5.0.1")), target: "5.0.1"},
		{name: "current is not a version: warnings only", cv: clusterVersion("x@A", ackUnknown, available("4.3.1")), target: "4.3.1",
			summary:  "Multiple precondition checks failed:\n* Precondition \"ClusterVersionRollback\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found\n* Precondition \"ClusterVersionGiantHop\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found\n* Precondition \"ClusterVersionUpgradeable\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found",
			accepted: "Multiple precondition checks failed:\n* Precondition \"ClusterVersionRollback\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found\n* Precondition \"ClusterVersionGiantHop\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found\n* Precondition \"ClusterVersionUpgradeable\" failed because of \"InvalidCurrentVersion\": No Major.Minor.Patch elements found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(reader(t, tt.cv), tt.cv, tt.target)
			in.Force = tt.force
			d := run(t, preconditions.Operator(), in).Decide(preconditions.Policy{})
			if d.Blocked != tt.blocked || d.Forced != tt.forced || d.Err != nil {
				t.Errorf("blocked %v, forced %v, error %v", d.Blocked, d.Forced, d.Err)
			}
			checktest.SameIn(t, "summary", tt.summary, d.Summary)
			checktest.SameIn(t, "accepted risks", tt.accepted, d.AcceptedRisks)
		})
	}
}

func TestDecidePolicy(t *testing.T) {
	cv := clusterVersion("4.2.3@A", available("4.3.1"), cond("Upgradeable", "False", "ClusterVersionOverrides", "o"))
	checks := []preconditions.Check{
		stub{name: "Late", findings: []preconditions.Finding{finding(preconditions.Warning, "W", "late"), finding(preconditions.Info, "I", "note")}},
		stub{name: "Bad", findings: []preconditions.Finding{finding(preconditions.Blocking, "B1", "one"), finding(preconditions.Warning, "B2", "two")}},
		stub{name: "Lost", err: errors.New("boom")},
		stub{name: "Off", applies: func(preconditions.Transition) bool { return false }},
	}
	checks = append(checks, preconditions.Operator()[2])
	const (
		up   = `Precondition "ClusterVersionUpgradeable" failed because of "ClusterVersionOverrides": o`
		late = `Precondition "Late" failed because of "W": late`
		bad1 = `Precondition "Bad" failed because of "B1": one`
		bad2 = `Precondition "Bad" failed because of "B2": two`
		lost = `Precondition "Lost" failed because of "UnknownError": boom`
		many = "Multiple precondition checks failed:\n* "
		by   = ` (ann: CHG1): `
	)
	report := run(t, checks, input(reader(t, cv), cv, "4.3.1@T"))
	bypass := func(names ...string) []preconditions.Bypass {
		var all []preconditions.Bypass
		for _, n := range names {
			all = append(all, preconditions.Bypass{Check: n, By: "ann", Why: "CHG1", Image: "T"})
		}
		return all
	}
	for _, tt := range []struct {
		name     string
		policy   preconditions.Policy
		blocked  bool
		summary  string
		accepted string
		states   string // of Late, Bad, Lost, Off, ClusterVersionUpgradeable
	}{
		{name: "operator's first, in order of registration", blocked: true,
			summary: many + up + "\n* " + late + "\n* " + bad1 + "\n* " + bad2 + "\n* " + lost,
			states:  "Failed Failed Unknown NotApplicable Failed"},
		{name: "bypasses", policy: preconditions.Policy{Bypasses: bypass("Bad", "ClusterVersionUpgradeable")},
			summary: many + late + "\n* " + lost,
			accepted: many + late + "\n* " + lost + "\nBypassed precondition \"Bad\"" + by + "B1: one\nBypassed precondition \"Bad\"" + by + "B2: two\n" +
				"Bypassed precondition \"ClusterVersionUpgradeable\"" + by + "ClusterVersionOverrides: o",
			states: "Failed Bypassed Unknown NotApplicable Bypassed"},
		{name: "unknown ones can be bypassed", policy: preconditions.Policy{Bypasses: bypass("Late", "Bad", "Lost", "Off", "ClusterVersionUpgradeable")},
			accepted: "Bypassed precondition \"Late\"" + by + "W: late\nBypassed precondition \"Bad\"" + by + "B1: one\nBypassed precondition \"Bad\"" + by + "B2: two\n" +
				"Bypassed precondition \"Lost\"" + by + "UnknownError: boom\nBypassed precondition \"ClusterVersionUpgradeable\"" + by + "ClusterVersionOverrides: o",
			states: "Bypassed Bypassed Bypassed NotApplicable Bypassed"},
		{name: "unknown blocks", policy: preconditions.Policy{Bypasses: bypass("Bad", "Late", "ClusterVersionUpgradeable"), UnknownBlocks: []string{"Lost"}},
			blocked: true, summary: lost, states: "Bypassed Bypassed Unknown NotApplicable Bypassed"},
		{name: "severities", policy: preconditions.Policy{Severities: map[string]preconditions.Severity{
			"Late": preconditions.Blocking, "Bad": preconditions.Info, "ClusterVersionUpgradeable": preconditions.Warning}},
			blocked: true, summary: many + up + "\n* " + late + "\n* " + lost, states: "Failed Passed Unknown NotApplicable Failed"},
		{name: "severity of a reason", policy: preconditions.Policy{Bypasses: bypass("ClusterVersionUpgradeable", "Lost"), Severities: map[string]preconditions.Severity{
			"Late/I": preconditions.Warning, "Bad/B1": preconditions.Info, "Bad": preconditions.Warning}},
			summary: many + late + "\n* " + `Precondition "Late" failed because of "I": note` + "\n* " + bad2,
			accepted: many + late + "\n* " + `Precondition "Late" failed because of "I": note` + "\n* " + bad2 +
				"\nBypassed precondition \"Lost\"" + by + "UnknownError: boom\nBypassed precondition \"ClusterVersionUpgradeable\"" + by + "ClusterVersionOverrides: o",
			states: "Failed Failed Bypassed NotApplicable Bypassed"},
		{name: "accepted risk", policy: preconditions.Policy{Bypasses: bypass("Bad", "Late", "Lost"), AcceptedRisks: []string{"ClusterVersionOverrides"}},
			accepted: "Bypassed precondition \"Late\"" + by + "W: late\nBypassed precondition \"Bad\"" + by + "B1: one\nBypassed precondition \"Bad\"" + by + "B2: two\n" +
				"Bypassed precondition \"Lost\"" + by + "UnknownError: boom\nBypassed precondition \"ClusterVersionUpgradeable\" (acceptRisks: risk ClusterVersionOverrides accepted): ClusterVersionOverrides: o",
			states: "Bypassed Bypassed Bypassed NotApplicable Bypassed"},
		{name: "accepting is by the name of a risk, not of a check or reason", policy: preconditions.Policy{Bypasses: bypass("Late", "Lost", "ClusterVersionUpgradeable"), AcceptedRisks: []string{"Bad", "B1", "B2"}},
			blocked: true, summary: many + bad1 + "\n* " + bad2, states: "Bypassed Failed Bypassed NotApplicable Bypassed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := text(report.Results[1])
			d := report.Decide(tt.policy)
			checktest.FailIf(t, d.Blocked != tt.blocked || d.Err != nil, "blocked %v, error %v", d.Blocked, d.Err)
			checktest.SameIn(t, "summary", tt.summary, d.Summary)
			checktest.SameIn(t, "accepted risks", tt.accepted, d.AcceptedRisks)
			states := ""
			for i, r := range d.Results {
				if i > 0 {
					states += " "
				}
				states += string(r.State)
			}
			checktest.Equal(t, tt.states, states, "states")
			checktest.Equal(t, before, text(report.Results[1]), "the report changed to")
		})
	}
}

func TestDecideBadPolicy(t *testing.T) {
	checks := []preconditions.Check{stub{name: "Bad", findings: []preconditions.Finding{finding(preconditions.Blocking, "B", "b")}}}
	in := input(reader(t), nil, "4.3.1@T")
	in.Force = true
	report := run(t, checks, in)
	d := report.Decide(preconditions.Policy{
		Bypasses:      []preconditions.Bypass{{Check: "Bda", By: "a", Why: "w"}, {Check: "Bad", By: "a"}, {Check: "Bad", Why: "w"}},
		UnknownBlocks: []string{"X"},
		Severities:    map[string]preconditions.Severity{"Z/B": 0, "Y": 0},
	})
	want := `bypass of unknown check "Bda"
bypass of check "Bad" does not say who bypasses it and why
bypass of check "Bad" does not say who bypasses it and why
UnknownBlocks: unknown check "X"
Severities: unknown check "Y"
Severities: unknown check "Z"`
	if d.Err == nil || d.Err.Error() != want || !d.Blocked || d.Summary != want || d.AcceptedRisks != "" {
		t.Errorf("blocked %v: %v\n%s", d.Blocked, d.Err, d.Summary)
	}
}

// TestDecideRaised: what the policy raises changes the state too, and severities
// beyond the named ones are the nearest named one.
func TestDecideRaised(t *testing.T) {
	checks := []preconditions.Check{
		stub{name: "Note", findings: []preconditions.Finding{finding(preconditions.Info, "I", "i")}},
		stub{name: "Absent", err: &preconditions.NotApplicableError{Why: "not here"}},
		stub{name: "Lost", err: errors.New("boom")},
		stub{name: "Odd", findings: []preconditions.Finding{finding(-1, "L", "l")}},
	}
	report := run(t, checks, nil)
	for _, tt := range []struct {
		name       string
		severities map[string]preconditions.Severity
		blocked    bool
		summary    string
		state      []preconditions.State
	}{
		{"nothing", nil, false, `Precondition "Lost" failed because of "UnknownError": boom`, []preconditions.State{"Passed", "NotApplicable", "Unknown", "Passed"}},
		{"a note", map[string]preconditions.Severity{"Note/I": preconditions.Blocking}, true,
			"Multiple precondition checks failed:\n* Precondition \"Note\" failed because of \"I\": i\n* Precondition \"Lost\" failed because of \"UnknownError\": boom", []preconditions.State{"Failed", "NotApplicable", "Unknown", "Passed"}},
		{"more than blocking", map[string]preconditions.Severity{"Note/I": preconditions.Blocking + 1}, true,
			"Multiple precondition checks failed:\n* Precondition \"Note\" failed because of \"I\": i\n* Precondition \"Lost\" failed because of \"UnknownError\": boom", []preconditions.State{"Failed", "NotApplicable", "Unknown", "Passed"}},
		{"notes are not raised with the check", map[string]preconditions.Severity{"Note": preconditions.Blocking}, false,
			`Precondition "Lost" failed because of "UnknownError": boom`, []preconditions.State{"Passed", "NotApplicable", "Unknown", "Passed"}},
		{"what does not arise, or is unknown, stays", map[string]preconditions.Severity{"Absent/NotApplicable": preconditions.Blocking, "Lost": preconditions.Info, "Lost/UnknownError": preconditions.Info}, false,
			`Precondition "Lost" failed because of "UnknownError": boom`, []preconditions.State{"Passed", "NotApplicable", "Unknown", "Passed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := report.Decide(preconditions.Policy{Severities: tt.severities})
			if d.Blocked != tt.blocked || d.Summary != tt.summary || d.Err != nil {
				t.Errorf("blocked %v, error %v: %s", d.Blocked, d.Err, d.Summary)
			}
			for i, want := range tt.state {
				checktest.Equal(t, want, d.Results[i].State, "%s", d.Results[i].Check)
			}
		})
	}
	if got := preconditions.Severity(-1).String() + " " + preconditions.Severity(3).String(); got != "Info Blocking" {
		t.Error(got)
	}
}

// TestDecideForce: force goes past every check, but bypasses stay recorded.
func TestDecideForce(t *testing.T) {
	checks := []preconditions.Check{
		stub{name: "Bad", findings: []preconditions.Finding{finding(preconditions.Blocking, "B", "b")}},
		stub{name: "Worse", findings: []preconditions.Finding{finding(preconditions.Blocking, "W", "w")}},
	}
	in := input(reader(t), nil, "4.3.1@T")
	in.Force = true
	report := run(t, checks, in)
	const forced = "Forced through blocking failures: "
	d := report.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "Bad", By: "ann", Why: "CHG1"}}})
	want := forced + "Precondition \"Worse\" failed because of \"W\": w\nBypassed precondition \"Bad\" (ann: CHG1): B: b"
	if d.Blocked || !d.Forced || d.AcceptedRisks != want {
		t.Errorf("blocked %v, forced %v: %s", d.Blocked, d.Forced, d.AcceptedRisks)
	}
	d = report.Decide(preconditions.Policy{})
	want = forced + "Multiple precondition checks failed:\n* Precondition \"Bad\" failed because of \"B\": b\n* Precondition \"Worse\" failed because of \"W\": w"
	if d.Blocked || !d.Forced || d.Summary != want {
		t.Errorf("blocked %v, forced %v: %s", d.Blocked, d.Forced, d.Summary)
	}
}

// TestBypassOfAnotherTarget: a bypass is void for another image, and an error
// of nobody.
func TestBypassOfAnotherTarget(t *testing.T) {
	checks := []preconditions.Check{stub{name: "Bad", findings: []preconditions.Finding{finding(preconditions.Blocking, "B", "b")}}}
	report := run(t, checks, input(reader(t), nil, "4.3.1@T"))
	old := preconditions.Bypass{Check: "Bad", By: "ann", Why: "CHG1", Image: "S"}
	d := report.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{old}})
	checktest.FailIf(t, !d.Blocked || d.Err != nil, "blocked %v, %v", d.Blocked, d.Err)
	checktest.Same(t, []preconditions.Bypass{old}, d.Void)
	mirrored := run(t, checks, input(reader(t), nil, "4.3.1@mirror.local/r@sha256:1"))
	d = mirrored.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{{Check: "Bad", By: "ann", Why: "CHG1", Image: "quay.io/r@sha256:1"}}})
	checktest.Equal(t, false, d.Blocked, "blocked by the same image of another registry")
	here := preconditions.Bypass{Check: "Bad", By: "bob", Why: "CHG2"}
	d = report.Decide(preconditions.Policy{Bypasses: []preconditions.Bypass{old, here}})
	if d.Blocked || d.AcceptedRisks != `Bypassed precondition "Bad" (bob: CHG2): B: b` || d.Summary != "" {
		t.Errorf("blocked %v: %s", d.Blocked, d.AcceptedRisks)
	}
}
