package preconditions_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

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
