package oci_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// Layers are merged as the specification tells it: what a layer's whiteouts name
// goes from what lower layers made, then come its own files, in whatever order the
// entries are.
func TestLayersProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ocitest.NewLayout()
		var layers []oci.Descriptor
		want := files{}
		for n := range rapid.IntRange(0, 5).Draw(t, "layers") {
			own := files{}
			var entries entries
			for i := range rapid.IntRange(0, 8).Draw(t, "entries") {
				dir := rapid.SampledFrom([]string{"manifests", "manifests/d", "manifests/d/e"}).Draw(t, "dir")
				name := rapid.SampledFrom([]string{"a", "b", ".wh.a", ".wh.b", ".wh..wh..opq", ".wh.d", ".wh.e"}).Draw(t, "name")
				removed, isWhiteout := strings.CutPrefix(name, ".wh.")
				switch {
				case !isWhiteout:
					content := fmt.Sprint(n, i)
					entries = append(entries, file(dir+"/"+name, content))
					own[dir+"/"+name] = content
					continue
				case name == ".wh..wh..opq":
					removed = ""
				}
				entries = append(entries, file(dir+"/"+name, ""))
				for have := range want {
					if have == dir+"/"+removed || strings.HasPrefix(have, strings.TrimSuffix(dir+"/"+removed, "/")+"/") {
						delete(want, have)
					}
				}
			}
			maps.Copy(want, own)
			layers = append(layers, l.Layer(entries...))
		}
		fsys := checktest.Get(oci.Unpack(t.Context(), in(l.FS), layers, kept, oci.Limits{}))(t)
		got := show(t, fsys)
		for name, content := range got {
			if content == "/" { // an empty directory
				delete(got, name)
			}
		}
		checktest.Same(t, want, got)
	})
}
