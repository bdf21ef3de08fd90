package catalog_test

import (
	"errors"
	"io/fs"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

// fragileFiles goes wrong when the second file is opened.
type fragileFiles struct {
	fstest.MapFS
	goWrong func()
}

func (f fragileFiles) Open(name string) (fs.File, error) {
	if name == "b.json" {
		f.goWrong()
	}
	return f.MapFS.Open(name)
}

// TestFilesThatPanic: what goes wrong in the caller's files is an error, not
// the end of the program, and not a catalog that lacks the rest.
func TestFilesThatPanic(t *testing.T) {
	files := fstest.MapFS{"a.json": {Data: []byte(goodCatalog)}, "b.json": {Data: []byte("{}")}}
	for name, goWrong := range map[string]func(){"panic": func() { panic("no disk") }, "Goexit": runtime.Goexit} {
		c, err := catalog.Load(t.Context(), fragileFiles{files, goWrong}, catalog.Options{})
		if !errors.As(err, new(*clusterapi.PanicError)) || c != nil {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}
