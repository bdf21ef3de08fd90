//go:build unix

package graphdata_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Named pipes are faults, and nothing that anybody waits for.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, treeOf(nil)))
	pipe := func(name string) {
		t.Helper()
		at := filepath.Join(dir, name)
		checktest.OK(t, os.MkdirAll(filepath.Dir(at), 0o700))
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Skipf("needs a file system with named pipes: %v", err)
		}
	}
	pipe("blocked-edges/a.yaml")
	pipe("releases/4.1.0/release-manifests/release-metadata")
	pipe("lines")
	const want = " is not a regular file"
	fsys := os.DirFS(dir)
	if _, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{}); err == nil || err.Error() != "blocked-edges/a.yaml: blocked-edges/a.yaml"+want {
		t.Errorf("Load: %v", err)
	}
	if err := graphdata.WriteArchive(io.Discard, fsys); err == nil || err.Error() != "blocked-edges/a.yaml"+want {
		t.Errorf("WriteArchive: %v", err)
	}
	_, problems, err := graphdata.Collect(t.Context(), graphdata.Payloads{FS: os.DirFS(filepath.Join(dir, "releases"))},
		graphdata.Lines{FS: fsys, Name: "lines"}, graphdata.Stored{FS: fsys, Name: "lines"})
	if err != nil || len(problems) != 3 {
		t.Fatalf("%v, %v", problems, err)
	}
	for _, p := range problems {
		if !strings.HasSuffix(p.Message, want) {
			t.Error(p)
		}
	}
}
