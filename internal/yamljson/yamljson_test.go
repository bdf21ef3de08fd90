package yamljson_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// slow is the way of apimachinery. ok is false for an error and for what is
// neither a map nor empty.
func slow(doc string) (object map[string]any, text []byte, ok bool) {
	text, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return nil, nil, false
	}
	if string(text) == "null" {
		return nil, nil, true
	}
	if text[0] != '{' || kjson.Unmarshal(text, &object) != nil {
		return nil, nil, false
	}
	return object, text, true
}

// check compares the two ways for one document and returns whether the fast one
// accepted it.
func check(t *testing.T, d *yamljson.Decoder, doc string) bool {
	t.Helper()
	return compare(t, d, doc)
}

func compare(t rapid.TB, d *yamljson.Decoder, doc string) bool {
	t.Helper()
	if !yamljson.Clean([]byte(doc)) {
		return false
	}
	text, ok := d.Decode(doc)
	if !ok {
		return false
	}
	var object map[string]any
	if text != nil {
		if object, ok = yamljson.Object(string(text)); !ok {
			t.Errorf("no object of %s", text)
		}
	}
	wantObject, wantText, wantOK := slow(doc)
	if !wantOK {
		t.Errorf("accepted, unlike the slow way:\n%q\n%s", doc, text)
		return true
	}
	checktest.FailIf(t, !bytes.Equal(text, wantText), "document\n%q\ngives  %s\nwanted %s", doc, text, wantText)
	// cmp.Diff takes exponential time for deeply nested lists.
	checktest.FailIf(t, !reflect.DeepEqual(wantObject, object),
		"document\n%q\ngives  %#v\nwanted %#v", doc, object, wantObject)
	return true
}

// documents cuts a file at its separators, roughly: enough for tests.
func documents(data string) []string {
	if !strings.HasSuffix(data, "\n") {
		data += "\n"
	}
	docs := strings.SplitAfter(data, "\n---\n")
	for i := range docs {
		docs[i] = strings.TrimSuffix(docs[i], "---\n")
	}
	return docs
}

func TestRealDocuments(t *testing.T) {
	var d yamljson.Decoder
	for _, payload := range []string{"payload-4.17.30", "payload-4.18.15"} {
		files, err := filepath.Glob(filepath.Join(testdata.Dir(t), payload, "release-manifests", "*.y*ml"))
		if err != nil || len(files) < 600 {
			t.Fatal(err, len(files))
		}
		fast, all := 0, 0
		for _, file := range files {
			data := checktest.Get(os.ReadFile(file))(t)
			for _, doc := range documents(string(data)) {
				all++
				if check(t, &d, doc) {
					fast++
				}
			}
		}
		t.Logf("%s: %d of %d documents are read fast", payload, fast, all)
		checktest.FailIf(t, fast < all*95/100, "%d of %d documents need the slow way", all-fast, all)
	}
}

// TestRandomLines puts together documents of lines that are likely to mean
// something.
func TestRandomLines(t *testing.T) {
	var d yamljson.Decoder
	indents := rapid.SampledFrom([]string{"", "", " ", "  ", "  ", "   ", "    ", "      "})
	dashes := rapid.SampledFrom([]string{"", "", "", "- ", "- ", "-   ", "- - ", "-"})
	keys := rapid.SampledFrom([]string{"", "", "a: ", "b: ", "c: ", "a:", "'b':", "\"c\" : ", "y: ", "b:  "})
	values := rapid.SampledFrom(append([]string{
		"", "", "", "x", "y z", "|", ">", "|-", ">+", "|1", ">2-", "'", "\"", "'x", "x'", "\"x", "x\"", "\\", "x \\", "x # c", "# c", "[", "]", "[x,", "{", "}", "{x: y,", "x: y}", "'x' # c", "...", " ", "\t",
	}, scalars...))
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		var doc strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			doc.WriteString(indents.Draw(t, "indent") + dashes.Draw(t, "dash") + keys.Draw(t, "key") + values.Draw(t, "value") + "\n")
		}
		if compare(t, &d, doc.String()) {
			accepted++
		}
	})
	t.Logf("%d accepted", accepted)
}

func FuzzDecode(f *testing.F) {
	for _, doc := range nasty {
		f.Add(doc.doc)
	}
	for _, value := range scalars {
		f.Add("a: " + value)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var d yamljson.Decoder
		doc = strings.ReplaceAll(doc, "\n---", "\n -")
		check(t, &d, doc+"\n")
	})
}

// TestMaxValues: a document with more values than allowed is refused while it
// is read, in each kind of collection.
func TestMaxValues(t *testing.T) {
	for name, doc := range map[string]string{
		"sequence":      "a:\n" + strings.Repeat("- 1\n", 1000),
		"nulls":         "a:\n" + strings.Repeat("-\n", 1000),
		"mapping":       strings.Repeat("a: 1\n", 1000),
		"empty values":  strings.Repeat("a:\n", 1000),
		"flow sequence": "a: [" + strings.Repeat("1,", 1000) + "]\n",
		"flow mapping":  "a: {" + strings.Repeat("a: 1,", 1000) + "}\n",
		"block scalars": "a:\n" + strings.Repeat("- |\n  a\n", 1000),
		"nested":        "a: " + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "\n",
	} {
		d := yamljson.Decoder{}
		if _, ok := d.Decode(doc); !ok || d.Full() {
			t.Fatal(name)
		}
		all := d.Values()
		d.MaxValues = all
		if _, ok := d.Decode(doc); !ok || d.Full() || d.Values() != all {
			t.Errorf("%s: refused at its own number of values, %d", name, all)
		}
		d.MaxValues = 100
		if _, ok := d.Decode(doc); ok || !d.Full() || d.Values() > 103 {
			t.Errorf("%s: %v, %d values", name, ok, d.Values())
		}
		if _, ok := d.Decode("a: 1\n"); !ok || d.Full() {
			t.Errorf("%s: what comes later is refused", name)
		}
	}
}
