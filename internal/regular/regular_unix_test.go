//go:build unix

package regular_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// Whatever is not a regular file is refused before it is opened: here, that of a
// pipe would never return.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, "sub", name) }
	for _, err := range []error{
		os.Mkdir(at(""), 0o700),
		os.WriteFile(at("file"), []byte("text"), 0o600),
		os.Symlink("file", at("link")),
		os.Symlink("pipe", at("linkToPipe")),
		os.Symlink("b", at("a")),
		os.Symlink("a", at("b")),
		syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink(os.DevNull, at("device")),
	} {
		checktest.OK(t, err)
	}
	if socket, err := net.Listen("unix", at("socket")); err != nil {
		t.Logf("no socket: %v", err)
	} else {
		defer socket.Close()
	}
	root := checktest.Get(os.OpenRoot(dir))(t)
	defer root.Close()
	for name, whole := range map[string]fs.FS{"DirFS": os.DirFS(dir), "Root": root.FS()} {
		sub, err := fs.Sub(whole, "sub") // which has no Stat
		checktest.OK(t, err)
		for _, file := range []string{"file", "link"} {
			f, err := regular.Open(sub, file)
			if err != nil {
				t.Errorf("%s: %s: %v", name, file, err)
				continue
			}
			if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
				t.Errorf("%s: %s: %q, %v", name, file, text, err)
			}
			f.Close()
		}
		for _, file := range []string{"pipe", "linkToPipe", "socket", "."} {
			for _, c := range []struct {
				fsys fs.FS
				name string
			}{{whole, filepath.Join("sub", file)}, {sub, file}} {
				_, err := regular.Open(c.fsys, c.name)
				if !errors.Is(err, regular.ErrNotRegular) && !(file == "socket" && errors.Is(err, fs.ErrNotExist)) {
					t.Errorf("%s: %s: %v", name, c.name, err)
				}
			}
		}
		for _, file := range []string{"device", "a", "gone"} { // Root and Sub do not follow all links
			checktest.Fails(t, checktest.Err(regular.Open(sub, file)), "%s: %s opens", name, file)
			checktest.Fails(t, checktest.Err(
				regular.Open(whole, filepath.Join("sub", file))), "%s: %s opens", name, file)
		}
	}
	checktest.ErrorIs(t, regular.ErrNotRegular, checktest.Err(regular.Open(os.DirFS(dir), "sub/device")))
}

// bare is a file system with Open alone.
type bare struct{ fsys fs.FS }

func (b bare) Open(name string) (fs.File, error) { return b.fsys.Open(name) }

func TestOpenBare(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	f := checktest.Get(regular.Open(bare{os.DirFS(dir)}, "file"))(t)
	f.Close()
	checktest.ErrorIs(t, regular.ErrNotRegular, checktest.Err(regular.Open(bare{os.DirFS(dir)}, ".")))
}
