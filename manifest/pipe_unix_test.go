//go:build unix

package manifest_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A named pipe among the files of a payload is a fault of that file, and nothing
// that Load waits for.
func TestLoadPipe(t *testing.T) {
	for _, name := range []string{"manifests/a.yaml", "release-manifests/b.json", "release-manifests/image-references", "release-manifests/release-metadata"} {
		dir := t.TempDir()
		checktest.OK(t, os.CopyFS(dir, payload(nil)))
		at := filepath.Join(dir, name)
		if err := os.Remove(at); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Skipf("needs a file system with named pipes: %v", err)
		}
		checktest.ErrorHas(t, name+" is not a regular file", checktest.Err(load(t, os.DirFS(dir))))
	}
}
