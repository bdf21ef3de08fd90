package objects_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

func compareObject(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	checktest.OK(tb, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func TestCompare(t *testing.T) {
	const widget = `
properties:
  spec:
    properties:
      parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, side], items: {properties: {count: {type: integer}}}}
      tags: {type: array, x-kubernetes-list-type: set}
      order: {type: array, items: {type: object}}
      size: {x-kubernetes-int-or-string: true}
      exact: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      free: {x-kubernetes-preserve-unknown-fields: true}
`
	pod := func(container string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {containers: [" + container + "]}}}}"
	}
	custom := func(spec string) string {
		return "{apiVersion: a.example/v1, kind: Widget, metadata: {name: x}, spec: " + spec + "}"
	}
	for _, tt := range []struct {
		name, old, new, schema string
		want                   []string // path old → new
	}{
		{name: "equal", old: pod("{name: a}"), new: pod("{name: a}")},
		{name: "a scalar", old: pod("{name: a, image: x}"), new: pod("{name: a, image: z}"), want: []string{"spec.template.spec.containers[name=a].image x → z"}},
		{name: "nothing in all its forms", old: pod("{name: a, env: [], resources: {limits: {}}}"), new: pod("{name: a, args: null}")},
		{name: "quantities", old: pod("{name: a, resources: {requests: {cpu: 1000m, memory: 1Gi}}}"), new: pod("{name: a, resources: {requests: {cpu: 1, memory: 1024Mi}}}")},
		{name: "other quantities", old: pod("{name: a, resources: {requests: {cpu: 1000m}}}"), new: pod("{name: a, resources: {requests: {cpu: 2}}}"), want: []string{"spec.template.spec.containers[name=a].resources.requests.cpu 1000m → 2"}},
		{name: "number or text", old: pod("{name: a, readinessProbe: {httpGet: {port: 80}}}"), new: pod("{name: a, readinessProbe: {httpGet: {port: '80'}}}")},
		{name: "order of a list with keys", old: pod("{name: a}, {name: b}"), new: pod("{name: b}, {name: a}")},
		{name: "elements come and go", old: pod("{name: a}, {name: b}"), new: pod("{name: b}, {name: c}"),
			want: []string{"spec.template.spec.containers[name=a] map[name:a] → <nil>", "spec.template.spec.containers[name=c] <nil> → map[name:c]"}},
		{name: "two keys, one by default", old: pod("{name: a, ports: [{containerPort: 8443, name: x}]}"), new: pod("{name: a, ports: [{containerPort: 8443, protocol: TCP, name: z}]}"),
			want: []string{"spec.template.spec.containers[name=a].ports[containerPort=8443,protocol=TCP].name x → z",
				"spec.template.spec.containers[name=a].ports[containerPort=8443,protocol=TCP].protocol <nil> → TCP"}},
		{name: "a list without keys is one value", old: pod("{name: a, args: [x, z]}"), new: pod("{name: a, args: [z, x]}"), want: []string{"spec.template.spec.containers[name=a].args [x z] → [z x]"}},
		{name: "a map in one piece", old: "{apiVersion: v1, kind: Service, spec: {selector: {a: b, c: d}}}", new: "{apiVersion: v1, kind: Service, spec: {selector: {a: b}}}",
			want: []string{"spec.selector map[a:b c:d] → map[a:b]"}},
		{name: "keys that need quotes", old: "{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {a.b/c: x}}, data: {ok-_1: x}}", new: "{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {a.b/c: z}}, data: {ok-_1: z}}",
			want: []string{"data.ok-_1 x → z", `metadata.annotations["a.b/c"] x → z`}},
		{name: "a set", old: "{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [a, x]}}", new: "{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [b.c/d, a]}}",
			want: []string{`metadata.finalizers[="b.c/d"] <nil> → b.c/d`, `metadata.finalizers[="x"] x → <nil>`}},
		{name: "a whole field", old: custom("{}"), new: custom("{a: {b: c}}"), want: []string{"spec <nil> → map[a:map[b:c]]"}},
		{name: "metadata of a kind that nobody knows", old: "{apiVersion: a.example/v1, kind: Widget, metadata: {ownerReferences: [{uid: u, name: x}]}}", new: "{apiVersion: a.example/v1, kind: Widget, metadata: {ownerReferences: [{uid: u, name: z}]}}",
			want: []string{"metadata.ownerReferences[uid=u] map[name:x uid:u] → map[name:z uid:u]"}},
		{name: "without a schema", old: custom("{parts: [{name: a}, {name: b}]}"), new: custom("{parts: [{name: b}, {name: a}]}"),
			want: []string{"spec.parts [map[name:a] map[name:b]] → [map[name:b] map[name:a]]"}},
		{name: "keys of a schema", schema: widget, old: custom("{parts: [{name: a, side: 1, count: 1}, {name: b, side: l/r}]}"), new: custom("{parts: [{name: b, side: l/r, count: 3}, {name: a, side: 1, count: 2}]}"),
			want: []string{"spec.parts[name=a,side=1].count 1 → 2", `spec.parts[name=b,side="l/r"].count <nil> → 3`}},
		{name: "elements without their keys", schema: widget, old: custom("{parts: [{count: 1}]}"), new: custom("{parts: [{count: 2}]}"), want: []string{"spec.parts [map[count:1]] → [map[count:2]]"}},
		{name: "all elements of a list with keys", schema: widget, old: custom("{x: 1}"), new: custom("{x: 1, parts: [{name: a, side: l}]}"), want: []string{"spec.parts[name=a,side=l] <nil> → map[name:a side:l]"}},
		{name: "a set of a schema", schema: widget, old: custom("{tags: [a, b]}"), new: custom("{tags: [b, c]}"), want: []string{`spec.tags[="a"] a → <nil>`, `spec.tags[="c"] <nil> → c`}},
		{name: "an atomic list compares its elements by meaning", schema: widget, old: custom("{order: [{a: 1, b: {}}]}"), new: custom("{order: [{a: 1}]}")},
		{name: "int or string of a schema", schema: widget, old: custom("{size: 1000m}"), new: custom("{size: 1}")},
		{name: "an atomic map of a schema", schema: widget, old: custom("{exact: {a: b}}"), new: custom("{exact: {a: c}}"), want: []string{"spec.exact map[a:b] → map[a:c]"}},
		{name: "below what a schema leaves open", schema: widget, old: custom("{free: {a: [1], b: {c: 1}}}"), new: custom("{free: {a: [2], b: {c: 2}}}"), want: []string{"spec.free.a [1] → [2]", "spec.free.b.c 1 → 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var schema map[string]any
			if tt.schema != "" {
				schema = compareObject(t, tt.schema).Object
			}
			var got []string
			for _, c := range objects.Compare(compareObject(t, tt.old), compareObject(t, tt.new), schema) {
				got = append(got, fmt.Sprintf("%s %v → %v", c.Path, c.Old, c.New))
			}
			checktest.Same(t, tt.want, got)
		})
	}
}

// What is equal has no changes, and what changes there are say the same in the
// other direction.
func TestCompareBothWays(t *testing.T) {
	scalar := rapid.SampledFrom([]any{"a", "b", int64(1), int64(2), true, nil})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"name", "spec", "containers", "template", "x.y"}), value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		make := func(label string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": value(4).Draw(t, label)}}
		}
		a, b := make("a"), make("b")
		c := objects.Compare(a, a.DeepCopy(), nil)
		checktest.FatalIf(t, len(c) > 0, "equal, and %v", c)
		there, back := objects.Compare(a, b, nil), clusterapi.Compare(b, a, nil)
		for i := range back {
			back[i].Old, back[i].New = back[i].New, back[i].Old
		}
		checktest.Same(t, there, back)
	})
}

func TestWithoutServerFields(t *testing.T) {
	in := compareObject(t, "{kind: A, metadata: {name: x, uid: u, generation: 2, managedFields: [], labels: {a: b}}, spec: {}, status: {a: 1}}")
	want := compareObject(t, "{kind: A, metadata: {name: x, labels: {a: b}}, spec: {}}")
	checktest.Same(t, want.Object, objects.WithoutServerFields(in).Object)
	checktest.FailIf(t, in.GetUID() != "u" || objects.WithoutServerFields(nil) != nil, "the argument was changed")
}
