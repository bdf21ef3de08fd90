package dump_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

const node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n"

func TestLimits(t *testing.T) {
	const mib = 1 << 20
	// refused opens a tree with limits that it passes, and looks for the name of
	// the limit. That the defaults are what they are, TestDefaults shows.
	refused := func(tree fstest.MapFS, o dump.Options, limit string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := dump.Open(t.Context(), tree, o)
			var passed *clusterapi.LimitError
			checktest.FailIf(t, !errors.As(err, &passed) || passed.Limit != limit,
				"got %v, want a LimitError of %s", err, limit)
			_, err = dump.OpenArchive(t.Context(), bytes.NewReader(pack(t, tree, false, false)), o)
			checktest.FailIf(t, !errors.As(err, &passed) || passed.Limit != limit,
				"archive: got %v, want a LimitError of %s", err, limit)
			return 0
		}
	}
	problem := func(tree fstest.MapFS, o dump.Options, words string) func(*testing.T) int64 {
		return func(t *testing.T) int64 {
			r := mustOpen(t, tree, o)
			problems := r.Problems()
			checktest.FailIf(t, len(problems) == 0 || !strings.Contains(problems[len(problems)-1].String(), words),
				"problems %v, want the last to say %q", problems, words)
			return 0
		}
	}
	many := fstest.MapFS{}
	for i := range 11 {
		many[fmt.Sprintf("%d/a.yaml", i)] = &fstest.MapFile{Data: []byte(node)}
	}
	large := files("-- a.yaml --\n" + node + "# " + strings.Repeat("x", 1000))
	zip := fstest.MapFS{"a.yaml.gz": &fstest.MapFile{Data: zipped(t, strings.Repeat("# comment\n", 64<<10))}}
	bomb := "-- b.yaml --\n" + node + "-- a.yaml --\na: &a {apiVersion: v1}\n"
	for i := range 25 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i)
	}
	deep := "-- b.yaml --\n" + node + "-- a.json --\n" + `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}\n" +
		"-- c.yaml --\na: " + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "\n"
	chain := files("-- b.yaml --\n" + node)
	for i := range 45 {
		chain[fmt.Sprintf("l%02d.yaml", i)] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: fmt.Appendf(nil, "l%02d.yaml", i+1)}
	}
	chain["l45.yaml"] = &fstest.MapFile{Data: []byte(node)}
	dense := fstest.MapFS{
		"a.json": &fstest.MapFile{Data: []byte(`{"kind":"List","apiVersion":"v1","items":[` + strings.Repeat("{},", 5<<20) + "{}]}\n")},
		"b.yaml": &fstest.MapFile{Data: []byte(node)},
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "size of a file", Default: 64 << 20, Bytes: mib, Run: func(t *testing.T) int64 {
			refused(large, dump.Options{MaxFileBytes: 1000}, "MaxFileBytes")(t)
			return refused(zip, dump.Options{MaxFileBytes: 1000}, "MaxFileBytes")(t)
		}},
		{Limit: "size of all files", Default: 4 << 30, Bytes: mib, Run: refused(many, dump.Options{MaxBytes: 500}, "MaxBytes")},
		{Limit: "files that are read", Default: 200_000, Bytes: mib, Run: refused(many, dump.Options{MaxFiles: 10}, "MaxFiles")},
		{Limit: "folders that are looked into", Default: 200_000, Bytes: mib, Run: func(t *testing.T) int64 {
			empty := fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte(node)}}
			for i := range 11 {
				empty[fmt.Sprintf("%d", i)] = &fstest.MapFile{Mode: fs.ModeDir}
			}
			var passed *clusterapi.LimitError
			if _, err := dump.Open(t.Context(), empty, dump.Options{MaxFiles: 10}); !errors.As(err, &passed) || passed.Limit != "MaxFiles" {
				t.Errorf("got %v", err)
			}
			return 0
		}},
		{Limit: "objects", Default: 1_000_000, Bytes: mib, Run: refused(many, dump.Options{MaxObjects: 10}, "MaxObjects")},
		{Limit: "problems that are kept", Default: 10_000, Bytes: mib, Run: func(t *testing.T) int64 {
			tree := files("-- b.yaml --\n" + node + "-- a.yaml --\n" + strings.Repeat("---\na: [\n", 8) + "-- c.yaml --\n" + strings.Repeat("---\n- 1\n", 8))
			r := mustOpen(t, tree, dump.Options{MaxProblems: 5})
			if problems := r.Problems(); len(problems) != 6 || problems[5].String() != "11 more problems are not kept (limit MaxProblems)" {
				t.Errorf("%d problems: %v", len(problems), problems)
			}
			return 0
		}},
		{Limit: "depth of a document", Default: 500, Bytes: 8 * mib, Run: func(t *testing.T) int64 {
			r := mustOpen(t, files(deep), dump.Options{})
			checkProblems(t, r, `
a.json, document 1, line 1: more than 500 levels of maps and lists (limit MaxDepth)
c.yaml, document 1, line 1: more than 500 levels of maps and lists (limit MaxDepth)`)
			return 0
		}},
		{Limit: "aliases of a document", Default: 64 << 20, Bytes: 8 * mib, Run: problem(files(bomb), dump.Options{MaxFileBytes: 64 << 10}, "bytes with aliases replaced")},
		{Limit: "memory of a document", Default: 256 << 20, Bytes: 256 * mib, Run: func(t *testing.T) int64 {
			r := checktest.Must(dump.Open(t.Context(), dense, dump.Options{}))
			checkProblems(t, r, "a.json, document 1, line 1: more than 268435456 bytes of memory for a document")
			return 0
		}},
		{Limit: "links that a path follows", Default: 40, Bytes: 4 * mib, Run: problem(chain, dump.Options{}, "a link that leads in a circle")},
	})
}

// An alias bomb is a problem that names the limit, and sound aliases are followed.
func TestAliases(t *testing.T) {
	bomb := "a: &a {apiVersion: v1}\n"
	for i := range 25 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i)
	}
	r := mustOpen(t, files("-- a.yaml --\n"+bomb+`-- b.yaml --
apiVersion: v1
kind: ConfigMap
metadata: &m {name: c, namespace: a}
data: *m
`), dump.Options{})
	check(t, r, "get v1 ConfigMap a/c: found")
	checkProblems(t, r, "a.yaml, document 1, line 1: more than 268435456 bytes of memory for a document")
}

// What cannot be measured is not converted: rubbish hides no bomb.
func TestAliasesBehindRubbish(t *testing.T) {
	text := strings.Repeat("y", 60_000)
	bomb := "a: &a " + text + "\n"
	for i := range 20 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustOpen(t, files("-- a.yaml --\n"+bomb+"}\n-- b.yaml --\n"+node), dump.Options{})
	runtime.ReadMemStats(&after)
	checkProblems(t, r, "a.yaml, document 1, line 21: yaml: did not find expected key")
	made := after.TotalAlloc - before.TotalAlloc
	checktest.FailIf(t, made > 64<<20, "%d bytes allocated", made)
}

// TestDefaults: the defaults let pass what is as large as the limit, and no more.
func TestDefaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads large files")
	}
	text := node + "# "
	fits := text + strings.Repeat("x", 64<<20-len(text)-1) + "\n"
	checktest.Good(t, checktest.Err(
		dump.Open(t.Context(), fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte(fits)}}, dump.Options{})))
	var passed *clusterapi.LimitError
	_, err := dump.Open(t.Context(), fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte(fits + "\n")}}, dump.Options{})
	checktest.FailIf(t, !errors.As(err, &passed) || passed.Max != 64<<20 || passed.Where != "a.yaml", "got %v", err)
}

// What would not be read passes no limit.
func TestLimitsOfWhatIsNotRead(t *testing.T) {
	tree := files(`
-- aaa.yaml --
{apiVersion: v1, kind: Node, metadata: {name: n2}}
-- before/large.yaml --
` + strings.Repeat("#", 5000) + `
-- x/audit_logs/a.yaml --
` + strings.Repeat("#", 5000) + `
-- x/cluster-scoped-resources/core/nodes/n1.yaml --
` + node)
	for _, o := range []dump.Options{{MaxFileBytes: 1000}, {MaxBytes: 1000}} {
		r := mustOpen(t, tree, o)
		check(t, r, "list v1 Node: n1")
		same(t, tree, o, r, "list v1 Node: n1")
	}
}

func TestNegativeOptions(t *testing.T) {
	for _, o := range []dump.Options{{Workers: -1}, {MaxFileBytes: -1}, {MaxFiles: -1}, {MaxObjects: -1}, {MaxBytes: -1}, {MaxProblems: -1}, {MaxDepth: -1}} {
		checktest.ErrorHas(t, "is negative", checktest.Err(dump.Open(t.Context(), files("-- a.yaml --\n"+node), o)))
	}
}

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	checktest.Must(w.Write([]byte(text)))
	checktest.OK(t, w.Close())
	return buf.Bytes()
}
