package dump_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// pack makes an archive of a tree, its files in an order of their own.
func pack(t testing.TB, tree fstest.MapFS, zip, backwards bool) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	names := slices.Sorted(maps.Keys(tree))
	if backwards {
		slices.Reverse(names)
	}
	for _, name := range names {
		f := tree[name]
		h := &tar.Header{Name: "./" + name, Mode: 0o644, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
		switch {
		case f.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case f.Mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, string(f.Data), 0
		}
		checktest.OK(t, out.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			checktest.Must(out.Write(f.Data))
		}
	}
	checktest.OK(t, out.Close())
	if !zip {
		return buf.Bytes()
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	checktest.Must(w.Write(buf.Bytes()))
	checktest.OK(t, w.Close())
	return zipped.Bytes()
}

// same checks that archives of a tree give the same recording.
func same(t *testing.T, tree fstest.MapFS, o dump.Options, r *dump.Recording, want string) {
	t.Helper()
	for _, f := range tree {
		if f.Mode&fs.ModeSymlink != 0 {
			return // which archives do not follow
		}
	}
	for _, zip := range []bool{false, true} {
		for _, backwards := range []bool{false, true} {
			other := checktest.Get(dump.OpenArchive(t.Context(), bytes.NewReader(pack(t, tree, zip, backwards)), o))(t)
			check(t, other, want)
			var lines []string
			for _, p := range r.Problems() {
				lines = append(lines, p.String())
			}
			checkProblems(t, other, strings.Join(lines, "\n"))
			checktest.FailIf(t, !other.Time().Equal(r.Time()),
				"time %s of the archive, %s of the tree", other.Time(), r.Time())
		}
	}
}

// entry is one entry of an archive that is made by hand.
type entry struct {
	header tar.Header
	data   string
}

func packed(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	for _, e := range entries {
		h := e.header
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode, h.Size = 0o644, int64(len(e.data))
		}
		checktest.OK(t, out.WriteHeader(&h))
		checktest.Must(out.Write([]byte(e.data)))
	}
	checktest.OK(t, out.Close())
	return buf.Bytes()
}

func file(name, data string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg}, data}
}

func nodeNamed(name string) string {
	return "{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}\n"
}

func TestArchiveEntries(t *testing.T) {
	r := checktest.Must(dump.OpenArchive(t.Context(), bytes.NewReader(packed(t,
		entry{tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}, ""},
		file("mg/../../etc/cluster-scoped-resources/core/nodes/up.yaml", nodeNamed("up")),
		file("/abs/cluster-scoped-resources/core/nodes/abs.yaml", nodeNamed("abs")),
		entry{tar.Header{Name: "mg/cluster-scoped-resources/core/nodes/link.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""},
		entry{tar.Header{Name: "mg/hard.yaml", Typeflag: tar.TypeLink, Linkname: "a"}, ""},
		entry{tar.Header{Name: "mg/fifo", Typeflag: tar.TypeFifo}, ""},
		entry{tar.Header{Name: "mg/namespaces/", Typeflag: tar.TypeDir}, ""},
		file("mg//cluster-scoped-resources/./core/nodes/n1.yaml", nodeNamed("n1")),
		file("mg/cluster-scoped-resources/core/nodes/n2.yaml", nodeNamed("old")),
		file("mg/cluster-scoped-resources/core/nodes/n2.yaml", nodeNamed("n2")),
	)), dump.Options{Whole: resources("nodes")}))
	check(t, r, "list v1 Node: n1 n2 missing[]...") // a link may have been a Node
	checkProblems(t, r, `
/abs/cluster-scoped-resources/core/nodes/abs.yaml: an absolute path
mg/../../etc/cluster-scoped-resources/core/nodes/up.yaml: a path with ..
mg/cluster-scoped-resources/core/nodes/link.yaml: not a regular file
mg/fifo: not a regular file
mg/hard.yaml: not a regular file
`)
}

// Links among logs say nothing about objects.
func TestArchiveWithLinksAmongLogs(t *testing.T) {
	r := checktest.Must(dump.OpenArchive(t.Context(), bytes.NewReader(packed(t,
		file("must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1")),
		entry{tar.Header{Name: "must-gather.local.1/x/host_service_logs/a", Typeflag: tar.TypeSymlink, Linkname: "b"}, ""},
		entry{tar.Header{Name: "must-gather.local.1/x/namespaces/a/pods/p/c/c/logs/a.log", Typeflag: tar.TypeSymlink, Linkname: "b"}, ""},
	)), dump.Options{}))
	check(t, r, "get v1 Node n2: NotFound")
	checktest.Equal(t, 2, len(r.Problems()), "problems %v", r.Problems())
}

// A checksum that is wrong may be that of any file.
func TestArchiveWithAWrongChecksum(t *testing.T) {
	zip := zipped(t, string(packed(t, file("must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1")))))
	zip[len(zip)-6] ^= 1
	r := checktest.Must(dump.OpenArchive(t.Context(), bytes.NewReader(zip), dump.Options{}))
	check(t, r, "get v1 Node n1: found\nget v1 Node n2: NotCollected")
	checkProblems(t, r, "the archive cannot be read to its end: gzip: invalid checksum")
}

// An empty folder makes a recording too, wherever its entry stands.
func TestArchiveWithAnEmptyFolder(t *testing.T) {
	for _, backwards := range []bool{false, true} {
		entries := []entry{
			file("mg/a.yaml", nodeNamed("not-read")),
			{tar.Header{Name: "mg/namespaces/", Typeflag: tar.TypeDir}, ""},
			file("mg/inner/cluster-scoped-resources/core/nodes/n.yaml", nodeNamed("not-read-either")),
			file("mg/cluster-scoped-resources/core/nodes/n.yaml", nodeNamed("n1")),
		}
		if backwards {
			slices.Reverse(entries)
		}
		r := checktest.Get(dump.OpenArchive(t.Context(), bytes.NewReader(packed(t, entries...)), dump.Options{}))(t)
		check(t, r, "list v1 Node: n1 missing[]...")
	}
}

// Of an archive that is cut off, what came before the cut is there; nothing that
// may have come behind it is said to be absent.
func TestArchiveThatIsCutOff(t *testing.T) {
	lists := "{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: c, namespace: a}}]}\n"
	whole := packed(t,
		file("must-gather.local.1/x/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1")),
		file("must-gather.local.1/x/namespaces/a/core/configmaps.yaml", lists),
		file("must-gather.local.1/x/cluster-scoped-resources/core/nodes/n2.yaml", nodeNamed("n2")+"# "+strings.Repeat("x", 5000)),
	)
	r := checktest.Get(dump.OpenArchive(t.Context(), bytes.NewReader(whole), dump.Options{}))(t)
	check(t, r, "get v1 Node n3: NotFound\nlist v1 ConfigMap a: a/c")
	r = checktest.Get(dump.OpenArchive(t.Context(), bytes.NewReader(whole[:4000]), dump.Options{}))(t)
	check(t, r, "list v1 Node: n1 missing[]...\nget v1 Node n2: NotCollected\nlist v1 ConfigMap a: a/c")
	if p := r.Problems(); len(p) == 0 || !strings.Contains(p[0].String(), "the archive cannot be read to its end") {
		t.Errorf("problems %v", p)
	}
	for n := range len(whole) { // nothing panics
		if n%97 == 0 {
			_, _ = dump.OpenArchive(t.Context(), bytes.NewReader(whole[:n]), dump.Options{})
		}
	}
}

// A name as long as a header can have costs no more than reading it, and errors
// do not repeat it.
func TestArchiveNames(t *testing.T) {
	deep := entry{tar.Header{Name: "mg/" + strings.Repeat("a/", 500_000) + "b.yaml", Typeflag: tar.TypeReg, Format: tar.FormatPAX}, "x"}
	levels := file("mg/"+strings.Repeat("a/", 300)+"b.yaml", "x")
	long := file("mg/"+strings.Repeat("a", 5000)+"/version", "x")
	archive := zipped(t, string(packed(t, deep, levels, long, file("mg/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1")))))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := dump.OpenArchive(t.Context(), bytes.NewReader(archive), dump.Options{})
	runtime.ReadMemStats(&after)
	checktest.OK(t, err)
	mib := (after.TotalAlloc - before.TotalAlloc) >> 20
	checktest.FailIf(t, mib > 32, "an archive of %d bytes cost %d MiB", len(archive), mib)
	check(t, r, "list v1 Node: n1 missing[]...")
	var texts []string
	for _, p := range r.Problems() {
		checktest.FailIf(t, len(p.String()) > 1000, "a problem has %d bytes", len(p.String()))
		texts = append(texts, p.Err.Error())
	}
	slices.Sort(texts)
	want := []string{"the name has more than 256 levels", "the name has more than 4096 bytes", "the name has more than 4096 bytes"}
	checktest.Same(t, want, texts)
}

// What is passed over is decompressed, so it counts; the bytes of an archive
// that is not compressed are the caller's own.
func TestArchiveLimits(t *testing.T) {
	const mib = 1 << 20
	node := file("mg/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1"))
	log := func(n int) entry { return file("mg/namespaces/a/pods/p/p/logs/a.log", strings.Repeat("x", n)) }
	text := make([]byte, 2*mib) // like that of a log: a hundred words
	words := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(text); i += 8 {
		copy(text[i:], fmt.Sprintf(" word%03d", words.IntN(100)))
	}
	var many, gzips []entry
	comment := string(zipped(t, strings.Repeat("#", mib/16)))
	for n := range 300 {
		many = append(many, file(fmt.Sprintf("mg/x%d/namespaces/a", n), ""))
		gzips = append(gzips, file(fmt.Sprintf("before/%d.yaml.gz", n), comment))
	}
	gzips = append(gzips, node)
	for _, c := range []struct {
		name    string
		archive []byte
		o       dump.Options
		want    string
	}{
		{"bomb", zipped(t, string(packed(t, node, log(8*mib)))), dump.Options{MaxBytes: mib}, "MaxBytes"},
		{"bomb behind the end", zipped(t, string(append(packed(t, node), make([]byte, 8*mib)...))), dump.Options{MaxBytes: mib}, "MaxBytes"},
		{"small bomb", zipped(t, string(packed(t, node, log(8*mib)))), dump.Options{}, ""},
		{"logs", zipped(t, string(packed(t, node, file("mg/a.log", string(text))))), dump.Options{MaxBytes: mib}, ""},
		{"not compressed", packed(t, node, log(8*mib)), dump.Options{MaxBytes: mib}, ""},
		{"folders", packed(t, many...), dump.Options{MaxFiles: 100}, "MaxFiles"},
		{"entries", packed(t, append([]entry{node}, slices.Repeat([]entry{file("mg/a.log", "")}, 1100)...)...), dump.Options{MaxFiles: 100}, "MaxFiles"},
		{"files that are not read after all", packed(t, gzips...), dump.Options{MaxFiles: 100, MaxBytes: mib}, ""},
		{"files that are read", packed(t, gzips[:299]...), dump.Options{MaxBytes: mib}, "MaxBytes"},
		{"too many files", packed(t, gzips[:299]...), dump.Options{MaxFiles: 100}, "MaxFiles"},
	} {
		r, err := dump.OpenArchive(t.Context(), bytes.NewReader(c.archive), c.o)
		got := ""
		var limit *clusterapi.LimitError
		if errors.As(err, &limit) {
			got = limit.Limit
		} else if err != nil {
			got = err.Error()
		}
		checktest.Equal(t, c.want, got, "%s: %v", c.name, err)
		if c.want == "" && err == nil {
			check(t, r, "get v1 Node n1: found")
		}
	}
}

// TestArchivesInFolders: the only archive of a folder is opened, and other formats are
// refused by their names.
func TestArchivesInFolders(t *testing.T) {
	archive := string(packed(t, file("x/cluster-scoped-resources/core/nodes/n1.yaml", nodeNamed("n1"))))
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // the error; empty: the archive is read
	}{
		{"one", map[string]string{"must-gather.tar": archive}, ""},
		{"one below other files", map[string]string{"a/b/c.tgz": archive, "a/notes.txt": "x", "timestamp": "x"}, ""},
		{"two", map[string]string{"a.tar": archive, "b/c.tar.gz": archive}, "2 archives, of which one is to be opened: a.tar, b/c.tar.gz"},
		{".zip", map[string]string{"a.zip": "PK\x03\x04..."}, "a.zip: it is a .zip archive, which is not read: only .tar and .tar.gz are"},
		{".tar.xz", map[string]string{"mg.tar.xz": "\xfd7zXZ\x00..."}, "mg.tar.xz: it is a .tar.xz archive"},
		{".tar.bz2", map[string]string{"mg.tar.bz2": "BZh91AY&SY..."}, "mg.tar.bz2: it is a .tar.bz2 archive"},
		{"another name", map[string]string{"mg.tar": "\xfd7zXZ\x00..."}, "mg.tar: it is a .tar.xz archive"},
		{"no archive", map[string]string{"a.tar": "x"}, "no object could be read: the archive cannot be read to its end"},
	} {
		r, err := dump.Open(t.Context(), asFS(tt.files), dump.Options{})
		if tt.want != "" {
			checktest.ErrorHas(t, tt.want, err)
			continue
		}
		checktest.OK(t, err)
		check(t, r, "get v1 Node n1: found")
	}
	// A manifest says more than an archive next to it.
	check(t, mustOpen(t, asFS(map[string]string{"a.tar": archive, "n2.yaml": nodeNamed("n2")}), dump.Options{}), "get v1 Node n1: NotFound\nget v1 Node n2: found")
	checktest.ErrorHas(t, "it is a .zip archive", checktest.Err(dump.OpenArchive(t.Context(), strings.NewReader("PK\x03\x04"), dump.Options{})))
}
