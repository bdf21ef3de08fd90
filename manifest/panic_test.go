package manifest_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// trap is a file system that calls act when one thing is done to one path.
type trap struct {
	fs.FS
	verb, path string
	act        func()
}

func (s trap) spring(verb, path string) {
	if s.verb == verb && s.path == path {
		s.act()
	}
}

func (s trap) Open(name string) (fs.File, error) {
	s.spring("open", name)
	f, err := s.FS.Open(name)
	return trapFile{f, s, name}, err
}

func (s trap) Stat(name string) (fs.FileInfo, error) {
	s.spring("stat", name)
	return fs.Stat(s.FS, name)
}

func (s trap) ReadDir(name string) ([]fs.DirEntry, error) {
	s.spring("readdir", name)
	return fs.ReadDir(s.FS, name)
}

type trapFile struct {
	fs.File
	s    trap
	name string
}

func (f trapFile) Stat() (fs.FileInfo, error) { f.s.spring("filestat", f.name); return f.File.Stat() }
func (f trapFile) Read(p []byte) (int, error) { f.s.spring("read", f.name); return f.File.Read(p) }
func (f trapFile) Close() error               { f.s.spring("close", f.name); return f.File.Close() }

// TestPanicsInTheFileSystem: a panic or a Goexit in a callback ends neither
// the process nor the call, and no file is lost for it.
func TestPanicsInTheFileSystem(t *testing.T) {
	fsys := payload(map[string]string{
		"manifests/a.yaml":         object("a", included) + "x: {{.ReleaseImage}}\n",
		"release-manifests/b.yaml": object("b", included), "release-manifests/c.yaml": object("c", included),
	})
	failure := errors.New("the disk is gone")
	for _, at := range []struct {
		verb, path string
		ofFile     bool // a fault of the file, which the others' are collected with
	}{
		{"stat", "release-manifests", false}, {"readdir", "manifests", false},
		{"open", "release-manifests/release-metadata", false}, {"read", "release-manifests/image-references", false},
		{"open", "manifests/a.yaml", true}, {"filestat", "release-manifests/b.yaml", true},
		{"read", "release-manifests/b.yaml", true}, {"close", "release-manifests/c.yaml", true},
	} {
		t.Run(at.verb+" "+at.path, func(t *testing.T) {
			_, err := manifest.Load(t.Context(), trap{fsys, at.verb, at.path, func() { panic(failure) }}, manifest.LoadOptions{Workers: 2})
			var caught *clusterapi.PanicError
			if !errors.As(err, &caught) || !strings.Contains(string(caught.Stack), "spring") || !errors.Is(err, failure) {
				t.Fatalf("%v", err)
			}
			var fault *manifest.Error
			if errors.As(err, &fault) != at.ofFile || at.ofFile && (fault.Faults[0].File != at.path || !strings.Contains(err.Error(), at.path+": panic: the disk is gone")) {
				t.Errorf("%v", err)
			}
			if p, err := manifest.Load(t.Context(), trap{fsys, at.verb, at.path, runtime.Goexit}, manifest.LoadOptions{Workers: 2}); !errors.As(err, &caught) || p != nil {
				t.Errorf("Goexit: %v %v", p, err)
			}
		})
	}
}

// TestContextCause: why a context ended comes back along with its error.
func TestContextCause(t *testing.T) {
	replaced := errors.New("another release is wanted")
	fsys := payload(map[string]string{"manifests/a.yaml": object("a", included), "release-manifests/b.yaml": object("b", included), "release-manifests/c.yaml": object("c", included)})
	for _, at := range [][2]string{{"stat", "manifests"}, {"open", "release-manifests/release-metadata"}, {"readdir", "manifests"}, {"read", "manifests/a.yaml"}, {"close", "release-manifests/c.yaml"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := trap{fsys, at[0], at[1], func() { cancel(replaced) }}
		if _, err := manifest.Load(ctx, s, manifest.LoadOptions{}); !errors.Is(err, context.Canceled) || !errors.Is(err, replaced) {
			t.Errorf("Load, %s: %v", at, err)
		}
	}
}

// TestReaderWithoutProgress: a file that never yields anything is an error.
func TestReaderWithoutProgress(t *testing.T) {
	_, err := manifest.Load(t.Context(), idle{payload(nil)}, manifest.LoadOptions{})
	checktest.ErrorIs(t, io.ErrNoProgress, err)
}

// idle is a file system whose release-metadata never yields anything.
type idle struct{ fs.FS }

func (i idle) Open(name string) (fs.File, error) {
	f, err := i.FS.Open(name)
	if name == "release-manifests/release-metadata" {
		f = idleFile{f}
	}
	return f, err
}

type idleFile struct{ fs.File }

func (idleFile) Read([]byte) (int, error) { return 0, nil }
