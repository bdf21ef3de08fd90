package oci_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

type entries = []ocitest.Entry

var (
	file, dir, symlink, hardLink = ocitest.File, ocitest.Dir, ocitest.Symlink, ocitest.HardLink
	kept                         = []string{"manifests", "deep/down"}
)

// unpack unpacks an image with some layers.
func unpack(t *testing.T, limits oci.Limits, layers ...entries) (fs.FS, error) {
	t.Helper()
	l := ocitest.NewLayout()
	var descriptors []oci.Descriptor
	for _, e := range layers {
		descriptors = append(descriptors, l.Layer(e...))
	}
	return oci.Unpack(t.Context(), in(l.FS), descriptors, kept, limits)
}

// show returns the names of a file system with what is in them; a link is
// followed.
func show(t checktest.T, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if entries, readErr := fs.ReadDir(fsys, name); readErr == nil && len(entries) == 0 {
				out[name] = "/"
			}
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		out[name] = string(data)
		if err != nil {
			out[name] = err.Error()
		}
		return nil
	})
	checktest.OK(t, err)
	return out
}

type files = map[string]string

func TestUnpack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		layers []entries
		want   files
	}{
		{"only what is asked for", []entries{{file("etc/passwd", "x"), dir("manifests/"), file("manifests/a", "1"), file("manifestsx/a", "1"), file("deep/down/b", "2"), file("deep/c", "3")}},
			files{"manifests/a": "1", "deep/down/b": "2"}},
		{"names are made plain", []entries{{file("./manifests//a", "1"), file("/manifests/./b", "2"), file("///manifests/c", "3")}},
			files{"manifests/a": "1", "manifests/b": "2", "manifests/c": "3"}},
		{"directories without entries of their own", []entries{{file("manifests/x/y/z", "1")}}, files{"manifests/x/y/z": "1"}},
		{"of two the later one", []entries{{file("manifests/a", "1"), file("manifests/a", "2")}}, files{"manifests/a": "2"}},
		{"of two layers the later one", []entries{{file("manifests/a", "1"), file("manifests/b", "1")}, {file("manifests/a", "2")}},
			files{"manifests/a": "2", "manifests/b": "1"}},
		{"a file in the place of a directory", []entries{{file("manifests/a/b", "1")}, {file("manifests/a", "2")}}, files{"manifests/a": "2"}},
		{"a directory in the place of a file", []entries{{file("manifests/a", "1")}, {dir("manifests/a"), file("manifests/a/b", "2")}}, files{"manifests/a/b": "2"}},
		{"a directory twice", []entries{{file("manifests/a", "1")}, {dir("manifests")}}, files{"manifests/a": "1"}},
		{"whiteout", []entries{{file("manifests/a", "1"), file("manifests/b", "1")}, {file("manifests/.wh.a", "")}}, files{"manifests/b": "1"}},
		{"whiteout of a directory", []entries{{file("manifests/a/b", "1")}, {file("manifests/.wh.a", "")}}, files{"manifests": "/"}},
		{"whiteout at the root", []entries{{file("manifests/a", "1")}, {file(".wh.manifests", "")}}, files{".": "/"}},
		{"whiteout on the way", []entries{{file("deep/down/a", "1")}, {file(".wh.deep", "")}}, files{".": "/"}},
		{"whiteout of nothing there", []entries{{file("manifests/.wh.a", "")}, {file("manifests/a", "1"), file("x/.wh.y", "")}}, files{"manifests/a": "1"}},
		{"whiteout before what replaces it", []entries{{file("manifests/a", "1")}, {file("manifests/.wh.a", ""), file("manifests/a", "2")}}, files{"manifests/a": "2"}},
		{"whiteout after what replaces it", []entries{{file("manifests/a", "1")}, {file("manifests/a", "2"), file("manifests/.wh.a", "")}}, files{"manifests/a": "2"}},
		{"whiteout of a directory that comes anew", []entries{{file("manifests/a/b", "1")}, {file("manifests/a/c", "2"), file("manifests/.wh.a", "")}}, files{"manifests/a/c": "2"}},
		{"whiteout below its own layer only", []entries{{file("manifests/a", "1"), file("manifests/.wh.a", "")}}, files{"manifests/a": "1"}},
		{"opaque", []entries{{file("manifests/a", "1"), file("manifests/d/b", "1")}, {file("manifests/c", "2"), file("manifests/.wh..wh..opq", "")}}, files{"manifests/c": "2"}},
		{"opaque first", []entries{{file("manifests/a", "1")}, {file("manifests/.wh..wh..opq", ""), file("manifests/c", "2")}}, files{"manifests/c": "2"}},
		{"opaque above", []entries{{file("manifests/a/b", "1")}, {file("manifests/a/c", "2"), file(".wh..wh..opq", "")}}, files{"manifests/a/c": "2"}},
		{"opaque twice", []entries{{file("manifests/a", "1")}, {file("manifests/.wh..wh..opq", ""), file("manifests/b", "2"), file("manifests/.wh..wh..opq", "")},
			{file("manifests/.wh..wh..opq", "")}, {file("manifests/c", "3")}}, files{"manifests/c": "3"}},
		{"names of file systems", []entries{{file("manifests/.wh..wh.plnk", "1"), file("manifests/.wh..wh.aufs", "")}, {file("manifests/a", "1")}}, files{"manifests/a": "1"}},
		{"hard link", []entries{{file("manifests/a", "1"), hardLink("manifests/b", "manifests/a"), hardLink("manifests/c", "/manifests/b")}},
			files{"manifests/a": "1", "manifests/b": "1", "manifests/c": "1"}},
		{"hard link to a lower layer", []entries{{file("manifests/a", "1")}, {hardLink("manifests/b", "./manifests/a"), file("manifests/.wh.a", "")}}, files{"manifests/b": "1"}},
		{"hard link is no name for its target", []entries{{file("manifests/a", "1"), hardLink("manifests/b", "manifests/a")}, {file("manifests/a", "2")}}, files{"manifests/a": "2", "manifests/b": "1"}},
		{"hard link elsewhere", []entries{{hardLink("usr/b", "usr/a")}, {file("manifests/a", "1")}}, files{"manifests/a": "1"}},
		{"symbolic links", []entries{{file("manifests/d/a", "1"), symlink("manifests/b", "d/a"), symlink("manifests/c", "/manifests/b"), symlink("manifests/d/e", "../d/./a"), symlink("deep/down", "../manifests/d")}},
			files{"manifests/d/a": "1", "manifests/b": "1", "manifests/c": "1", "manifests/d/e": "1", "deep/down": "read deep/down: is a directory"}},
		{"symbolic links to nothing that is here", []entries{{symlink("manifests/b", "/etc/passwd"), symlink("manifests/c", "d")}},
			files{"manifests/b": `open manifests/b: a link leads to "etc", which is not here: file does not exist`, "manifests/c": `open manifests/c: a link leads to "d", which is not here: file does not exist`}},
		{"symbolic links in a circle", []entries{{symlink("manifests/a", "b"), symlink("manifests/b", "a")}},
			files{"manifests/a": "open manifests/a: too many links", "manifests/b": "open manifests/b: too many links"}},
		{"symbolic links that lead out by another one", []entries{{file("manifests/x", ""), symlink("manifests/d", "/"), symlink("manifests/a", "d/../x")}},
			files{"manifests/x": "", "manifests/d": "read manifests/d: is a directory", "manifests/a": "open manifests/a: a link leads out of the tree"}},
		{"out of the tree elsewhere", []entries{{symlink("usr/a", "../../x"), {Header: tar.Header{Typeflag: tar.TypeChar, Name: "dev/null"}}}}, files{".": "/"}},
		{"global headers", []entries{{{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "manifests/g", PAXRecords: files{"comment": "x"}}}, file("manifests/a", "1")}}, files{"manifests/a": "1"}},
		{"nothing", nil, files{".": "/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := checktest.Get(unpack(t, oci.Limits{}, tt.layers...))(t)
			checktest.Same(t, tt.want, show(t, fsys))
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		name  string
		layer entries
		want  string
	}{
		{"name above the root", entries{file("../manifests/a", "")}, `layer 1: "../manifests/a": the name leads out of the tree`},
		{"name above the root, elsewhere", entries{file("usr/../../x", "")}, "leads out of the tree"},
		{"name that comes back", entries{file("x/../manifests/a", "")}, "leads out of the tree"},
		{"whiteout above the root", entries{file("../.wh.a", "")}, "leads out of the tree"},
		{"whiteout without a name", entries{file("manifests/.wh.", "")}, "a whiteout of nothing"},
		{"whiteout of the directory above", entries{file("manifests/.wh...", "")}, "a whiteout of nothing"},
		{"symbolic link above the root", entries{symlink("manifests/a", "../../etc/passwd")}, `"manifests/a": symbolic link to "../../etc/passwd" leads out of the tree`},
		{"symbolic link above the root and back", entries{symlink("manifests/a", "../../manifests/b")}, "leads out of the tree"},
		{"absolute symbolic link above the root", entries{symlink("manifests/a", "/../b")}, "leads out of the tree"},
		{"the paths themselves as links", entries{symlink("manifests", "..")}, "leads out of the tree"},
		{"symbolic link to nothing", entries{symlink("manifests/a", "\xff")}, "which is not a name"},
		{"long symbolic link", entries{symlink("manifests/a", long)}, "more than 4096 bytes in the name"},
		{"long name", entries{file("usr/"+long, "")}, "more than 4096 bytes in the name"},
		{"hard link out of the tree", entries{hardLink("manifests/a", "../a")}, `hard link to "../a": the name leads out of the tree`},
		{"hard link to what is not kept", entries{file("usr/a", ""), hardLink("manifests/a", "usr/a")}, `hard link to "usr/a", which is not a file among manifests, deep/down`},
		{"hard link to a directory", entries{dir("manifests/a"), hardLink("manifests/b", "manifests/a")}, "which is not a file"},
		{"hard link to itself", entries{hardLink("manifests/a", "manifests/a")}, "which is not a file"},
		{"device", entries{{Header: tar.Header{Typeflag: tar.TypeChar, Name: "manifests/a"}}}, `"manifests/a": neither a file nor a directory nor a link`},
		{"pipe", entries{{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "manifests/a"}}}, "neither a file nor a directory nor a link"},
		{"below a link", entries{dir("deep/down"), symlink("manifests", "deep/down"), file("manifests/a", "")}, `it lies below "manifests", which is not a directory`},
		{"below a file", entries{file("manifests/a", ""), file("manifests/a/b", "")}, `it lies below "manifests/a", which is not a directory`},
		{"directory below a file", entries{file("manifests/a", ""), dir("manifests/a/b")}, `it lies below "manifests/a"`},
		{"name that is not text", entries{file("manifests/\xff", "")}, "the name is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := unpack(t, oci.Limits{}, tt.layer)
			refused(t, err, "", tt.want)
		})
	}
}

// A file with holes is kept as it is read.
func TestUnpackSparse(t *testing.T) {
	l := ocitest.NewLayout()
	fsys := checktest.Get(oci.Unpack(t.Context(), in(l.FS),
		[]oci.Descriptor{l.Blob(ocitest.TypeLayer, sparse("manifests/a"))}, kept, oci.Limits{}))(t)
	checktest.Same(t, files{"manifests/a": strings.Repeat("\x00", 9) + "x"}, show(t, fsys))
}

func TestUnpackLimits(t *testing.T) {
	layer := entries{file("manifests/a", strings.Repeat("a", 1000)), file("usr/b", strings.Repeat("b", 100_000))}
	checktest.OK(t, checktest.Err(unpack(t, oci.Limits{}, layer, layer)))
	for field, limits := range map[string]oci.Limits{
		"Layers": {Layers: 1}, "LayerSize": {LayerSize: 100}, "TotalSize": {TotalSize: 150_000}, "Entries": {Entries: 3}, "FileSize": {FileSize: 999}, "KeptSize": {KeptSize: 2000},
	} {
		_, err := unpack(t, limits, layer, layer)
		refused(t, err, field, "")
	}
	checktest.Good(t, checktest.Err(unpack(t, oci.Limits{FileSize: 1000, Layers: 2, Entries: 4}, layer, layer)))
	checktest.ErrorHas(t, "Entries is negative", checktest.Err(unpack(t, oci.Limits{Entries: -1})))
}

// A layer that is not what its descriptor names is refused, wherever it differs.
func TestUnpackVerifies(t *testing.T) {
	plain := ocitest.Tar(file("manifests/a", "1"))
	packed := ocitest.Gzip(plain)
	flip := func(data []byte, at int) []byte {
		out := append([]byte(nil), data...)
		out[at] ^= 1
		return out
	}
	for _, tt := range []struct {
		name      string
		mediaType string
		named     []byte
		stored    []byte
		want      string
	}{
		{"as named", ocitest.TypeLayerGzip, packed, packed, ""},
		{"not compressed", ocitest.TypeLayer, plain, plain, ""},
		{"Docker's type", "application/vnd.docker.image.rootfs.diff.tar.gzip", packed, packed, ""},
		{"first byte", ocitest.TypeLayerGzip, packed, flip(packed, 0), "blob differs from its descriptor"},
		{"file's content", ocitest.TypeLayer, plain, flip(plain, 512), "blob differs from its descriptor"},
		{"file's name", ocitest.TypeLayer, plain, flip(plain, 0), "blob differs from its descriptor"},
		{"time of compression", ocitest.TypeLayerGzip, packed, flip(packed, 5), "blob differs from its descriptor"},
		{"after the end of the tar", ocitest.TypeLayer, plain, flip(plain, len(plain)-1), "blob differs from its descriptor"},
		{"cut off", ocitest.TypeLayer, plain, plain[:len(plain)-1], "blob differs from its descriptor"},
		{"cut off, compressed", ocitest.TypeLayerGzip, packed, packed[:len(packed)-9], "blob differs from its descriptor"},
		{"longer", ocitest.TypeLayer, plain, append(plain, 0), "it has more than"},
		{"longer, compressed", ocitest.TypeLayerGzip, packed, append(packed, ocitest.Gzip(nil)...), "it has more than"},
		{"not compressed, but called so", ocitest.TypeLayerGzip, plain, plain, "gzip: invalid header"},
		{"no tar", ocitest.TypeLayer, []byte(strings.Repeat("x", 512)), []byte(strings.Repeat("x", 512)), "tar: archive/tar: invalid tar header"},
		{"zstd", "application/vnd.oci.image.layer.v1.tar+zstd", packed, packed, `layer 1: the media type "application/vnd.oci.image.layer.v1.tar+zstd" is not supported`},
		{"encrypted", ocitest.TypeLayerGzip + "+encrypted", packed, packed, `+encrypted" is not supported`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ocitest.NewLayout()
			d := l.Blob(tt.mediaType, tt.named)
			l.FS[oci.BlobPath(d.Digest)].Data = tt.stored
			fsys, err := oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d}, kept, oci.Limits{})
			switch {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || fsys != nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %s", err, tt.want)
			case tt.want == "":
				checktest.Same(t, files{"manifests/a": "1"}, show(t, fsys))
			}
		})
	}
	t.Run("sha512", func(t *testing.T) {
		l := ocitest.NewLayout()
		d := l.Blob(ocitest.TypeLayer, plain)
		d.Digest = "sha512:" + strings.Repeat("0", 128)
		l.FS[oci.BlobPath(d.Digest)] = &fstest.MapFile{Data: plain}
		_, err := oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d}, kept, oci.Limits{})
		mismatch := (*oci.DigestError)(nil)
		checktest.FatalIf(t, !errors.As(err, &mismatch), "%v", err)
		d.Digest = mismatch.Got
		l.FS[oci.BlobPath(d.Digest)] = &fstest.MapFile{Data: plain}
		checktest.Good(t, checktest.Err(oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{d}, kept, oci.Limits{})))
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := ocitest.NewLayout()
	d := l.Blob(ocitest.TypeLayer, plain)
	checktest.ErrorIs(t, context.Canceled, checktest.Err(
		oci.Unpack(ctx, in(l.FS), []oci.Descriptor{d}, kept, oci.Limits{})))
}

// The largest limits that can be written are no limits.
func TestNoLimits(t *testing.T) {
	l := ocitest.NewLayout()
	image := l.Image("linux/amd64", l.Layer(file("manifests/a", "1"), file("usr/b", "2")))
	none := oci.Limits{ManifestSize: math.MaxInt64, ManifestsSize: math.MaxInt64, Manifests: math.MaxInt, Depth: math.MaxInt, Layers: math.MaxInt,
		LayerSize: math.MaxInt64, TotalSize: math.MaxInt64, Entries: math.MaxInt, FileSize: math.MaxInt64, KeptSize: math.MaxInt64}
	archive, err := openTar(ocitest.Tar(ocitest.Files(l.Write(l.Index(image)))...), none)
	checktest.OK(t, err)
	i, err := oci.Find(t.Context(), in(archive), oci.Want{Digest: image.Digest}, none)
	checktest.OK(t, err)
	fsys, err := oci.Unpack(t.Context(), in(archive), i.Layers, kept, none)
	checktest.OK(t, err)
	checktest.Same(t, files{"manifests/a": "1"}, show(t, fsys))
	// Sizes that are told, and not so.
	huge := ocitest.Tar(file("manifests/a", "1"))
	copy(huge[124:136], "\x80\x00\x00\x00\x03\xff\xff\xff\xff\xff\xff\xff") // almost 2^58 bytes, in base 256
	sum := 0
	copy(huge[148:156], "        ")
	for _, b := range huge[:512] {
		sum += int(b)
	}
	copy(huge[148:156], fmt.Sprintf("%06o\x00 ", sum))
	for want, limits := range map[string]oci.Limits{"unexpected EOF": none, "limit FileSize": {}} {
		liar := l.Blob(ocitest.TypeLayer, huge)
		_, err = oci.Unpack(t.Context(), in(l.FS), []oci.Descriptor{liar}, kept, limits)
		checktest.ErrorHas(t, want, err)
	}
	liar := l.Image("linux/amd64", l.Layer())
	liar.Size = math.MaxInt64
	_, err = oci.Find(t.Context(), in(l.FS), oci.Want{Digest: l.Index(liar).Digest}, none)
	refused(t, err, "ManifestSize", "")
}

// A little that is compressed becomes much: a limit holds before that is read.
func TestUnpackBomb(t *testing.T) {
	_, err := unpack(t, oci.Limits{TotalSize: 1 << 20}, entries{file("usr/a", strings.Repeat("\x00", 32<<20))})
	refused(t, err, "TotalSize", "")
}

func TestUnpackedFS(t *testing.T) {
	fsys := checktest.Get(unpack(t, oci.Limits{},
		entries{file("manifests/a",
			"1"), dir("manifests/d"), file("manifests/d/b", "22"), symlink("manifests/l", "d/b"), file("deep/down/c", "")}))(t)
	checktest.Good(t, fstest.TestFS(fsys, "manifests/a", "manifests/d/b", "manifests/l", "deep/down/c"))
	data, _ := fs.ReadFile(fsys, "manifests/a")
	data[0] = 'x'
	again, _ := fs.ReadFile(fsys, "manifests/a")
	checktest.FailIf(t, string(again) != "1", "what ReadFile returned is shared")
}
