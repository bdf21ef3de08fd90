//go:build unix

package signature_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// A named pipe must not be waited for.
func TestDirStore(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sha256="+digestA[7:])
	checktest.OK(t, os.Mkdir(dir, 0o755))
	if err := syscall.Mkfifo(filepath.Join(dir, "signature-1"), 0o644); err != nil {
		t.Skipf("needs a file system with named pipes: %v", err)
	}
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "signature-2"), []byte("b"), 0o644))
	got := collect(t.Context(), dirStore(root), digestA)
	if len(got) != 3 || !strings.HasSuffix(got[0], "not a regular file]") || got[1] != "b" {
		t.Error(got)
	}
}

// A file without an end is not read to it.
func TestReadKeyring(t *testing.T) {
	checktest.ErrorHas(t, "/dev/zero: keyring is larger than the limit of 1048576 bytes", checktest.Err(signature.ReadKeyring("/dev/zero")))
}
