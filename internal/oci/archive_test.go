package oci_test

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
)

func openTar(data []byte, l oci.Limits) (fs.FS, error) {
	return oci.OpenTar(bytes.NewReader(data), int64(len(data)), l)
}

func TestTarFile(t *testing.T) {
	long := strings.Repeat("n", 300)
	archive := checktest.Get(openTar(ocitest.Tar(dir("d/"), file("d/a", "old"), file("./d/a", "1"), file("/b", "22"),
		file(long, "333"),
		symlink("d/l", "../b"), symlink("m", "/d/l"), hardLink("h", "b"), symlink("gone", "x"), symlink("r", "s"), symlink("s", "r"),
		file("was", "x"), ocitest.Entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "was"}}), oci.Limits{}))(t)
	for name, want := range map[string]string{"d/a": "1", "b": "22", long: "333", "d/l": "22", "m": "22", "h": "22"} {
		data, err := fs.ReadFile(archive, name)
		checktest.FailIf(t, err != nil || string(data) != want, "%s: %q, %v", name, data, err)
		info, err := fs.Stat(archive, name)
		checktest.FailIf(t, err != nil || info.Size() != int64(len(want)) || !info.Mode().IsRegular(),
			"%s: %v, %v", name, info, err)
	}
	if info, err := fs.Stat(archive, "was"); err != nil || info.Mode().IsRegular() {
		t.Errorf("a pipe in the place of a file: %v, %v", info, err)
	}
	for name, want := range map[string]string{
		"c": "file does not exist", "gone": `a link leads to "x", which is not here`, "r": "too many links", "../b": "invalid argument",
	} {
		checktest.ErrorHas(t, want, checktest.Err(archive.Open(name)))
		checktest.ErrorHas(t, want, checktest.Err(fs.Stat(archive, name)))
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
		_, err := openTar(tt.data, oci.Limits{})
		refused(t, err, "", tt.want)
	}
	many := ocitest.Tar(file("a", ""), file("b", ""), file("c", ""))
	for field, limits := range map[string]oci.Limits{"Entries": {Entries: 2}, "KeptSize": {KeptSize: 600}} {
		_, err := openTar(many, limits)
		refused(t, err, field, "")
	}
	_, err := openTar(many, oci.Limits{Entries: -2})
	refused(t, err, "", "Entries is negative")
}
