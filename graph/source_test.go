package graph_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func TestStatic(t *testing.T) {
	g, err := graph.Decode(strings.NewReader(oneNode), graph.DecodeOptions{})
	checktest.OK(t, err)
	q := graph.Query{Channel: "any", Arch: "s390x", Version: "1.0.0"}
	if got, err := graph.Static(g).Fetch(context.Background(), q); got != g || err != nil {
		t.Error(got, err)
	}
	_, err = graph.Static(g).Fetch(context.Background(), graph.Query{Arch: "amd64", Version: "1.0.0"})
	wantError(t, err, graph.ErrNoChannel, "The update channel has not been configured.")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = graph.Static(g).Fetch(ctx, q)
	wantError(t, err, graph.ErrRemoteFailed, prefix+"context canceled")
}

func TestFile(t *testing.T) {
	files := fstest.MapFS{
		"g.json":                       {Data: []byte(oneNode)},
		"bad.json":                     {Data: []byte(`{"nodes":[{}]}`)},
		"dir/amd64-stable-4.1.json":    {Data: []byte(oneNode)},
		"dir/candidate-4.1_multi.json": {Data: []byte(oneNode)},
		"amd64-stable-4.1.json":        {Data: []byte(oneNode)},
	}
	for _, tt := range []struct {
		name, path string
		q          graph.Query
		reason     graph.Reason // empty: found
		message    string
	}{
		{"file", "g.json", query, "", ""},
		{"folder", "dir", query, "", ""},
		{"root", ".", query, "", ""},
		{"folder, multi", "dir", graph.Query{Channel: "candidate-4.1", Arch: "Multi", Version: "4.1.0"}, "", ""},
		{"no such file", "none.json", query, graph.ErrRemoteFailed, "file does not exist"},
		{"no such channel", "dir", graph.Query{Channel: "fast-4.1", Arch: "amd64", Version: "4.1.0"}, graph.ErrRemoteFailed, "dir/amd64-fast-4.1.json"},
		{"way out", "dir", graph.Query{Channel: "x/../../g", Arch: "amd64", Version: "4.1.0"}, graph.ErrRemoteFailed, `channel "x/../../g" for "amd64" cannot be a file`},
		{"bad graph", "bad.json", query, graph.ErrResponseInvalid, prefix + "nodes[0].version: missing"},
		{"no channel", "g.json", graph.Query{Arch: "amd64", Version: "4.1.0"}, graph.ErrNoChannel, "The update channel has not been configured."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := graph.File{FS: files, Path: tt.path}.Fetch(context.Background(), tt.q)
			if tt.reason == "" {
				checktest.OK(t, err)
				checktest.Equal(t, 1, g.Len(), "%v", g)
				return
			}
			wantError(t, err, tt.reason, tt.message)
		})
	}
	if _, err := (graph.File{FS: files, Path: "none.json"}).Fetch(context.Background(), query); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not say that the file is not there", err)
	}
}

func TestFileOfTheMachine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "g.json")
	checktest.OK(t, os.WriteFile(path, []byte(oneNode), 0o600))
	t.Chdir(dir)
	for _, p := range []string{path, "g.json", "./g.json", filepath.Join("..", filepath.Base(dir), "g.json")} {
		if _, err := (graph.File{Path: p}).Fetch(context.Background(), query); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestFileReal(t *testing.T) {
	f := graph.File{Path: filepath.Join(testdata.Dir(t), "graphs")}
	g, err := f.Fetch(context.Background(), graph.Query{Channel: "candidate-4.12", Arch: "Multi", Version: "4.12.0-rc.0"})
	checktest.OK(t, err)
	checktest.Equal(t, 5, g.Len(), "%v", g)
}
