package view_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

func TestVerdict(t *testing.T) {
	of := func(levels ...view.Level) []view.Insight {
		var insights []view.Insight
		for _, l := range levels {
			insights = append(insights, view.Insight{Level: l})
		}
		return insights
	}
	plane := func(a view.Assessment) *view.ControlPlane { return &view.ControlPlane{Assessment: a} }
	nodes := []view.Unknown{{Kind: "Node"}}
	for _, tt := range []struct {
		name string
		s    view.Status
		want view.Verdict
	}{
		{"not updating", view.Status{}, view.VerdictFine},
		{"well", view.Status{ControlPlane: plane(view.AssessmentProgressing)}, view.VerdictFine},
		{"slow", view.Status{ControlPlane: plane(view.AssessmentSlow)}, view.VerdictFine},
		{"stalled", view.Status{ControlPlane: plane(view.AssessmentStalled), Unknown: nodes}, view.VerdictStuck},
		{"warned of", view.Status{Health: of(view.LevelWarning)}, view.VerdictWarning},
		{"an error", view.Status{Health: of(view.LevelWarning, view.LevelError)}, view.VerdictStuck},
		{"critical", view.Status{Health: of(view.LevelCritical)}, view.VerdictStuck},
		{"unknown nodes", view.Status{Unknown: nodes, Health: of(view.LevelWarning)}, view.VerdictUnknown},
		{"unknown alerts", view.Status{Unknown: []view.Unknown{{Kind: "Alert"}}}, view.VerdictFine},
	} {
		if got := tt.s.Verdict(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
