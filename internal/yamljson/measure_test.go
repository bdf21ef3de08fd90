package yamljson_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// laughs is a document in which each list stands for ten of the one before.
func laughs(levels int, leaf string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "l0: &l0 %s\n", leaf)
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	return b.String()
}

func TestMeasure(t *testing.T) {
	long := strings.Repeat("y", 1000)
	for _, tt := range []struct {
		name, text  string
		aliases     int
		least, most int64 // bytes
	}{
		{"none", "a: b\n", 0, 5, 5},
		{"signs in texts", "a: \"*b & c\"\nb: a&b*c\nc: x &&y **z\n", 0, 34, 34},
		{"one", "a: &x " + long + "\nb: *x\n", 1, 2000, 2200},
		{"in flow", "{a: &x " + long + ",b: *x,\"c\":*x}\n", 2, 3000, 3200},
		{"behind an odd line end", "a: &x " + long + " # c\u0085b: *x\n", 1, 2000, 2200},
		{"of a map", "a: &x {k: vvvvvvvvvv}\nb: *x\nc: *x\n", 2, 50, 350},
		{"merged", "a: &x {k: " + long + "}\nb: {<<: *x}\nc: {<<: [*x, *x]}\n", 3, 3000, 5000},
		{"in a comment too", "a: &x " + long + "\nb: *x # *x\n", 2, 2000, 2200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			size := checktest.Get(yamljson.Measure(tt.text, math.MaxInt64))(t)
			checktest.FailIf(t, size.Aliases != tt.aliases || size.Bytes < tt.least || size.Bytes > tt.most,
				"got %+v, want %d aliases and between %d and %d bytes", size, tt.aliases, tt.least, tt.most)
			checkMeasure(t, tt.text)
		})
	}
}

// What cannot be measured is refused, and what is too large before it is made.
func TestMeasureRefuses(t *testing.T) {
	text := strings.Repeat("y", 60_000)
	for name, tt := range map[string]struct{ text, want string }{
		"no YAML":             {"a: &x [*x\n", "line 1"},
		"an unknown anchor":   {"a: &x b\nc: *z\n", "unknown anchor 'z'"},
		"within itself":       {"a: &x [b, *x]\n", "alias to itself"},
		"twice within itself": {"a: &x [*x, *x]\n", "alias to itself"},
		"a list as a key":     {"a: &x [b]\n? *x\n: c\n", "key of a map is not a string"},
		"aliases of aliases":  {laughs(9, "lol"), "bytes of memory"},
		"a long text":         {laughs(3, text), "bytes of memory"},
		"a long number":       {laughs(4, strings.Repeat("1", 6000)), "bytes of memory"},
		"base64":              {laughs(4, "!!binary "+strings.Repeat("AAAA", 1000)), "bytes of memory"},
		"rubbish at the end":  {laughs(9, text) + "}\n", "line "},
		"many values":         {"a: [" + strings.Repeat("{a},", 200_000) + "]", "bytes of memory"},
		"a map for each key":  {"a: &x {" + strings.Repeat("b,", 1000) + "}\nb: {" + strings.Repeat("? *x\n: ,", 1000) + "}\n", "key of a map"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := yamljson.Measure(tt.text, math.MaxInt64)
			runtime.ReadMemStats(&after)
			checktest.ErrorHas(t, tt.want, err)
			checktest.Equal(t, errors.As(err, new(*limit.LimitError)), strings.Contains(tt.want, "bytes"), "got %T",
				err)
			made := after.TotalAlloc - before.TotalAlloc
			checktest.FailIf(t, made > limit.Heap, "measuring allocated %d bytes", made)
		})
	}
}

// Counting stops at what a caller wants to know.
func TestMeasureStops(t *testing.T) {
	text := laughs(9, "lol")
	var size yamljson.Size
	n := testing.AllocsPerRun(1, func() { size, _ = yamljson.Measure(text, 1000) })
	checktest.FailIf(t, n > 3000, "%v allocations", n)
	checktest.FailIf(t, size.Bytes <= 1000 || size.Bytes > 1100, "%+v", size)
}

// checkMeasure compares what is measured with what is made.
func checkMeasure(t *testing.T, doc string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size, err := yamljson.Measure(doc, math.MaxInt64)
	if err != nil {
		if errors.As(err, new(*limit.LimitError)) {
			return // making it may take the memory of the machine
		}
		if text, err2 := yaml.YAMLToJSON([]byte(doc)); err2 == nil {
			t.Errorf("%.300q cannot be measured (%v), and gives %.1000s", doc, err, text)
		}
		return
	}
	text, err := yaml.YAMLToJSON([]byte(doc))
	runtime.ReadMemStats(&after)
	const own = 64 << 10 // of the decoder, and of what runs at the same time
	if made := int64(after.TotalAlloc - before.TotalAlloc); !israce.Enabled && made > size.Heap+own {
		t.Errorf("%.100q: %d bytes of heap to measure and convert, measured were %d (%d may begin)", doc, made, size.Heap, yamljson.MayBegin(doc))
	}
	checktest.FailIf(t, err == nil && size.Aliases > 0 && int64(len(text)) > size.Bytes,
		"%.100q: %d bytes of JSON, measured were %d", doc, len(text), size.Bytes)
}

// dearest are documents whose parts cost much for their length.
func dearest(n int) map[string]string {
	flow := func(item string) string { return "[" + strings.Repeat(item+",", n) + "]" }
	keys := func(width int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%0*d: 0\n", width, i)
		}
		return b.String()
	}
	return map[string]string{
		"list": strings.Repeat("- 0\n", n), "nulls": strings.Repeat("-\n", n), "lists": strings.Repeat("- - - -\n", n/4), "words": strings.Repeat("- abc\n", n),
		"flow": flow("0"), "flow maps": flow("{}"), "flow maps of one": flow("{a: 0}"), "flow maps of a key": flow("{a}"), "pairs": flow("a: 0"), "flow lists": flow("[0]"),
		"floats": flow("1.5"), "times": flow("2001-01-01"), "underscores": flow("1_1"), "tags": flow("!!str 1"), "anchors": flow("&a 1"), "no values": flow("? "), "adjacent": flow(`"a":0`),
		"short keys": keys(1), "long keys": keys(7), "deep": strings.Repeat("- ", n) + "0", "deep brackets": strings.Repeat("[", n) + strings.Repeat("]", n), "deep braces": strings.Repeat("{a: ", n) + strings.Repeat("}", n), "spaces": "a: '" + strings.Repeat("long ", 4*n) + "'", "no blank": strings.Repeat("a:\n", n),
		"text": "a: " + strings.Repeat("x", 8*n), "escaped": `a: "` + strings.Repeat("<", 8*n) + `"`, "escapes": `a: "` + strings.Repeat(`\0`, 4*n) + `"`, "quotes": "a: '" + strings.Repeat(`"`, 8*n) + "'",
		"block": "a: |\n" + strings.Repeat(" x\n", 3*n), "blank lines": "a: |\n" + strings.Repeat("\n", 8*n) + " x\n", "binary": "a: !!binary " + strings.Repeat("AAAA", 2*n),
		"other binary": "%TAG !b! tag:yaml.org,2002:bin\n---\na: !b!ary " + strings.Repeat("AAAA", 2*n), "separators": "a: |\n x" + strings.Repeat("\u2028 ", 2*n),
		"digits": "a: " + strings.Repeat("1", 8*n), "colons": "a: " + strings.Repeat(":x", 4*n), "UTF-16": "\xff\xfe" + strings.Repeat("-\x00 \x000\x00\n\x00", n),
		"aliases": "a: &a {a}\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n), ",") + "]\n", "texts by alias": "a: &a " + strings.Repeat("<", n/4) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n/8), ",") + "]\n",
		"merges":            "a: &a {a: 0, b: 1}\nb: [" + strings.TrimSuffix(strings.Repeat("{<<: *a},", n), ",") + "]\n",
		"binaries by alias": "a: &a !!binary " + strings.Repeat("AAAA", n/8) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n/8), ",") + "]\n",
		"numbers by alias":  "a: &a " + strings.Repeat("1", n/8) + "_1\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n/8), ",") + "]\n",
		"times by alias":    "a: &a 2001-01-01" + strings.Repeat("1", n/8) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n/8), ",") + "]\n",
		"maps by alias":     "a: &a {" + strings.Repeat("a: {b},", n/8) + "}\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", n/8), ",") + "]\n",
		"UTF-16 aliases":    "\xff\xfe" + strings.Join(strings.Split("a: &a bcd\nb: [*a, *a, *a]\n", ""), "\x00") + "\x00",
	}
}

// The dearest documents cost no more than what is measured.
func TestMeasureDearest(t *testing.T) {
	for _, n := range []int{8, 800} {
		for name, doc := range dearest(n) {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { checkMeasure(t, doc) })
		}
	}
}

func FuzzMeasure(f *testing.F) {
	for _, doc := range dearest(8) {
		f.Add(doc)
	}
	for _, doc := range nasty {
		f.Add(doc.doc)
	}
	for _, value := range scalars {
		f.Add("a: &a " + value + "\nb: *a\n")
	}
	f.Fuzz(func(t *testing.T, doc string) { checkMeasure(t, doc) })
}

// A real document has no place that may be an alias.
func TestMeasureRealDocuments(t *testing.T) {
	for _, doc := range realDocuments(t) {
		size, err := yamljson.Measure(doc, math.MaxInt64)
		checktest.FailIf(t, err != nil || size.Aliases > 0, "%.200s: %+v, %v", doc, size, err)
	}
}

func realDocuments(t *testing.T) (docs []string) {
	t.Helper()
	for _, pattern := range []string{"payload-*/release-manifests/*.y*ml", "clusters/*/*.y*ml", "definitions/*.y*ml", "graph-data/*/*.y*ml"} {
		files, err := filepath.Glob(filepath.Join(testdata.Dir(t), pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			data := checktest.Get(os.ReadFile(file))(t)
			docs = append(docs, documents(string(data))...)
		}
	}
	return docs
}
