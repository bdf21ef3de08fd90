package graphdata_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// loading returns a run that loads a tree past a limit.
func loading(fsys fs.FS, limit string, most int64) func(*testing.T) int64 {
	return func(t *testing.T) int64 {
		_, err := graphdata.Load(t.Context(), fsys, graphdata.LoadOptions{Compat: strings.Contains(limit, "aliases")})
		graphtest.WantLimit(t, err, limit, most)
		return 0
	}
}

func TestLimits(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine reads a lot: nothing that a race detector looks for")
	}
	const mib = 1 << 20
	files, bytes, entries := treeOf(nil), treeOf(nil), treeOf(nil)
	for i := range 20_000 {
		files[fmt.Sprintf("channels/%05d.txt", i)] = &fstest.MapFile{}
	}
	// What is large is one long comment, which costs less than many versions.
	long := &fstest.MapFile{Data: []byte(smallChannel + "#" + strings.Repeat("x", mib-len(smallChannel)-1))}
	for i := range 33 {
		bytes[fmt.Sprintf("channels/%05d.yaml", i)] = long
	}
	list := &fstest.MapFile{Data: []byte("name: a-4.1\nversions: [" + strings.Repeat("1.1.1,", 35_000) + "]")}
	for i := range 6 {
		entries[fmt.Sprintf("channels/%05d.yaml", i)] = list
	}
	wide := treeOf(map[string]string{"channels/a.yaml": smallChannel + "#" + strings.Repeat("x", mib)})
	deep := treeOf(map[string]string{"channels/a.yaml": "name: a\nversions: " + strings.Repeat("[", 17) + strings.Repeat("]", 17)})
	expression := treeOf(map[string]string{"blocked-edges/a.yaml": "to: 4.1.0\nfrom: " + strings.Repeat("x", 1025)})
	aliases := treeOf(map[string]string{"channels/a.yaml": "x: &x " + strings.Repeat("x", mib/10) + "\ny: [" + strings.Repeat("*x ,", 11) + "]\n"})
	problems := treeOf(map[string]string{"channels/a.yaml": "name: a\nversions: [" + strings.Repeat("x,", 10_001) + "]"})

	many := make([]graphdata.Release, 200_001)
	for i := range many {
		many[i].Version = fmt.Sprint("1.0.", i)
	}
	line := fstest.MapFS{"a": {Data: []byte(`{"version": "` + strings.Repeat("1", mib) + "\"}\n{\"version\": \"1.0.0\"}\n")}}
	// Each names all before it: 6,400 of them make 20,476,800 edges.
	dense := slices.Clone(many[:6400])
	var versions []string
	for i := range dense {
		dense[i].Previous = versions
		versions = append(versions, dense[i].Version)
	}

	limittest.Walk(t, []limittest.Case{
		{Limit: "files and directories", Default: 20_000, Bytes: 32 * mib, Run: loading(files, "files and directories", 20_000)},
		{Limit: "bytes of all files", Default: 32 * mib, Bytes: 300 * mib, Run: loading(bytes, "bytes of all files", 32*mib)},
		{Limit: "bytes of a file", Default: mib, Bytes: 6 * mib, Run: loading(wide, "bytes of a file", mib)},
		{Limit: "bytes of a file, aliases expanded", Default: mib, Bytes: 8 * mib, Run: func(t *testing.T) int64 {
			tree, err := graphdata.Load(t.Context(), aliases, graphdata.LoadOptions{Compat: true})
			var passed *graphdata.LimitError
			if err != nil || !errors.As(tree.Problems[len(tree.Problems)-1].Err, &passed) && !errors.As(tree.Problems[0].Err, &passed) || len(tree.Channels) != 1 {
				t.Errorf("%v: %+v", err, tree)
			}
			return 0
		}},
		{Limit: "versions in channels", Default: 200_000, Bytes: 300 * mib, Run: loading(entries, "versions in channels", 200_000)},
		{Limit: "problems", Default: 10_000, Bytes: 32 * mib, Run: func(t *testing.T) int64 {
			_, err := graphdata.Load(t.Context(), problems, graphdata.LoadOptions{})
			var failed *graphdata.LoadError
			if !errors.As(err, &failed) || len(failed.Problems) != 10_001 || !strings.HasSuffix(err.Error(), "\nand 9990 more errors") {
				t.Errorf("%.100v", err)
			}
			return 0
		}},
		{Limit: "bytes of an archive", Default: 64 * mib, Bytes: 80 * mib, Run: opening(largeArchive(t, 65, mib, gzip.NoCompression), "bytes of an archive", 64*mib)},
		{Limit: "bytes of an archive, expanded", Default: 512 * mib, Bytes: 700 * mib, Run: opening(largeArchive(t, 512, mib, gzip.BestSpeed), "bytes of an archive, expanded", 512*mib)},
		{Limit: "entries of an archive", Default: 100_000, Bytes: 128 * mib, Run: opening(largeArchive(t, 100_001, 0, gzip.BestSpeed), "entries of an archive", 100_000)},
		{Limit: "releases", Default: 200_000, Bytes: 200 * mib, Run: func(t *testing.T) int64 {
			_, _, err := graphdata.Collect(t.Context(), graphdata.List(many))
			graphtest.WantLimit(t, err, "releases", 200_000)
			return 0
		}},
		{Limit: "bytes of a line", Default: mib, Bytes: 8 * mib, Run: func(t *testing.T) int64 {
			releases, problems, err := graphdata.Collect(t.Context(), graphdata.Lines{FS: line, Name: "a"})
			if err != nil || len(releases) != 0 || len(problems) != 1 {
				t.Fatalf("%v, %v, %d releases", err, problems, len(releases))
			}
			graphtest.WantLimit(t, problems[0].Err, "bytes of a line", mib)
			return 0
		}},
		{Limit: "nodes", Default: 200_000, Bytes: 300 * mib, Run: building(many, "nodes", 200_000)},
		{Limit: "edges", Default: 20_000_000, Bytes: 800 * mib, Run: building(dense, "edges", 20_000_000)},
		{Limit: "bytes of a stored graph", Default: 64 * mib, Bytes: 400 * mib, Run: func(t *testing.T) int64 {
			_, err := graphdata.DecodeRaw(endless{}, graphdata.RawOptions{})
			graphtest.WantLimit(t, err, "bytes of a stored graph", 64*mib)
			return 0
		}},
		{Limit: "levels of nested YAML", Default: 16, Bytes: mib, Run: loading(deep, "levels of nested YAML", 16)},
		{Limit: "bytes of a regular expression", Default: 1024, Bytes: mib, Run: func(t *testing.T) int64 {
			_, err := graphdata.Load(t.Context(), expression, graphdata.LoadOptions{})
			checktest.ErrorHas(t, "more than 1024 bytes of a regular expression", err)
			return 0
		}},
	})
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// opening returns a run that opens an archive past a limit.
func opening(archive io.ReadSeeker, limit string, most int64) func(*testing.T) int64 {
	return func(t *testing.T) int64 {
		checktest.Must(archive.Seek(0, io.SeekStart))
		_, err := graphdata.OpenArchive(archive, graphdata.Limits{})
		graphtest.WantLimit(t, err, limit, most)
		return 0
	}
}

// largeArchive holds files of 1 MiB, or of none.
func largeArchive(t *testing.T, files, size, level int) io.ReadSeeker {
	var b bytes.Buffer
	zipped := checktest.Must(gzip.NewWriterLevel(&b, level))
	archive := tar.NewWriter(zipped)
	text := make([]byte, size)
	for i := range files {
		checktest.OK(t, archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Size: int64(size)}))
		checktest.Must(archive.Write(text))
	}
	checktest.OK(t, errors.Join(archive.Close(), zipped.Close()))
	return bytes.NewReader(b.Bytes())
}

// building returns a run that builds a graph past a limit.
func building(releases []graphdata.Release, limit string, most int64) func(*testing.T) int64 {
	return func(t *testing.T) int64 {
		_, err := graphdata.Build(&graphdata.Tree{}, releases, graphdata.BuildOptions{})
		graphtest.WantLimit(t, err, limit, most)
		return 0
	}
}
