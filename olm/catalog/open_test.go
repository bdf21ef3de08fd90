package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

const shelf = `{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v2","replaces":"a.v1"},{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"a1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"a","name":"a.v2","image":"a2","properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}}]}
`

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	checktest.OK(t, os.WriteFile(file, []byte(shelf), 0o600))
	for _, place := range []string{dir, file} {
		c := checktest.Get(catalog.Open(t.Context(), place, catalog.Options{}))(t)
		if got := entryNames(entries(c)); !slices.Equal(got, []string{"a.v2", "a.v1"}) {
			t.Errorf("%s: %s", place, got)
		}
	}
	empty, missing := t.TempDir(), filepath.Join(dir, "none")
	for place, want := range map[string]string{empty: empty + ": the folder holds no catalog", missing: missing + ": no such file or directory"} {
		if _, err := catalog.Open(t.Context(), place, catalog.Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
