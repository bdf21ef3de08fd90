package graphdata_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// loadFile loads a small tree with one file, in both modes, and holds what is true
// of every tree.
func loadFile(t *testing.T, file, text string) (strict, compat *graphdata.Tree) {
	fsys := treeOf(map[string]string{file: text + " "}) // never the mark of no file
	for _, mode := range []bool{false, true} {
		opts := graphdata.LoadOptions{Compat: mode, InternalChannels: true, Limits: graphdata.Limits{MaxProblems: 100}}
		tree, err := graphdata.Load(t.Context(), fsys, opts)
		again, errAgain := graphdata.Load(t.Context(), fsys, opts)
		if !reflect.DeepEqual(tree, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("compat %v: two loads differ: %v, %v", mode, err, errAgain)
		}
		if err != nil {
			var failed *graphdata.LoadError
			if tree != nil || !errors.As(err, &failed) || len(failed.Problems) == 0 || err.Error() == "" {
				t.Fatalf("compat %v: %v without a problem", mode, err)
			}
			continue
		}
		if mode {
			compat = tree
			continue
		}
		strict = tree
		for _, p := range tree.Problems {
			if !p.Warning {
				t.Fatalf("loaded in spite of %v", p)
			}
		}
	}
	return strict, compat
}

func FuzzChannel(f *testing.F) {
	f.Add(smallChannel)
	f.Add("name: fast-4.30\nfeeder: {name: fast, delay: PT0H, filter: '4[.].*', errata: public}\ntombstones: [4.29.7]\nversions:\n- 4.29.7\n- 4.2.10-s390x # why\n")
	f.Add("name: &a x\nversions: *a\n")
	f.Add("? [a]\n: {}\n---\n")
	f.Add("name: ~\nversions:\n<<: {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		strict, compat := loadFile(t, "channels/a.yaml", text)
		if strict == nil {
			return
		}
		for _, c := range strict.Channels {
			if c.Name == "" {
				t.Fatal("a channel without a name")
			}
			for _, e := range append(c.Versions, c.Tombstones...) {
				if _, err := graph.ParseVersion(e.Version); err != nil || e.Line < 1 {
					t.Fatalf("%+v: %v", e, err)
				}
			}
		}
		if compat == nil {
			t.Fatal("strict loads what an update service cannot")
		}
	})
}

func FuzzBlockedEdge(f *testing.F) {
	f.Add(smallDrop)
	f.Add(smallRisk)
	f.Add("to: 4.30.3\nfrom: 4[.]29[.].*\nfixedIn: 4.30.4\nautoExtend: https://example.com\nurl: https://example.com/1\nname: SlowDisks\nmessage: |\n  It is slow.\nmatchingRules:\n- type: PromQL\n  promql:\n    promql: up > 0\n")
	f.Add("to: 4.1.0\nfrom: '[a&&b]'\nmatchingRules: {}\nname: [1]\n")
	f.Fuzz(func(t *testing.T, text string) {
		strict, _ := loadFile(t, "blocked-edges/a.yaml", text)
		if strict == nil {
			return
		}
		// A strict load never leaves updates open.
		if len(strict.Drops)+len(strict.Risks) != 1 {
			t.Fatalf("%d drops and %d risks of one file", len(strict.Drops), len(strict.Risks))
		}
		for _, b := range append(strict.Drops, strict.Risks...) {
			if _, err := graphdata.CompileFrom(b.From); err != nil || b.From == "" || b.Line < 1 {
				t.Fatalf("%+v: %v", b, err)
			}
			if b.Risk != nil && (b.Risk.Name == "" || b.Risk.URL == "" || b.Risk.Message == "" || b.Risk.MatchingRules == nil) {
				t.Fatalf("%+v", b.Risk)
			}
		}
	})
}

func FuzzSuggestions(f *testing.F) {
	f.Add("default: {minor_min: 4.1.0, minor_max: 4.1.9, minor_block_list: [4.1.3], z_min: 4.2.0, z_max: 4.2.9, z_block_list: []}\n")
	f.Add("s390x: &s {}\ndefault: *s\n")
	f.Fuzz(func(t *testing.T, text string) {
		strict, _ := loadFile(t, "build-suggestions/4.2.yaml", text)
		if strict == nil {
			return
		}
		if len(strict.Suggestions) == 0 || strict.Suggestions[0].Arch != "default" {
			t.Fatalf("%+v", strict.Suggestions)
		}
		for _, v := range strict.Suggested("4.2.5", "s390x", []string{"4.1.3", "4.1.5", "4.2.5", "4.2.4", "4.2.4", "x"}) {
			if v == "4.2.5" || v == "x" {
				t.Fatalf("%s is suggested", v)
			}
		}
	})
}

func FuzzRaw(f *testing.F) {
	f.Add(`{"4.1.0": {"io.openshift.upgrades.graph.previous.add": "4.1.0-rc.4,4.1.0-rc.9"}}`)
	f.Add(`{"x": {"\ud83d": ""}, "x": 1}`)
	f.Fuzz(func(t *testing.T, text string) {
		strict, _ := loadFile(t, "raw/metadata.json", text)
		if strict == nil {
			return
		}
		for _, r := range strict.Raw {
			if _, err := graph.ParseVersion(r.Version); err != nil || r.Line < 1 || r.Line > 1+strings.Count(text, "\n") {
				t.Fatalf("%+v: %v", r, err)
			}
		}
	})
}
