package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/olm"
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
	if err := os.WriteFile(file, []byte(shelf), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, file} {
		c, err := catalog.Open(t.Context(), place, catalog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff("PACKAGE  DEFAULT CHANNEL  HEAD  CHANNELS\na        stable           a.v2  1\n", c.Table()); d != "" {
			t.Errorf("%s (-want +got):\n%s", place, d)
		}
		if got := c.Report(); got != "Packages: 1, channels: 1, problems: 0, warnings: 0\n" {
			t.Error(got)
		}
		w, err := c.Way("a", "", "a.v1", "")
		if err != nil || w.Text() != "1. a.v1 -> a.v2 by replaces in channel stable\n" {
			t.Errorf("%v %v", w, err)
		}
		if w, err = c.Way("a", "", "a.v2", ""); err != nil || w.Text() != "Nothing replaces a.v2.\n" {
			t.Errorf("%v %v", w, err)
		}
		if w, err = c.Way("a", "", "", ""); err != nil || !strings.HasPrefix(w.Text(), "Package a\nChannel stable (default)\n  a.v2 2.0.0\n") {
			t.Errorf("%v %v", w.Text(), err)
		}
		if _, err := w.Draw("png", catalog.PictureOptions{}); err == nil || err.Error() != `"png" is neither dot nor mermaid` {
			t.Error(err)
		}
		if _, err := c.Way("b", "", "", ""); err == nil || err.Error() != `the catalog has no package "b"` {
			t.Error(err)
		}

		s, err := c.Trial([]string{"a=a.v1@stable"}, []string{"foreign.v1", "a.v1"})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := olm.Plan(t.Context(), []*olm.Snapshot{s}, olm.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Detail(); got != "Generation 1:\n  a.v2 replaces a.v1\n  foreign.v1 stays\n" || !plan.Complete() {
			t.Error(got)
		}
		for text, want := range map[string]string{"=x": `"=x" names no package`, "a,a": "a is there twice"} {
			if _, err := c.Trial(strings.Split(text, ","), nil); err == nil || err.Error() != want {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	empty, missing := t.TempDir(), filepath.Join(dir, "none")
	for place, want := range map[string]string{empty: empty + ": the folder holds no catalog", missing: missing + ": no such file or directory"} {
		if _, err := catalog.Open(t.Context(), place, catalog.Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got, err := catalog.Sources(t.Context(), []string{"ns/a=" + file}, catalog.Options{}); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := catalog.Sources(t.Context(), []string{"a=b"}, catalog.Options{}); !errors.Is(err, catalog.ErrSource) {
		t.Error(err)
	}
}
