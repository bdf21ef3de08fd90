package view_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

func TestVerdict(t *testing.T) {
	of := func(levels ...string) []view.Insight {
		var insights []view.Insight
		for _, l := range levels {
			insights = append(insights, view.Insight{Level: l})
		}
		return insights
	}
	plane := func(a string) *view.ControlPlane { return &view.ControlPlane{Assessment: a} }
	nodes := []view.Unknown{{Kind: "Node"}}
	for _, tt := range []struct {
		name string
		s    view.Status
		want view.Verdict
	}{
		{"not updating", view.Status{}, view.VerdictFine},
		{"well", view.Status{ControlPlane: plane("Progressing")}, view.VerdictFine},
		{"slow", view.Status{ControlPlane: plane("Progressing - Slow")}, view.VerdictFine},
		{"stalled", view.Status{ControlPlane: plane("Stalled"), Unknown: nodes}, view.VerdictStuck},
		{"warned of", view.Status{Health: of("Warning")}, view.VerdictWarning},
		{"an error", view.Status{Health: of("Warning", "Error")}, view.VerdictStuck},
		{"critical", view.Status{Health: of("Critical")}, view.VerdictStuck},
		{"unknown nodes", view.Status{Unknown: nodes, Health: of("Warning")}, view.VerdictUnknown},
		{"unknown alerts", view.Status{Unknown: []view.Unknown{{Kind: "Alert"}}}, view.VerdictFine},
	} {
		if got := tt.s.Verdict(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
