package dump_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestStreams: which documents a file has. n1 to n9 are Nodes.
func TestStreams(t *testing.T) {
	y := func(name string) string { return "apiVersion: v1\nkind: Node\nmetadata:\n  name: " + name + "\n" }
	j := func(name string) string {
		return `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"}}`
	}
	for _, tc := range []struct{ name, file, text, want, problems string }{
		{"one", "a.yaml", y("n1"), "n1", ""},
		{"without an end of line", "a.yaml", strings.TrimSuffix(y("n1"), "\n"), "n1", ""},
		{"with a marker", "a.yaml", "---\n" + y("n1"), "n1", ""},
		{"several", "a.yaml", "---\n" + y("n1") + "---\n" + y("n2") + "---\n" + y("n3"), "n1 n2 n3", ""},
		{"markers with comments and blanks", "a.yaml", "--- # one\n" + y("n1") + "---  \n" + y("n2") + "---\t# three\n" + y("n3"), "n1 n2 n3", ""},
		{"a value behind the marker", "a.yaml", "--- " + j("n1") + "\n--- " + j("n2") + "\n", "n1 n2", ""},
		{"comments and empty documents", "a.yaml", "# a\n---\n---\n# b\n---\n" + y("n1") + "---\n\n---\n", "n1", ""},
		{"ends of documents", "a.yaml", y("n1") + "...\n---\n" + y("n2") + "...\n" + y("n3"), "n1 n2 n3", ""},
		{"directives", "a.yaml", "%YAML 1.1\n---\n" + y("n1") + "...\n# c\n%YAML 1.1\n---\n" + y("n2"), "n1 n2", ""},
		{"ends of lines of Windows", "a.yaml", strings.ReplaceAll("---\n"+y("n1")+"---\n"+y("n2"), "\n", "\r\n"), "n1 n2", ""},
		{"a byte order mark", "a.yaml", "\ufeff" + y("n1"), "n1", ""},
		{"a marker that is text", "a.yaml", y("n1") + "data: |\n  ---\n  x\n", "n1", ""},
		{"the second is broken", "a.yaml", y("n1") + "---\na: [\n---\n" + y("n3"), "n1 n3 missing[]...", "a.yaml, document 2, line 6: yaml: did not find expected node content"},
		{"no UTF-8", "a.yaml", y("n1") + "---\na: \xff\n---\n" + y("n3"), "n1 n3 missing[]...", "a.yaml, document 2, line 5: it has characters that are not UTF-8"},
		{"JSON", "a.json", j("n1"), "n1", ""},
		{"JSON documents", "a.json", j("n1") + "\n" + j("n2") + j("n3"), "n1 n2 n3", ""},
		{"JSON in YAML", "a.yaml", "  " + j("n1"), "n1", ""},
		{"YAML in JSON", "a.json", y("n1"), "n1", ""},
		{"YAML of braces", "a.json", "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n" + y("n2"), "n1 n2", ""},
		{"broken JSON", "a.json", j("n1") + "\n" + j("n2") + "\n{\"apiVersion\": x}" + j("n3"), "n1 n2 missing[]...", "a.json, document 3, line 3: invalid character 'x' looking for beginning of value"},
		{"JSON that is cut off", "a.json", j("n1") + "\n" + j("n2")[:30], "n1 missing[]...", "a.json, document 2, line 2: unexpected EOF"},
		{"JSON with a number that is too large", "a.json", j("n1") + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"},"x":1e999}`, "n1 missing[]...",
			"a.json, document 2, line 1: json: cannot unmarshal number 1e999 into Go value of type float64"},
		{"JSON that is not UTF-8", "a.json", j("n1") + "{\"a\": \"\xff\"}" + j("n3"), "n1 n3 missing[]...", "a.json, document 2, line 1: it has characters that are not UTF-8"},
		{"compressed", "a.yaml.gz", "GZIP", "n1", ""},
		{"compressed, and cut off", "a.yaml.gz", "CUT", "n9 missing[]...", "a.yaml.gz: unexpected EOF"},
		{"not compressed", "a.yaml.gz", y("n1"), "n9 missing[]...", "a.yaml.gz: decompressing: gzip: invalid header"},
		{"keys that are there twice", "a.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  name: n2\n", "n2", ""},
		{"keys that are there twice in JSON", "a.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","name":"n2"}}`, "n2", ""},
		{"escapes", "a.json", `{"apiVersion":"v1","kind":"N\u006fde","metadata":{"n\u0061me":"n\u0031","annotations":{"a":"\"\\","b":"}{][,:"}}}`, "n1", ""},
		{"only comments", "a.yaml", "# nothing\n", "n9", "a.yaml: it has no document"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			switch tc.text {
			case "GZIP":
				tc.text = string(zipped(t, y("n1")))
			case "CUT":
				whole := zipped(t, y("n1"))
				tc.text = string(whole[:len(whole)-9])
			}
			tree := fstest.MapFS{tc.file: &fstest.MapFile{Data: []byte(tc.text)}}
			if strings.HasPrefix(tc.want, "n9") {
				tree["z.yaml"] = &fstest.MapFile{Data: []byte(y("n9"))}
			}
			r := mustOpen(t, tree, dump.Options{})
			check(t, r, "list v1 Node: "+tc.want)
			checkProblems(t, r, tc.problems)
			same(t, tree, dump.Options{}, r, "list v1 Node: "+tc.want)
		})
	}
}

func TestOpenFailsWithoutObjects(t *testing.T) {
	for _, tc := range []struct{ tree, want string }{
		{"", "opening a recording: no object could be read"},
		{"-- a.yaml --\na: 1\n-- b.yaml --\nb: 1", "opening a recording: no object could be read: a.yaml, document 1, line 1: apiVersion is missing (and 1 more problems)"},
		{"-- a.yaml --\n{apiVersion: v1, kind: List, items: []}", "opening a recording: no object could be read"},
	} {
		_, err := dump.Open(t.Context(), files(tc.tree), dump.Options{})
		checktest.FailIf(t, err == nil || err.Error() != tc.want, "got %v, want %s", err, tc.want)
	}
	checktest.ErrorHas(t, "the archive cannot be read to its end", checktest.Err(
		dump.OpenArchive(t.Context(), strings.NewReader("not an archive, but some text"), dump.Options{})))
	checktest.Fails(t, checktest.Err(dump.OpenArchive(t.Context(), strings.NewReader(""), dump.Options{})), "no error")
	// Objects that are not kept could be read all the same.
	checktest.Good(t, checktest.Err(
		dump.Open(t.Context(),
			files("-- a.yaml --\n{apiVersion: v1, kind: Event, metadata: {name: e, namespace: a}}"), dump.Options{})))
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tree := files("-- a.yaml --\n" + node + "-- b.yaml --\n" + node)
	for _, workers := range []int{0, 1} {
		o := dump.Options{Workers: workers}
		during := &hooked{FS: tree, open: func(name string) {
			if name == "b.yaml" {
				cancel()
			}
		}}
		checktest.ErrorIs(t, context.Canceled, checktest.Err(dump.Open(ctx, during, o)))
		checktest.ErrorIs(t, context.Canceled, checktest.Err(dump.Open(ctx, tree, o)))
		checktest.ErrorIs(t, context.Canceled, checktest.Err(
			dump.OpenArchive(ctx, strings.NewReader(string(pack(t, tree, true, false))), o)))
	}
}

// A file system that panics or fails costs the files that it does not give.
func TestFaultyFileSystem(t *testing.T) {
	tree := files("-- a.yaml --\n" + node + "-- b.yaml --\n" + node + "-- c/d.yaml --\n" + node + "-- e.yaml --\n{apiVersion: v1, kind: Node, metadata: {name: n2}}")
	r := mustOpen(t, &hooked{FS: tree, open: func(name string) {
		if name == "b.yaml" {
			panic("broken disk")
		}
	}, fail: map[string]error{"a.yaml": fs.ErrPermission, "c": fs.ErrPermission}}, dump.Options{})
	check(t, r, "list v1 Node: n2 missing[]...")
	checkProblems(t, r, `
a.yaml: permission denied
b.yaml: panic: broken disk
c: permission denied
`)
}

func TestFileSystemThatPanics(t *testing.T) {
	_, err := dump.Open(t.Context(), &hooked{FS: fstest.MapFS{}, open: func(string) { panic("no disk") }}, dump.Options{})
	checktest.FailIf(t, err == nil || err.Error() != "opening a recording: panic: no disk", "got %v", err)
}

// hooked calls a function, and may fail, before it opens a file.
type hooked struct {
	fs.FS
	open func(string)
	fail map[string]error
}

func (h *hooked) Open(name string) (fs.File, error) {
	if err := h.fail[name]; err != nil {
		return nil, err
	}
	h.open(name)
	return h.FS.Open(name)
}
