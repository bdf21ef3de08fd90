package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func TestIndexIgnore(t *testing.T) {
	files := []string{"a.json", "a.yaml", "b/a.json", "b/c/a.json", "b/c/d.txt", "b/objects/o.json", "#x", "sp ace", "[z]"}
	tests := []struct {
		name  string
		rules map[string]string // by directory
		want  []string          // what is left
	}{
		{"nothing", nil, files},
		{"a name at any depth", map[string]string{".": "a.json"}, []string{"a.yaml", "b/c/d.txt", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"anchored", map[string]string{".": "/a.json"}, []string{"a.yaml", "b/a.json", "b/c/a.json", "b/c/d.txt", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"a directory", map[string]string{".": "c/"}, []string{"a.json", "a.yaml", "b/a.json", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"no directory of this name", map[string]string{".": "a.json/"}, files},
		{"a path", map[string]string{".": "b/c"}, []string{"a.json", "a.yaml", "b/a.json", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"a path that is no directory", map[string]string{".": "b/c/a.json/"}, files},
		{"a star stays in its directory", map[string]string{".": "b/*.json"}, []string{"a.json", "a.yaml", "b/c/a.json", "b/c/d.txt", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"two stars", map[string]string{".": "b/**/*.json"}, []string{"a.json", "a.yaml", "b/c/d.txt", "#x", "sp ace", "[z]"}},
		{"two stars at the end", map[string]string{".": "b/**"}, []string{"a.json", "a.yaml", "#x", "sp ace", "[z]"}},
		{"all but some", map[string]string{".": "**/*\n!*.json\n!*.yaml\n**/objects/*.json\n"}, []string{"a.json", "a.yaml", "b/a.json", "b/c/a.json"}},
		{"the last pattern decides", map[string]string{".": "*.json\n!a.json\nb/a.json"}, []string{"a.json", "a.yaml", "b/c/a.json", "b/c/d.txt", "#x", "sp ace", "[z]"}},
		{"a directory's own file", map[string]string{"b": "*.json", ".": "*.yaml"}, []string{"a.json", "b/c/d.txt", "#x", "sp ace", "[z]"}},
		{"anchored at its directory", map[string]string{"b": "/a.json"}, []string{"a.json", "a.yaml", "b/c/a.json", "b/c/d.txt", "b/objects/o.json", "#x", "sp ace", "[z]"}},
		{"the deeper file decides", map[string]string{".": "*.json", "b/c": "!a.json"}, []string{"a.yaml", "b/c/a.json", "b/c/d.txt", "#x", "sp ace", "[z]"}},
		{"comments and blanks", map[string]string{".": "# a.json\n\n   \na.yaml  \r\n"}, slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "a.yaml" })},
		{"a comment is no pattern", map[string]string{".": "#x"}, files},
		{"escapes", map[string]string{".": `\#x` + "\n" + `sp\ ace`}, slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "#x" || f == "sp ace" })},
		{"an escaped blank at the end", map[string]string{".": `sp\ ` + "\n" + `a.yaml\ `}, files},
		{"classes", map[string]string{".": "[!a-b].txt\n?.yaml\n"}, slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "b/c/d.txt" || f == "a.yaml" })},
		{"a malformed pattern", map[string]string{".": "[z\n"}, files},
		{"everything", map[string]string{".": "*"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for _, f := range files {
				tree[f] = &fstest.MapFile{Data: []byte(`{"schema":"x","name":"` + f + `"}`)}
			}
			for dir, rules := range test.rules {
				tree[strings.TrimPrefix(dir+"/.indexignore", "./")] = &fstest.MapFile{Data: []byte(rules)}
			}
			c := checktest.Get(catalog.Load(t.Context(), tree, catalog.Options{Strict: true}))(t)
			var got []string
			for _, o := range c.Others() {
				got = append(got, o.Name)
			}
			want := slices.Sorted(slices.Values(test.want))
			checktest.SameIn(t, "files", want, got)
		})
	}
}

func TestLargeIndexIgnore(t *testing.T) {
	tree := fstest.MapFS{"d/.indexignore": {Data: []byte(strings.Repeat("x", 2<<20))}}
	if _, err := catalog.Load(t.Context(), tree, catalog.Options{}); err == nil || !strings.Contains(err.Error(), "d/.indexignore") {
		t.Errorf("error %v", err)
	}
}
