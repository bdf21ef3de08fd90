//go:build unix

package graph_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A named pipe in a folder of graphs is nothing that Fetch waits for.
func TestFilePipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "amd64-stable-4.1.json"), 0o600); err != nil {
		t.Skipf("needs a file system with named pipes: %v", err)
	}
	query := graph.Query{Channel: "stable-4.1", Arch: "amd64", Version: "4.1.0", ClusterID: "01234567-0123-0123-0123-0123456789ab"}
	checktest.ErrorHas(t, "not a regular file", checktest.Err((graph.File{Path: dir}).Fetch(t.Context(), query)))
}
