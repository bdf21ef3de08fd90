package graphdata_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestEncode: what is written is read as the same.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{1,90}`), rapid.StringN(1, 200, -1), rapid.SampledFrom([]string{"~", "null", "true", "4.20", "0x1", "a: b", "# c", " x ", "x\n\ny\n", "- a", "'", "\"", "\t", "no", "*", "&a", "=", "<<"}))
		from := rapid.SampledFrom([]string{".*", "4", "^4[.]2[.]1[+].*$", "4[.](1|2)[.].*", "[+]amd64", "~", "true", " ", "4.20", "'", "x{2}"})
		b := graphdata.BlockedEdge{File: "blocked-edges/4.1.0.yaml", Line: 2, To: rapid.SampledFrom([]string{"4.1.0", "4.1.0+amd64", "4.1.0-rc.0"}).Draw(t, "to"), From: from.Draw(t, "from")}
		b.FixedIn = rapid.SampledFrom([]string{"", "4.1.1"}).Draw(t, "fixedIn")
		if rapid.Bool().Draw(t, "autoExtend") {
			b.AutoExtend = text.Draw(t, "uri")
		}
		if rapid.Bool().Draw(t, "risk") {
			b.Risk = &configv1.ConditionalUpdateRisk{URL: text.Draw(t, "url"), Name: text.Draw(t, "name"), Message: text.Draw(t, "message"), MatchingRules: []configv1.ClusterCondition{}}
			for range rapid.IntRange(0, 2).Draw(t, "rules") {
				rule := configv1.ClusterCondition{Type: "Always"}
				if rapid.Bool().Draw(t, "query") {
					rule = configv1.ClusterCondition{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: text.Draw(t, "promql")}}
				}
				b.Risk.MatchingRules = append(b.Risk.MatchingRules, rule)
			}
		}
		encoded := checktest.Must(b.Encode())
		tree, err := graphdata.Load(t.Context(), treeOf(map[string]string{b.File: string(encoded)}), graphdata.LoadOptions{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, encoded)
		}
		if diff := cmp.Diff([]graphdata.BlockedEdge{b}, append(tree.Drops, tree.Risks...), cmpopts.IgnoreFields(graphdata.BlockedEdge{}, "Lines")); diff != "" || len(tree.Problems) > 0 {
			t.Fatalf("%v -want +got\n%s in\n%s", tree.Problems, diff, encoded)
		}
	})
	if _, err := (graphdata.BlockedEdge{File: "x.yaml", To: "4.1.0", From: "\xff"}).Encode(); err == nil || !strings.HasPrefix(err.Error(), "x.yaml: ") {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
}

// TestEncodeRealTree: the blocked edges of the real tree.
func TestEncodeRealTree(t *testing.T) {
	tree := loadReal(t)
	fsys := treeOf(nil)
	for _, b := range append(tree.Drops, tree.Risks...) {
		encoded := checktest.Must(b.Encode())
		fsys[b.File] = &fstest.MapFile{Data: encoded}
	}
	again := checktest.Must(graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{}))
	for _, list := range [][]graphdata.BlockedEdge{tree.Drops, tree.Risks, again.Drops, again.Risks} {
		for i := range list {
			list[i].Line, list[i].Lines = 0, nil
		}
	}
	checktest.Same(t, tree.Drops, again.Drops)
	checktest.Same(t, tree.Risks, again.Risks)
}
