//go:build unix

package signature_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe must not be waited for.
func TestDirStore(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sha256="+digestA[7:])
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "signature-1"), 0o644); err != nil {
		t.Skipf("needs a file system with named pipes: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "signature-2"), []byte("b"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := collect(t.Context(), dirStore(root), digestA)
	if len(got) != 3 || !strings.HasSuffix(got[0], "not a regular file]") || got[1] != "b" {
		t.Error(got)
	}
}
