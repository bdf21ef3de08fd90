package promqlsnapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/graph/risk/promqlsnapshot"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// TestLint: lint takes the parser as its hook, finds no fault with the queries of the
// real tree, and finds one that is not closed.
func TestLint(t *testing.T) {
	parse := func(query string) error { return checktest.Err(promqlsnapshot.Metrics(query)) }
	tree := &graphdata.Tree{Risks: []graphdata.BlockedEdge{{
		File: "blocked-edges/4.1.1-Slow.yaml", To: "4.1.1", From: "4[.]1[.]0[+]", Lines: map[string]int{"matchingRules": 6},
		Risk: &configv1.ConditionalUpdateRisk{Name: "Slow", URL: "https://example.com", Message: "It is slow.",
			MatchingRules: []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "group(up"}}}},
	}}}
	found := func(tree *graphdata.Tree) (texts []string) {
		for _, p := range maintain.Lint(tree, nil, maintain.LintOptions{PromQL: parse}) {
			if p.Rule == "promql" {
				texts = append(texts, p.String())
			}
		}
		return texts
	}
	if got := found(tree); len(got) != 1 || !strings.HasPrefix(got[0], "blocked-edges/4.1.1-Slow.yaml:6: matchingRules[0]: cannot be parsed: ") {
		t.Error(got)
	}
	fsys := os.DirFS(filepath.Join(testdata.Dir(t), "graph-data"))
	real := checktest.Get(graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{}))(t)
	checktest.Same(t, []string(nil), found(real))
}
