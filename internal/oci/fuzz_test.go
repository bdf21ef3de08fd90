package oci_test

import (
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

// small are limits that inputs of a fuzzer pass.
var small = oci.Limits{ManifestsSize: 1 << 20, Manifests: 50, Depth: 4, Layers: 4, TotalSize: 4 << 20, Entries: 200, FileSize: 4 << 10, KeptSize: 64 << 10}

// FuzzLayout reads any index and manifest. What it finds is what was named.
func FuzzLayout(f *testing.F) {
	entry := `{"mediaType":"` + oci.TypeIndex + `","digest":"MANIFEST","size":SIZE}`
	f.Add([]byte(`{"manifests":[`+entry+`]}`), []byte(`{"manifests":[{"mediaType":"`+oci.TypeManifest+`","digest":"`+missing+`","size":2,"artifactType":"application/x"}]}`))
	f.Fuzz(func(t *testing.T, index, manifest []byte) {
		l := ocitest.NewLayout()
		d := l.Blob("", manifest)
		layer := l.Layer(file("manifests/a", "1"))
		l.FS["index.json"] = &fstest.MapFile{Data: []byte(strings.NewReplacer("MANIFEST", d.Digest, "SIZE", strconv.FormatInt(d.Size, 10)).Replace(string(index)))}
		from := in(l.FS)
		_, _ = oci.List(t.Context(), from.Store.(*oci.Layout), small)
		for _, w := range []oci.Want{{Digest: d.Digest}, {Digest: d.Digest, Platform: oci.Platform{Architecture: "amd64"}}, {Digest: layer.Digest}} {
			image, err := oci.Find(t.Context(), from, w, small)
			if err != nil {
				if len(err.Error()) > 8<<10 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
				continue
			}
			if image.Digest != d.Digest && image.Digest != layer.Digest || len(image.Layers) > small.Layers {
				t.Errorf("found %+v", image)
			}
			_, _ = oci.Unpack(t.Context(), from, image.Layers, kept, small)
		}
	})
}

// FuzzLayers applies any two layers. What comes of them lies where it was asked
// for, and is no more than the limits allow.
func FuzzLayers(f *testing.F) {
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		l := ocitest.NewLayout()
		layers := []oci.Descriptor{l.Blob(ocitest.TypeLayer, lower), l.Blob(ocitest.TypeLayer, upper)}
		fsys, err := oci.Unpack(t.Context(), in(l.FS), layers, kept, small)
		if err == nil {
			walk(t, fsys)
		}
	})
}

// walk reads all of a file system.
func walk(t *testing.T, fsys fs.FS) {
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !fs.ValidPath(name) || name != "." && name != "deep" && !strings.HasPrefix(name, "deep/down") && !strings.HasPrefix(name, "manifests") {
			t.Errorf("unasked: %q", name)
		}
		if info, err := d.Info(); err != nil || d.Type().IsRegular() && info.Size() > small.FileSize {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if d.Type().IsRegular() {
			_, err := fs.ReadFile(fsys, name)
			return err
		}
		_, _ = fs.ReadFile(fsys, name) // a link may lead nowhere
		return nil
	})
	checktest.Good(t, err)
}

// FuzzOpenTar reads any tar file. What is found in it lies in it.
func FuzzOpenTar(f *testing.F) {
	l := ocitest.NewLayout()
	index := l.Index(l.Image("linux/amd64"))
	f.Add(ocitest.Tar(ocitest.Files(l.Write(index))...))
	f.Add(ocitest.Tar(ocitest.Files(l.Mirror("o/r", ":", "1", index.Digest))...))
	f.Add(ocitest.Tar(ocitest.Files(l.Storage("o/r", "1", index.Digest))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		archive, err := openTar(data, small)
		if err != nil {
			return
		}
		for _, name := range []string{"a", "d/a", "oci-layout"} {
			if content, err := fs.ReadFile(archive, name); err == nil && len(content) > len(data) {
				t.Errorf("%s has %d bytes, in a file of %d", name, len(content), len(data))
			}
		}
		layout, err := oci.OpenLayout(archive, "x", small)
		if err != nil {
			return
		}
		if list, err := oci.List(t.Context(), layout, small); err == nil && len(list) > small.Manifests {
			t.Errorf("%d entries", len(list))
		}
	})
}
