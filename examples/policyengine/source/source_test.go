package source_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

func load(t *testing.T, o source.Options) (*source.Source, *graphdata.Snapshot) {
	t.Helper()
	s := source.New(o)
	snapshot := checktest.Get(s.Load(t.Context()))(t)
	return s, snapshot
}

// updates are those of a channel for amd64.
func updates(s *graphdata.Snapshot, channel string) (list []string) {
	g := s.Graph(channel, "amd64")
	for i, n := range g.Nodes() {
		for e := range g.Edges(i) {
			list = append(list, n.Version.String()+" "+g.Node(e.To).Version.String())
		}
	}
	return list
}

// TestSample: the sample is as the maintainers of a tree would have it, and its
// releases are those that the other examples update to.
func TestSample(t *testing.T) {
	s, snapshot := load(t, source.Options{})
	if last := s.Last(); len(last.Problems) > 0 || last.Err != nil || last.Revision != snapshot.Revision() {
		t.Errorf("%+v", last)
	}
	tree := checktest.Get(graphdata.Load(t.Context(), os.DirFS("sample"), graphdata.LoadOptions{}))(t)
	for _, p := range maintain.Lint(tree, snapshot, maintain.LintOptions{}) {
		if !p.Warning {
			t.Error(p)
		}
	}
	images := checktest.Get(rehearsal.Open(t.Context(), "", ""))(t)
	served := map[string]string{}
	for _, n := range snapshot.Graph(sample.Channel, "amd64").Nodes() {
		served[n.Version.String()] = n.Image
	}
	for _, image := range images {
		checktest.Equal(t, image.PullSpec, served[image.Version()], "the image of %s", image.Version())
	}
}

// tree writes a tree whose suggestions lead from one release to the next.
func tree(t *testing.T, versions string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"version": "1.1.0\n", "raw/metadata.json": "{}\n", "blocked-edges/4.30.9.yaml": "to: 4.30.9\nfrom: ^4[.]30[.]1[+].*$\n",
		"channels/stable-4.30.yaml":   "name: stable-4.30\nversions: [" + versions + "]\n",
		"build-suggestions/4.30.yaml": "default:\n  minor_min: 4.29.1\n  minor_max: 4.29.9\n  minor_block_list: []\n  z_min: 4.30.1\n  z_max: 4.30.9\n  z_block_list: [4.30.2]\n",
	})
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		checktest.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		checktest.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

// TestApproximate: a tree alone does not know releases; those of its channels are made
// up by its build suggestions, for the architecture that they are in the channel for.
func TestApproximate(t *testing.T) {
	dir := tree(t, "4.29.1, 4.30.1, 4.30.2, 4.30.3, 4.30.4+arm64")
	s, snapshot := load(t, source.Options{Tree: dir})
	want := []string{"4.29.1 4.30.1", "4.29.1 4.30.2", "4.29.1 4.30.3", "4.30.1 4.30.2", "4.30.1 4.30.3"}
	checktest.Same(t, want, updates(snapshot, "stable-4.30"))
	if p := s.Last().Problems; len(p) != 1 || !strings.Contains(p[0].Message, "4 releases for amd64 are made up") || !strings.Contains(p[0].Message, "there are none for 1") {
		t.Errorf("problems: %v", p)
	}
	if image := snapshot.Graph("stable-4.30", "amd64").Node(0).Image; image != "quay.io/openshift-release-dev/ocp-release:4.29.1-x86_64" {
		t.Error(image)
	}
	causes := snapshot.Why("4.29.1", "4.30.1", "amd64")
	if len(causes) != 1 || causes[0].String() != "made up of channels/stable-4.30.yaml:2: Declared by previous" {
		t.Errorf("%v", causes)
	}

	_, arm := load(t, source.Options{Tree: dir, Arch: "arm64"})
	checktest.Equal(t, 5, arm.Graph("stable-4.30", "arm64").Len(), "releases for arm64")
}

// TestReleases: a mirror has some of the releases; others are made up if that is
// asked for.
func TestReleases(t *testing.T) {
	dir := tree(t, "4.29.1, 4.30.1, 4.30.3")
	lines := filepath.Join(t.TempDir(), "mirror.jsonl")
	write(t, filepath.Dir(lines), map[string]string{"mirror.jsonl": `{"version":"4.29.1","arch":"amd64","image":"mirror.example/r@sha256:a"}
{"version":"4.30.3","arch":"amd64","image":"mirror.example/r@sha256:b","previous":["4.29.1","4.30.1"]}
not a release
`})
	s, snapshot := load(t, source.Options{Tree: dir, Releases: []string{lines}})
	checktest.Same(t, []string{"4.29.1 4.30.3"}, updates(snapshot, "stable-4.30"))
	if p := s.Last().Problems; len(p) != 1 || p[0].File != "mirror.jsonl:3" {
		t.Errorf("problems: %v", p)
	}
	_, snapshot = load(t, source.Options{Tree: dir, Releases: []string{lines}, Approximate: true})
	checktest.SameIn(t, "with all", []string{"4.29.1 4.30.1", "4.29.1 4.30.3", "4.30.1 4.30.3"},
		updates(snapshot, "stable-4.30"))
}

// TestPlaces: payloads, stored graphs and archives are places of releases and trees.
func TestPlaces(t *testing.T) {
	dir := tree(t, sample.FromVersion+", "+sample.ToVersion)
	payloads := t.TempDir()
	for name, payload := range map[string]fs.FS{"from": sample.From(), "to": sample.To()} {
		checktest.OK(t, os.CopyFS(filepath.Join(payloads, name), payload))
	}
	_, snapshot := load(t, source.Options{Tree: dir, Releases: []string{payloads}})
	checktest.SameIn(t, "payloads", []string{"4.20.3 4.21.1"}, updates(snapshot, "stable-4.30"))

	stored := t.TempDir()
	text := checktest.Get(snapshot.Full().MarshalJSON())(t)
	var archive bytes.Buffer
	checktest.OK(t, graphdata.WriteArchive(&archive, os.DirFS(dir)))
	write(t, stored, map[string]string{"graph.json": string(text), "tree.tar.gz": archive.String()})
	_, again := load(t, source.Options{Tree: filepath.Join(stored, "tree.tar.gz"), Releases: []string{filepath.Join(stored, "graph.json")}})
	checktest.SameIn(t, "archive and stored graph", []string{"4.20.3 4.21.1"}, updates(again, "stable-4.30"))
}

// TestChanges: what has not changed is not read again; a change that cannot be read
// leaves the last good graph.
func TestChanges(t *testing.T) {
	dir := tree(t, "4.30.1, 4.30.3")
	s, first := load(t, source.Options{Tree: dir})
	if again, err := s.Load(t.Context()); err != nil || again != first {
		t.Errorf("the tree was read again: %v", err)
	}
	write(t, dir, map[string]string{"channels/bad.yaml": "name: [\n"})
	_, err := s.Load(t.Context())
	var bad *graphdata.LoadError
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if last := s.Last(); last.Snapshot != first || last.Err == nil || len(last.Problems) != 1 || last.Problems[0].File != "channels/bad.yaml" {
		t.Errorf("%+v", last)
	}
	checktest.OK(t, os.Remove(filepath.Join(dir, "channels", "bad.yaml")))
	if _, err := s.Load(t.Context()); err != nil || s.Last().Err != nil {
		t.Errorf("%v, %+v", err, s.Last())
	}
	later := time.Now().Add(time.Hour)
	checktest.OK(t, os.Chtimes(filepath.Join(dir, "version"), later, later))
	if touched, err := s.Load(t.Context()); err != nil || touched == first {
		t.Errorf("a touched tree was not read again: %v", err)
	}
}

func TestErrors(t *testing.T) {
	dir := tree(t, "4.30.1")
	write(t, dir, map[string]string{"plain": "not an archive", "x.tar": "not a tar file"})
	for _, o := range []source.Options{
		{Tree: "/nowhere"}, {Tree: dir, Releases: []string{"/nowhere"}}, {Tree: filepath.Join(dir, "plain")},
		{Tree: dir, Releases: []string{filepath.Join(dir, "x.tar") + "=r.example/x"}}, {Tree: t.TempDir()},
	} {
		s := source.New(o)
		if _, err := s.Load(t.Context()); err == nil || s.Last().Snapshot != nil || s.Last().Err == nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checktest.ErrorIs(t, context.Canceled, checktest.Err(source.New(source.Options{Tree: dir}).Load(ctx)))
}

// TestIncompleteMirror: a mirror that has a part of a release's component images warns
// of the others. A place of release images alone does not.
func TestIncompleteMirror(t *testing.T) {
	l, first, second := ocitest.NewLayout(), ocitest.NewLayout(), ocitest.NewLayout()
	one := first.Image("linux/amd64", first.Layer(ocitest.File("one", "1")))
	two := second.Image("linux/amd64", second.Layer(ocitest.File("two", "2")))
	references := `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.30.1"},"spec":{"tags":[` +
		`{"name":"machine-config-operator","from":{"kind":"DockerImage","name":"quay.example/r@` + one.Digest + `"}},` +
		`{"name":"cli","from":{"kind":"DockerImage","name":"quay.example/r@` + two.Digest + `"}}]}}`
	config := l.Blob("application/vnd.oci.image.config.v1+json", []byte(`{"architecture":"amd64"}`))
	files := l.Layer(
		ocitest.Dir("manifests/"), ocitest.File("manifests/0000_50_a_config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: a}\n"),
		ocitest.Dir("release-manifests/"), ocitest.File("release-manifests/image-references", references),
		ocitest.File("release-manifests/release-metadata", `{"kind":"cincinnati-metadata-v0","version":"4.30.1"}`))
	release := l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Config: &config, Layers: []oci.Descriptor{files}})
	tree := tree(t, "4.30.1")
	const lacks = "release 4.30.1 for amd64 lacks 1 of 2 component images here (cli): clusters cannot pull them"
	const repository = "openshift/release"
	releaseFiles := l.Mirror(repository, ":", "4.30.1-x86_64", release.Digest)
	mcoFiles := first.Mirror(repository, ":", "4.30.1-x86_64-machine-config-operator", one.Digest)
	cliFiles := second.Mirror(repository, ":", "4.30.1-x86_64-cli", two.Digest)
	list := ocitest.NewLayout()
	both := list.JSON(oci.TypeIndex, oci.Manifest{MediaType: oci.TypeIndex, Manifests: []oci.Descriptor{one, two}})
	listFiles := list.Mirror(repository, ":", "4.30.1-x86_64-list", both.Digest)
	for _, tt := range []struct {
		name string
		held []fstest.MapFS
		want []string
	}{
		{"all", []fstest.MapFS{releaseFiles, mcoFiles, cliFiles}, nil},
		{"one that an index names is missing", []fstest.MapFS{releaseFiles, mcoFiles, listFiles}, []string{lacks}},
		{"some", []fstest.MapFS{releaseFiles, mcoFiles}, []string{lacks}},
		{"release images alone", []fstest.MapFS{releaseFiles}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "mirror")
			all := fstest.MapFS{}
			for _, files := range tt.held {
				maps.Copy(all, files)
			}
			checktest.OK(t, os.CopyFS(dir, all))
			s, _ := load(t, source.Options{Tree: tree, Releases: []string{dir}})
			var got []string
			for _, p := range s.Last().Problems {
				if !strings.Contains(p.Message, "no signature") {
					got = append(got, p.Message)
				}
			}
			checktest.Same(t, tt.want, got)
		})
	}
}
