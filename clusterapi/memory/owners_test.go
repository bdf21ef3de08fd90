package memory

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// owned are objects of kinds with a schema, with a definition, and with neither.
var ownedObjects = []string{`
apiVersion: v1
kind: Node
metadata:
  name: it
  labels: {a: "1", b: "2"}
  annotations: {c: "1"}
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: o, uid: "1"}]
  finalizers: [example.com/a, example.com/b]
spec: {providerID: x, taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoSchedule}], podCIDRs: [10.0.0.0/8]}
status:
  capacity: {cpu: "4", memory: 16Gi}
  conditions: [{type: Ready, status: "True", reason: r}, {type: DiskPressure, status: "False"}]
  nodeInfo: {architecture: amd64, kubeletVersion: v1}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: it, namespace: ns}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {a: b}
      containers: [{name: a, image: i, env: [{name: x, value: "1"}], args: [one, two]}, {name: b, image: j, ports: [{containerPort: 80, protocol: TCP}]}]
`, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: it, namespace: ns}
spec: {size: 3, parts: [{name: a, count: 1}, {name: b, count: 2}], tags: [red, blue], free: {x: {y: 1}}, empty: {}}
`}

var ownersWidget = map[string]any{
	"type": "object",
	"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
		"size": map[string]any{"type": "integer"},
		"parts": map[string]any{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
			"items": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}}}},
		"tags":  map[string]any{"type": "array", "x-kubernetes-list-type": "set", "items": map[string]any{"type": "string"}},
		"free":  map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		"empty": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
	}}},
}

func ownersKinds(t *testing.T) map[string]*kind {
	t.Helper()
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	types := checktest.Must(definedType(ownersWidget))
	defined := &kind{gvk: widget, status: true, counts: true, types: types}
	defined.prepare()
	return map[string]*kind{
		"Node":       builtin().kind(schema.GroupVersionKind{Version: "v1", Kind: "Node"}),
		"Deployment": builtin().kind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}),
		"Widget":     defined,
		"":           otherKind(widget),
	}
}

// What owners says is what the field manager says, whatever the update.
func TestOwners(t *testing.T) {
	who := []actor{{"one", metav1.ManagedFieldsOperationUpdate, ""}, {"two", metav1.ManagedFieldsOperationUpdate, ""}, {"three", metav1.ManagedFieldsOperationUpdate, "status"}}
	for name, k := range ownersKinds(t) {
		t.Run(name, func(t *testing.T) {
			fast := 0
			for seed := range uint64(60) {
				fast += ownersRun(t, k, who, rand.New(rand.NewPCG(seed, 1)))
			}
			checktest.FailIf(t, fast < 500, "%d updates without the field manager, of 900", fast)
		})
	}
}

func ownersRun(t *testing.T, k *kind, who []actor, draw *rand.Rand) (fast int) {
	t.Helper()
	var live *entry
	for step := range 15 {
		var obj map[string]any
		if live == nil {
			for _, text := range ownedObjects {
				var u map[string]any
				checktest.OK(t, yaml.Unmarshal([]byte(text), &u))
				if u["kind"] == k.gvk.Kind {
					content := checktest.Must(copyTree(u, nil, ""))
					obj = content.(map[string]any)
				}
			}
		} else {
			obj = (&unstructured.Unstructured{Object: live.obj.Object}).DeepCopy().Object
			delete(obj["metadata"].(map[string]any), "managedFields")
			for range 1 + draw.IntN(3) {
				mutate(obj, draw, 0)
			}
		}
		a := who[draw.IntN(len(who))]
		from := newRecord(k.gvk)
		if live != nil {
			from = k.record(live)
		}
		fm := k.main
		if a.subresource != "" {
			fm = k.sub
		}
		to := &record{Unstructured: &unstructured.Unstructured{Object: obj}}
		if live != nil {
			to.managed = live.managed
		}
		managed, owned, ok := k.owners(live, from.Object, obj, a)
		updated, err := fm.Update(from, to, a.manager)
		if err != nil {
			checktest.FatalIf(t, ok, "step %d: the field manager refuses: %v", step, err)
			continue
		}
		now := time.Unix(int64(1000+step), 0)
		want := updated.(*record)
		stamp(want, live, now, a)
		next := &record{Unstructured: to.Unstructured, managed: want.managed}
		if ok {
			fast++
			got := &record{Unstructured: to.Unstructured, managed: managed, owned: owned}
			stamp(got, live, now, a)
			if diff := cmp.Diff(ownersText(want.managed), ownersText(got.managed)); diff != "" {
				t.Fatalf("step %d, %v (-field manager +owners):\n%s", step, a, diff)
			}
			next = got
		}
		e := &entry{obj: &unstructured.Unstructured{Object: maps.Clone(obj)}, managed: next.managed, kind: k}
		encoded := checktest.Must(encodeManaged(e, live, next))
		want.managed = slices.Clone(want.managed)
		plain := checktest.Must(encodeManaged(&entry{managed: want.managed}, nil, want))
		if diff := cmp.Diff(plain, encoded); diff != "" {
			t.Fatalf("step %d: encoded otherwise:\n%s", step, diff)
		}
		live = e
	}
	return fast
}

func ownersText(managed []metav1.ManagedFieldsEntry) []string {
	var out []string
	for _, e := range managed {
		text, _ := json.Marshal(e)
		out = append(out, string(text))
	}
	return out
}

// mutate changes something below a map.
func mutate(m map[string]any, draw *rand.Rand, depth int) {
	names := slices.Sorted(maps.Keys(m))
	if len(names) == 0 || draw.IntN(6) == 0 && depth > 0 {
		m[fmt.Sprint("f", draw.IntN(3))] = []any{"v", int64(draw.IntN(3)), map[string]any{}, map[string]any{"z": "1"}, []any{}}[draw.IntN(5)]
		return
	}
	name := names[draw.IntN(len(names))]
	if depth == 0 && (name == "apiVersion" || name == "kind") || depth == 1 && name == "name" {
		return
	}
	if depth > 0 && draw.IntN(6) == 0 {
		delete(m, name)
		return
	}
	switch v := m[name].(type) {
	case map[string]any:
		mutate(v, draw, depth+1)
	case []any:
		if len(v) == 0 {
			return
		}
		i := draw.IntN(len(v))
		e, isMap := v[i].(map[string]any)
		switch {
		case draw.IntN(4) == 0:
			m[name] = slices.Delete(slices.Clone(v), i, i+1)
		case draw.IntN(6) == 0:
			m[name] = append(slices.Clone(v), v[i]) // twice
		case isMap:
			e = maps.Clone(e)
			mutate(e, draw, depth+1)
			v[i] = e
		default:
			v[i] = fmt.Sprint("v", draw.IntN(3))
		}
	case int64:
		m[name] = v + int64(draw.IntN(2))
	default:
		m[name] = fmt.Sprint("v", draw.IntN(3))
	}
}
