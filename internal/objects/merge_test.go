package objects_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

func mergeObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw := checktest.Get(yaml.YAMLToJSON([]byte(text)))(t)
	u := &unstructured.Unstructured{}
	checktest.OK(t, u.UnmarshalJSON(raw))
	return u
}

func TestMerge(t *testing.T) {
	const (
		service    = "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: "
		pod        = "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: "
		custom     = "{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: "
		meta       = "{apiVersion: v1, kind: ConfigMap, metadata: "
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: "
	)
	for name, c := range map[string]struct {
		kind, base, over, want string
		overridden             []string
	}{
		"maps":                       {custom, "{a: {b: 1, c: 1}}", "{a: {c: 2, d: 2}, e: 2}", "{a: {b: 1, c: 2, d: 2}, e: 2}", []string{"spec.a.c"}},
		"equal values":               {custom, "{a: 1, b: [1, 2]}", "{a: 1.0, b: [1, 2]}", "{a: 1, b: [1, 2]}", nil},
		"null says nothing":          {custom, "{a: 1, b: null}", "{a: null, b: 2}", "{a: 1, b: 2}", nil},
		"a list of an unknown kind":  {custom, "{a: [{name: x}]}", "{a: [{name: y}]}", "{a: [{name: y}]}", []string{"spec.a"}},
		"another type":               {custom, "{a: {b: 1}}", "{a: [1]}", "{a: [1]}", []string{"spec.a"}},
		"a quoted key":               {meta, "{name: x, labels: {a.b/c: x, '': x}}", "{name: x, labels: {a.b/c: z, '': z}}", "{name: x, labels: {a.b/c: z, '': z}}", []string{`metadata.labels[""]`, `metadata.labels["a.b/c"]`}},
		"finalizers":                 {meta, "{name: x, finalizers: [a, b]}", "{name: x, finalizers: [b, c]}", "{name: x, finalizers: [a, b, c]}", nil},
		"owners":                     {meta, "{name: x, ownerReferences: [{uid: a, name: a}]}", "{name: x, ownerReferences: [{uid: a, name: b}, {uid: b}]}", "{name: x, ownerReferences: [{uid: a, name: b}, {uid: b}]}", []string{"metadata.ownerReferences[uid=a]"}},
		"ports by number, protocol":  {service, "{ports: [{port: 1, name: a}, {port: 1, protocol: UDP, name: b}]}", "{ports: [{port: 1, protocol: UDP, name: c}, {port: 1, protocol: TCP, targetPort: 2}]}", "{ports: [{port: 1, name: a, protocol: TCP, targetPort: 2}, {port: 1, protocol: UDP, name: c}]}", []string{"spec.ports[port=1,protocol=UDP].name"}},
		"a selector is one value":    {service, "{selector: {a: x}}", "{selector: {b: x}}", "{selector: {b: x}}", []string{"spec.selector"}},
		"so is a label selector":     {deployment, "{selector: {matchLabels: {a: x}}}", "{selector: {matchLabels: {b: x}}}", "{selector: {matchLabels: {b: x}}}", []string{"spec.selector"}},
		"tolerations are one value":  {pod, "{tolerations: [{key: a}]}", "{tolerations: [{key: b}]}", "{tolerations: [{key: b}]}", []string{"spec.tolerations"}},
		"a key twice is one value":   {pod, "{containers: [{name: a}, {name: a}]}", "{containers: [{name: b}]}", "{containers: [{name: b}]}", []string{"spec.containers"}},
		"and so is one without keys": {pod, "{containers: [{name: a}]}", "{containers: [3]}", "{containers: [3]}", []string{"spec.containers"}},
	} {
		t.Run(name, func(t *testing.T) {
			base, over, want := mergeObject(t, c.kind+c.base+"}"), mergeObject(t, c.kind+c.over+"}"), mergeObject(t, c.kind+c.want+"}")
			before := over.DeepCopy()
			var overridden []string
			objects.Merge(base, over, func(path string) { overridden = append(overridden, path) })
			checktest.Same(t, want.Object, base.Object)
			checktest.Same(t, c.overridden, overridden)
			scribble(base.Object)
			checktest.SameIn(t, "over was changed, or is shared", before.Object, over.Object)
		})
	}
	base := &unstructured.Unstructured{}
	objects.Merge(base, mergeObject(t, custom+"{a: 1}}"), nil)
	checktest.Equal(t, "x", base.GetName(), "merged into nothing: %v", base)
}

// scribble changes each map below v.
func scribble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			scribble(child)
		}
		v["scribbled"] = true
	case []any:
		for _, child := range v {
			scribble(child)
		}
	}
}

// Merging two objects is what server-side apply makes of them when two
// managers apply them one after the other: tried on parts of real manifests.
func TestMergeIsServerSideApply(t *testing.T) {
	p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), "payload-4.18.15")),
		manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: manifest.DefaultFilter()}))(t)
	byKind := make(map[string][]*unstructured.Unstructured)
	for _, m := range p.Manifests {
		switch kind := m.GVK().Kind; kind {
		case "Deployment", "Service", "ConfigMap", "Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			byKind[kind] = append(byKind[kind], m.Object())
		}
	}
	kinds := slices.Sorted(maps.Keys(byKind))
	checktest.FatalIf(t, len(kinds) < 9, "kinds %v", kinds)
	rapid.Check(t, func(rt *rapid.T) {
		source := rapid.SampledFrom(byKind[rapid.SampledFrom(kinds).Draw(rt, "kind")]).Draw(rt, "object")
		one, two := source.DeepCopy(), source.DeepCopy()
		for _, u := range []*unstructured.Unstructured{one, two} {
			delete(u.Object, "status")
			vary(rt, u.Object, 0)
		}
		c := memory.New(memory.Options{})
		apply := func(u *unstructured.Unstructured, manager string) *unstructured.Unstructured {
			stored, err := c.Apply(t.Context(), u, clusterapi.ApplyOptions{FieldManager: manager})
			if err != nil {
				rt.Skip(err) // not an object that a schema allows
			}
			return stored
		}
		apply(one, "one")
		stored := apply(two, "two")
		want := memory.New(memory.Options{})
		objects.Merge(one, two, nil)
		merged := checktest.Get(want.Apply(t.Context(), one, clusterapi.ApplyOptions{FieldManager: "both"}))(rt)
		checktest.SameIn(rt, source.GetKind()+" "+source.GetName(), comparable(stored), comparable(merged))
	})
}

// comparable leaves out what a server sets, and the order of lists.
func comparable(u *unstructured.Unstructured) any {
	u = u.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return sortLists(u.Object)
}

func sortLists(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = sortLists(child)
		}
	case []any:
		for i, child := range v {
			v[i] = sortLists(child)
		}
		slices.SortFunc(v, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return cmp.Compare(string(x), string(y))
		})
	}
	return v
}

// vary removes and changes some of an object's fields, but none that says what
// it is.
func vary(t *rapid.T, v map[string]any, depth int) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		identity := depth < 2 && slices.Contains([]string{"apiVersion", "kind", "metadata", "name", "namespace", "spec"}, name)
		switch child := v[name].(type) {
		case map[string]any:
			if !identity && depth > 1 && rapid.IntRange(0, 9).Draw(t, name) == 0 {
				delete(v, name)
				continue
			}
			vary(t, child, depth+1)
		case []any:
			var kept []any
			for _, e := range child {
				if rapid.IntRange(0, 5).Draw(t, name) == 0 {
					continue
				}
				if e, ok := e.(map[string]any); ok {
					vary(t, e, depth+1)
				}
				kept = append(kept, e)
			}
			if v[name] = kept; kept == nil {
				delete(v, name)
			}
		case string:
			if identity || strings.HasSuffix(name, "rotocol") || name == "type" || name == "kind" {
				continue
			}
			switch rapid.IntRange(0, 9).Draw(t, name) {
			case 0:
				if name != "name" && name != "mountPath" { // keys of lists
					delete(v, name)
				}
			case 1:
				v[name] = child + "x"
			}
		}
	}
}
