package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

func TestLimits(t *testing.T) {
	// An image that needs three of everything, two indexes down.
	l := ocitest.NewLayout()
	one := func(n string) oci.Descriptor {
		return l.Layer(ocitest.File("release-manifests/"+n+".yaml", strings.Repeat(n, 1000)))
	}
	d := l.Image("linux/amd64", one("a"), one("b"), one("c"))
	index := l.Index(l.Index(l.Index(d)))
	layout := l.Write(index)
	zeros := ocitest.NewLayout()
	bomb := zeros.Image("linux/amd64", zeros.Layer(ocitest.File("usr/bin/large", strings.Repeat("\x00", 64<<20))))
	bombLayout := zeros.Write(bomb)
	long := ocitest.NewLayout()
	longName := long.Image("linux/amd64", long.Layer(ocitest.File(strings.Repeat("x", 4097), "")))
	longLayout := long.Write(longName)
	items := fstest.MapFS{"oci-layout": layout["oci-layout"], "index.json": {Data: []byte(`{"manifests":[` + strings.Repeat("{},", 128<<10) + `{}]}`)}}
	archive := filepath.Join(t.TempDir(), "layout.tar")
	checktest.OK(t, os.WriteFile(archive, ocitest.Tar(ocitest.Files(layout)...), 0o600))

	// refused wants the payload with a digest to fail by a limit, and not to do so
	// without it.
	refused := func(t *testing.T, fsys fstest.MapFS, digest, limit string, limits image.Limits) {
		t.Helper()
		src, err := image.FromFS(fsys, image.Options{Limits: limits})
		checktest.OK(t, err)
		_, err = src.Payload(t.Context(), configv1.Release{Image: repository + "@" + digest})
		if passed := (*image.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != limit || !strings.Contains(err.Error(), "(limit "+limit+")") {
			t.Errorf("%v, want %s", err, limit)
		}
	}
	row := func(name, limit string, value int64, limits image.Limits) limittest.Case {
		return limittest.Case{Limit: name, Default: value, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			refused(t, layout, index.Digest, limit, limits)
			return 0
		}}
	}
	src := checktest.Get(image.FromFS(layout,
		image.Options{Limits: image.Limits{Depth: 3, Manifests: 3, Layers: 3, Entries: 3, FileSize: 1000}}))(t)
	checktest.Good(t, checktest.Err(src.Payload(t.Context(), configv1.Release{Image: repository + "@" + index.Digest})))

	limittest.Walk(t, []limittest.Case{
		row("bytes of an index or manifest", "ManifestSize", 4<<20, image.Limits{ManifestSize: 200}),
		row("bytes of all indexes and manifests", "ManifestsSize", 64<<20, image.Limits{ManifestsSize: 900}),
		row("entries of indexes", "Manifests", 10_000, image.Limits{Manifests: 2}),
		row("depth of indexes", "Depth", 8, image.Limits{Depth: 2}),
		row("layers of an image", "Layers", 256, image.Limits{Layers: 2}),
		row("bytes of a layer", "LayerSize", 4<<30, image.Limits{LayerSize: 50}),
		{Limit: "bytes of all layers, uncompressed", Default: 16 << 30, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			refused(t, bombLayout, bomb.Digest, "TotalSize", image.Limits{TotalSize: 1 << 20})
			return 0
		}},
		{Limit: "entries of layers, archives and folders", Default: 1_000_000, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			refused(t, layout, d.Digest, "Entries", image.Limits{Entries: 2})
			_, err := image.Open(archive, image.Options{Limits: image.Limits{Entries: 2}})
			if passed := (*image.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != "Entries" {
				t.Error(err)
			}
			return 0
		}},
		row("bytes of a file", "FileSize", 16<<20, image.Limits{FileSize: 999}),
		row("bytes of what is held in memory", "KeptSize", 512<<20, image.Limits{KeptSize: 3000}),
		{Limit: "bytes of the name of a file", Default: 4096, Bytes: 2 << 20, Run: func(t *testing.T) int64 {
			refused(t, longLayout, longName.Digest, "Path", image.Limits{})
			return 0
		}},
		{Limit: "objects and members of an index", Default: 131072, Bytes: 4 << 20, Run: func(t *testing.T) int64 {
			refused(t, items, d.Digest, "Items", image.Limits{})
			return 0
		}},
	})
}

// The defaults that the docs of Limits say are in force: nothing larger is read
// where it would show at once.
func TestDefaultLimits(t *testing.T) {
	l := ocitest.NewLayout()
	layers := make([]oci.Descriptor, 257)
	for i := range layers {
		layers[i] = l.Layer()
	}
	many, large := l.Image("linux/amd64", layers...), l.Layer()
	large.Size = 4<<30 + 1
	huge := l.Image("linux/amd64", large)
	file := l.Image("linux/amd64", l.Layer(ocitest.File("manifests/a", strings.Repeat("a", 16<<20+1))))
	nested := l.Image("linux/arm64")
	deep := nested
	for range 10 {
		deep = l.Index(deep)
	}
	layout := l.Write(many, huge, file, deep)
	src, err := image.FromFS(layout, image.Options{})
	checktest.OK(t, err)
	for digest, limit := range map[string]string{many.Digest: "Layers", huge.Digest: "LayerSize", file.Digest: "FileSize", deep.Digest: "Depth"} {
		_, err = src.Payload(t.Context(), configv1.Release{Image: repository + "@" + digest})
		if passed := (*image.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != limit {
			t.Errorf("%v, want %s", err, limit)
		}
	}
}
