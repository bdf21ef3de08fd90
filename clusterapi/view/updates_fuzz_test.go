package view_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// FuzzUpdateViews deletes and changes fields of ClusterVersions: of those of
// testdata, and of recorded clusters where the data is at hand. Each three bytes of
// edits pick a field and what becomes of it; text is one of the values.
func FuzzUpdateViews(f *testing.F) {
	versions := versionTexts(f)
	for i := range versions {
		f.Add(i, []byte{}, "4.14.2")
		f.Add(i, []byte{0, 9, 0, 0, 40, 3, 1, 200, 255}, "4.12.51")
		f.Add(i, []byte{2, 2, 7, 0, 77, 10, 0, 20, 1}, "a\t\x1b\f\xff%\n")
	}
	f.Fuzz(func(t *testing.T, which int, edits []byte, text string) {
		var tree any
		if err := json.Unmarshal(versions[uint(which)%uint(len(versions))], &tree); err != nil {
			t.Fatal(err)
		}
		for ; len(edits) > 2; edits = edits[3:] {
			tree = edit(tree, int(edits[0])<<8+int(edits[1]), int(edits[2]), text)
		}
		changed, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		cv := &configv1.ClusterVersion{}
		if json.Unmarshal(changed, cv) != nil {
			t.Skip("a field has another type")
		}
		before := cv.DeepCopy()
		in := view.RecommendInput{Version: text, Accept: []string{"Failing", text}, Prechecks: []view.Precheck{{Conditions: view.CheckAlerts(nil)}}}
		first := updateViews(t, cv, in)
		if diff := gocmp.Diff(first, updateViews(t, cv, in)); diff != "" {
			t.Fatalf("other texts for the same input:\n%s", diff)
		}
		if diff := gocmp.Diff(before, cv); diff != "" {
			t.Fatalf("the ClusterVersion was changed:\n%s", diff)
		}
	})
}

// versionTexts are the ClusterVersions to begin with, as JSON: those of testdata,
// then recorded ones.
func versionTexts(f *testing.F) [][]byte {
	data := cmp.Or(os.Getenv(testdata.Env), "../../../shared/data")
	var texts [][]byte
	for _, pattern := range []string{"testdata/*.yaml", filepath.Join(data, "clusters", "*", "*-cv.yaml")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			text, err := json.Marshal(readVersion(f, name))
			if err != nil {
				f.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// odd are values that a field may take.
var odd = []any{nil, "", "True", "Unknown", "4.14.2", "a\tb\n\nc", map[string]any{}, []any{}, float64(-1), true}

// edit replaces a value of a tree by an odd one or by a text, or deletes it. The
// values are numbered from the top, those of maps by their keys.
func edit(tree any, number, what int, text string) any {
	number %= max(countValues(tree), 1)
	counted := 0
	var walk func(any) any
	visit := func(child any) (changed any, kept bool) {
		counted++
		switch {
		case counted-1 != number:
			return walk(child), true
		case what < len(odd):
			return odd[what], true
		case what%2 == 0:
			return text, true
		}
		return nil, false
	}
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if child, kept := visit(v[key]); kept {
					v[key] = child
				} else {
					delete(v, key)
				}
			}
		case []any:
			rest := []any{}
			for _, child := range v {
				if child, kept := visit(child); kept {
					rest = append(rest, child)
				}
			}
			return rest
		}
		return v
	}
	return walk(tree)
}

// countValues counts what is in a tree.
func countValues(tree any) int {
	n := 0
	switch v := tree.(type) {
	case map[string]any:
		for _, child := range v {
			n += 1 + countValues(child)
		}
	case []any:
		for _, child := range v {
			n += 1 + countValues(child)
		}
	}
	return n
}
