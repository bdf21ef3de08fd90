//go:build unix

package upgradeconfig

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A named pipe among the policies is a fault, and nothing that Policies waits
// for.
func TestGitDirPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.yaml"), 0o600); err != nil {
		t.Skipf("needs a file system with named pipes: %v", err)
	}
	checktest.ErrorHas(t, "a.yaml is not a regular file", checktest.Err(
		(GitDir{Tree: os.DirFS(dir)}).Policies(t.Context())))
}
