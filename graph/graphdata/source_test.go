package graphdata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func problemTexts(problems []graphdata.Problem) (texts []string) {
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return texts
}

// TestLines: Lines reads releases as JSON.
func TestLines(t *testing.T) {
	_, releases := worked()
	var b bytes.Buffer
	for _, r := range releases {
		checktest.OK(t, json.NewEncoder(&b).Encode(r))
	}
	files := fstest.MapFS{"a.jsonl": {Data: b.Bytes()}}
	got, problems, err := graphdata.Collect(t.Context(), graphdata.Lines{FS: files, Name: "a.jsonl"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	checktest.Same(t, releases, got, cmpopts.EquateEmpty())
}

// TestLinesFaults: a line that is wrong costs its release alone.
func TestLinesFaults(t *testing.T) {
	files := fstest.MapFS{
		"a": {Data: []byte("{\"version\": \"1.0.0\"}\n\nno JSON\n{\"verzion\": \"1.0.1\"}\n{} {}\n{\"metadata\": {\"a\": 1}}\n{\"Version\": \"1.0.1\"}\n{\"next\": [], \"next\": []}\n{\"version\": \"1.0.2\", \"source\": \"mine\"}")},
		"b": {Data: []byte("{\"version\": \"1.0.3\"}\n" + strings.Repeat(" ", 1<<20+1))},
	}
	releases, problems, err := graphdata.Collect(t.Context(), graphdata.Lines{FS: files, Name: "a"}, graphdata.Lines{FS: files, Name: "b"}, graphdata.Lines{FS: files, Name: "c"}, graphdata.List{{Version: "1.0.4"}})
	checktest.OK(t, err)
	want := []graphdata.Release{{Version: "1.0.0", Source: "a:1"}, {Version: "1.0.2", Source: "mine"}, {Version: "1.0.3", Source: "b:1"}, {Version: "1.0.4"}}
	checktest.Same(t, want, releases)
	faults := []string{
		"a:3: invalid character 'o' in literal null (expecting 'u')",
		`a:4: unknown field "verzion"`,
		"a:5: invalid character '{' after top-level value",
		"a:6: json: cannot unmarshal number into Go struct field Release.metadata of type string",
		`a:7: unknown field "Version"`,
		`a:8: duplicate field "next"`,
		"b:2: more than 1048576 bytes of a line",
		"c: open c: file does not exist",
	}
	checktest.Same(t, faults, problemTexts(problems))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if _, _, err := graphdata.Collect(ctx, graphdata.Lines{FS: files, Name: "a"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPayloads: extracted images, each in a directory.
func TestPayloads(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const of = "/release-manifests/release-metadata"
	files := fstest.MapFS{
		"a" + of:   file(`{"kind": "cincinnati-metadata-v0", "version": "4.20.1", "previous": ["4.20.0"], "next": ["4.20.3"], "metadata": {"url": "u"}}`),
		"b" + of:   file(`{"kind": "cincinnati-metadata-v0", "version": "4.20.2", "metadata": {"x": 1}}`),
		"c" + of:   file(`{"kind": "other"}`),
		"d/empty":  file(""),
		"e" + of:   file(`{"kind": "cincinnati-metadata-v0", "version": "4.20.5"}`),
		"notes.md": file(""),
	}
	source := graphdata.Payloads{FS: files, Describe: func(dir string, r *graphdata.Release) error {
		if dir == "e" {
			return errors.New("of no known architecture")
		}
		r.Arch, r.Digest = "arm64", "sha256:"+dir
		return nil
	}}
	releases, problems, err := graphdata.Collect(t.Context(), source)
	checktest.OK(t, err)
	want := []graphdata.Release{{Version: "4.20.1", Arch: "arm64", Digest: "sha256:a", Previous: []string{"4.20.0"}, Next: []string{"4.20.3"}, Metadata: map[string]string{"url": "u"}, Source: "a"}}
	checktest.Same(t, want, releases)
	var at []string
	for _, p := range problemTexts(problems) {
		at = append(at, p[:2])
	}
	if diff := cmp.Diff([]string{"b:", "c:", "d:", "e:"}, at); diff != "" || !strings.HasSuffix(problems[0].Message, "metadata.x is not a text") {
		t.Errorf("%v: %s", problems, diff)
	}
}

// TestRealPayloads: what real releases say about themselves.
func TestRealPayloads(t *testing.T) {
	for _, version := range []string{"4.17.30", "4.18.15"} {
		only := func(dir string, _ *graphdata.Release) error {
			if dir != "payload-"+version {
				return errors.New("another one")
			}
			return nil
		}
		releases, _, err := graphdata.Collect(t.Context(), graphdata.Payloads{FS: os.DirFS(testdata.Dir(t)), Describe: only})
		if err != nil || len(releases) != 1 {
			t.Fatal(err, releases)
		}
		if r := releases[0]; r.Version != version || len(r.Previous) < 3 || !strings.HasPrefix(r.Metadata[graph.MetadataURL], "https://access.redhat.com/errata/") {
			t.Errorf("%s has %d predecessors, %v", r.Version, len(r.Previous), r.Metadata)
		}
	}
}

// FuzzLines: no line ends the reading of others.
func FuzzLines(f *testing.F) {
	f.Add(`{"version": "1.0.0", "arch": "amd64", "previous": ["0.9.0"], "metadata": {"a": "b"}}`)
	f.Add("no JSON")
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 1<<19 || strings.ContainsAny(line, "\n\r") {
			return
		}
		files := fstest.MapFS{"a": {Data: []byte(line + "\n{\"version\": \"1.0.0\"}\n")}}
		releases, problems, err := graphdata.Collect(t.Context(), graphdata.Lines{FS: files, Name: "a"})
		if err != nil || len(releases) == 0 || releases[len(releases)-1].Version != "1.0.0" || len(releases)+len(problems) > 2 {
			t.Fatal(err, releases, problems)
		}
		if _, err := graphdata.Build(&graphdata.Tree{}, releases, graphdata.BuildOptions{DropCycles: true, DropMismatched: true}); err != nil && !strings.Contains(err.Error(), " are both ") && !strings.Contains(err.Error(), " on ") {
			t.Fatal(err)
		}
	})
}

const storedGraph = `{"nodes": [
	{"version": "1.0.0+amd64", "payload": "a", "metadata": {"io.openshift.upgrades.graph.release.arch": "amd64", "io.openshift.upgrades.graph.release.manifestref": "sha256:a"}},
	{"version": "1.0.1+amd64", "payload": "b", "metadata": {"io.openshift.upgrades.graph.release.arch": "amd64", "io.openshift.upgrades.graph.previous.remove_regex": ".*", "url": "u"}},
	{"version": "1.0.2+amd64"}, {"version": "1.0.3+amd64", "payload": null, "metadata": null}, {"version": "0.0.0", "payload": "c", "metadata": {}, "more": 1}
], "edges": [[1, 2], [2, 3]], "conditionalEdges": [{"edges": [{"from": "1.0.0+amd64", "to": "1.0.1+amd64"}, {"from": "9.9.9", "to": "1.0.0+amd64"}], "risks": []}]}`

// TestStored: the releases of a stored graph. A conditional update was declared.
func TestStored(t *testing.T) {
	files := fstest.MapFS{"graph.json": {Data: []byte(storedGraph)}, "bad.json": {Data: []byte("{}")}}
	releases, problems, err := graphdata.Collect(t.Context(), graphdata.Stored{FS: files, Name: "graph.json"}, graphdata.Stored{FS: files, Name: "bad.json"}, graphdata.Stored{FS: files, Name: "no.json"})
	checktest.OK(t, err)
	want := []graphdata.Release{
		{Version: "1.0.0+amd64", Arch: "amd64", Image: "a", Digest: "sha256:a", Source: "graph.json", Metadata: map[string]string{graph.MetadataArch: "amd64", graph.MetadataManifestRef: "sha256:a"}},
		{Version: "1.0.1+amd64", Arch: "amd64", Image: "b", Source: "graph.json", Previous: []string{"1.0.0+amd64"}, Next: []string{"1.0.2+amd64"}, Metadata: map[string]string{graph.MetadataArch: "amd64", "url": "u"}},
		{Version: "0.0.0", Image: "c", Source: "graph.json", Metadata: map[string]string{}},
	}
	checktest.Same(t, want, releases)
	checktest.Same(t, []string{"bad.json: nodes are missing", "no.json: open no.json: file does not exist"}, problemTexts(problems))
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Name: "a-1.0", Versions: entries("1.0.0", "1.0.1", "0.0.0")}}}
	s := build(t, tree, releases, graphdata.BuildOptions{})
	checktest.Same(t, []string{"1.0.0", "1.0.0 → 1.0.1", "1.0.1"}, picture(s.Graph("a-1.0", "amd64")))
}

func TestDecodeRawFaults(t *testing.T) {
	node := func(fields string) string { return `{"nodes": [{"version": "1.0.0"` + fields + `}], "edges": []}` }
	for _, c := range []struct {
		text, err string
		compat    string // the version of the only node, which is abstract; empty: the same error
	}{
		{text: `{"nodes": []}`, err: "edges are missing"},
		{text: `{"nodes": [], "edges": [], "version": 1}`, err: `unknown field "version"`},
		{text: `{"nodes": [], "edges": []} {}`, err: "line 1: invalid character '{' after top-level value"},
		{text: "{\"nodes\":\n [}", err: "line 2: invalid character '}' looking for beginning of value"},
		{text: `{"nodes": null, "edges": []}`, err: "expected an array, found null"},
		{text: `{"nodes": [{}], "edges": []}`, err: "nodes[0]: a non-empty string version is missing"},
		{text: `{"nodes": [{"version": ""}], "edges": []}`, err: "nodes[0]: a non-empty string version is missing"},
		{text: `{"nodes": [{"version": "a"}, {"version": "a"}], "edges": []}`, err: `nodes[1]: "a" is not a unique string version`},
		{text: node(`, "payload": "p"`), err: `nodes[0]: "1.0.0" has a payload without metadata that are texts`, compat: "1.0.0"},
		{text: node(`, "payload": "p", "metadata": null`), err: `nodes[0]: "1.0.0" has a payload without metadata that are texts`, compat: "1.0.0"},
		{text: node(`, "payload": "p", "metadata": {"a": 1, "b": "c"}`), err: `nodes[0]: "1.0.0" has a payload without metadata that are texts`, compat: "1.0.0"},
		{text: node(`, "payload": ""`), err: `nodes[0]: "1.0.0" has a payload without metadata that are texts`, compat: "1.0.0"},
		{text: node(`, "metadata": {}`), err: `nodes[0]: "1.0.0" has metadata without a payload`, compat: "1.0.0"},
		{text: `{"nodes": [{"version": "a"}, {"version": "b"}], "edges": [[0, 2]]}`, err: "edges[0]: there is no node 2"},
		{text: `{"nodes": [{"version": "a"}, {"version": "b"}], "edges": [[-1, 0]]}`, err: "edges[0]: is not a pair of indices"},
		{text: `{"nodes": [], "edges": [[0]]}`, err: "edges[0]: is not a pair of indices"},
		{text: `{"nodes": [], "edges": [], "conditionalEdges": [1]}`, err: "conditionalEdges[0]: json: cannot unmarshal number into Go value of type graph.ConditionalEdges"},
		{text: `{"nodes": [{"version": "a"}, {"version": "b"}], "edges": [[0, 1], [1, 0]]}`, err: "updates form a cycle: b → a"},
		{text: `{"nodes": [{"version": "a"}], "edges": [[0, 0]]}`, err: "updates form a cycle: a → a"},
	} {
		for _, compat := range []bool{false, true} {
			g, err := graphdata.DecodeRaw(strings.NewReader(c.text), graphdata.RawOptions{Compat: compat})
			if compat && c.compat != "" {
				if err != nil || len(g.Nodes) != 1 || g.Nodes[0].Version != c.compat || g.Nodes[0].Metadata != nil || g.Nodes[0].Payload != "" {
					t.Errorf("%s: %+v, %v", c.text, g, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.err) || g != nil {
				t.Errorf("compat %v: %s: %v, want %s", compat, c.text, err, c.err)
			}
		}
	}
	for _, o := range []graphdata.RawOptions{{MaxBytes: 5}, {MaxNodes: 4}, {MaxEdges: 4}} {
		if _, err := graphdata.DecodeRaw(strings.NewReader(storedGraph), o); !errors.As(err, new(*graphdata.LimitError)) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := graphdata.DecodeRaw(strings.NewReader(storedGraph), graphdata.RawOptions{MaxEdges: -1}); err == nil {
		t.Error("a negative limit is no error")
	}
}

// TestStoredWithoutImages: releases whose images are not known are releases still.
func TestStoredWithoutImages(t *testing.T) {
	s := build(t, &graphdata.Tree{}, []graphdata.Release{{Version: "1.0.0", Arch: "amd64"}, {Version: "1.0.1", Previous: []string{"1.0.0"}}}, graphdata.BuildOptions{})
	text := checktest.Must(s.Full().MarshalJSON())
	want := `{"nodes":[{"version":"1.0.0"},{"version":"1.0.0+amd64","payload":"","metadata":{"io.openshift.upgrades.graph.release.arch":"amd64"}},{"version":"1.0.1","payload":"","metadata":{}}],"edges":[[0,2]],"conditionalEdges":[]}`
	checktest.Same(t, want, string(text))
	for _, compat := range []bool{false, true} {
		g := checktest.Must(graphdata.DecodeRaw(bytes.NewReader(text), graphdata.RawOptions{Compat: compat}))
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), s.Full(), g)
	}
}

// TestStoredProperties: the whole graph comes back as it was, and what a tree makes
// of its releases is served as before.
func TestStoredProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := input(t)
		for _, compat := range []bool{false, true} {
			s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{Compat: compat}))
			text := checktest.Must(s.Full().MarshalJSON())
			g := checktest.Must(graphdata.DecodeRaw(bytes.NewReader(text), graphdata.RawOptions{}))
			checktest.Same(t, s.Full(), g)
			again, err := graphdata.Build(tree, g.Releases("stored"), graphdata.BuildOptions{Compat: compat})
			checktest.OK(t, err)
			if !compat && !bytes.Equal(encoded(s), encoded(again)) {
				t.Fatal("another graph is served")
			}
			checktest.SameIn(t, fmt.Sprintf("compat %v", compat), served(s), served(again))
		}
	})
}

// served are the updates of all graphs.
func served(s *graphdata.Snapshot) map[string][]string {
	all := map[string][]string{}
	for _, arch := range s.Arches() {
		for _, channel := range s.Channels(arch) {
			all[channel+" "+arch] = picture(s.Graph(channel, arch))
		}
	}
	return all
}

// FuzzDecodeRaw: what is read is written and read again as it was.
func FuzzDecodeRaw(f *testing.F) {
	f.Add(storedGraph)
	f.Add(`{"nodes": [{"version": "a"}], "edges": [[0, 0]], "conditionalEdges": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		compat, err := graphdata.DecodeRaw(strings.NewReader(text), graphdata.RawOptions{Compat: true})
		g, errStrict := graphdata.DecodeRaw(strings.NewReader(text), graphdata.RawOptions{})
		if errStrict != nil {
			return
		}
		if diff := cmp.Diff(g, compat); err != nil || diff != "" {
			t.Fatalf("%v, strict and compat differ\n%s", err, diff)
		}
		written := checktest.Must(g.MarshalJSON())
		again, err := graphdata.DecodeRaw(bytes.NewReader(written), graphdata.RawOptions{})
		if err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if len(again.Nodes) != len(g.Nodes) || len(again.Edges) != len(g.Edges) || len(again.ConditionalEdges) != len(g.ConditionalEdges) {
			t.Fatalf("%+v became %+v", g, again)
		}
	})
}
