package apiserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func decode(t testing.TB, text string) (v any) {
	t.Helper()
	checktest.OK(t, yaml.Unmarshal([]byte(text), &v))
	return v
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name, schema, value, want string
		unfit                     bool
	}{
		{name: "unknown fields go", schema: `{type: object, properties: {a: {type: string}}}`, value: `{a: x, b: y}`, want: `{a: x}`},
		{name: "unless they are preserved", schema: `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {}}}}`,
			value: `{a: {c: 1}, b: y}`, want: `{a: {}, b: y}`},
		{name: "a map", schema: `{type: object, additionalProperties: {type: string, enum: [x]}}`, value: `{a: x, b: y}`, want: `{a: x}`},
		{name: "an enum", schema: `{type: array, items: {type: string, enum: [a, c]}}`, value: `[a, b, c]`, want: `[a, c]`},
		{name: "a pattern, a format, a type", schema: `{type: object, properties: {a: {type: string, pattern: "^x"}, b: {type: string, format: date-time}, c: {type: integer, minimum: 0}, d: {type: integer}}}`,
			value: `{a: y, b: yesterday, c: -1, d: "1"}`, want: `{}`},
		{name: "a long text is cut", schema: `{type: object, properties: {message: {type: string, maxLength: 30}, acceptedRisks: {type: string, maxLength: 4}}}`,
			value: `{message: "` + strings.Repeat("é", 40) + `", acceptedRisks: abcdef}`, want: `{message: "ééééé... (70 more bytes)", acceptedRisks: abcd}`},
		{name: "a long name goes", schema: `{type: object, properties: {name: {type: string, maxLength: 3}}}`, value: `{name: abcd}`, want: `{}`},
		{name: "a long list is cut", schema: `{type: array, maxItems: 2, items: {type: integer}}`, value: `[1, 2, 3]`, want: `[1, 2]`},
		{name: "what does not fit does not count", schema: `{type: array, maxItems: 2, items: {type: integer, minimum: 2}}`, value: `[1, 2, 3]`, want: `[2, 3]`},
		{name: "a list that is too short", schema: `{type: object, properties: {a: {type: array, minItems: 1, items: {type: string, enum: [x]}}}}`, value: `{a: [y]}`, want: `{}`},
		{name: "a set", schema: `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, value: `[a, b, a]`, want: `[a, b]`},
		{name: "a list with keys", schema: `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {type: object, properties: {type: {type: string}, n: {type: integer}}}}`,
			value: `[{type: a, n: 1}, {type: b}, {type: a, n: 2}]`, want: `[{type: a, n: 1}, {type: b}]`},
		{name: "an element lacks what it requires", schema: `{type: array, items: {type: object, required: [a], properties: {a: {type: string, enum: [x]}}}}`,
			value: `[{a: x}, {a: y}, {}]`, want: `[{a: x}]`},
		{name: "a default is not required", schema: `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, value: `{}`, want: `{}`},
		{name: "null", schema: `{type: object, required: [b, c], properties: {a: {type: string}, b: {type: string, nullable: true}, c: {type: array, items: {type: string}}}}`,
			value: `{a: null, b: null, c: null}`, want: `{b: null, c: []}`},
		{name: "one of several", schema: `{type: object, properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, b: {type: integer, oneOf: [{minimum: 3}, {maximum: 1}]}}}`,
			value: `{a: "5%", b: 2}`, want: `{a: "5%"}`},
		{name: "nothing left", schema: `{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}`, value: `{b: x}`, want: `{b: x}`, unfit: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := checktest.Get(apiserver.Compile(decode(t, tt.schema).(map[string]any)))(t)
			value := decode(t, tt.value)
			got, ok := s.Fit(value)
			diff := cmp.Diff(decode(t, tt.want), got)
			checktest.FailIf(t, diff != "" || ok == tt.unfit, "fits: %v (-want +got):\n%s", ok, diff)
			checktest.SameIn(t, "the value has changed", decode(t, tt.value), value)
		})
	}
}

func TestCompileDepth(t *testing.T) {
	tree := map[string]any{"type": "string"}
	for range 200 {
		tree = map[string]any{"type": "array", "items": tree}
	}
	checktest.Fails(t, checktest.Err(apiserver.Compile(tree)), "no error")
}

// TestFitIsAccepted: what fits is what the schemas of real definitions accept, whatever
// stands in a status, and fits again as it is.
func TestFitIsAccepted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t), "definitions", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var trees []map[string]any
	for _, file := range files {
		data := checktest.Get(os.ReadFile(file))(t)
		v := decode(t, string(data)).(map[string]any)["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		root := v["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		trees = append(trees, root["properties"].(map[string]any)["status"].(map[string]any))
	}
	rapid.Check(t, func(t *rapid.T) {
		tree := rapid.SampledFrom(trees).Draw(t, "definition")
		other := rapid.SampledFrom(trees).Draw(t, "status of")
		s := checktest.Get(apiserver.Compile(tree))(t)
		value := draw(t, other)
		fitting, ok := s.Fit(value)
		if !ok {
			return
		}
		parsed := checktest.Get(apiserver.Parse(tree))(t)
		if r := validate.NewSchemaValidator(parsed, nil, "status", strfmt.Default).Validate(withoutNulls(fitting)); !r.IsValid() {
			text, _ := json.Marshal(fitting)
			t.Fatalf("%v\n%s", r.Errors, text)
		}
		again, ok := s.Fit(fitting)
		diff := cmp.Diff(fitting, again)
		checktest.FatalIf(t, diff != "" || !ok, "fits again: %v, %s", ok, diff)
	})
}

// withoutNulls puts something in the place of nulls, which the schemas allow and the
// validator does not know.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			switch {
			case e != nil:
				out[name] = withoutNulls(e)
			case name == "availableUpdates":
				out[name] = []any{}
			default:
				out[name] = "2026-01-02T03:04:05Z"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNulls(v[i])
		}
		return out
	}
	return v
}

// draw makes a value that mostly fits a schema.
func draw(t *rapid.T, tree map[string]any) any {
	if rapid.IntRange(0, 30).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]any{nil, "", "x", int64(-1), []any{}, map[string]any{}, strings.Repeat("long ", 10_000), []any{"x", "x"}}).Draw(t, "value")
	}
	if enum, ok := tree["enum"].([]any); ok {
		return rapid.SampledFrom(append([]any{"Other"}, enum...)).Draw(t, "of enum")
	}
	switch tree["type"] {
	case "object":
		out := map[string]any{"other": "x"}
		properties, _ := tree["properties"].(map[string]any)
		for _, name := range sortedKeys(properties) {
			if rapid.IntRange(0, 9).Draw(t, "has") > 0 {
				out[name] = draw(t, properties[name].(map[string]any))
			}
		}
		return out
	case "array":
		out := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			out = append(out, draw(t, tree["items"].(map[string]any)))
		}
		return out
	case "integer":
		return int64(rapid.IntRange(-1, 5).Draw(t, "number"))
	case "boolean":
		return rapid.Bool().Draw(t, "bool")
	}
	switch tree["format"] {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "uri":
		return "https://example.com/x"
	}
	return rapid.SampledFrom([]string{"A", "B", "some words"}).Draw(t, "text")
}

func sortedKeys(m map[string]any) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// BenchmarkFit cuts statuses of a growing history.
func BenchmarkFit(b *testing.B) {
	schema := decode(b, `{type: object, properties: {history: {type: array, items: {type: object, required: [image], properties: {image: {type: string}, version: {type: string}, state: {type: string, enum: [Partial, Completed]}}}}}}`)
	s := checktest.Get(apiserver.Compile(schema.(map[string]any)))(b)
	for _, n := range []int{10, 100, 1000} {
		var history []any
		for i := range n {
			history = append(history, map[string]any{"image": fmt.Sprint("image", i), "version": "4.1.0", "state": "Completed"})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s.Fit(map[string]any{"history": history})
			}
		})
	}
}
