package image_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// Links in a directory are followed within it. One that leads out is refused, and
// so is what is no file.
func TestOpenLinks(t *testing.T) {
	l := ocitest.NewLayout()
	d := releaseImage(l, "linux/amd64", "1.0.0")
	layout := l.Write(d)
	for _, tt := range []struct{ name, link, target, err string }{
		{"blobs elsewhere in it", oci.BlobPath(d.Digest), "../../other", ""},
		{"blobs outside", oci.BlobPath(d.Digest), "../../../other", oci.BlobPath(d.Digest)[:20]},
		{"index outside", "index.json", "../other", "index.json"},
		{"absolute", "index.json", "/dev/zero", "index.json"},
		{"a directory", "index.json", ".", "index.json is not a regular file"},
		{"in a circle", "index.json", "index.json", "index.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "layout")
			if err := os.CopyFS(dir, layout); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(dir, filepath.FromSlash(tt.link))
			data := layout[tt.link].Data
			if err := errors.Join(os.WriteFile(filepath.Join(parent, "other"), data, 0o600), os.WriteFile(filepath.Join(dir, "other"), data, 0o600), os.Remove(link)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(tt.target, link); err != nil {
				t.Skip(err) // a system without links
			}
			src, err := image.Open(dir, image.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			version, _, err := load(t.Context(), src, d.Digest)
			if tt.link == "index.json" { // which only a list needs
				_, err = src.List(t.Context())
			}
			if tt.err == "" && (err != nil || version != "1.0.0") || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%s, %v; want %s", version, err, tt.err)
			}
		})
	}
}

// A source that is closed reads no more; what it has read stays.
func TestClose(t *testing.T) {
	l := ocitest.NewLayout()
	d := releaseImage(l, "linux/amd64", "1.0.0")
	for form, src := range forms(t, l.Write(d), image.Options{}) {
		fsys, err := src.Payload(t.Context(), release(d.Digest))
		if err != nil {
			t.Fatal(form, err)
		}
		if err := src.Close(); err != nil {
			t.Error(form, err)
		}
		opened := form == "directory" || form == "tar file"
		if _, err := src.Payload(t.Context(), release(d.Digest)); (err != nil) != opened {
			t.Errorf("%s: %v", form, err)
		}
		if _, err := fs.ReadFile(fsys, "release-manifests/release-metadata"); err != nil {
			t.Error(form, err)
		}
	}
}
