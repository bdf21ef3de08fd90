package graphdata_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// TestPromotionFiles: versions are put in their places, and comments stay.
func TestPromotionFiles(t *testing.T) {
	for _, c := range []struct {
		name, old, want string
		order           func(a, b string) int
	}{
		{"in its place", "# about\nname: x\nversions:\n- 1.1.0 # the first\n# no 1.1.2, it broke\n- 1.1.3\n- 1.1.10\n", "# about\nname: x\nversions:\n- 1.1.0 # the first\n- 1.1.1\n- 1.1.1-rc.0\n# no 1.1.2, it broke\n- 1.1.3\n- 1.1.10\n", nil},
		{"in the order of SemVer", "name: x\nversions:\n- 1.1.0\n", "name: x\nversions:\n- 1.1.0\n- 1.1.1-rc.0\n- 1.1.1\n", graph.CompareVersions},
		{"an empty list", "name: x\nversions: []\n", "name: x\nversions:\n- 1.1.1\n- 1.1.1-rc.0\n", nil},
		{"no list", "name: x\nversions:\nfeeder: {name: y}\n", "name: x\nversions:\n- 1.1.1\n- 1.1.1-rc.0\nfeeder: {name: y}\n", nil},
		{"in brackets", "name: x\nversions: [1.1.2]\n", "name: x\nversions: [1.1.1, 1.1.1-rc.0, 1.1.2]\n", nil},
		{"one there already", "name: x\nversions:\n- 1.1.1\n", "name: x\nversions:\n- 1.1.1\n- 1.1.1-rc.0\n", nil},
		{"both there already", "name: x\nversions:\n  - 1.1.1\n  - 1.1.1-rc.0\n", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fstest.MapFS{"channels/x.yaml": {Data: []byte(c.old)}}
			files, err := graphdata.PromotionFiles(fsys, []graphdata.Promotion{
				{Decision: graphdata.Promote, File: "channels/x.yaml", Version: "1.1.1-rc.0"},
				{Decision: graphdata.Wait, File: "channels/x.yaml", Version: "1.1.7"},
				{Decision: graphdata.Undecidable, File: "channels/y.yaml"},
				{Decision: graphdata.Promote, File: "channels/x.yaml", Version: "1.1.1"},
			}, c.order)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			if c.want != "" {
				want["channels/x.yaml"] = c.want
			}
			if diff := cmp.Diff(want, texts(files)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestPromotionFilesFaults: files that are no channels.
func TestPromotionFilesFaults(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"- a\n", "channels/x.yaml: is not a map"},
		{"", "channels/x.yaml: is not a map"},
		{"a: [\n", "channels/x.yaml: yaml: line 1: did not find expected node content"},
		{"name: x\n", "channels/x.yaml: versions: is not a list"},
		{"name: x\nversions: 1\n", "channels/x.yaml: versions: is not a list"},
		{"#" + strings.Repeat("a", 1<<20), "channels/x.yaml: exceeds the limit of 1048576 bytes of a file"},
	} {
		_, err := graphdata.PromotionFiles(fstest.MapFS{"channels/x.yaml": {Data: []byte(c.text)}}, []graphdata.Promotion{{Decision: graphdata.Promote, File: "channels/x.yaml", Version: "1.1.1"}}, nil)
		if err == nil || err.Error() != c.err {
			t.Errorf("%v, want %s", err, c.err)
		}
	}
	_, err := graphdata.PromotionFiles(fstest.MapFS{}, []graphdata.Promotion{{Decision: graphdata.Promote, File: "channels/x.yaml"}}, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestPromotionFilesRealTree: every comment of every channel stays, whatever is
// added.
func TestPromotionFilesRealTree(t *testing.T) {
	tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{InternalChannels: true})
	if err != nil {
		t.Fatal(err)
	}
	var promotions []graphdata.Promotion
	for _, c := range append(tree.Channels, tree.Internal...) {
		promotions = append(promotions, graphdata.Promotion{Decision: graphdata.Promote, File: c.File, Channel: c.Name, Version: "4.6.999"})
	}
	files, err := graphdata.PromotionFiles(realTree(t), promotions, nil)
	if err != nil || len(files) != len(promotions) {
		t.Fatalf("%d files of %d, %v", len(files), len(promotions), err)
	}
	lines := func(text []byte) map[string]int {
		count := map[string]int{}
		for line := range strings.Lines(string(text)) {
			line = strings.Join(strings.Fields(line), " ")
			if quoted, ok := strings.CutPrefix(line, "- '"); ok {
				line = "- " + strings.Trim(quoted, "'")
			}
			if line != "" && line != "---" {
				count[line]++
			}
		}
		return count
	}
	for _, f := range files {
		old, err := fs.ReadFile(realTree(t), f.Name)
		if err != nil {
			t.Fatal(err)
		}
		want := lines(old)
		want["- 4.6.999"]++
		if diff := cmp.Diff(want, lines(f.Text)); diff != "" {
			t.Errorf("%s: -want +got\n%s", f.Name, diff)
		}
	}
}

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
		f, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := graphdata.Load(t.Context(), treeOf(map[string]string{f.Name: string(f.Text)}), graphdata.LoadOptions{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, f.Text)
		}
		if diff := cmp.Diff([]graphdata.BlockedEdge{b}, append(tree.Drops, tree.Risks...)); diff != "" || len(tree.Problems) > 0 {
			t.Fatalf("%v -want +got\n%s in\n%s", tree.Problems, diff, f.Text)
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
		f, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		fsys[f.Name] = &fstest.MapFile{Data: f.Text}
	}
	again, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]graphdata.BlockedEdge{tree.Drops, tree.Risks, again.Drops, again.Risks} {
		for i := range list {
			list[i].Line = 0
		}
	}
	if diff := cmp.Diff(tree.Drops, again.Drops); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(tree.Risks, again.Risks); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
