//go:build unix

package upgradeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe among the policies is a fault, and nothing that Policies waits
// for.
func TestGitDirPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "a.yaml"), 0o600); err != nil {
		t.Skipf("needs a file system with named pipes: %v", err)
	}
	if _, err := (GitDir{Tree: os.DirFS(dir)}).Policies(t.Context()); err == nil || !strings.Contains(err.Error(), "a.yaml is not a regular file") {
		t.Error(err)
	}
}
