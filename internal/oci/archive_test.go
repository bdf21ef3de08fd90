package oci_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

func openTar(data []byte, l oci.Limits) (*oci.TarFile, error) {
	return oci.OpenTar(bytes.NewReader(data), int64(len(data)), l)
}

func TestTarFile(t *testing.T) {
	long := strings.Repeat("n", 300)
	archive, err := openTar(ocitest.Tar(dir("d/"), file("d/a", "old"), file("./d/a", "1"), file("/b", "22"), file(long, "333"),
		symlink("d/l", "../b"), symlink("m", "/d/l"), hardLink("h", "b"), symlink("gone", "x"), symlink("r", "s"), symlink("s", "r"),
		file("was", "x"), ocitest.Entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "was"}}), oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"d/a": "1", "b": "22", long: "333", "d/l": "22", "m": "22", "h": "22"} {
		data, err := fs.ReadFile(archive, name)
		if err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		info, err := fs.Stat(archive, name)
		if err != nil || info.Size() != int64(len(want)) || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for name, want := range map[string]string{
		"c": "file does not exist", "d": "file does not exist", "gone": `a link leads to "x", which is not here`, "r": "too many links", "../b": "invalid argument", "was": "file does not exist",
	} {
		if _, err := archive.Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if _, err := archive.Stat(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// sparse returns a tar with a file that has holes, which lies in it otherwise than
// it is read. What writes tars does not write such ones.
func sparse(name string) []byte {
	e := file(name, "x")
	e.Format = tar.FormatPAX
	e.PAXRecords = files{"GNU_sparse.major": "0", "GNU_sparse.minor": "1", "GNU_sparse.numblocks": "1", "GNU_sparse.map": "9,1", "GNU_sparse.size": "10"}
	return bytes.ReplaceAll(ocitest.Tar(e), []byte("GNU_sparse"), []byte("GNU.sparse"))
}

func TestTarFileRefuses(t *testing.T) {
	good := ocitest.Tar(file("a", strings.Repeat("x", 5000)))
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"name that leads out", ocitest.Tar(file("../a", "")), `"../a": the name leads out of the tree`},
		{"symbolic link that leads out", ocitest.Tar(symlink("d/a", "../../a")), `"d/a": symbolic link to "../../a" leads out of the tree`},
		{"hard link that leads out", ocitest.Tar(hardLink("a", "../a")), "leads out of the tree"},
		{"sparse file", sparse("a"), `"a": a sparse file`},
		{"gzip", ocitest.Gzip(good), "compressed with gzip: decompress it first"},
		{"zstd", []byte("\x28\xb5\x2f\xfd...."), "compressed with zstd"},
		{"xz", []byte("\xfd7zXZ\x00...."), "compressed with xz"},
		{"bzip2", []byte("BZh91AY"), "compressed with bzip2"},
		{"cut off", good[:2000], "unexpected EOF"},
		{"no tar", bytes.Repeat([]byte("x"), 1024), "invalid tar header"},
	} {
		if _, err := openTar(tt.data, oci.Limits{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	many := ocitest.Tar(file("a", ""), file("b", ""), file("c", ""))
	for field, limits := range map[string]oci.Limits{"Entries": {Entries: 2}, "KeptSize": {KeptSize: 600}} {
		_, err := openTar(many, limits)
		if passed := (*oci.LimitError)(nil); !errors.As(err, &passed) || passed.Limit != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := openTar(many, oci.Limits{Entries: -2}); err == nil || !strings.Contains(err.Error(), "Entries is negative") {
		t.Error(err)
	}
}

// A layout in a tar file is as good as one in a directory.
func TestLayoutInTar(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64", l.Layer(file("manifests/a", "1")))
	archive, err := openTar(ocitest.Tar(ocitest.Files(l.Write(image))...), oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !oci.HasLayout(archive) || oci.HasDockerArchive(archive) {
		t.Error("not seen as a layout")
	}
	layout := &oci.Layout{FS: archive, Name: "x.tar"}
	entries, err := layout.Entries(oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	i, err := oci.Find(t.Context(), layout, entries, oci.Want{Digest: image.Digest}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := oci.Unpack(t.Context(), layout, i, kept, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files{"manifests/a": "1"}, show(t, fsys)); diff != "" {
		t.Error(diff)
	}
}

func TestLayoutIndex(t *testing.T) {
	version := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	for _, tt := range []struct {
		name string
		fs   fstest.MapFS
		want string
	}{
		{"nothing", nil, "dir is no OCI layout: open oci-layout: file does not exist"},
		{"no version", fstest.MapFS{"oci-layout": {Data: []byte("{}")}}, `dir is an OCI layout of unknown version ""`},
		{"new version", fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion":"2.0.0"}`)}}, `unknown version "2.0.0"`},
		{"no index", fstest.MapFS{"oci-layout": {Data: version}}, "dir: open index.json: file does not exist"},
		{"broken index", fstest.MapFS{"oci-layout": {Data: version}, "index.json": {Data: []byte("{")}}, "dir: index.json: unexpected"},
		{"index that is no file", fstest.MapFS{"oci-layout": {Data: version}, "index.json": {Mode: fs.ModeNamedPipe}}, "index.json is not a regular file"},
		{"large index", fstest.MapFS{"oci-layout": {Data: version}, "index.json": {Data: make([]byte, 101)}}, "index.json: more than 100 bytes in an index"},
	} {
		_, err := (&oci.Layout{FS: tt.fs, Name: "dir"}).Entries(oci.Limits{ManifestSize: 100})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestDockerArchive(t *testing.T) {
	lower, upper := ocitest.Tar(file("manifests/a", "1"), file("manifests/b", "1")), ocitest.Tar(file("manifests/.wh.b", ""), file("manifests/c", "2"))
	archive, manifest := ocitest.Docker(lower, upper)
	var m oci.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		t.Fatal(err)
	}
	index, err := json.Marshal(oci.Manifest{MediaType: oci.TypeDockerIndex, Manifests: []oci.Descriptor{
		{MediaType: oci.TypeDockerManifest, Digest: ocitest.Digest(manifest), Size: int64(len(manifest)), Platform: &oci.Platform{OS: "linux", Architecture: "amd64"}},
		{MediaType: oci.TypeDockerManifest, Digest: missing, Size: 5, Platform: &oci.Platform{OS: "linux", Architecture: "arm64"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	packed, _ := ocitest.Docker(lower, upper)
	packed["0/layer.tar"].Data = ocitest.Gzip(lower)
	linked, _ := ocitest.Docker(lower, upper)
	changed := func(name string) fstest.MapFS {
		out, _ := ocitest.Docker(lower, upper)
		data := bytes.Clone(out[name].Data)
		data[512] ^= 1
		out[name].Data = data
		return out
	}
	replaced := func(name, old, new string) fstest.MapFS {
		out, _ := ocitest.Docker(lower, upper)
		out[name].Data = bytes.ReplaceAll(out[name].Data, []byte(old), []byte(new))
		return out
	}
	without := func(name string) fstest.MapFS {
		out, _ := ocitest.Docker(lower, upper)
		delete(out, name)
		return out
	}
	config := m.Config.Digest[7:] + ".json"
	inTar, err := openTar(ocitest.Tar(append(ocitest.Files(without("1/layer.tar")), file("blobs/x", string(upper)), symlink("1/layer.tar", "../blobs/x"))...), oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := files{"manifests/a": "1", "manifests/c": "2"}
	amd := platform("amd64")
	for _, tt := range []struct {
		name      string
		fs        fs.FS
		want      oci.Want
		manifests [][]byte
		err       string
	}{
		{"by configuration", archive, oci.Want{Digest: m.Config.Digest}, nil, ""},
		{"by manifest", archive, oci.Want{Digest: ocitest.Digest(manifest)}, [][]byte{index, manifest}, ""},
		{"by index", archive, oci.Want{Digest: ocitest.Digest(index), Platform: amd}, [][]byte{manifest, index}, ""},
		{"compressed layer", packed, oci.Want{Digest: m.Config.Digest}, nil, ""},
		{"links in a tar", inTar, oci.Want{Digest: m.Config.Digest}, nil, ""},

		{"manifest not given", archive, oci.Want{Digest: ocitest.Digest(manifest)}, nil, `x is one without manifests, so that an image's digest shows only with a manifest from elsewhere: there is no image "` +
			ocitest.Digest(manifest) + `", but ` + m.Config.Digest + " (linux/amd64, registry.example/release:1)"},
		{"manifest below the index not given", archive, oci.Want{Digest: ocitest.Digest(index), Platform: amd}, [][]byte{index}, "file does not exist"},
		{"another platform", archive, oci.Want{Digest: ocitest.Digest(index), Platform: platform("s390x")}, [][]byte{index}, "there is no image for linux/s390x"},
		{"another image's manifest", archive, oci.Want{Digest: ocitest.Digest(bytes.ReplaceAll(manifest, []byte(m.Config.Digest), []byte(missing)))},
			[][]byte{bytes.ReplaceAll(manifest, []byte(m.Config.Digest), []byte(missing))}, "has the configuration of sha256:"},
		{"manifest without a configuration", archive, oci.Want{Digest: ocitest.Digest([]byte(`{"layers":[]}`))}, [][]byte{[]byte(`{"layers":[]}`)}, "names no configuration"},
		{"weak digest", archive, oci.Want{Digest: "md5:x"}, nil, "unsupported digest algorithm"},
		{"changed layer", changed("1/layer.tar"), oci.Want{Digest: m.Config.Digest}, nil, "layer 2: blob differs from its descriptor"},
		{"changed configuration", replaced(config, "amd64", "arm64"), oci.Want{Digest: m.Config.Digest}, nil, "there is no image"},
		{"no manifest.json", without("manifest.json"), oci.Want{Digest: m.Config.Digest}, nil, "x is not an archive of docker save"},
		{"broken manifest.json", replaced("manifest.json", "[", "{"), oci.Want{Digest: m.Config.Digest}, nil, "x: manifest.json: "},
		{"no configuration", without(config), oci.Want{Digest: m.Config.Digest}, nil, "file does not exist"},
		{"no layer", without("0/layer.tar"), oci.Want{Digest: m.Config.Digest}, nil, "x: layer 1: open 0/layer.tar: file does not exist"},
		{"a layer fewer", replaced("manifest.json", `,"1/layer.tar"`, ""), oci.Want{Digest: m.Config.Digest}, nil, "names 2 layers, but manifest.json 1"},
		{"layers in another order", replaced("manifest.json", `"0/layer.tar","1/layer.tar"`, `"1/layer.tar","0/layer.tar"`), oci.Want{Digest: m.Config.Digest}, nil, "layer 1: blob differs"},
		{"layer elsewhere", replaced("manifest.json", `"0/layer.tar"`, `"../layer.tar"`), oci.Want{Digest: m.Config.Digest}, nil, "open ../layer.tar: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys, err := (&oci.DockerArchive{FS: tt.fs, Name: "x"}).Unpack(t.Context(), tt.want, tt.manifests, kept, oci.Limits{})
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %s", err, tt.err)
				}
			case err != nil:
				t.Error(err)
			default:
				if diff := cmp.Diff(want, show(t, fsys)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	if !oci.HasDockerArchive(linked) || oci.HasLayout(linked) {
		t.Error("not seen as an archive")
	}
	// The configurations of images that are looked at before count too.
	several := replaced("manifest.json", "[{", `[{"Config":"other"},{`)
	several["other"] = &fstest.MapFile{Data: make([]byte, 100)}
	size := int64(100 + len(archive[config].Data))
	for left, fits := range map[int64]bool{size: true, size - 1: false} {
		_, err := (&oci.DockerArchive{FS: several, Name: "x"}).Unpack(t.Context(), oci.Want{Digest: m.Config.Digest}, nil, kept, oci.Limits{ManifestsSize: left})
		if passed := (*oci.LimitError)(nil); (err == nil) != fits || err != nil && (!errors.As(err, &passed) || passed.Limit != "ManifestsSize") {
			t.Errorf("%d bytes: %v", left, err)
		}
	}
	for field, limits := range map[string]oci.Limits{
		"Layers": {Layers: 1}, "LayerSize": {LayerSize: 100}, "TotalSize": {TotalSize: 3000}, "Entries": {Entries: 3}, "KeptSize": {KeptSize: 200}, "Manifests": {Manifests: 1}, "ManifestsSize": {ManifestsSize: 100},
	} {
		fsys := archive
		if field == "Manifests" {
			fsys = replaced("manifest.json", "[{", fmt.Sprintf(`[{"Config":%q,"Layers":[]},{`, config))
		}
		_, err := (&oci.DockerArchive{FS: fsys, Name: "x"}).Unpack(t.Context(), oci.Want{Digest: m.Config.Digest}, nil, kept, limits)
		passed := (*oci.LimitError)(nil)
		if !errors.As(err, &passed) || passed.Limit != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
