package preconditions_test

import (
	"errors"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

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

func TestReleaseNewer(t *testing.T) {
	runCases(t, checkNamed(t, "ReleaseNewer"), []checkCase{
		{name: "another image", target: "4.18.5@B", want: "Failed\nWarning SameVersionOtherImage: release 4.18.5 is the version that the cluster runs, but of another image: B instead of A"},
		{name: "the same image", target: "4.18.5@A", want: "Passed"},
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
