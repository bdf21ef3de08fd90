package forecast_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// overlay is a file system some of whose files are replaced.
type overlay struct {
	fs.FS
	files fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if _, ok := o.files[name]; ok {
		return o.files.Open(name)
	}
	return o.FS.Open(name)
}

// opened are releases that tests share: to load one takes most of a second.
var opened sync.Map

// release is a real release under another version.
func release(tb testing.TB, contents, version string, previous ...string) *payload.Image {
	tb.Helper()
	key := contents + " " + version + " " + strings.Join(previous, " ")
	if i, ok := opened.Load(key); ok {
		return i.(*payload.Image)
	}
	fsys := os.DirFS(filepath.Join(testdata.Dir(tb), "payload-"+contents))
	files := fstest.MapFS{}
	checktest.OK(tb, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if renamed := bytes.ReplaceAll(data, []byte(contents), []byte(version)); !bytes.Equal(renamed, data) {
			files[name] = &fstest.MapFile{Data: renamed}
		}
		return err
	}))
	metadata := `{"kind":"cincinnati-metadata-v0","version":"` + version + `","previous":["` + strings.Join(previous, `","`) + `"]}`
	files["release-manifests/release-metadata"] = &fstest.MapFile{Data: []byte(metadata)}
	i := checktest.Get(payload.Open(context.Background(), version, overlay{fsys, files}))(tb)
	opened.Store(key, i)
	return i
}

// recorded is a recorded cluster.
func recorded(tb testing.TB, name string) *dump.Recording {
	tb.Helper()
	fsys := os.DirFS(filepath.Join(testdata.Dir(tb), "clusters", name))
	return checktest.Get(dump.Open(context.Background(), fsys, dump.Options{}))(tb)
}
