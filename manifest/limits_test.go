package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// TestLimits feeds an input just above each limit of the table in doc.go.
func TestLimits(t *testing.T) {
	// many returns a payload of n files with equal contents.
	many := func(n int, data string) fstest.MapFS {
		fsys := payload(nil)
		file := &fstest.MapFile{Data: []byte(data)}
		for i := range n {
			fsys[fmt.Sprintf("release-manifests/%05d.yaml", i)] = file
		}
		return fsys
	}
	one := func(data string) fstest.MapFS { return payload(map[string]string{"release-manifests/a.yaml": data}) }
	documents := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "kind: K\nmetadata: {name: a%d}\n---\n", i)
		}
		return b.String()
	}
	// limit returns a run that loads fsys and wants the limit's error.
	limit := func(name string, fsys fs.FS) func(t *testing.T) int64 {
		return func(t *testing.T) int64 {
			p, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Workers: 2})
			var limit *manifest.LimitError
			if p != nil || !errors.As(err, &limit) || limit.Limit != name {
				t.Errorf("%.300v", err)
			}
			return 0
		}
	}
	text := func(fsys fs.FS, max int, missing string) func(t *testing.T) int64 {
		return func(t *testing.T) int64 {
			_, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{})
			if err == nil || len(err.Error()) > max || !strings.Contains(err.Error(), missing) {
				t.Errorf("%.300v", err)
			}
			return 0
		}
	}
	const mib = 1 << 20
	comment := strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", 16<<10) // 16 MiB
	deepImages := `{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"4.20.1"},"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}"
	faults := payload(nil)
	for i := range 20 {
		faults[fmt.Sprintf("release-manifests/%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, `{"a":"%d%s"}`, i, strings.Repeat("x", 3000))}
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "manifest files", Default: 20_000, Bytes: 40 * mib, Run: limit("Files", many(20_001, "# empty\n"))},
		{Limit: "documents in all files", Default: 50_000, Bytes: 200 * mib, Run: limit("Documents", many(11, documents(4_600)))},
		{Limit: "documents in a file", Default: 5_000, Bytes: 20 * mib, Run: limit("DocumentsPerFile", one(documents(5_001)))},
		{Limit: "size of a file", Default: 16 * mib, Bytes: 2 * mib, Run: limit("FileSize", one(comment+"#"))},
		{Limit: "size of all files with JSON", Default: 512 * mib, Bytes: 800 * mib, Run: limit("TotalSize", many(33, comment))},
		{Limit: "nesting of maps and lists", Default: 500, Bytes: 4 * mib, Run: limit("Depth", one("kind: K\nmetadata: {name: a}\nx: "+strings.Repeat("[", 500)+strings.Repeat("]", 500)))},
		{Limit: "values in all manifests", Default: 2_000_000, Bytes: 900 * mib, Run: limit("Values", one("kind: K\nmetadata: {name: a}\nx: ["+strings.Repeat("{},", 2_000_000)+"]"))},
		{Limit: "aliases expanded in all files", Default: 16 * mib, Bytes: 300 * mib, Run: limit("ExpandedSize", many(2_000, expanding("a", 8*mib)))},
		{Limit: "steps of a template", Default: 100_000, Bytes: 32 * mib, Run: limit("TemplateSteps", payload(own("x: "+strings.Repeat("{{1}}", 60_000))))},
		{Limit: "text made by a template", Default: 64 << 10, Bytes: 4 * mib, Run: limit("TemplateText", payload(own(`x: {{printf "%65536s" "a"}}`)))},
		{Limit: "nesting of image-references", Default: 100, Bytes: 4 * mib, Run: text(payload(map[string]string{"release-manifests/image-references": deepImages}), 200, "unmarshal image-references: nested more than 100 levels deep")},
		{Limit: "text of a fault", Default: 4 << 10, Bytes: 4 * mib, Run: text(one(`{"a":"`+strings.Repeat("x", 4<<10)+`"}`), 4<<10+100, "more bytes)")},
		{Limit: "text of all faults", Default: 32 << 10, Bytes: 8 * mib, Run: text(faults, 32<<10+100, " and 10 more]")},
		{Limit: "text of a warning", Default: 1 << 10, Bytes: 4 * mib, Run: func(t *testing.T) int64 {
			p, err := manifest.Load(t.Context(), one(object(strings.Repeat("x", 1<<10), "a: 1")), manifest.LoadOptions{})
			if err != nil || len(p.Warnings) != 1 || len(p.Warnings[0].Message) > 1<<10 || !strings.Contains(p.Warnings[0].Message, "more bytes)") {
				t.Error(err, p)
			}
			return 0
		}},
	})
}

// expanding is a file of about 19 KB that aliases expand to about size bytes.
func expanding(name string, size int) string {
	const text = 9_000
	n := size/text - 1
	return "kind: K\nmetadata: {name: " + name + "}\nx: &x " + strings.Repeat("a", text) + "\ny: [" + strings.Repeat("*x,", n) + "]\n"
}

// TestAliasesOfAPayload: what aliases make is bounded for all files together,
// whatever the order in which workers read them, and whichever the form.
func TestAliasesOfAPayload(t *testing.T) {
	limits := manifest.Limits{ExpandedSize: 1 << 20}
	files := map[string]string{}
	for i := range 40 {
		data := expanding("a", 450<<10)
		if i%2 == 1 {
			data = jsonB + "\n---\n" + data
		}
		files[fmt.Sprintf("release-manifests/%02d.yaml", i)] = data
	}
	want := "release-manifests/02.yaml, document 1: more than 1048576 bytes after the expansion of aliases (limit ExpandedSize)"
	times := 5
	if israce.Enabled {
		times = 1
	}
	for range times {
		_, err := manifest.Load(t.Context(), payload(files), manifest.LoadOptions{Workers: 5, Limits: limits})
		if err == nil || !strings.HasSuffix(err.Error(), ": "+strings.Replace(want, ", document 1", "", 1)) {
			t.Fatalf("%v", err)
		}
	}
	var limit *manifest.LimitError
	if _, err := manifest.Parse("a", []byte(expanding("a", 600<<10)+"---\n"+expanding("b", 600<<10)), limits); !errors.As(err, &limit) || limit.Limit != "ExpandedSize" {
		t.Errorf("Parse: %v", err)
	}
	checktest.Good(t, checktest.Err(
		manifest.Parse("a", []byte(expanding("a", 450<<10)+"---\n"+expanding("b", 450<<10)), limits)))
	// The JSON counts in TotalSize.
	if _, err := manifest.Load(t.Context(), payload(files), manifest.LoadOptions{Limits: manifest.Limits{ExpandedSize: 1 << 40, TotalSize: 4 << 20}}); !errors.As(err, &limit) || limit.Limit != "TotalSize" || !strings.Contains(err.Error(), "release-manifests/08.yaml: ") {
		t.Errorf("TotalSize: %v", err)
	}
}

// TestKeptMemory: what is kept of inputs made for it is what the limits count,
// as doc.go says.
func TestKeptMemory(t *testing.T) {
	heapCounts(t)
	limits := manifest.Limits{TotalSize: 20 << 20, Values: 100_000}
	header := "kind: K\nmetadata: {name: a}\nx: "
	for name, data := range map[string]string{
		"empty maps":   header + "[" + strings.Repeat("{},", 99_000) + "]",
		"maps of one":  header + "[" + strings.Repeat("{a: 1},", 49_000) + "]",
		"empty lists":  header + "[" + strings.Repeat("[],", 99_000) + "]",
		"lists in 1st": header + strings.Repeat("[", 400) + strings.Repeat("]", 400),
		"JSON":         `{"kind":"K","metadata":{"name":"a"},"x":[` + strings.Repeat(`{"a":{}},`, 49_000) + `1]}`,
		"aliases":      "kind: K\nmetadata: {name: a}\nx: &x {a: 1}\ny: [" + strings.Repeat("*x,", 40_000) + "]",
		"text":         header + strings.Repeat("a", 9<<20),
	} {
		t.Run(name, func(t *testing.T) {
			fsys := payload(map[string]string{"release-manifests/a.yaml": data})
			before := heap()
			p := checktest.Get(manifest.Load(t.Context(), fsys, manifest.LoadOptions{Limits: limits}))(t)
			m := p.Excluded[0].Manifest
			m.Object()
			kept := heap() - before
			if counted := int64(len(data)) + 2*int64(len(m.Raw)) + 400*int64(values(m.Object().Object)) + 1<<20; kept > counted {
				t.Errorf("%d bytes kept, %d expected", kept, counted)
			}
			runtime.KeepAlive(p)
		})
	}
}

// TestKeptFile: a manifest does not keep the file that it came from, in each
// of the ways in which files are read.
func TestKeptFile(t *testing.T) {
	heapCounts(t)
	padding := strings.Repeat("# padding\n", 1<<20)
	for name, data := range map[string]string{
		"common form":   "apiVersion: v1\nkind: K\nmetadata:\n  name: a\n  annotations:\n    text: " + strings.Repeat("a", 300) + "\n" + padding,
		"unusual form":  "kind: K\nmetadata: {name: &a a}\n" + padding,
		"two documents": "kind: K\nmetadata: {name: a}\n---\n" + padding,
		"JSON":          `{"kind":"K","metadata":{"name":"a"}}` + strings.Repeat(" \n", 4<<20),
	} {
		for _, decoded := range []bool{false, true} {
			before := heap()
			manifests := checktest.Get(manifest.Parse("a.yaml", bytes.Clone([]byte(data)), manifest.Limits{}))(t)
			checktest.Equal(t, 1, len(manifests), "len(manifests) of %v, %v", name, manifests)
			if decoded {
				manifests[0].Object()
			}
			if kept := heap() - before; kept > 1<<20 {
				t.Errorf("%s, decoded: %v: %d bytes kept of a file of %d", name, decoded, kept, len(data))
			}
			runtime.KeepAlive(manifests)
		}
	}
}

// heapCounts skips a test that is about heap alone where that means nothing.
func heapCounts(t *testing.T) {
	if israce.Enabled {
		t.Skip("the race detector has memory of its own")
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func values(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			n += values(v)
		}
	case []any:
		for _, v := range value {
			n += values(v)
		}
	}
	return n
}

// TestValues counts the same in each form of a document, but for unusual YAML,
// where characters count before it is decoded.
func TestValues(t *testing.T) {
	for name, data := range map[string]string{
		"block":   "kind: K\nmetadata:\n  name: a\nx:\n- a: [1, 2]\n- b: {}\n- \"c, d\"\n- []\n",
		"tab":     "kind: K\nmetadata:\n  name: a\t\nx:\n- a: [1, 2]\n- b: {}\n- \"c, d\"\n- []\n",
		"JSON":    `{"kind":"K","metadata":{"name":"a"},"x":[{"a":[1,2]},{"b":{}},"c, \"d",[ ]]}`,
		"aliases": "kind: K\nmetadata:\n  name: a\nx:\n- a: [1, 2]\n- b: &x {}\n- \"c, d\"\n- *x\n",
	} {
		enough := 13
		if name == "tab" || name == "aliases" {
			enough = 21
		}
		if _, err := manifest.Parse("a", []byte(data), manifest.Limits{Values: enough}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var limit *manifest.LimitError
		if _, err := manifest.Parse("a", []byte(data), manifest.Limits{Values: 12}); !errors.As(err, &limit) || limit.Limit != "Values" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRenderedSizeCounts: what templates make counts, and so does what they
// leave out.
func TestRenderedSizeCounts(t *testing.T) {
	for name, source := range map[string]string{
		"result": "x: {{printf \"%30000d\" 1}}",
		"source": "{{/*" + strings.Repeat("x", 60_000) + "*/}}",
	} {
		files := map[string]string{}
		for i := range 20 {
			files[fmt.Sprintf("manifests/%02d.yaml", i)] = object("a", included) + source
		}
		_, err := manifest.Load(t.Context(), payload(files), manifest.LoadOptions{Limits: manifest.Limits{TotalSize: 500_000}})
		var limit *manifest.LimitError
		if !errors.As(err, &limit) || limit.Limit != "TotalSize" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNegativeLimits: each negative number is an error that names its field.
func TestNegativeLimits(t *testing.T) {
	fsys := payload(map[string]string{"release-manifests/a.yaml": object("a", included)})
	for i := range reflect.TypeFor[manifest.Limits]().NumField() {
		var limits manifest.Limits
		field := reflect.ValueOf(&limits).Elem().Field(i)
		field.SetInt(-1)
		name := reflect.TypeFor[manifest.Limits]().Field(i).Name
		want := name + " is negative: -1"
		_, loaded := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Limits: limits})
		_, parsed := manifest.Parse("a", []byte(configMap), limits)
		for _, err := range []error{loaded, parsed} {
			if err == nil || !strings.HasPrefix(err.Error(), "manifest.") || !strings.HasSuffix(err.Error(), "Options: Limits."+want) && !strings.HasSuffix(err.Error(), "Limits: "+want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := manifest.Load(t.Context(), fsys, manifest.LoadOptions{Workers: -1}); err == nil || err.Error() != "manifest.LoadOptions: Workers is negative: -1" {
		t.Error(err)
	}
}

// TestOtherImageStream: the error about another type does not say that it is
// the wanted one.
func TestOtherImageStream(t *testing.T) {
	for object, want := range map[string]string{
		`"apiVersion":"v1","kind":"ImageStream"`:                     "image-references is a v1 ImageStream of the core group, not a v1 ImageStream",
		`"kind":"ImageStream"`:                                       "image-references is a ImageStream without an apiVersion, not a v1 ImageStream",
		`"apiVersion":"image.openshift.io/v2","kind":"ImageStream"`:  "image-references is a image.openshift.io/v2 ImageStream, not a v1 ImageStream",
		`"apiVersion":"example.com/v1","kind":"ImageStream"`:         "image-references is a example.com/v1 ImageStream, not a v1 ImageStream",
		`"apiVersion":"v1","kind":"ConfigMap"`:                       "image-references is a v1 ConfigMap, not a v1 ImageStream",
		`"apiVersion":"image.openshift.io/v1","kind":"ImageStreams"`: "image-references is a image.openshift.io/v1 ImageStreams, not a v1 ImageStream",
	} {
		if _, err := load(t, payload(map[string]string{"release-manifests/image-references": "{" + object + "}"})); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// breaking is a file system whose files break off after some bytes.
type breaking struct{ fstest.MapFS }

type breakingFile struct {
	fs.File
	left int
}

func (b breaking) Open(name string) (fs.File, error) {
	f, err := b.MapFS.Open(name)
	if err != nil || !strings.Contains(name, "broken") {
		return f, err
	}
	return &breakingFile{f, 1000}, nil
}

func (f *breakingFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errors.New("broken off")
	}
	n := min(f.left, len(p))
	f.left -= n
	return n, nil
}

// What is read of files that break off counts against the size of all files.
func TestBrokenFilesCount(t *testing.T) {
	files := map[string]string{}
	for n := range 100 {
		files[fmt.Sprintf("release-manifests/broken%d.yaml", n)] = ""
	}
	var limit *manifest.LimitError
	_, err := manifest.Load(t.Context(), breaking{payload(files)}, manifest.LoadOptions{Limits: manifest.Limits{TotalSize: 10_000}})
	if !errors.As(err, &limit) || limit.Limit != "TotalSize" {
		t.Errorf("%.500v", err)
	}
}

// TestHeapOfDocument feeds the dearest documents, the largest that are accepted:
// none allocates more than a document may.
func TestHeapOfDocument(t *testing.T) {
	if israce.Enabled || testing.Short() {
		t.Skip("allocates much")
	}
	header := "kind: K\nmetadata: {name: a}\n"
	lines := func(line string) func(n int) string {
		return func(n int) string { return header + "x:\n" + strings.Repeat(line, n) }
	}
	for name, document := range map[string]func(n int) string{
		"common form":  lines("- a:\n"),
		"unusual form": lines("- {a}\n"),
		"unusual text": func(n int) string { return "kind: !!str K\nmetadata: {name: a}\nx: '" + strings.Repeat("<", n) + "'\n" },
		"many keys":    func(n int) string { return header + "x: !!map {" + numbered(n) + "}\n" },
		"aliases":      func(n int) string { return header + "x: &x {a}\ny: [" + strings.Repeat("*x,", n) + "]\n" },
		"JSON": func(n int) string {
			return `{"kind":"K","metadata":{"name":"a"},"x":[` + strings.Repeat(`{"":0},`, n) + `1]}`
		},
		"JSON of nothing": func(n int) string {
			return `{"kind":"K","metadata":{"name":"a"},"x":[` + strings.Repeat(`{},`, n) + `1]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, made := 0, uint64(0)
			for n := 12 << 20; accepted == 0 && n > 1000; n = n * 3 / 4 {
				data := []byte(document(n))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := manifest.Parse("a", data, manifest.Limits{})
				runtime.ReadMemStats(&after)
				if spent := after.TotalAlloc - before.TotalAlloc; spent > limit.Heap {
					t.Fatalf("%d parts, %d bytes: %d MiB allocated, %v", n, len(data), spent>>20, err)
				} else if err == nil {
					accepted, made = n, spent
				} else if !errors.As(err, new(*manifest.LimitError)) {
					t.Fatal(err)
				}
			}
			t.Logf("%d parts: %d MiB", accepted, made>>20)
			if accepted == 0 {
				t.Error("none is accepted")
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d: 0, ", i)
	}
	return strings.TrimSuffix(b.String(), ", ")
}
