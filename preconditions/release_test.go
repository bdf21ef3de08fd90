package preconditions_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

func TestReleasePrevious(t *testing.T) {
	const refused = "Failed\nBlocking ReleaseNotApplicable: "
	for _, tt := range []struct {
		name     string
		cv       *configv1.ClusterVersion
		target   string
		payload  *manifest.Payload
		unlisted bool
		want     string
	}{
		{"listed", clusterVersion("4.18.5@A"), "4.18.6@B", payload("4.18.6", "4.18.4", "4.18.5"), false, "Passed"},
		{"listed by precedence", clusterVersion("4.18.5+x@A"), "4.18.6@B", payload("4.18.6", "4.18.5+y"), false, "Passed"},
		{"not listed", clusterVersion("4.18.5@A"), "4.18.6@B", payload("4.18.6", "4.18.4", "4.18.3"), false, refused + "release 4.18.6 lists 2 previous versions and 4.18.5 is not among them"},
		{"not listed, minor", clusterVersion("4.18.5@A"), "4.19.6@B", payload("4.19.6", "4.18.4"), false, refused + "release 4.19.6 lists 1 previous versions and 4.18.5 is not among them"},
		{"not listed, major", clusterVersion("4.22.5@A"), "5.0.6@B", payload("5.0.6", "4.18.4"), false, refused + "release 5.0.6 lists 1 previous versions and 4.22.5 is not among them"},
		{"empty list", clusterVersion("4.18.5@A"), "4.18.6@B", payload("4.18.6"), false, "Passed\nInfo ReleaseApplicable: release 4.18.6 lists no previous versions"},
		{"rollback", clusterVersion("4.18.5@A"), "4.18.4@B", payload("4.18.4", "4.18.3"), false, "NotApplicable"},
		{"same version", clusterVersion("4.18.5@A"), "4.18.5@B", payload("4.18.5", "4.18.3"), false, "NotApplicable"},
		{"no payload", clusterVersion("4.18.5@A"), "4.18.6@B", nil, false, "Unknown\nWarning NoSource: no source given for TargetPayload"},
		{"offered", clusterVersion("4.18.5@A", available("4.18.6@B")), "4.18.6@B", payload("4.18.6", "4.18.4"), false, "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions, but the update service offers it"},
		{"offered conditionally", clusterVersion("4.18.5@A", conditional("4.18.6")), "4.18.6@B", payload("4.18.6", "4.18.4"), false, "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions, but the update service offers it"},
		{"another image is offered", clusterVersion("4.18.5@A", available("4.18.6@C")), "4.18.6@B", payload("4.18.6", "4.18.4"), false, refused + "release 4.18.6 lists 1 previous versions and 4.18.5 is not among them"},
		{"retarget: completed version is listed", clusterVersion("4.18.5@A", history("4.18.5@A P", "4.18.4@Z C")), "4.18.6@B", payload("4.18.6", "4.18.4"), false, "Passed\nInfo ReleaseApplicable: release 4.18.6 lists 4.18.4, the version that the update in progress started from, but not 4.18.5"},
		{"retarget of a minor update within the new minor", clusterVersion("4.18.5@A", history("4.18.5@A P", "4.17.4@Z C")), "4.18.6@B", payload("4.18.6", "4.17.4"), false, "Passed\nInfo ReleaseApplicable: release 4.18.6 lists 4.17.4, the version that the update in progress started from, but not 4.18.5"},
		{"retarget to another minor", clusterVersion("4.18.5@A", history("4.18.5@A P", "4.17.4@Z C")), "4.19.6@B", payload("4.19.6", "4.17.4"), false, refused + "release 4.19.6 lists 1 previous versions and 4.18.5 is not among them"},
		{"completed long ago", clusterVersion("4.18.5@A", history("4.18.5@A C", "4.18.4@Z C")), "4.18.6@B", payload("4.18.6", "4.18.4"), false, refused + "release 4.18.6 lists 1 previous versions and 4.18.5 is not among them"},
		{"hotfix", clusterVersion("4.18.5@A"), "4.18.6@B", payload("4.18.6", "4.18.4"), true, "Passed\nInfo ReleaseApplicable: release 4.18.6 does not list 4.18.5 among its 1 previous versions; unlisted versions are allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(reader(t, tt.cv), tt.cv, tt.target)
			in.TargetPayload = tt.payload
			check := checkNamed(t, "ReleasePrevious")
			if tt.unlisted {
				check = preconditions.AllowUnlisted()
			}
			got := text(run(t, []preconditions.Check{check}, in).Results[0])
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
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
		if diff := cmp.Diff(tt.want, text(run(t, []preconditions.Check{checkNamed(t, "ReleasePrevious")}, in).Results[0])); diff != "" {
			t.Error(diff)
		}
	}
	in = input(broken, cv, "4.18.6@B")
	in.TargetPayload = payload("4.18.6", "4.18.4")
	if got := text(run(t, []preconditions.Check{checkNamed(t, "ReleasePrevious")}, in).Results[0]); got != "Unknown\nWarning UnknownError: boom" {
		t.Error(got)
	}
}

func TestReleaseNewer(t *testing.T) {
	const multi = configv1.ClusterVersionArchitectureMulti
	for _, tt := range []struct {
		current, target string
		arch            configv1.ClusterVersionArchitecture
		want            string
	}{
		{"4.18.5@A", "4.18.5@B", "", "Failed\nWarning SameVersionOtherImage: release 4.18.5 is the version that the cluster runs, but of another image: B instead of A"},
		{"4.18.5@A", "4.18.5@A", "", "Passed"},
		{"4.18.5@", "4.18.5@B", "", "Passed"},
		{"4.18.5@A", "4.18.5@B", multi, "NotApplicable"},
		{"4.18.5@A", "4.18.6@B", "", "NotApplicable"},
		{"4.18.5@A", "4.18.4@B", "", "NotApplicable"},
	} {
		cv := clusterVersion(tt.current)
		in := input(reader(t, cv), cv, tt.target)
		target := configv1.Release{Version: "4.18.5", Image: in.TargetImage, Architecture: tt.arch}
		if in.Target.String() == "4.18.5" {
			in.Transition = preconditions.NewTransition(cv, target, false, 0)
		}
		got := text(run(t, []preconditions.Check{checkNamed(t, "ReleaseNewer")}, in).Results[0])
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s to %s: %s", tt.current, tt.target, diff)
		}
	}
}

func TestSets(t *testing.T) {
	for name, tt := range map[string]struct {
		checks []preconditions.Check
		first  string
		last   string
		least  int
	}{
		"Operator": {preconditions.Operator(), "ClusterVersionRollback", "ClusterVersionRecommendedUpdate", 4},
		"AtLoad":   {preconditions.AtLoad(), "ClusterVersionRollback", "MultiArch", 7},
		"Default":  {preconditions.Default(), "ClusterVersionRollback", "BootLoader", 39},
	} {
		if len(tt.checks) < tt.least || tt.checks[0].Name() != tt.first || tt.last != "" && tt.checks[len(tt.checks)-1].Name() != tt.last {
			t.Errorf("%s: %d checks", name, len(tt.checks))
		}
		if _, err := preconditions.Run(t.Context(), tt.checks, nil, preconditions.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
