// Package ocitest makes small images, layouts and archives for tests.
package ocitest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Media types of layers.
const (
	TypeLayer     = "application/vnd.oci.image.layer.v1.tar"
	TypeLayerGzip = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Entry is one entry of a tar.
type Entry struct {
	tar.Header
	Body string
}

// File, Dir, Symlink and HardLink make entries.
func File(name, body string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, body}
}

func Dir(name string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, ""}
}

func Symlink(name, target string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, ""}
}

func HardLink(name, target string) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644}, ""}
}

// Tar writes a tar.
func Tar(entries ...Entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.Size = int64(len(e.Body))
		check(w.WriteHeader(&e.Header))
		_, err := w.Write([]byte(e.Body))
		check(err)
	}
	check(w.Close())
	return b.Bytes()
}

// Gzip compresses data.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	check(err)
	check(w.Close())
	return b.Bytes()
}

// Files returns the files of a file system as entries.
func Files(fsys fs.FS) []Entry {
	var out []Entry
	check(fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			out = append(out, Dir(name+"/"))
			return nil
		case d.Type() == fs.ModeSymlink:
			target, err := fs.ReadLink(fsys, name)
			out = append(out, Symlink(name, target))
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		out = append(out, File(name, string(data)))
		return err
	}))
	return out
}

// Layout is an image layout in the making.
type Layout struct {
	FS      fstest.MapFS
	Entries []oci.Descriptor // of index.json; see Write
}

// NewLayout returns a layout without images.
func NewLayout() *Layout {
	return &Layout{FS: fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}}
}

// Digest returns the sha256 digest of data.
func Digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// Blob adds a blob.
func (l *Layout) Blob(mediaType string, data []byte) oci.Descriptor {
	d := oci.Descriptor{MediaType: mediaType, Digest: Digest(data), Size: int64(len(data))}
	l.FS[oci.BlobPath(d.Digest)] = &fstest.MapFile{Data: data}
	return d
}

// JSON adds a blob in JSON.
func (l *Layout) JSON(mediaType string, v any) oci.Descriptor {
	data, err := json.Marshal(v)
	check(err)
	return l.Blob(mediaType, data)
}

// Layer adds a compressed layer.
func (l *Layout) Layer(entries ...Entry) oci.Descriptor {
	return l.Blob(TypeLayerGzip, Gzip(Tar(entries...)))
}

// Image adds an image for a platform os/architecture/variant, which may be
// empty.
func (l *Layout) Image(platform string, layers ...oci.Descriptor) oci.Descriptor {
	d := l.image(map[string]any{"created": platform}, layers)
	if platform != "" {
		p, err := oci.ParsePlatform(platform)
		check(err)
		d.Platform = &p
	}
	return d
}

// Labelled adds an image whose configuration has labels.
func (l *Layout) Labelled(labels map[string]string, layers ...oci.Descriptor) oci.Descriptor {
	return l.image(map[string]any{"config": map[string]any{"Labels": labels}}, layers)
}

func (l *Layout) image(configuration map[string]any, layers []oci.Descriptor) oci.Descriptor {
	config := l.JSON("application/vnd.oci.image.config.v1+json", configuration)
	return l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Config: &config, Layers: layers})
}

// Index adds an index.
func (l *Layout) Index(manifests ...oci.Descriptor) oci.Descriptor {
	return l.JSON(oci.TypeIndex, oci.Manifest{MediaType: oci.TypeIndex, Manifests: manifests})
}

// Write adds entries to index.json, and returns the layout.
func (l *Layout) Write(entries ...oci.Descriptor) fstest.MapFS {
	l.Entries = append(l.Entries, entries...)
	data, err := json.Marshal(oci.Manifest{MediaType: oci.TypeIndex, Manifests: l.Entries})
	check(err)
	l.FS["index.json"] = &fstest.MapFile{Data: data}
	return l.FS
}

// Named gives an entry a reference name.
func Named(d oci.Descriptor, name string) oci.Descriptor {
	d.Annotations = map[string]string{oci.RefName: name}
	return d
}

// Mirror returns the blobs as oc image mirror writes them to files: in a repository,
// with those manifests in manifests that digests name, and tag as a link to the first
// of them. The names of files have colon in place of the colon of a digest.
func (l *Layout) Mirror(repository, colon, tag string, digests ...string) fstest.MapFS {
	files := fstest.MapFS{}
	name := func(digest string) string { return strings.Replace(digest, ":", colon, 1) }
	for _, digest := range l.blobs() {
		files["v2/"+repository+"/blobs/"+name(digest)] = l.FS[oci.BlobPath(digest)]
	}
	dir := "v2/" + repository + "/manifests/"
	for _, digest := range digests {
		if file := l.FS[oci.BlobPath(digest)]; file != nil {
			files[dir+name(digest)] = file
		}
	}
	files[dir+tag] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(name(digests[0]))}
	return files
}

// Storage returns the blobs as a registry stores them, and a repository in which
// digests name manifests, and tag the first of them.
func (l *Layout) Storage(repository, tag string, digests ...string) fstest.MapFS {
	files := fstest.MapFS{}
	link := func(name, digest string) {
		files["docker/registry/v2/repositories/"+repository+"/"+name+"/link"] = &fstest.MapFile{Data: []byte(digest)}
	}
	for _, digest := range l.blobs() {
		sum := strings.TrimPrefix(digest, "sha256:")
		files["docker/registry/v2/blobs/sha256/"+sum[:2]+"/"+sum+"/data"] = l.FS[oci.BlobPath(digest)]
		link("_layers/sha256/"+sum, digest)
	}
	for _, digest := range digests {
		link("_manifests/revisions/"+strings.Replace(digest, ":", "/", 1), digest)
	}
	link("_manifests/tags/"+tag+"/current", digests[0])
	return files
}

// blobs returns the digests of the blobs.
func (l *Layout) blobs() []string {
	var out []string
	for name := range l.FS {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			out = append(out, "sha256:"+sum)
		}
	}
	slices.Sort(out)
	return out
}

func check(err error) {
	if err != nil {
		panic(err) // a fault of the test
	}
}
