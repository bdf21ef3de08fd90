package clusterupdate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
)

func TestResolve(t *testing.T) {
	multi := configv1.ClusterVersionArchitectureMulti
	tests := []struct {
		name    string
		change  func(*configv1.ClusterVersion)
		base    string // default: 4.2.0@A
		outcome clusterupdate.Outcome
		want    string
		why     string
	}{
		{name: "no request", outcome: clusterupdate.OwnRelease, want: "4.2.0@A"},
		{name: "available", change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterupdate.Resolved, want: "4.2.1@B"},
		{name: "another image of an available version", change: request(configv1.Update{Version: "4.2.1", Image: "C"}), outcome: clusterupdate.Resolved, want: "4.2.1@C"},
		{name: "image alone", change: request(configv1.Update{Image: "C"}), outcome: clusterupdate.Resolved, want: "@C"},
		{name: "image of an available update", change: request(configv1.Update{Image: "B"}), outcome: clusterupdate.Resolved, want: "4.2.1@B"},
		{name: "satisfied", change: request(configv1.Update{Version: "4.2.0"}), outcome: clusterupdate.OwnRelease, want: "4.2.0@A"},
		{name: "satisfied, by image", change: request(configv1.Update{Image: "A"}), outcome: clusterupdate.OwnRelease, want: "4.2.0@A"},
		{name: "known from the history", change: request(configv1.Update{Version: "4.1.9"}), outcome: clusterupdate.NotFound, want: "4.2.0@A",
			why: "version 4.1.9 is known from the history, but is not an available update: request it with its image Z"},
		{name: "conditional", change: func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: release("4.2.3@D"), Risks: []configv1.ConditionalUpdateRisk{{Name: "R1"}, {Name: "R2"}}}}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		}, outcome: clusterupdate.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "nowhere", change: request(configv1.Update{Version: "4.9.9"}), outcome: clusterupdate.NotFound, want: "4.2.0@A", why: "version 4.9.9 is not an available update"},
		{name: "conditional with image", change: request(configv1.Update{Version: "4.2.3", Image: "D"}), outcome: clusterupdate.Resolved, want: "4.2.3@D"},
		{name: "only risks", change: request(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), outcome: clusterupdate.OwnRelease, want: "4.2.0@A"},
		{name: "multi, not offered", change: request(configv1.Update{Version: "4.2.0", Architecture: multi}), outcome: clusterupdate.NotFound, want: "4.2.0@A",
			why: "no multi-architecture release of 4.2.0 is available"},
		{name: "multi ignores the requested version", change: func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = []configv1.Release{release("4.2.0@M"), release("4.2.1@B")}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.1", Architecture: multi}
		}, outcome: clusterupdate.Resolved, want: "4.2.0@M"},

		{name: "started, and gone from the lists", base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.2"}), outcome: clusterupdate.OwnRelease, want: "4.2.2@X"},
		{name: "started, request removed", base: "4.2.2@X", outcome: clusterupdate.OwnRelease, want: "4.2.2@X"},
		{name: "started, retargeted", base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterupdate.Resolved, want: "4.2.1@B"},
		{name: "started, turned around by image", base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.0", Image: "A"}), outcome: clusterupdate.Resolved, want: "4.2.0@A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := release("4.2.0@A")
			if tt.base != "" {
				base = release(tt.base)
			}
			got := clusterupdate.Resolve(version(tt.change), base, false)
			want := clusterupdate.Resolution{Outcome: tt.outcome, Release: release(tt.want), Why: tt.why}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveFaulty(t *testing.T) {
	cv := version(nil)
	got := clusterupdate.Resolve(cv, release("4.2.2@X"), true)
	want := clusterupdate.Resolution{Outcome: clusterupdate.Invalid, Release: release("4.2.2@X"), Why: "the request is invalid"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResolveForce(t *testing.T) {
	got := clusterupdate.Resolve(version(request(configv1.Update{Version: "4.2.1", Force: true})), release("4.2.0@A"), false)
	if !got.Force || got.Outcome != clusterupdate.Resolved {
		t.Errorf("got %+v", got)
	}
}
