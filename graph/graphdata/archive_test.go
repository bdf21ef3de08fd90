package graphdata_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// archiveOf returns an archive of entries; the content of a file is its name where
// no other is given.
func archiveOf(t *testing.T, entries ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for _, h := range entries {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text = h.Name
		}
		h.Size = int64(len(text))
		checktest.OK(t, archive.WriteHeader(&h))
		checktest.Must(archive.Write([]byte(text)))
	}
	checktest.OK(t, archive.Close())
	checktest.OK(t, zipped.Close())
	return &b
}

func regular(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

func TestOpenArchive(t *testing.T) {
	commit := tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "0123"}}
	dir := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }
	link := tar.Header{Typeflag: tar.TypeSymlink, Name: "channels/a.yaml", Linkname: "b.yaml"}
	for _, c := range []struct {
		name    string
		entries []tar.Header
		files   []string // that it has
		fault   string
	}{
		{"published", []tar.Header{dir("./"), regular("./version"), dir("./channels/"), regular("./channels/a.yaml")}, []string{"channels/a.yaml", "version"}, ""},
		{"repository", []tar.Header{commit, dir("x-master/"), regular("x-master/version"), regular("x-master/channels/a.yaml")}, []string{"channels/a.yaml", "version"}, ""},
		{"directory without a version", []tar.Header{regular("x/a"), regular("x/y/version")}, []string{"x/a", "x/y/version"}, ""},
		{"two directories", []tar.Header{regular("x/version"), regular("y/version")}, []string{"x/version", "y/version"}, ""},
		{"nothing", nil, nil, ""},
		{"link", []tar.Header{link}, nil, `"channels/a.yaml": is neither a regular file nor a directory`},
		{"above", []tar.Header{regular("../version")}, nil, `"../version": lies outside of the archive`},
		{"below and above", []tar.Header{regular("a/../../version")}, nil, `"a/../../version": lies outside of the archive`},
		{"down and up", []tar.Header{regular("a/../version")}, nil, `"a/../version": lies outside of the archive`},
		{"no UTF-8", []tar.Header{{Typeflag: tar.TypeReg, Name: "a\xff", Format: tar.FormatPAX}}, nil, `"a\xff": lies outside of the archive`},
		{"absolute", []tar.Header{regular("/version")}, nil, `"/version": lies outside of the archive`},
		{"twice", []tar.Header{regular("version"), regular("./version")}, nil, `"./version": is there twice`},
		{"file and directory", []tar.Header{regular("a"), regular("a/b")}, nil, `"a": is a file and a directory`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, err := graphdata.OpenArchive(archiveOf(t, c.entries...), graphdata.Limits{})
			if c.fault != "" {
				if err == nil || err.Error() != c.fault {
					t.Fatalf("%v, want %s", err, c.fault)
				}
				return
			}
			checktest.OK(t, err)
			checktest.Good(t, fstest.TestFS(fsys, c.files...))
			var files []string
			err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					files = append(files, name)
				}
				return err
			})
			if diff := cmp.Diff(c.files, files); diff != "" || err != nil {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
		})
	}
	if _, err := graphdata.OpenArchive(bytes.NewReader([]byte("no archive")), graphdata.Limits{}); err == nil {
		t.Error("what is no archive opens")
	}
	cut := archiveOf(t, regular("version"))
	if _, err := graphdata.OpenArchive(bytes.NewReader(cut.Bytes()[:cut.Len()/2]), graphdata.Limits{}); err == nil {
		t.Error("half an archive opens")
	}
	if _, err := graphdata.OpenArchive(cut, graphdata.Limits{MaxExpanded: -1}); err == nil {
		t.Error("a negative limit is accepted")
	}
}

func TestOpenArchiveNotCompressed(t *testing.T) {
	_, err := graphdata.OpenArchive(strings.NewReader("\xfd7zXZ\x00, as a .tar.xz begins"), graphdata.Limits{})
	checktest.ErrorIs(t, gzip.ErrHeader, err)
	checktest.ErrorHas(t, "not a .tar.gz", err)
}

// TestOpenArchiveToItsEnd: no byte of an archive can change unseen, and none can
// follow it.
func TestOpenArchiveToItsEnd(t *testing.T) {
	open := func(data []byte) error {
		_, err := graphdata.OpenArchive(bytes.NewReader(data), graphdata.Limits{})
		return err
	}
	text := strings.Repeat("name: stable-4.1\n", 50)
	tarred, zipped := &bytes.Buffer{}, &bytes.Buffer{}
	archive := tar.NewWriter(tarred)
	checktest.OK(t, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "version", Size: int64(len(text))}))
	checktest.Must(archive.Write([]byte(text)))
	checktest.OK(t, archive.Close())
	zip := func(data []byte) []byte {
		zipped.Reset()
		z := checktest.Must(gzip.NewWriterLevel(zipped, gzip.NoCompression))
		checktest.Must(z.Write(data))
		checktest.OK(t, z.Close())
		return slices.Clone(zipped.Bytes())
	}
	good := zip(tarred.Bytes())
	checktest.OK(t, open(good))
	if err := open(zip(append(slices.Clone(tarred.Bytes()), make([]byte, 10240)...))); err != nil {
		t.Errorf("with blocks of zeros at the end, as tar writes them: %v", err)
	}
	const head = 10 // time, flags and system of a gzip header have no checksum
	for at := head; at < len(good); at++ {
		bad := slices.Clone(good)
		bad[at] ^= 1
		checktest.Fails(t, open(bad), "byte %d of %d can change", at, len(good))
	}
	for name, data := range map[string][]byte{
		"without its checksum":  good[:len(good)-8],
		"with bytes behind it":  append(slices.Clone(good), "more"...),
		"with data in the file": zip(append(slices.Clone(tarred.Bytes()), "more"...)),
		"with another archive":  append(slices.Clone(good), good...),
	} {
		checktest.Fails(t, open(data), "an archive %s opens", name)
	}
}

// TestOpenArchiveNames: long names and deep directories are refused before they
// cost anything, and errors are short.
func TestOpenArchiveNames(t *testing.T) {
	for name, path := range map[string]string{
		"long": strings.Repeat("a", 5000),
		"deep": strings.Repeat("a/", 500_000) + "b",
	} {
		_, err := graphdata.OpenArchive(archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: path, Format: tar.FormatPAX}), graphdata.Limits{})
		if err == nil || !strings.Contains(err.Error(), "the name has more than 4096 bytes") || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v", name, err)
		}
	}
	var many []tar.Header
	for n := range 100 {
		many = append(many, regular(fmt.Sprintf("%d/", n)+strings.Repeat("a/", 200)+"b"))
	}
	_, err := graphdata.OpenArchive(archiveOf(t, many...), graphdata.Limits{MaxArchiveEntries: 1000})
	if limit := (*graphdata.LimitError)(nil); !errors.As(err, &limit) || limit.Max != 1000 {
		t.Errorf("20,000 directories: %v", err)
	}
}

// TestWriteArchive: what is published, always in the same bytes.
func TestWriteArchive(t *testing.T) {
	fsys := treeOf(map[string]string{
		"LICENSE": "Apache-2.0\n", "blocked-edges/a.yaml": smallDrop, "channels/.b.swp": "", "channels/README.md": "",
		"internal-channels/fast.yaml": "name: fast\nversions: []\n", "build-suggestions/4.2.yaml": "", "channels/.x/c.yaml": "",
	})
	var first, second bytes.Buffer
	checktest.OK(t, graphdata.WriteArchive(&first, fsys))
	for _, f := range fsys {
		f.ModTime, f.Mode = time.Unix(1e9, 0), 0o600
	}
	if err := graphdata.WriteArchive(&second, fsys); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("another archive: %v", err)
	}
	zipped := checktest.Must(gzip.NewReader(&first))
	var names []string
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
		if h.Mode != 0o644 || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%+v", h)
		}
	}
	want := []string{"./LICENSE", "./blocked-edges/a.yaml", "./channels/stable-4.1.yaml", "./raw/metadata.json", "./version"}
	checktest.Same(t, want, names)
	unread := treeOf(map[string]string{"blocked-edges/b.yml": smallDrop, "blocked-edges/c": smallDrop, "channels/x/c.yaml": smallChannel})
	const want2 = "blocked-edges/b.yml: has an invalid extension \"yml\"\nblocked-edges/c: is missing an extension\nchannels/x: is a directory, whose files are not read"
	if err := graphdata.WriteArchive(&second, unread); err == nil || err.Error() != want2 {
		t.Errorf("a tree with files that nobody reads: %v", err)
	}
	delete(fsys, "version")
	checktest.Fails(t, graphdata.WriteArchive(&first, fsys), "a tree without a version is archived")
}

// TestRealArchive: the real tree is the same from its archive.
func TestRealArchive(t *testing.T) {
	var b bytes.Buffer
	checktest.OK(t, graphdata.WriteArchive(&b, realTree(t)))
	archived := checktest.Must(graphdata.OpenArchive(&b, graphdata.Limits{}))
	got := checktest.Must(graphdata.Load(t.Context(), archived, graphdata.LoadOptions{}))
	want := checktest.Must(graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{}))
	want.Suggestions = nil // not published
	checktest.Same(t, want, got)
}

// FuzzOpenArchive: what opens is a file system that keeps its promises.
func FuzzOpenArchive(f *testing.F) {
	var b bytes.Buffer
	checktest.OK(f, graphdata.WriteArchive(&b, treeOf(nil)))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys, err := graphdata.OpenArchive(bytes.NewReader(data), graphdata.Limits{MaxExpanded: 1 << 20, MaxArchiveEntries: 20})
		if err != nil {
			return
		}
		checktest.OK(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = fs.ReadFile(fsys, name)
			}
			return err
		}))
	})
}
