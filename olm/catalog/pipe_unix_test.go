//go:build unix

package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// Load waits for no named pipe.
func TestLoadPipe(t *testing.T) {
	for name, want := range map[string]string{"catalog.json": "", ".indexignore": ".indexignore is not a regular file"} {
		dir := t.TempDir()
		checktest.OK(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"schema":"olm.package","name":"a","defaultChannel":"c"}`), 0o600))
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("needs a file system with named pipes: %v", err)
		}
		text := ""
		checktest.OK(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
		checktest.OK(t, os.Symlink("../"+name, filepath.Join(dir, "sub", "link")))
		if _, err := catalog.Load(t.Context(), os.DirFS(dir), catalog.Options{}); err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) || (text == "") != (want == "") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
