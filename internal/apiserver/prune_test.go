package apiserver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	checktest.OK(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

func TestPrune(t *testing.T) {
	for _, tt := range []struct {
		name, schema, in, want string
		removed                []string
	}{
		{"all is known", `{properties: {a: {type: string}}}`, `{a: x}`, `{a: x}`, nil},
		{"a field", `{properties: {a: {type: string}}}`, `{a: x, b: {c: x}}`, `{a: x}`, []string{"b"}},
		{"in order", `{properties: {a: {type: object, properties: {}}}}`, `{z: x, b: x, a: {d: x, c: x}}`, `{a: {}}`, []string{"a.c", "a.d", "b", "z"}},
		{"of elements", `{properties: {l: {type: array, items: {type: object, properties: {a: {}}}}}}`, `{l: [{a: x}, {b: x}, {a: x, c: x}]}`, `{l: [{a: x}, {}, {a: x}]}`, []string{"l[1].b", "l[2].c"}},
		{"what every object has", `{properties: {}}`, `{apiVersion: v1, kind: K, metadata: {name: n, labels: {any: x}, annotations: {a.b/c: x}, finalizers: [f], ownerReferences: [{uid: u, controller: true}], managedFields: [{fieldsV1: {"f:x": {}}}]}}`,
			`{apiVersion: v1, kind: K, metadata: {name: n, labels: {any: x}, annotations: {a.b/c: x}, finalizers: [f], ownerReferences: [{uid: u, controller: true}], managedFields: [{fieldsV1: {"f:x": {}}}]}}`, nil},
		{"metadata, whatever the schema has of it", `{properties: {metadata: {type: object, properties: {mine: {type: string}}}}}`, `{metadata: {name: n, mine: x, clusterName: x, ownerReferences: [{uid: u, x: x}]}}`,
			`{metadata: {name: n, ownerReferences: [{uid: u}]}}`, []string{"metadata.clusterName", "metadata.mine", "metadata.ownerReferences[0].x"}},
		{"kept", `{properties: {a: {x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: object, properties: {b: {}}}}}}}`, `{a: {x: {y: {z: x}}, known: {b: x, c: x}}}`, `{a: {x: {y: {z: x}}, known: {b: x}}}`, []string{"a.known.c"}},
		{"kept in elements", `{properties: {l: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: object}}}}}}`, `{l: [{x: {y: x}, a: {b: x}}]}`, `{l: [{x: {y: x}, a: {}}]}`, []string{"l[0].a.b"}},
		{"kept in all", `{x-kubernetes-preserve-unknown-fields: true}`, `{a: {b: x}, metadata: {name: n, c: x}}`, `{a: {b: x}, metadata: {name: n}}`, []string{"metadata.c"}},
		{"an embedded resource", `{properties: {r: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}}`, `{r: {apiVersion: v1, kind: K, metadata: {name: n, x: x}, spec: {a: x}, status: {}}}`,
			`{r: {apiVersion: v1, kind: K, metadata: {name: n}, spec: {}}}`, []string{"r.metadata.x", "r.spec.a", "r.status"}},
		{"an embedded resource that is kept", `{properties: {r: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`, `{r: {apiVersion: v1, kind: K, metadata: {name: n, x: x}, spec: {a: x}}}`,
			`{r: {apiVersion: v1, kind: K, metadata: {name: n}, spec: {a: x}}}`, []string{"r.metadata.x"}},
		{"no embedded resource", `{properties: {r: {type: object, properties: {metadata: {type: object}}}}}`, `{r: {kind: K, metadata: {name: n}}}`, `{r: {metadata: {}}}`, []string{"r.kind", "r.metadata.name"}},
		{"an integer or a text", `{properties: {p: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}, q: {x-kubernetes-int-or-string: true}}}`, `{p: 80, q: http}`, `{p: 80, q: http}`, nil},
		{"other keys", `{properties: {m: {type: object, additionalProperties: {type: object, properties: {a: {}}}}}}`, `{m: {x: {a: x}, y.z: {a: x, b: x}}}`, `{m: {x: {a: x}, y.z: {a: x}}}`, []string{"m.y.z.b"}},
		{"any other keys", `{properties: {m: {type: object, additionalProperties: true}}}`, `{m: {x: {a: x}}}`, `{m: {x: {a: x}}}`, nil},
		{"an object without fields", `{properties: {m: {type: object}}}`, `{m: {x: {a: x}}}`, `{m: {}}`, []string{"m.x"}},
		{"other types are left to validation", `{properties: {a: {type: string}, b: {type: array, items: {type: object}}, c: {type: object, properties: {}}, p: {x-kubernetes-int-or-string: true}}}`, `{a: {x: x}, b: {x: x}, c: [{x: x}], p: {x: x}}`, `{a: {x: x}, b: {x: x}, c: [{x: x}], p: {x: x}}`, nil},
		{"null", `{properties: {a: {type: object, nullable: true}}}`, `{a: null}`, `{a: null}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, before := tree(t, tt.in), tree(t, tt.in)
			var removed []string
			got := apiserver.Prune(in, tree(t, tt.schema), func(path string) { removed = append(removed, path) })
			checktest.Same(t, tree(t, tt.want), got)
			checktest.Same(t, tt.removed, removed)
			checktest.SameIn(t, "the object itself has changed", before, in)
			checktest.SameIn(t, "without paths", got, apiserver.Prune(in, tree(t, tt.schema), nil))
		})
	}
}

// What is left lacks nothing, and all else is as it was.
func TestPruneTwice(t *testing.T) {
	schema := tree(t, `{properties: {a: {type: object, properties: {b: {type: array, items: {type: object, properties: {a: {}}, additionalProperties: {type: object, properties: {b: {}}}}}, a: {type: string}}},
  b: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object}}}, metadata: {type: object}}}`)
	names := rapid.SampledFrom([]string{"a", "b", "c", "metadata", "name"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return rapid.SampledFrom([]any{"x", nil, int64(1)})
		}
		return rapid.OneOf(value(0), rapid.Map(rapid.MapOfN(names, value(depth-1), 0, 3), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 2), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOfN(names, value(4), 0, 4).Draw(t, "object")
		before := runtime.DeepCopyJSON(in)
		var removed []string
		once := apiserver.Prune(in, schema, func(path string) { removed = append(removed, path) })
		twice := apiserver.Prune(once, schema, func(path string) { t.Errorf("%s was left", path) })
		if !cmp.Equal(once, twice) || !cmp.Equal(before, in) || (len(removed) == 0) != cmp.Equal(once, in) {
			t.Errorf("%v: %v, then %v, removed %v", in, once, twice, removed)
		}
	})
}

func TestOf(t *testing.T) {
	definition := func(more string) map[string]any {
		return tree(t, `{spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {description: one}}}, {name: v2, served: false, schema: {openAPIV3Schema: {}}}, {name: v3}, 7]`+more+`}}`)
	}
	for _, tt := range []struct{ more, version, want string }{
		{"", "v1", "one"}, {"", "v2", ""}, {"", "v3", ""}, {"", "v4", ""},
		{", preserveUnknownFields: true", "v1", ""}, {", preserveUnknownFields: false", "v1", "one"},
	} {
		got := apiserver.Of(definition(tt.more), tt.version)
		if description, _ := got["description"].(string); description != tt.want || (got == nil) != (tt.want == "") {
			t.Errorf("%s %s: %v", tt.version, tt.more, got)
		}
	}
	checktest.FailIf(t, apiserver.Of(nil, "v1") != nil, "a schema of nothing")
}
