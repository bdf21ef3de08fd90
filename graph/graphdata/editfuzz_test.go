package graphdata_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// FuzzPromotionFiles: a channel that Load accepts, with a version added, is the
// same but for that and for the order of its versions.
func FuzzPromotionFiles(f *testing.F) {
	f.Add(smallChannel)
	f.Add("# a\nname: fast-4.30 # b\nfeeder: {name: fast, delay: PT0H, filter: '4[.].*'}\n# c\ntombstones: [4.29.7]\nversions: # d\n# e\n- 4.29.7 # f\n\n# g\n- 4.2.10-s390x\n# h\n")
	f.Add("name: \"<<\"\nversions:\nfeeder: {name: '~', delay: |\n P\n  }\n")
	f.Add("versions: []\nname: !!str 4.20\n")
	f.Fuzz(func(t *testing.T, text string) {
		const name = "channels/a.yaml"
		read := func(text string) *graphdata.Tree {
			tree, err := graphdata.Load(t.Context(), treeOf(map[string]string{name: text + " "}), graphdata.LoadOptions{})
			if err != nil {
				return nil
			}
			return tree
		}
		was := read(text)
		if was == nil {
			return
		}
		fsys := treeOf(map[string]string{name: text + " "})
		files, err := graphdata.PromotionFiles(fsys, []graphdata.Promotion{{Decision: graphdata.Promote, File: name, Version: "99.0.0"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		old := was.Channels[0]
		there := slices.ContainsFunc(old.Versions, func(e graphdata.Entry) bool { return e.Version == "99.0.0" })
		if len(files) == 0 && there {
			return
		}
		if len(files) != 1 {
			t.Fatalf("%d files", len(files))
		}
		is := read(string(files[0].Text))
		if is == nil {
			t.Fatalf("what is written cannot be read:\n%s", files[0].Text)
		}
		if !there {
			old.Versions = append(slices.Clone(old.Versions), graphdata.Entry{Version: "99.0.0"})
		}
		slices.SortStableFunc(old.Versions, func(a, b graphdata.Entry) int { return graphdata.PromotionOrder(a.Version, b.Version) })
		lines := cmp.Options{cmpopts.IgnoreFields(graphdata.Entry{}, "Line"), cmpopts.IgnoreFields(graphdata.Feeder{}, "Line"), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(old, is.Channels[0], lines); diff != "" {
			t.Fatalf("-want +got\n%s in\n%s", diff, files[0].Text)
		}
	})
}
