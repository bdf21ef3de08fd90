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
	config := l.Blob("application/vnd.oci.image.config.v1+json", []byte(`{"created":"`+platform+`"}`))
	d := l.JSON(oci.TypeManifest, oci.Manifest{MediaType: oci.TypeManifest, Config: &config, Layers: layers})
	if platform != "" {
		p, err := oci.ParsePlatform(platform)
		check(err)
		d.Platform = &p
	}
	return d
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

// Docker returns the files of an archive as docker save writes it, with one
// image, and the manifest that a registry would have of it.
func Docker(layers ...[]byte) (files fstest.MapFS, manifest []byte) {
	files = fstest.MapFS{}
	var names, diffs []string
	var stored []oci.Descriptor
	for i, data := range layers {
		name := fmt.Sprintf("%d/layer.tar", i)
		files[name] = &fstest.MapFile{Data: data}
		names, diffs = append(names, name), append(diffs, Digest(data))
		packed := Gzip(data)
		stored = append(stored, oci.Descriptor{MediaType: TypeLayerGzip, Digest: Digest(packed), Size: int64(len(packed))})
	}
	config, err := json.Marshal(map[string]any{"os": "linux", "architecture": "amd64", "rootfs": map[string]any{"type": "layers", "diff_ids": diffs}})
	check(err)
	name := Digest(config)[len("sha256:"):] + ".json"
	files[name] = &fstest.MapFile{Data: config}
	list, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{"registry.example/release:1"}, "Layers": names}})
	check(err)
	files["manifest.json"] = &fstest.MapFile{Data: list}
	manifest, err = json.Marshal(oci.Manifest{MediaType: oci.TypeDockerManifest, Layers: stored,
		Config: &oci.Descriptor{MediaType: "application/vnd.docker.container.image.v1+json", Digest: Digest(config), Size: int64(len(config))}})
	check(err)
	return files, manifest
}

func check(err error) {
	if err != nil {
		panic(err) // a fault of the test
	}
}
