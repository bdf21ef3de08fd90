package forecast_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// recorded opens a recorded cluster, or the Insights archive.
func recorded(tb testing.TB, name string) *dump.Recording {
	tb.Helper()
	dir := filepath.Join(testdata.Dir(tb), name)
	return checktest.Get(dump.Open(tb.Context(), os.DirFS(dir), dump.Options{}))(tb)
}

// renamed is a release under another version.
type renamed struct {
	fs.FS
	changed fstest.MapFS
}

func (r renamed) Open(name string) (fs.File, error) {
	if _, ok := r.changed[name]; ok {
		return r.changed.Open(name)
	}
	return r.FS.Open(name)
}

// releases has real payloads under the versions that tests ask for, each opened once.
var releases sync.Map

// realRelease is 4.17.30 or 4.18.15 under another version. Any version may be updated to
// it.
func realRelease(tb testing.TB, of, version string) *payload.Image {
	tb.Helper()
	dir := filepath.Join(testdata.Dir(tb), "payload-"+of)
	open, _ := releases.LoadOrStore(of+" "+version, sync.OnceValues(func() (*payload.Image, error) {
		files := renamed{os.DirFS(dir), fstest.MapFS{}}
		for _, name := range []string{"release-metadata", "image-references"} {
			file := "release-manifests/" + name
			data, err := fs.ReadFile(files, file)
			if err != nil {
				return nil, err
			}
			data = bytes.ReplaceAll(data, []byte(`"`+of+`"`), []byte(`"`+version+`"`))
			data = bytes.ReplaceAll(data, []byte(`"previous"`), []byte(`"other"`))
			files.changed[file] = &fstest.MapFile{Data: data}
		}
		return payload.Open(context.Background(), version, files)
	}))
	return checktest.Get(open.(func() (*payload.Image, error))())(tb)
}
