package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// payload returns the smallest payload with more files, whose own take
// precedence; a nil one is taken away.
func payload(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{
		"manifests/.keep":                    {},
		"release-manifests/.keep":            {},
		"release-manifests/release-metadata": {Data: []byte(`{"kind":"cincinnati-metadata-v0","version":"4.20.1"}`)},
		"release-manifests/image-references": {Data: []byte(`{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.1"},"spec":{"tags":[
			{"name":"cli","from":{"kind":"DockerImage","name":"example.com/cli@sha256:1"}},
			{"name":"a-b","from":{"kind":"DockerImage","name":"example.com/ab@sha256:2"}},
			{"name":"tag","from":{"kind":"ImageStreamTag","name":"x"}}, {"name":"none"}]}}`)},
	}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

// object is a manifest of the kind K of group example.com with annotations in
// flow form.
func object(name, annotations string) string {
	return fmt.Sprintf("apiVersion: example.com/v1\nkind: K\nmetadata: {name: %s, annotations: {%s}}\n", name, annotations)
}

const included = `include.release.openshift.io/self-managed-high-availability: "true"`

func load(t *testing.T, fsys fs.FS) (*manifest.Payload, error) {
	t.Helper()
	return manifest.Load(t.Context(), fsys, manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()})
}

func TestLoadLayout(t *testing.T) {
	all := []string{"manifests", "release-manifests", "release-manifests/release-metadata", "release-manifests/image-references"}
	for i, missing := range all {
		fsys := payload(nil)
		for name := range fsys {
			// Whatever comes after the first missing part is missing as well.
			for _, m := range all[i:] {
				if name == m || strings.HasPrefix(name, m+"/") {
					delete(fsys, name)
				}
			}
		}
		_, err := load(t, fsys)
		var path *fs.PathError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) || path.Path != missing {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestLoadMetadataFaults(t *testing.T) {
	const meta, images = "release-manifests/release-metadata", "release-manifests/image-references"
	tests := []struct{ file, data, want string }{
		{meta, `{`, "unmarshal Cincinnati metadata: "},
		{meta, `{"kind":5}`, "unmarshal Cincinnati metadata: "},
		{meta, `{"kind":"cincinnati-metadata-v0","version":"4.20.1","previous":"x"}`, "unmarshal Cincinnati metadata: "},
		{meta, `{"kind":"X"}`, `unrecognized Cincinnati metadata kind "X"`},
		{meta, `{"kind":"cincinnati-metadata-v0"}`, "missing required Cincinnati metadata version"},
		{meta, `{"kind":"cincinnati-metadata-v0","version":"v4.20.1"}`, `invalid Cincinnati metadata version "v4.20.1": `},
		{meta, `{"kind":"cincinnati-metadata-v0","version":"4.20"}`, `invalid Cincinnati metadata version "4.20": `},
		{images, `{`, "unmarshal image-references: "},
		{images, `{"apiVersion":"image.openshift.io/v1"}`, "unmarshal image-references: "},
		{images, `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":5}}`, "unmarshal image-references: "},
		{images, `{"kind":"ConfigMap","apiVersion":"v1"}`, "image-references is a v1 ConfigMap, not a v1 ImageStream"},
		{images, `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","Metadata":{"name":"4.20.1"}}`, "version from image-references () differs from release-metadata (4.20.1)"}, // keys in other letters do not count
		{images, `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.2"}}`, "version from image-references (4.20.2) differs from release-metadata (4.20.1)"},
	}
	for _, tt := range tests {
		_, err := load(t, payload(map[string]string{tt.file: tt.data}))
		var fault *manifest.Error
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || errors.As(err, &fault) {
			t.Errorf("%s: %v", tt.data, err)
		}
	}
}

func TestLoadRelease(t *testing.T) {
	metadata := func(m string) fs.FS {
		return payload(map[string]string{"release-manifests/release-metadata": `{"KIND":"cincinnati-metadata-v0","Version":"4.20.1","extra":1,"previous":["x","4.19.1"],"next":["4.20.2"],"metadata":` + m + `}`})
	}
	tests := []struct {
		metadata string
		want     configv1.Release
		warnings int
	}{
		{`{}`, configv1.Release{Architecture: "s390x"}, 0},
		{`null`, configv1.Release{Architecture: "s390x"}, 0},
		{`{"url":"https://example.com/a","release.openshift.io/architecture":"multi","io.openshift.upgrades.graph.release.channels":"stable-4.20,,fast-4.20,","free":{"x":1}}`,
			configv1.Release{URL: "https://example.com/a", Architecture: "Multi", Channels: []string{"fast-4.20", "stable-4.20"}}, 0},
		{`{"url":5,"release.openshift.io/architecture":"amd64","io.openshift.upgrades.graph.release.channels":["a"]}`, configv1.Release{Architecture: "s390x"}, 3},
		{`{"url":"http://[","release.openshift.io/architecture":"Multi","io.openshift.upgrades.graph.release.channels":"b,a"}`, configv1.Release{Architecture: "s390x", Channels: []string{"a", "b"}}, 2},
	}
	for _, tt := range tests {
		p := checktest.Get(manifest.Load(t.Context(), metadata(tt.metadata),
			manifest.LoadOptions{Image: "i", Architecture: "s390x"}))(t)
		tt.want.Version, tt.want.Image = "4.20.1", "i"
		if diff := cmp.Diff(tt.want, p.Release); diff != "" || len(p.Warnings) != tt.warnings {
			t.Errorf("%s: %s %v", tt.metadata, diff, p.Warnings)
		}
		checktest.Same(t, [][]string{{"x", "4.19.1"}, {"4.20.2"}}, [][]string{p.Previous, p.Next})
		var free map[string]any
		checktest.OK(t, json.Unmarshal([]byte(tt.metadata), &free))
		checktest.Same(t, free, p.Metadata)
	}
}

func TestLoadImages(t *testing.T) {
	for _, data := range []string{"", "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 4.20.1}\nspec: {tags: [{name: cli, from: {kind: DockerImage, name: 'example.com/cli@sha256:1'}}]}\n"} {
		files := map[string]string{}
		if data != "" {
			files["release-manifests/image-references"] = data
		}
		p := checktest.Get(load(t, payload(files)))(t)
		if image, err := p.Image("cli"); err != nil || image != "example.com/cli@sha256:1" {
			t.Error(image, err)
		}
		if _, err := p.Image("tag"); err == nil || err.Error() != "error: Unknown name requested, could not find tag in UpdatePayload" {
			t.Error(err)
		}
	}
}

func TestLoadTemplates(t *testing.T) {
	template := object("own", included) + "a: {{.ReleaseImage}}\nb: {{.ClusterProfile}}\nc: '{{.Images.foo}}'\nd: '{{index .Images \"foo\"}}'\ne: {{index .Images \"a-b\"}}\nf: {{.Images.cli}}\n"
	fsys := payload(map[string]string{
		"manifests/0_hyphen.yaml":            object("hyphen", included) + "a: {{.Images.a-b}}\n",
		"manifests/1.yaml":                   template,
		"manifests/2_field.yaml":             object("field", included) + "a: {{.VersionID}}\n",
		"manifests/3_unclosed.yaml":          object("unclosed", included) + "a: {{.ReleaseImage\n",
		"manifests/4_range.yaml":             object("range", included) + "a: {{range .Components}}x{{end}}\n",
		"manifests/5_text.yaml":              object("text", included) + "a: {{range $.ReleaseImage}}x{{end}}\n",
		"manifests/6_undefined.yaml":         object("undefined", included) + "a: {{template \"other\" .}}\n",
		"manifests/7_not_reached.yaml":       object("reached", included) + "a: '{{if false}}{{template \"other\"}}{{range .Components}}{{end}}{{end}}x'\n",
		"release-manifests/0000_1_a_b.yaml":  object("literal", included) + "a: '{{.ReleaseImage}}'\n",
		"release-manifests/0000_1_a_c.yaml":  object("bad", included+", b: 5"),
		"release-manifests/0000_1_a_c2.yaml": object("list", included) + "---\n" + object("bad2", included+", b: yes"),
	})
	p := checktest.Get(load(t, fsys))(t)
	want := map[string]any{
		"a": "example.com/release@sha256:abc", "b": manifest.DefaultProfile, "c": "<no value>", "d": "", "e": "example.com/ab@sha256:2", "f": "example.com/cli@sha256:1",
	}
	got := map[string]any{}
	for key := range want {
		got[key] = p.Manifests[0].Object().Object[key]
	}
	checktest.Same(t, want, got)
	if p.Manifests[1].Object().Object["a"] != "x" || p.Manifests[2].Object().Object["a"] != "{{.ReleaseImage}}" {
		t.Error(p.Manifests[1].Object(), p.Manifests[2].Object())
	}
	var places []string
	for _, w := range p.Warnings {
		places = append(places, fmt.Sprintf("%s %d", w.File, w.Document))
		place := w.File
		if w.Document > 0 {
			place += fmt.Sprintf(", document %d", w.Document)
		}
		checktest.Equal(t, place+": "+w.Message, w.String(), "w.String() (%v)", w)
	}
	checktest.Same(t, []string{
		"manifests/0_hyphen.yaml 0", "manifests/1.yaml 0", "manifests/1.yaml 0", "manifests/2_field.yaml 0", "manifests/3_unclosed.yaml 0",
		"manifests/4_range.yaml 0", "manifests/5_text.yaml 0", "manifests/6_undefined.yaml 0",
		"release-manifests/0000_1_a_c.yaml 1", "release-manifests/0000_1_a_c2.yaml 2",
	}, places)
}

func TestLoadFaults(t *testing.T) {
	fsys := payload(map[string]string{
		"manifests/0.yaml":                 "- a",
		"release-manifests/a.yaml":         object("a", included) + "---\n" + object("b", included) + "---\n" + object("a", included),
		"release-manifests/b.yaml":         object("fine", included),
		"release-manifests/c.yaml":         object("a", included) + "---\nkind: K\nmetadata: [",
		"release-manifests/unreadable.yml": "",
	})
	broken := unreadable{fsys, "release-manifests/unreadable.yml"}
	p, err := load(t, broken)
	var fault *manifest.Error
	if p != nil || !errors.As(err, &fault) {
		t.Fatal(p, err)
	}
	if fault.Reason != "UpdatePayloadIntegrity" || fault.Position() != "" {
		t.Errorf("%+v", fault)
	}
	var places []string
	for _, f := range fault.Faults {
		places = append(places, f.Position())
	}
	checktest.Same(t,
		[]string{"manifests/0.yaml, document 1", "release-manifests/a.yaml, document 3", "release-manifests/c.yaml, document 2", "release-manifests/unreadable.yml"}, places)
	for _, want := range []string{
		"Error loading manifests from example.com/release@sha256:abc: [parse 0.yaml: error parsing: error unmarshaling JSON: ",
		`, parse a.yaml: duplicate resource: (Group: "example.com" Kind: "K" Name: "a"), parse c.yaml: error parsing: error converting YAML to JSON: yaml: line 2: `,
		", no access]",
	} {
		checktest.Has(t, err.Error(), want)
	}
	checktest.ErrorIs(t, errNoAccess, err)

	_, err = manifest.Load(t.Context(), payload(map[string]string{"release-manifests/a.yaml": "- a"}), manifest.LoadOptions{Dir: "/etc/payload"})
	if err == nil || !strings.HasPrefix(err.Error(), "Error loading manifests from /etc/payload: parse a.yaml: error parsing: ") {
		t.Error(err)
	}
	_, err = load(t, payload(map[string]string{"manifests/a.yaml": "- a", "release-manifests/a.yaml": "- a"}))
	if strings.Count(err.Error(), "parse a.yaml") != 1 || strings.Contains(err.Error(), "[parse") {
		t.Errorf("equal texts come once: %v", err)
	}
	if _, err = load(t, unreadable{fsys, "release-manifests"}); !errors.Is(err, errNoAccess) || errors.As(err, &fault) {
		t.Errorf("a directory that cannot be read: %v", err)
	}
}

var errNoAccess = errors.New("no access")

// unreadable is a file system in which one file cannot be opened or one
// directory cannot be listed.
type unreadable struct {
	fs.FS
	path string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.path && strings.Contains(name, "/") {
		return nil, errNoAccess
	}
	return u.FS.Open(name)
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.path {
		return nil, errNoAccess
	}
	return fs.ReadDir(u.FS, name)
}

func TestLoadLimits(t *testing.T) {
	// A limit of the whole payload is its only fault, whichever file passes it.
	fsys := payload(map[string]string{"release-manifests/a.yaml": "- a", "release-manifests/b.yaml": object("b", included), "release-manifests/c.yaml": object("c", included)})
	for name, limits := range map[string]manifest.Limits{"Documents": {Documents: 1}, "TotalSize": {TotalSize: 150, Documents: 1}} {
		_, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Limits: limits, Workers: 3})
		var fault *manifest.Error
		if !errors.As(err, &fault) || len(fault.Faults) != 1 || fault.Faults[0].File != "" || !strings.HasSuffix(err.Error(), "(limit "+name+")") {
			t.Errorf("%s: %v", name, err)
		}
	}
	images := "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 4.20.1}\nx: &x " + strings.Repeat("a", 1000) + "\ny: [*x" + strings.Repeat(", *x", 2000) + "]\n"
	_, err := manifest.Load(t.Context(), payload(map[string]string{"release-manifests/image-references": images}), manifest.LoadOptions{Limits: manifest.Limits{ExpandedSize: 1 << 20}})
	if err == nil || !strings.HasPrefix(err.Error(), "unmarshal image-references: ") || !strings.HasSuffix(err.Error(), "(limit ExpandedSize)") {
		t.Error(err)
	}
}

// TestLoadFilters: a payload's own major version counts; what filters later
// leaves the payload as it is.
func TestLoadFilters(t *testing.T) {
	crd := func(name, version string) string {
		return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s, annotations: {%s, release.openshift.io/major-version: '%s'}}\n", name, included, version)
	}
	fsys := payload(map[string]string{
		"release-manifests/a.yaml": crd("four", "4"), "release-manifests/b.yaml": crd("five", "5"),
		"release-manifests/c.yaml": object("capable", included+", capability.openshift.io/name: Console"),
	})
	f := manifest.DefaultFilter()
	plain, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Filter: f})
	checktest.OK(t, err)
	later := checktest.Get(manifest.Load(t.Context(), fsys, manifest.LoadOptions{Filter: f, Workers: 7}))(t)
	for _, filter := range []manifest.Filter{{Capabilities: &manifest.Capabilities{}}, {Overrides: []configv1.ComponentOverride{{Group: "example.com", Kind: "K", Name: "capable", Unmanaged: true}}}} {
		if included, excluded := later.Included(filter); len(included) != 1 || len(excluded) != 1 || excluded[0].Manifest.Identity().Name != "capable" {
			t.Errorf("%d included, excluded: %v", len(included), excluded)
		}
	}
	if len(plain.Manifests) != 2 || plain.Hash != later.Hash || plain.Excluded[0].Reason != "major version 4 does not match any required versions" {
		t.Error(len(plain.Manifests), plain.Hash, later.Hash, plain.Excluded)
	}
	five := uint64(5)
	f.MajorVersion = &five
	other, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Filter: f})
	if err != nil || other.Hash == plain.Hash || other.Manifests[0].Identity().Name != "five" {
		t.Error(err, other.Hash)
	}
	// The hash of nothing is the offset of FNV.
	checktest.Equal(t, "y_Kc5IQiIyU=", manifest.Hash(nil), "manifest.Hash(nil)")
}

// shuffled is a file system whose directories list their files backwards.
type shuffled struct{ fstest.MapFS }

func (s shuffled) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := s.MapFS.ReadDir(name)
	slices.Reverse(entries)
	return entries, err
}

// TestLoadOrder: files come in the byte order of their names, whatever the file system
// says; those of manifests/ are first, whatever their names.
func TestLoadOrder(t *testing.T) {
	files := map[string]string{}
	for i, name := range []string{
		"manifests/0000_90_z_x.yaml", "manifests/B.yml", "manifests/a.json",
		"release-manifests/.hidden.yaml", "release-manifests/0000_100_a_x.yaml", "release-manifests/0000_20_a_x.yaml", "release-manifests/B.yaml", "release-manifests/a.yaml", "release-manifests/\u00e4.yaml",
	} {
		files[name] = object(fmt.Sprint("m", i), included)
	}
	for _, fsys := range []fs.FS{payload(files), shuffled{payload(files)}} {
		p := checktest.Get(load(t, fsys))(t)
		var got []string
		for _, m := range p.Manifests {
			got = append(got, m.Identity().Name)
		}
		checktest.SameIn(t, fmt.Sprintf("%T", fsys), []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"},
			got)
	}
}

// TestTemplatesKnowTheProfile: templates get the profile of the filter, and the
// default one where it is unset.
func TestTemplatesKnowTheProfile(t *testing.T) {
	other := "other"
	for want, profile := range map[string]*string{manifest.DefaultProfile: nil, other: &other} {
		fsys := payload(map[string]string{"manifests/a.yaml": object("a", `include.release.openshift.io/{{.ClusterProfile}}: "true"`) + "profile: {{.ClusterProfile}}\n"})
		p := checktest.Get(manifest.Load(t.Context(), fsys,
			manifest.LoadOptions{Filter: manifest.LoadFilter{Profile: profile}}))(t)
		if len(p.Manifests) != 1 || p.Manifests[0].Object().Object["profile"] != want {
			t.Errorf("%s: %v, %v", want, p.Manifests, p.Excluded)
		}
	}
}

func edges(g *manifest.Graph) (nodes, withTasks, edges int) {
	for _, n := range g.Nodes {
		if len(n.Tasks) > 0 {
			withTasks++
		}
		edges += len(n.Out)
	}
	return len(g.Nodes), withTasks, edges
}

// TestLoadRealPayloads holds the figures that the cluster-version operator
// gives for the same payloads.
func TestLoadRealPayloads(t *testing.T) {
	tests := []struct {
		dir, featureSet               string
		included, excluded, operators int
		hash                          string
		updating, flat                [3]int
	}{
		{"payload-4.17.30", "", 794, 106, 33, "seB0BzE37qY=", [3]int{69, 63, 97}, [3]int{65, 64, 64}},
		{"payload-4.18.15", "", 806, 124, 34, "QYbuCLFiWFk=", [3]int{78, 74, 115}, [3]int{76, 75, 75}},
		{"payload-4.18.15", "TechPreviewNoUpgrade", 827, 103, 34, "qJfCJwq1M-g=", [3]int{80, 76, 119}, [3]int{78, 77, 77}},
	}
	for _, tt := range tests {
		t.Run(tt.dir+tt.featureSet, func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.FeatureSet = &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.dir)),
				manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			if len(p.Manifests) != tt.included || len(p.Excluded) != tt.excluded || p.Hash != tt.hash {
				t.Errorf("%d included, %d excluded, hash %s", len(p.Manifests), len(p.Excluded), p.Hash)
			}
			checktest.Equal(t, tt.operators, len(p.Operators()), "operators")
			for _, c := range []struct {
				graph func([]*manifest.Task) *manifest.Graph
				want  [3]int
			}{{manifest.UpdateGraph, tt.updating}, {manifest.FlatGraph, tt.flat}} {
				g := c.graph(p.Tasks())
				checktest.Good(t, g.Validate())
				n, w, e := edges(g)
				checktest.Equal(t, c.want, [3]int{n, w, e}, "nodes, with tasks, edges")
			}
		})
	}
}

func TestOperators(t *testing.T) {
	co := "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: dns, annotations: {" + included + "}}\nstatus: {versions: [{name: operator, version: 4.20.1}, {name: coredns, version: 4.20.1}]}\n"
	workload := func(api, kind, name string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: " + name + ", annotations: {" + included + "}}\n"
	}
	p := checktest.Get(load(t, payload(map[string]string{
		"release-manifests/0000_70_dns-operator_01.yaml":  workload("apps/v1", "Deployment", "d") + "---\n" + workload("v1", "Service", "s"),
		"release-manifests/0000_70_dns-operator_02.yaml":  co,
		"release-manifests/0000_60_dns-operator_01.yaml":  workload("batch/v1", "Job", "j") + "---\n" + strings.Replace(workload("apps/v1", "DaemonSet", "gone"), "{include", "{release.openshift.io/delete: 'true', include", 1),
		"release-manifests/0000_80_dns-operator_01.yaml":  workload("apps/v1", "StatefulSet", "later"),
		"release-manifests/0000_80_other-operator_1.yaml": workload("apps/v1", "DaemonSet", "o"),
		"release-manifests/zz.yaml":                       workload("apps/v1", "DaemonSet", "z"),
	})))(t)
	operators := p.Operators()
	if len(operators) != 1 {
		t.Fatal(operators)
	}
	o := operators[0]
	var workloads []string
	for _, m := range o.Workloads {
		workloads = append(workloads, m.Identity().Name)
	}
	if o.Name != "dns" || o.Component != "dns-operator" || len(o.Versions) != 2 || o.Versions[1].Name != "coredns" || o.Versions[1].Version != "4.20.1" || strings.Join(workloads, " ") != "j d" || o.Manifest.Identity().Kind != "ClusterOperator" {
		t.Errorf("%+v %v", o, workloads)
	}
}

// Callers who make a value of a manifest at the same time all get the same one.
func TestDerived(t *testing.T) {
	m := annotated(t, "apps/Deployment", nil)
	derive := func(make func() (*int, error)) *int { return checktest.Get(manifest.Derived(m, "key", make))(t) }
	var first *int
	second := derive(func() (*int, error) {
		first = derive(func() (*int, error) { return new(1), nil })
		return new(2), nil
	})
	checktest.FailIf(t, first != second, "%d and %d", *first, *second)
}
