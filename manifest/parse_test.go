package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns}\n"
	configMap2 = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: ns}\n"
	jsonA      = `{"kind":"K","metadata":{"name":"a"}}`
	jsonB      = `{"kind":"K", "metadata":{"name":"b"}}`
)

// TestParse holds what apimachinery's decoder makes of the forms that files
// come in. want are the manifests, err is a part of the error.
func TestParse(t *testing.T) {
	idA, idB := `Filename: "f.yaml" Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "a"`, `Filename: "f.yaml" Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "b"`
	kA, kB := `Filename: "f.yaml" Group: "" Kind: "K" Name: "a"`, `Filename: "f.yaml" Group: "" Kind: "K" Name: "b"`
	tests := []struct {
		name, data string
		want       []string
		err        string
		document   int
	}{
		{name: "documents", data: configMap + "---\n" + configMap2, want: []string{idA, idB}},
		{name: "separator with blanks", data: configMap + "--- \n" + configMap2, want: []string{idA, idB}},
		{name: "separator with a comment", data: configMap + "--- # text\n" + configMap2, want: []string{idA, idB}},
		{name: "separators around", data: "---\n---\n# c\n---\n" + configMap + "---\n---\nnull\n---\n" + configMap2 + "---\n", want: []string{idA, idB}},
		{name: "CRLF", data: strings.ReplaceAll(configMap+"---\n"+configMap2, "\n", "\r\n"), want: []string{idA, idB}},
		{name: "BOM", data: "\ufeff" + configMap, want: []string{idA}},
		{name: "no line end", data: strings.TrimSpace(configMap + "---\n" + configMap2), want: []string{idA, idB}},
		{name: "JSON objects", data: jsonA + jsonB, want: []string{kA, kB}},
		{name: "JSON objects on lines", data: jsonA + "\n" + jsonB + "\n", want: []string{kA, kB}},
		{name: "JSON objects with separator", data: jsonA + "\n---\n" + jsonB, want: []string{kA, kB}},
		{name: "JSON then YAML", data: jsonA + "\n---\n" + configMap, want: []string{kA, idA}},
		{name: "YAML then JSON", data: configMap + "---\n" + jsonA, want: []string{idA, kA}},
		{name: "separator with text", data: configMap + "---text\n" + configMap2, err: "error parsing: invalid Yaml document separator: text", document: 1},
		{name: "separator with text first", data: "---text\n" + configMap2, err: "error parsing: invalid Yaml document separator: text", document: 1},
		{name: "empty", data: ""},
		{name: "comments", data: "# a\n# b\n"},
		{name: "null", data: "null"},
		{name: "unquoted y", data: "kind: K\nmetadata: {name: y}", err: `Resource with fields Group: "" Kind: "K" Name: "" must contain kubernetes required fields kind and name`, document: 1},
		{name: "unquoted on", data: "kind: K\nmetadata: {name: a, namespace: on}", want: []string{kA}},
		{name: "list", data: "- a", err: "error parsing: error unmarshaling JSON: while decoding JSON: unable to decode manifest: couldn't get version/kind; json parse error", document: 1},
		{name: "scalar", data: "text", err: "error parsing: error unmarshaling JSON: while decoding JSON: unable to decode manifest: couldn't get version/kind; json parse error", document: 1},
		{name: "no kind", data: configMap + "---\nmetadata: {name: a}", err: "error parsing: error unmarshaling JSON: while decoding JSON: unable to decode manifest: Object 'Kind' is missing in '{\"metadata\":{\"name\":\"a\"}}'", document: 2},
		{name: "kind of another type", data: "kind: 5\nmetadata: {name: a}", err: "couldn't get version/kind; json parse error", document: 1},
		{name: "kind in other letters", data: "Kind: K\nmetadata: {name: a}", err: "Object 'Kind' is missing", document: 1},
		{name: "kind twice in letters", data: "kind: K\nKind: 5\nmetadata: {name: a}", err: "couldn't get version/kind; json parse error", document: 1},
		{name: "no apiVersion", data: "kind: K\nmetadata: {name: a}", want: []string{kA}},
		{name: "apiVersion of another type", data: "apiVersion: 5\nkind: K\nmetadata: {name: a}", err: "couldn't get version/kind; json parse error", document: 1},
		{name: "bad apiVersion", data: "apiVersion: a/b/c\nkind: K\nmetadata: {name: a}", err: "unable to decode manifest: unexpected GroupVersion string: a/b/c", document: 1},
		{name: "no name", data: "apiVersion: g/v1\nkind: K\nmetadata: {namespace: ns, generateName: a}", err: `error parsing: error unmarshaling JSON: while decoding JSON: Resource with fields Group: "g" Kind: "K" Namespace: "ns" Name: "" must contain kubernetes required fields kind and name`, document: 1},
		{name: "List", data: "apiVersion: v1\nkind: List\nitems: []", err: `Resource with fields Group: "" Kind: "List" Name: "" must contain kubernetes required fields kind and name`, document: 1},
		{name: "a list with a name", data: "kind: XList\nmetadata: {name: a}\nitems: [{kind: X}]", want: []string{`Filename: "f.yaml" Group: "" Kind: "XList" Name: "a"`}},
		{name: "key twice in YAML", data: "kind: K\nmetadata: {name: b}\nmetadata: {name: a}", want: []string{kA}},
		{name: "key twice in JSON", data: `{"kind":"K","metadata":{"name":"b"},"metadata":{"name":"a"}}`, want: []string{kA}},
		{name: "syntax", data: "kind: K\n\nmetadata: [", err: "error parsing: error converting YAML to JSON: yaml: line 3: ", document: 1},
		{name: "syntax in a later document", data: configMap + "---\n---\nkind: K\nmetadata: [", err: "error parsing: error converting YAML to JSON: yaml: line 3: ", document: 2},
		{name: "JSON syntax", data: `{"kind":"K","metadata":{"name":"a"}`, err: "error parsing: ", document: 1},
		{name: "same identity", data: configMap + "---\n" + configMap, err: `duplicate resource: (Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "a")`, document: 2},
		{name: "same identity, other version", data: "apiVersion: apps/v1\nkind: K\nmetadata: {name: a}\n---\napiVersion: apps/v1beta1\nkind: K\nmetadata: {name: a}", err: `duplicate resource: (Group: "apps" Kind: "K" Name: "a")`, document: 2},
		{name: "same identity in JSON", data: jsonA + jsonA, err: `duplicate resource: (Group: "" Kind: "K" Name: "a")`, document: 2},
		{name: "separator in a block scalar", data: "kind: K\nmetadata: {name: a}\nx: |\n  a\n---\n  b\n", err: "error parsing: ", document: 2},
		{name: "alias", data: "kind: K\nmetadata: &m {name: a}\nx: *m\n", want: []string{kA}},
		{name: "merge key", data: "kind: K\nx: &m {name: a}\nmetadata: {<<: *m}\n", want: []string{kA}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifests, err := manifest.Parse("f.yaml", []byte(tt.data), manifest.Limits{})
			if tt.err != "" {
				var fault *manifest.Error
				if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.err) || fault.Document != tt.document || fault.File != "f.yaml" || manifests != nil {
					t.Fatalf("%d manifests, error %v (%+v)\nwanted %s in document %d", len(manifests), err, fault, tt.err, tt.document)
				}
				return
			}
			checktest.OK(t, err)
			var got []string
			for i, m := range manifests {
				got = append(got, m.String())
				checktest.Equal(t, i+1, m.Document, "document %d at place %d", m.Document, i)
			}
			checktest.Same(t, tt.want, got)
		})
	}
}

// TestObjectIsDecodedOnce asks for one object from many goroutines.
func TestObjectIsDecodedOnce(t *testing.T) {
	manifests := checktest.Get(manifest.Parse("f.yaml", []byte(configMap), manifest.Limits{}))(t)
	objects := make(chan *unstructured.Unstructured)
	for range 20 {
		go func() { objects <- manifests[0].Object() }()
	}
	first := <-objects
	checktest.Equal(t, "a", first.GetName(), "first.GetName() (%v)", first)
	for range 19 {
		checktest.Equal(t, first, <-objects, "decoded again")
	}
	if got := new(manifest.Manifest).Object(); got != nil {
		t.Error(got)
	}
}

func TestRawBytes(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"YAML", "kind: K\nb: <&>\na: [1.0, 0x10, 1.5, y, 2001-01-01, ~]\nmetadata: {name: a}", `{"a":[1,16,1.5,true,"2001-01-01",null],"b":"\u003c\u0026\u003e","kind":"K","metadata":{"name":"a"}}`},
		{"JSON", " \n{\"kind\":\"K\", \"b\":\"<\",\"b\":1.0,\n \"metadata\":{\"name\":\"a\"}} \n", "{\"kind\":\"K\", \"b\":\"<\",\"b\":1.0,\n \"metadata\":{\"name\":\"a\"}}"},
		{"no line end in a block scalar", "kind: K\nmetadata: {name: a}\nx: |\n  text", `{"kind":"K","metadata":{"name":"a"},"x":"text\n"}`},
	}
	for _, tt := range tests {
		manifests, err := manifest.Parse("f", []byte(tt.data), manifest.Limits{})
		if err != nil || len(manifests) != 1 || string(manifests[0].Raw) != tt.want {
			t.Errorf("%s: %v %v\n%s\n%s", tt.name, err, len(manifests), manifests[0].Raw, tt.want)
		}
	}
}

func TestAnnotations(t *testing.T) {
	tests := map[string]map[string]string{
		"{}":              {},
		"null":            nil,
		"{a: b, c: null}": {"a": "b", "c": ""},
		"{a: b, c: 1}":    nil,
		"{a: b, c: yes}":  nil,
		"[a]":             nil,
	}
	for annotations, want := range tests {
		manifests := checktest.Get(manifest.Parse("f",
			[]byte("kind: K\nmetadata: {name: a, annotations: "+annotations+"}"), manifest.Limits{}))(t)
		if got := manifests[0].Annotations(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", annotations, got, want)
		}
	}
}

func TestParseLimits(t *testing.T) {
	var big strings.Builder
	fmt.Fprintf(&big, "kind: K\nmetadata: {name: a}\nx: &x %s\ny: [*x", strings.Repeat("a", 1000))
	big.WriteString(strings.Repeat(", *x", 2000) + "]\n")
	tests := []struct {
		name, data string
		limits     manifest.Limits
		limit      string
	}{
		{"size", configMap, manifest.Limits{FileSize: 10}, "FileSize"},
		{"documents", configMap + "---\n" + configMap2, manifest.Limits{DocumentsPerFile: 1}, "DocumentsPerFile"},
		{"JSON documents", jsonA + jsonB, manifest.Limits{DocumentsPerFile: 1}, "DocumentsPerFile"},
		{"depth", "kind: K\nmetadata: {name: a}\nx: [[[]]]", manifest.Limits{Depth: 3}, "Depth"},
		{"JSON depth", `{"kind":"K","metadata":{"name":"a"},"x":[[[]]]}`, manifest.Limits{Depth: 3}, "Depth"},
		{"default depth", "kind: K\nmetadata: {name: a}\nx: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), manifest.Limits{}, "Depth"},
		{"aliases", big.String(), manifest.Limits{ExpandedSize: 1 << 20}, "ExpandedSize"},
		{"aliases after JSON", jsonA + "\n---\n" + strings.ReplaceAll(big.String(), "name: a", "name: b"), manifest.Limits{ExpandedSize: 1 << 20}, "ExpandedSize"},
	}
	for _, tt := range tests {
		_, err := manifest.Parse("f", []byte(tt.data), tt.limits)
		var limit *manifest.LimitError
		if !errors.As(err, &limit) || limit.Limit != tt.limit || !strings.Contains(err.Error(), tt.limit) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	checktest.Good(t, checktest.Err(
		manifest.Parse("f", []byte("kind: K\nmetadata: {name: a}\nx: [[[]]]"), manifest.Limits{Depth: 4})))
	checktest.Good(t, checktest.Err(manifest.Parse("f", []byte(big.String()), manifest.Limits{})))
}

// reference decodes a file with apimachinery's decoder alone.
func reference(data []byte) (raws [][]byte, objects []map[string]any, err error) {
	stream := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 1024)
	seen := map[string]bool{}
	for {
		var raw rawObject
		if err := stream.Decode(&raw); err == io.EOF {
			return raws, objects, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("error parsing: %w", err)
		}
		if raw.raw == nil {
			continue
		}
		gvk := raw.object.GroupVersionKind()
		id := fmt.Sprintf("Group: %q Kind: %q Namespace: %q Name: %q", gvk.Group, gvk.Kind, raw.object.GetNamespace(), raw.object.GetName())
		if seen[id] {
			return nil, nil, fmt.Errorf("duplicate resource: (%s)", strings.Replace(id, `Namespace: "" `, "", 1))
		}
		seen[id] = true
		raws, objects = append(raws, bytes.TrimSpace(raw.raw)), append(objects, raw.object.Object)
	}
}

type rawObject struct {
	raw    []byte
	object unstructured.Unstructured
}

func (r *rawObject) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	r.raw = bytes.Clone(data)
	var kind struct{ APIVersion, Kind string }
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	if strings.Count(kind.APIVersion, "/") > 1 {
		return errors.New("bad version")
	}
	if err := r.object.UnmarshalJSON(data); err != nil {
		return err
	}
	if r.object.GetKind() == "" || r.object.GetName() == "" {
		return errors.New("no kind or name")
	}
	return nil
}

// compare checks that Parse and the reference think the same of a file.
func compare(t rapid.TB, name string, data []byte) {
	t.Helper()
	raws, objects, wantErr := reference(data)
	manifests, err := manifest.Parse(name, data, manifest.Limits{})
	if limit := (*manifest.LimitError)(nil); errors.As(err, &limit) {
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: error %v, wanted %v\n%q", name, err, wantErr, data)
	}
	if wantErr != nil {
		// Texts of YAML and of duplicates are equal; those about objects are
		// worded by another serializer.
		if w := wantErr.Error(); (strings.Contains(w, "yaml: ") || strings.Contains(w, "duplicate") || strings.Contains(w, "Yaml document")) && err.Error() != w {
			t.Fatalf("%s: error %v, wanted %v\n%q", name, err, wantErr, data)
		}
		return
	}
	if len(manifests) != len(raws) {
		t.Fatalf("%s: %d manifests, wanted %d\n%q", name, len(manifests), len(raws), data)
	}
	for i, m := range manifests {
		if !bytes.Equal(m.Raw, raws[i]) {
			t.Errorf("%s, document %d:\n%s\nwanted\n%s", name, i+1, m.Raw, raws[i])
		}
		if !reflect.DeepEqual(m.Object().Object, objects[i]) {
			t.Errorf("%s, document %d: objects differ", name, i+1)
		}
		obj := &unstructured.Unstructured{Object: objects[i]}
		id := manifest.Identity{Group: obj.GroupVersionKind().Group, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
		if m.GVK() != obj.GroupVersionKind() || m.Identity() != id || !reflect.DeepEqual(m.Annotations(), obj.GetAnnotations()) {
			t.Errorf("%s, document %d: %s %s %v of\n%s", name, i+1, m.GVK(), m.Identity(), m.Annotations(), m.Raw)
		}
	}
}

// TestParseRealFiles compares the objects and the raw bytes of every document
// of both payloads with those that apimachinery gives.
func TestParseRealFiles(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"payload-4.17.30", "payload-4.18.15"} {
		files := 0
		err := fs.WalkDir(os.DirFS(filepath.Join(testdata.Dir(t), payload)), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.Contains(filepath.Ext(path), ".y") {
				return err
			}
			if files++; israce.Enabled && files%10 != 0 {
				return nil // it takes long
			}
			data, err := os.ReadFile(filepath.Join(testdata.Dir(t), payload, path))
			if err != nil {
				return err
			}
			compare(t, path, data)
			return nil
		})
		if err != nil || files < 600 {
			t.Fatal(err, files)
		}
	}
}

// TestParseRandomLines compares files put together of lines that are likely to
// mean something.
func TestParseRandomLines(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"---", "---", "--- # c", "---x", " ---", "...", "", "# c", "null", jsonA, jsonB, jsonA + jsonB, jsonA + " x", "{", "}", "{}", "- a", "a: b", "a: [",
		strings.TrimSpace(configMap), strings.TrimSpace(configMap2), "kind: K\nmetadata: {name: c}", "kind: K\nmetadata: {name: y}", "kind: K", "x: |", "  y", "x: &x z", "y: *x", "z: *q", " \r", "\ufeff", "\t", "é: ü",
	})
	ends := rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n", "\n\n", " "})
	rapid.Check(t, func(t *rapid.T) {
		var data strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			data.WriteString(line.Draw(t, "line") + ends.Draw(t, "end"))
		}
		compare(t, "f", []byte(strings.TrimSuffix(data.String(), rapid.SampledFrom([]string{"", "\n"}).Draw(t, "last"))))
	})
}

func FuzzParse(f *testing.F) {
	for _, data := range []string{
		configMap + "---\n" + configMap2, configMap + "--- #\n---\n" + configMap, jsonA + jsonB, jsonA + "\n---\n" + configMap, jsonA + "\n# c\n---\n" + configMap,
		jsonA + jsonB + configMap, "{\n" + configMap, jsonA + " x", jsonA + "\nx", "kind: K\nmetadata: {name: a}\r\n---\r\nkind: K\n", "---x", "- a", "kind: K\nmetadata: &m {name: a}\nx: *m\n",
		"\ufeffkind: K", "kind: K\nmetadata:\n  name: y\n", "{kind: K, metadata: {name: a}}\n", "null\n---\n~\n", "kind: K\nmetadata: {name: a}\n...\nkind: X\n", jsonA + "\n\n\n{", "{}{}", "kind: K\nmetadata: {name: a}\r",
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, "f", data) })
}
