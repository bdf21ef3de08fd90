package objects

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Merge lays the fields of over on those of base, as if two field managers
// had applied one after the other: maps are merged key by key, lists with
// list-map keys element by element, sets are united, and everything else is
// over's where both have it. Which lists and structs are merged is known for
// kinds of k8s.io/api and github.com/openshift/api; in others every list is
// one value. A null in over leaves base as it is.
//
// overridden, unless nil, gets the path of each value of base that over replaces by
// another, such as spec.containers[name=a].image, in the order of the paths. Both
// objects should have the same apiVersion and kind; over's decides. base is
// changed, over is not, and they share nothing afterwards.
func Merge(base, over *unstructured.Unstructured, overridden func(path string)) {
	if overridden == nil {
		overridden = func(string) {}
	}
	t, _ := TypeOf(over.GroupVersionKind())
	if base.Object == nil {
		base.Object = map[string]any{}
	}
	merger{overridden}.object(base.Object, over.Object, shape{typ: t}, "")
}

// merger merges JSON trees.
type merger struct{ overridden func(path string) }

func (m merger) object(base, over map[string]any, s shape, path string) {
	for _, name := range slices.Sorted(maps.Keys(over)) {
		ov, bv := over[name], base[name]
		switch {
		case bv == nil:
			base[name] = runtime.DeepCopyJSONValue(ov)
		case ov != nil && !Equal(bv, ov):
			base[name] = m.value(bv, ov, s.field(name), JoinPath(path, name))
		}
	}
}

func (m merger) value(base, over any, s shape, path string) any {
	switch b := base.(type) {
	case map[string]any:
		if o, ok := over.(map[string]any); ok && !s.atomic {
			m.object(b, o, s, path)
			return b
		}
	case []any:
		if o, ok := over.([]any); ok {
			if merged, ok := m.list(b, o, s, path); ok {
				return merged
			}
		}
	}
	m.overridden(path)
	return runtime.DeepCopyJSONValue(over)
}

// list merges lists that are maps or sets; ok is false for those that are one
// value.
func (m merger) list(base, over []any, s shape, path string) (merged []any, ok bool) {
	if s.set {
		for _, o := range over {
			if !contains(base, o) {
				base = append(base, o)
			}
		}
		return base, true
	}
	at, baseOK := index(base, s.keys)
	_, overOK := index(over, s.keys)
	if !baseOK || !overOK {
		return nil, false // not what the schema asks for: the server will say so
	}
	element := s.element()
	for _, o := range over {
		key := ElementPath(o, s.keys)
		i, ok := at[key]
		switch {
		case !ok:
			base = append(base, runtime.DeepCopyJSONValue(o))
		case !Equal(base[i], o):
			base[i] = m.value(base[i], o, element, path+key)
		}
	}
	return base, true
}
