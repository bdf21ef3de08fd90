package graphdata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		"a": {Data: []byte("{\"version\": \"1.0.0\"}\n\nno JSON\n{\"verzion\": \"1.0.1\"}\n{} {}\n{\"metadata\": {\"a\": 1}}\n{\"version\": \"1.0.2\", \"source\": \"mine\"}")},
		"b": {Data: []byte("{\"version\": \"1.0.3\"}\n" + strings.Repeat(" ", 1<<20+1))},
	}
	releases, problems, err := graphdata.Collect(t.Context(), graphdata.Lines{FS: files, Name: "a"}, graphdata.Lines{FS: files, Name: "b"}, graphdata.Lines{FS: files, Name: "c"}, graphdata.List{{Version: "1.0.4"}})
	checktest.OK(t, err)
	want := []graphdata.Release{{Version: "1.0.0", Source: "a:1"}, {Version: "1.0.2", Source: "mine"}, {Version: "1.0.3", Source: "b:1"}, {Version: "1.0.4"}}
	checktest.Same(t, want, releases)
	faults := []string{
		"a:3: invalid character 'o' in literal null (expecting 'u')",
		`a:4: json: unknown field "verzion"`,
		"a:5: there is more than one JSON value on the line",
		"a:6: json: cannot unmarshal number into Go struct field Release.metadata of type string",
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
