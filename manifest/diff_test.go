package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// diffReleases are the two releases of testdata/diff.
func diffReleases(t *testing.T) (old, new *manifest.Payload, archive string) {
	t.Helper()
	data := checktest.Get(os.ReadFile("testdata/diff/releases.txtar"))(t)
	_, all := unpack(string(data))
	part := func(prefix string) *manifest.Payload {
		files := map[string]string{}
		for name, data := range all {
			if name, ok := strings.CutPrefix(name, prefix); ok {
				files[name] = data
			}
		}
		return checktest.Get(load(t, payload(files)))(t)
	}
	return part("old/"), part("new/"), string(data)
}

// diffKey makes the digits of hidden values the same in each run.
var diffKey = []byte("of these tests")

// TestDiffText compares the text of a diff, in both forms, with the wanted one.
func TestDiffText(t *testing.T) {
	old, new, archive := diffReleases(t)
	var got strings.Builder
	checktest.OK(t,
		manifest.Diff(old, new, manifest.DiffOptions{Key: diffKey}).WriteText(&got, manifest.DiffTextOptions{}))
	got.WriteString("-- text with schemas, descriptions and images --\n")
	checktest.OK(t,
		manifest.Diff(old, new, manifest.DiffOptions{Descriptions: true, Key: diffKey}).WriteText(&got,
			manifest.DiffTextOptions{Schemas: true, Images: true}))
	input, want, _ := strings.Cut(archive, "-- text --\n")
	if *update {
		checktest.OK(t, os.WriteFile("testdata/diff/releases.txtar", []byte(input+"-- text --\n"+got.String()), 0o644))
		return
	}
	checktest.Same(t, want, got.String())
}

// TestDiffLists: each object of the releases is in the lists it belongs to.
func TestDiffLists(t *testing.T) {
	old, new, _ := diffReleases(t)
	d := manifest.Diff(old, new, manifest.DiffOptions{})
	name := func(o manifest.DiffObject) string { return o.Identity.Name }
	got := map[string][]string{}
	add := func(list string, names ...string) { got[list] = append(got[list], strings.Join(names, " ")) }
	for _, a := range d.Added {
		if a.Duplicate {
			add("duplicate", name(a))
		} else {
			add("added", name(a))
		}
	}
	for _, i := range d.Included {
		add("included", name(i), string(i.Reasons[0].Rule))
	}
	for _, r := range d.Removed {
		add("removed", name(r), string(r.Fate))
	}
	for _, e := range d.Excluded {
		add("excluded", name(e), string(e.Reasons[0].Rule))
	}
	for _, c := range d.Changed {
		add("changed", name(c))
	}
	for _, m := range d.Moved {
		add("moved", m.From.Level, m.From.Component, m.To.Level, m.To.Component)
	}
	for _, o := range d.DeletesAdded {
		add("deletes", name(o))
	}
	for _, o := range d.DeletesRemoved {
		add("no deletes", name(o))
	}
	for _, o := range d.Orphans() {
		add("orphans", name(o))
	}
	want := map[string][]string{
		"added": {"new\nline", "returns"}, "duplicate": {"twice"}, "included": {"preview FeatureSet"},
		"removed": {"orphan Orphaned", "deleted Deleted"}, "excluded": {"excluded FeatureGate"}, "orphans": {"orphan"},
		"changed": {"widgets.example.com", "key", "dns", "dns", "w", "plain"}, "moved": {"20 dns 30 network", "   "},
		"deletes": {"deleted", "never-there"}, "no deletes": {"gone-long-ago", "returns"},
	}
	checktest.Same(t, want, got)
	if d.Unchanged != 2 { // same, whose labels are empty, and the first twice
		t.Errorf("%d unchanged", d.Unchanged)
	}
	if d.Empty() {
		t.Error("the releases differ")
	}
	images := []manifest.ImageChange{
		{Name: "dns", Old: "example.com/dns@sha256:1", New: "example.com/dns@sha256:2"},
		{Name: "gone", Old: "example.com/gone@sha256:1"}, {Name: "new", New: "example.com/new@sha256:1"},
	}
	checktest.Same(t, images, d.Images)
}

// TestDiffSchemas: fields of schemas are told by version, with descriptions only
// where they are asked for, and a property called description is no description.
func TestDiffSchemas(t *testing.T) {
	old, new, _ := diffReleases(t)
	for _, descriptions := range []bool{false, true} {
		d := manifest.Diff(old, new, manifest.DiffOptions{Descriptions: descriptions})
		crd := d.Changed[0]
		var fields []string
		for _, f := range crd.Fields {
			fields = append(fields, f.Path)
		}
		checktest.Same(t,
			[]string{"spec.versions[name=v1alpha1].served", "spec.versions[name=v1beta1]", "spec.versions[name=v2]"}, fields)
		var got []string
		for _, s := range crd.Schemas {
			for _, f := range s.Fields {
				got = append(got, s.Version+" "+f.Path)
			}
		}
		want := []string{
			"v1 description", `v1 properties.spec.properties.description.description`, `v1 properties.spec.properties.description.type`,
			"v1 properties.spec.properties.token", `v1 properties.spec.required[="c"]`, "v1alpha1 description",
		}
		if !descriptions {
			want = []string{want[2], want[3], want[4]}
		}
		checktest.SameIn(t, fmt.Sprintf("descriptions %v", descriptions), want, got)
		if s := crd.Schemas; len(s) != 2 || !s[0].Served || s[0].Descriptions != 2 || s[1].Served || s[1].Descriptions != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// TestDiffHidesCredentials: neither data nor text holds what Secrets hold, nor
// what stands under a credential's name.
func TestDiffHidesCredentials(t *testing.T) {
	old, new, _ := diffReleases(t)
	d := manifest.Diff(old, new, manifest.DiffOptions{Descriptions: true})
	data := checktest.Get(json.Marshal(d))(t)
	var text strings.Builder
	checktest.OK(t, d.WriteText(&text, manifest.DiffTextOptions{Schemas: true}))
	for _, out := range []string{string(data), text.String()} {
		if i := strings.Index(out, "hunter"); i >= 0 {
			t.Errorf("shown: %s", out[max(i-200, 0):i+10])
		}
		if n := strings.Count(out, "(redacted-"); n < 10 { // key, ca.crt, TOKEN and proxy, each twice, and two defaults
			t.Errorf("%d digests in %s", n, out)
		}
	}
	// Equal values of a report are seen to be equal; those of another are not.
	token := d.Changed[2].Fields[3]
	if key := d.Changed[1].Fields[0]; token.Path != "spec.template.spec.containers[name=main].env[name=TOKEN].value" || key.Path != "stringData.key" || key.Old == key.New || token.Old != key.Old {
		t.Errorf("%+v, %+v", key, token)
	}
	if other := manifest.Diff(old, new, manifest.DiffOptions{Descriptions: true}); other.Changed[1].Fields[0].Old == d.Changed[1].Fields[0].Old {
		t.Error("two reports have one key")
	}
}

// TestDiffRestricts: a text may be about one component or kind.
func TestDiffRestricts(t *testing.T) {
	old, new, _ := diffReleases(t)
	d := manifest.Diff(old, new, manifest.DiffOptions{Key: diffKey})
	secret := d.Changed[1].Fields
	for _, tt := range []struct {
		o    manifest.DiffTextOptions
		want []string
	}{
		{manifest.DiffTextOptions{Component: "network"}, []string{"runlevel 30, network", "  ~ Service a/moved (moved from dns of runlevel 20)"}},
		{manifest.DiffTextOptions{Kind: "Deployment", Component: "config"}, nil},
		{manifest.DiffTextOptions{Kind: "Secret"}, []string{"runlevel 20, dns", "  ~ Secret a/key",
			fmt.Sprintf("      ~ stringData.key: %q -> %q", secret[0].Old, secret[0].New),
			fmt.Sprintf(`      ~ stringData["ca.crt"]: %q -> %q`, secret[1].Old, secret[1].New)}},
	} {
		var text strings.Builder
		checktest.OK(t, d.WriteText(&text, tt.o))
		_, rest, _ := strings.Cut(text.String(), "changed\n") // of the counts
		_, rest, _ = strings.Cut(rest, "\n\n")
		var lines []string
		if rest != "" {
			lines = strings.Split(strings.TrimSuffix(rest, "\n"), "\n")
		}
		checktest.SameIn(t, fmt.Sprintf("%+v", tt.o), tt.want, lines)
	}
}

// TestDiffPairs: of several manifests of an object, equal ones belong together,
// first those of one file, then those of one file that differ. Lists are in the
// order of their payloads.
func TestDiffPairs(t *testing.T) {
	type files = [][2]string // name, and name and value of a ConfigMap
	for _, tt := range []struct {
		name     string
		old, new files
		want     []string
	}{
		{"one of two equal ones goes", files{{"x", "a 1"}, {"y", "a 1"}}, files{{"y", "a 1"}}, []string{"removed x", "unchanged 1"}},
		{"equal ones in other files", files{{"x", "a 1"}, {"y", "a 2"}}, files{{"y", "a 1"}, {"z", "a 2"}}, []string{"unchanged 2"}},
		{"the same file", files{{"x", "a 1"}, {"y", "a 2"}}, files{{"y", "a 3"}}, []string{"changed y to y", "removed x", "unchanged 0"}},
		{"others in order", files{{"x", "a 1"}, {"y", "a 2"}}, files{{"u", "a 3"}, {"v", "a 4"}}, []string{"changed x to u", "changed y to v", "unchanged 0"}},
		{"order of what comes", files{{"x", "a 1"}}, files{{"x", "a 1"}, {"y", "b 1"}, {"z", "a 2"}}, []string{"added y", "added z", "unchanged 1"}},
		{"order of what goes", files{{"x", "a 1"}, {"y", "b 1"}, {"z", "a 2"}}, files{{"x", "a 1"}}, []string{"removed y", "removed z", "unchanged 1"}},
		{"order of what changes", files{{"x", "a 1"}, {"y", "b 1"}, {"z", "a 2"}}, files{{"x", "a 3"}, {"y", "b 3"}, {"z", "a 4"}},
			[]string{"changed x to x", "changed y to y", "changed z to z", "unchanged 0"}},
	} {
		load := func(list files) *manifest.Payload {
			p := &manifest.Payload{}
			for _, f := range list {
				name, value, _ := strings.Cut(f[1], " ")
				m := checktest.Get(manifest.New("0000_50_a_"+f[0], &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "annotations": map[string]any{}}, "data": map[string]any{"x": value},
				}}))(t)
				p.Manifests = append(p.Manifests, m)
			}
			return p
		}
		d := manifest.Diff(load(tt.old), load(tt.new), manifest.DiffOptions{})
		short := func(file string) string { return strings.TrimPrefix(file, "0000_50_a_") }
		var got []string
		for _, a := range d.Added {
			got = append(got, "added "+short(a.File))
		}
		for _, c := range d.Changed {
			got = append(got, "changed "+short(c.Old.Filename)+" to "+short(c.File))
		}
		for _, r := range d.Removed {
			got = append(got, "removed "+short(r.File))
		}
		got = append(got, fmt.Sprint("unchanged ", d.Unchanged))
		checktest.SameIn(t, tt.name, tt.want, got)
	}
}

// TestDiffFieldText: a long value is shown by what differs in it.
func TestDiffFieldText(t *testing.T) {
	long := strings.Repeat("x", 150)
	var many strings.Builder
	for i := range 15 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	for _, tt := range []struct {
		name     string
		old, new any
		want     []string
	}{
		{"scalars", int64(1), "1", []string{`~ f: 1 -> "1"`}},
		{"nothing", nil, true, []string{"+ f: true"}},
		{"nothing any more", map[string]any{"a": "<"}, nil, []string{`- f: {"a":"<"}`}},
		{"long texts", long + "abc", long + "abd", []string{`~ f: ...xxxxxxxxxxxxxxxxxxabc" -> ...xxxxxxxxxxxxxxxxxxabd"`}},
		{"long from the beginning", long + long, "y", []string{`~ f: "` + strings.Repeat("x", 179) + `... (122 more bytes) -> "y"`}},
		{"lines in another order", "a\nb", "b\na", []string{"~ f: lines in another order"}},
		{"lines, one of two", "a\na\nb", "a\nb\nc", []string{"~ f: lines: 1 gone, 1 new", "    - a", "    + c"}},
		{"many lines", "", many.String(), []string{"~ f: lines: 0 gone, 15 new",
			"    + line 0", "    + line 1", "    + line 2", "    + line 3", "    + line 4", "    + line 5", "    + line 6", "    + line 7", "    + line 8", "    + line 9", "    + and 5 more"}},
		{"control characters", "a\n\x1b[31m", "a\n", []string{"~ f: lines: 1 gone, 1 new", `    - "\x1b[31m"`, "    + "}},
		{"short lists", []any{"a", "b"}, []any{"b"}, []string{`~ f: ["a","b"] -> ["b"]`}},
		{"long lists", []any{long, "a"}, []any{"b", long}, []string{"~ f: elements: 1 gone, 1 new", `    - "a"`, `    + "b"`}},
	} {
		d := &manifest.PayloadDiff{Changed: []manifest.DiffObject{{Fields: []clusterapi.FieldChange{{Path: "f", Old: tt.old, New: tt.new}}}}}
		var text strings.Builder
		checktest.OK(t, d.WriteText(&text, manifest.DiffTextOptions{}))
		var got []string
		for line := range strings.Lines(text.String()) {
			if line, ok := strings.CutPrefix(line, "      "); ok {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
		}
		checktest.SameIn(t, tt.name, tt.want, got)
	}
}

// TestDiffFilters: what a pass excludes is not applied.
func TestDiffFilters(t *testing.T) {
	old, new, _ := diffReleases(t)
	override := []configv1.ComponentOverride{{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "dns", Unmanaged: true}}
	o := manifest.DiffOptions{Filter: manifest.Filter{Overrides: override}}
	for _, c := range manifest.Diff(old, new, o).Changed {
		if c.Identity.Kind == "Deployment" {
			t.Error("an object that is not managed has changed")
		}
	}
}

func TestDiffOfNothing(t *testing.T) {
	_, new, _ := diffReleases(t)
	if d := manifest.Diff(nil, nil, manifest.DiffOptions{}); !d.Empty() || d.Unchanged != 0 {
		t.Errorf("%+v", d)
	}
	d := manifest.Diff(nil, new, manifest.DiffOptions{})
	if len(d.Added) != 13 || len(d.Included)+len(d.Changed)+len(d.Removed) != 0 || len(d.DeletesAdded) != 2 {
		t.Errorf("%d added, %d to delete", len(d.Added), len(d.DeletesAdded))
	}
	if d := manifest.Diff(new, nil, manifest.DiffOptions{}); len(d.Orphans()) != 13 || len(d.DeletesRemoved) != 2 {
		t.Errorf("%d orphans", len(d.Orphans()))
	}
}

type failingWriter struct{}

var errFull = errors.New("full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestDiffTextFails(t *testing.T) {
	d := manifest.Diff(nil, nil, manifest.DiffOptions{})
	checktest.ErrorIs(t, errFull, d.WriteText(failingWriter{}, manifest.DiffTextOptions{}))
}

// TestImageChanges: images that come, go and change, by name; no payload has none.
func TestImageChanges(t *testing.T) {
	old := &manifest.Payload{Images: map[string]string{"same": "a", "gone": "b", "other": "c"}}
	new := &manifest.Payload{Images: map[string]string{"same": "a", "come": "d", "other": "e"}}
	want := []manifest.ImageChange{{Name: "come", New: "d"}, {Name: "gone", Old: "b"}, {Name: "other", Old: "c", New: "e"}}
	checktest.Same(t, want, manifest.ImageChanges(old, new))
	if got := manifest.ImageChanges(nil, nil); got != nil {
		t.Error(got)
	}
	if got := manifest.ImageChanges(old, nil); len(got) != 3 || got[0].New != "" {
		t.Error(got)
	}
}
