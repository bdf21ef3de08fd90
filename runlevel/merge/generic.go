package merge

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// generic is for all kinds without a rule of their own: a difference outside the
// metadata has all of the manifest's top-level keys written, and its labels,
// annotations and owners take the place of the present ones. A difference in
// metadata alone does not count.
func generic(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	_, wanted, err := metadataOf(existing, required)
	if err != nil {
		return nil, false, err
	}
	if has, wants := content(existing), content(required); sameContent(has, wants) || sameByType(existing, has, wants) {
		return existing, false, nil
	}
	merged := existing.DeepCopy()
	for key, value := range content(required) {
		merged.Object[key] = runtime.DeepCopyJSONValue(value)
	}
	setMeta(merged, wanted)
	return merged, true, nil
}

// content is what the generic rule compares. It shares all with u.
func content(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			out[key] = value
		}
	}
	return out
}

// sameContent compares top-level keys. An absent one is the same as an empty one.
func sameContent(a, b map[string]any) bool {
	for key, value := range a {
		if !same(value, b[key]) && !(isEmpty(value) && isEmpty(b[key])) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && !isEmpty(value) {
			return false
		}
	}
	return true
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// same compares JSON values: null is the same as absent, and numbers count by
// value. In a kind of which nothing is known, {} is a value, for it may be what
// chooses one of several.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range x {
			if !same(value, y[key]) {
				return false
			}
		}
		for key, value := range y {
			if _, ok := x[key]; !ok && value != nil {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

// number returns a number in one form.
func number(v any) (any, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		if n := int64(v); float64(n) == v && v > -1<<53 && v < 1<<53 {
			return n, true
		}
		return v, true
	}
	return nil, false
}

// sameByType compares contents of a kind whose Go type is known, where the type
// knows all of them: so empty lists and maps, and quantities, count by what they
// mean.
func sameByType(u *unstructured.Unstructured, a, b map[string]any) bool {
	t, ok := objects.TypeOf(u.GroupVersionKind())
	if !ok {
		return false
	}
	x, okX := strictly(t, a)
	y, okY := strictly(t, b)
	return okX && okY && equality.Semantic.DeepEqual(x, y)
}

func strictly(t reflect.Type, content map[string]any) (any, bool) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, false
	}
	out := reflect.New(t).Interface()
	faults, err := kjson.UnmarshalStrict(raw, out, kjson.DisallowUnknownFields)
	return out, err == nil && len(faults) == 0
}
