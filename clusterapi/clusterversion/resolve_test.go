package clusterversion_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestResolve(t *testing.T) {
	multi := configv1.ClusterVersionArchitectureMulti
	tests := []struct {
		name    string
		change  func(*configv1.ClusterVersion)
		base    string // default: 4.2.0@A
		options clusterversion.ResolveOptions
		row     clusterversion.Row
		outcome clusterversion.Outcome
		want    string
		why     string
	}{
		{name: "no request", row: clusterversion.RowNone, outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "available", row: clusterversion.RowAvailable, change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "another image of an available version", row: clusterversion.RowImage, change: request(configv1.Update{Version: "4.2.1", Image: "C"}), outcome: clusterversion.Resolved, want: "4.2.1@C"},
		{name: "image alone", row: clusterversion.RowImage, change: request(configv1.Update{Image: "C"}), outcome: clusterversion.Resolved, want: "@C"},
		{name: "image of an available update", row: clusterversion.RowImage, change: request(configv1.Update{Image: "B"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "satisfied", row: clusterversion.RowCurrent, change: request(configv1.Update{Version: "4.2.0"}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "satisfied, by image", row: clusterversion.RowCurrent, change: request(configv1.Update{Image: "A"}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "under way", row: clusterversion.RowCurrent, base: "4.2.2@X", change: func(cv *configv1.ClusterVersion) {
			cv.Status.History = append([]configv1.UpdateHistory{{Version: "4.2.2", Image: "X", State: configv1.PartialUpdate}}, cv.Status.History...)
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.2"}
		}, outcome: clusterversion.UnderWay, want: "4.2.2@X"},
		{name: "known from the history", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.1.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.1.9 is known from the history, but is not an available update: request it with its image Z"},
		{name: "conditional", row: clusterversion.RowNotFound, change: func(cv *configv1.ClusterVersion) {
			cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: release("4.2.3@D"), Risks: []configv1.ConditionalUpdateRisk{{Name: "R1"}, {Name: "R2"}}}}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		}, outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "nowhere", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.9.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A", why: "version 4.9.9 is not an available update"},
		{name: "conditional with image", row: clusterversion.RowImage, change: request(configv1.Update{Version: "4.2.3", Image: "D"}), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "only risks", row: clusterversion.RowNone, change: request(configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}), outcome: clusterversion.OwnRelease, want: "4.2.0@A"},
		{name: "multi, not offered", row: clusterversion.RowNotFound, change: request(configv1.Update{Version: "4.2.0", Architecture: multi}), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "no multi-architecture release of 4.2.0 is available"},
		{name: "multi ignores the requested version", row: clusterversion.RowMultiArch, change: func(cv *configv1.ClusterVersion) {
			cv.Status.AvailableUpdates = []configv1.Release{release("4.2.0@M"), release("4.2.1@B")}
			cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.1", Architecture: multi}
		}, outcome: clusterversion.Resolved, want: "4.2.0@M"},

		{name: "from the history", row: clusterversion.RowHistory, options: clusterversion.ResolveOptions{History: true}, change: request(configv1.Update{Version: "4.1.9"}), outcome: clusterversion.Resolved, want: "4.1.9@Z"},
		{name: "not in the history", row: clusterversion.RowNotFound, options: clusterversion.ResolveOptions{History: true}, change: request(configv1.Update{Version: "4.9.9"}), outcome: clusterversion.NotFound, want: "4.2.0@A", why: "version 4.9.9 is not an available update"},
		{name: "all risks accepted", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("", "R1", "R2", "R3"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "one risk not accepted", row: clusterversion.RowNotFound, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("", "R1"), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "accepted without the option", row: clusterversion.RowNotFound, change: atRisk("", "R1", "R2"), outcome: clusterversion.NotFound, want: "4.2.0@A",
			why: "version 4.2.3 is not recommended for this cluster because of the risks R1, R2: to accept them, request it with its image D"},
		{name: "recommended after all", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Accepted: true}, change: atRisk("True"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "whatever its risks", row: clusterversion.RowAtRisk, options: clusterversion.ResolveOptions{Conditional: true}, change: atRisk("False"), outcome: clusterversion.Resolved, want: "4.2.3@D"},
		{name: "available before at risk", row: clusterversion.RowAvailable, options: clusterversion.ResolveOptions{Conditional: true, History: true}, change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},

		{name: "started, and gone from the lists", row: clusterversion.RowCurrent, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.2"}), outcome: clusterversion.OwnRelease, want: "4.2.2@X"},
		{name: "started, request removed", row: clusterversion.RowNone, base: "4.2.2@X", outcome: clusterversion.OwnRelease, want: "4.2.2@X"},
		{name: "started, retargeted", row: clusterversion.RowAvailable, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.1"}), outcome: clusterversion.Resolved, want: "4.2.1@B"},
		{name: "started, turned around by image", row: clusterversion.RowImage, base: "4.2.2@X", change: request(configv1.Update{Version: "4.2.0", Image: "A"}), outcome: clusterversion.Resolved, want: "4.2.0@A"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := release("4.2.0@A")
			if tt.base != "" {
				base = release(tt.base)
			}
			got := clusterversion.Resolve(version(tt.change), base, false, tt.options)
			got.Withdrawn = ""
			want := clusterversion.Resolution{Outcome: tt.outcome, Row: tt.row, Release: release(tt.want), Why: tt.why}
			checktest.Same(t, want, got)
		})
	}
}

// atRisk asks for a conditional update with the risks R1 and R2, and accepts some.
func atRisk(recommended metav1.ConditionStatus, accept ...string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) {
		u := configv1.ConditionalUpdate{Release: release("4.2.3@D"), Risks: []configv1.ConditionalUpdateRisk{{Name: "R1"}, {Name: "R2"}}}
		if recommended != "" {
			u.Conditions = []metav1.Condition{{Type: "Recommended", Status: recommended}}
		}
		cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{u}
		cv.Spec.DesiredUpdate = &configv1.Update{Version: "4.2.3"}
		for _, name := range accept {
			cv.Spec.DesiredUpdate.AcceptRisks = append(cv.Spec.DesiredUpdate.AcceptRisks, configv1.AcceptRisk{Name: name})
		}
	}
}

// What becomes of the cluster if the request is withdrawn.
func TestResolveWithdrawn(t *testing.T) {
	started := func(cv *configv1.ClusterVersion) {
		cv.Status.History = append([]configv1.UpdateHistory{{Version: "4.2.2", Image: "X", State: configv1.PartialUpdate}}, cv.Status.History...)
	}
	for _, tt := range []struct {
		name   string
		change func(*configv1.ClusterVersion)
		base   string
		want   string
	}{
		{"no request", nil, "4.2.0@A", ""},
		{"asked for", request(configv1.Update{Version: "4.2.1"}), "4.2.0@A", "the cluster stays at 4.2.0: nothing of 4.2.1 has been applied"},
		{"asked for by image", request(configv1.Update{Image: "C"}), "4.2.0@A", "the cluster stays at 4.2.0: nothing of C has been applied"},
		{"satisfied", request(configv1.Update{Version: "4.2.0"}), "4.2.0@A", "the cluster stays at 4.2.0, as it does now"},
		{"not found", request(configv1.Update{Version: "4.9.9"}), "4.2.0@A", "the cluster stays at 4.2.0, as it does now"},
		{"started", func(cv *configv1.ClusterVersion) {
			started(cv)
			request(configv1.Update{Version: "4.2.2"})(cv)
		}, "4.2.2@X", "the update to 4.2.2, which was started, goes on"},
		{"started, and another one is asked for", func(cv *configv1.ClusterVersion) {
			started(cv)
			request(configv1.Update{Version: "4.2.1"})(cv)
		}, "4.2.2@X", "the update to 4.2.2, which was started, goes on"},
	} {
		if got := clusterversion.Resolve(version(tt.change), release(tt.base), false, clusterversion.ResolveOptions{}); got.Withdrawn != tt.want {
			t.Errorf("%s: %s", tt.name, got.Withdrawn)
		}
	}
}

func TestResolveFaulty(t *testing.T) {
	cv := version(nil)
	got := clusterversion.Resolve(cv, release("4.2.2@X"), true, clusterversion.ResolveOptions{})
	want := clusterversion.Resolution{Outcome: clusterversion.Invalid, Row: clusterversion.RowInvalid, Release: release("4.2.2@X"), Why: "the request is invalid", Withdrawn: "the cluster stays at 4.2.2, as it does now"}
	checktest.Same(t, want, got)
}

func TestResolveForce(t *testing.T) {
	got := clusterversion.Resolve(version(request(configv1.Update{Version: "4.2.1", Force: true})), release("4.2.0@A"), false, clusterversion.ResolveOptions{})
	if !got.Force || got.Outcome != clusterversion.Resolved {
		t.Errorf("got %+v", got)
	}
}
