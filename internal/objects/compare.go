package objects

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FieldChange is one field in which two objects differ. It is plain data, and
// shares its values with them.
type FieldChange struct {
	// Path is where the field is:
	//
	//	spec.replicas
	//	metadata.annotations["a.b/c"]                  a key with other than letters, digits, _ and -
	//	spec.ports[containerPort=8443,protocol=TCP]    an element of a list with keys
	//	metadata.finalizers[="x"]                      an element of a set
	Path string `json:"path"`
	// Old and New are the values; nil if absent.
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
}

// Compare returns the fields in which two states of an object differ: see
// clusterapi.Compare.
func Compare(old, new *unstructured.Unstructured, definition map[string]any) []FieldChange {
	var gvk schema.GroupVersionKind
	c := comparer{}
	var a, b map[string]any
	if old != nil {
		a, gvk = old.Object, old.GroupVersionKind()
	}
	if new != nil {
		b, gvk = new.Object, new.GroupVersionKind()
	}
	s := shape{schema: definition}
	if definition == nil {
		s.typ, _ = TypeOf(gvk)
	}
	for _, name := range keysOf(a, b) {
		field := s.field(name)
		if name == "metadata" {
			field = shape{typ: reflect.TypeFor[metav1.ObjectMeta]()}
		}
		c.value(a[name], b[name], field, JoinPath("", name))
	}
	slices.SortStableFunc(c.changes, func(a, b FieldChange) int { return strings.Compare(a.Path, b.Path) })
	return c.changes
}

// WithoutServerFields returns a copy of an object without status and without the
// metadata that only a server sets, such as resourceVersion and managedFields.
// nil stays nil. It shares what it does not leave out.
func WithoutServerFields(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	out := maps.Clone(obj.Object)
	delete(out, "status")
	if m, ok := out["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
			delete(m, field)
		}
		out["metadata"] = m
	}
	return &unstructured.Unstructured{Object: out}
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
)

// equal compares two scalars.
func (s shape) equal(a, b any) bool {
	if Equal(a, b) {
		return true
	}
	t := deref(s.typ)
	either := s.schema["x-kubernetes-int-or-string"] == true
	if t == intOrStringType || either {
		if plainText(a) == plainText(b) {
			return true
		}
	}
	if t != quantityType && !either {
		return false
	}
	qa, errA := resource.ParseQuantity(plainText(a))
	qb, errB := resource.ParseQuantity(plainText(b))
	return errA == nil && errB == nil && qa.Cmp(qb) == 0
}

// Difference returns the path of the first field in which two JSON trees differ. The
// path is empty if they differ only in values that mean the same.
func Difference(a, b map[string]any) (path string, ok bool) {
	if Equal(a, b) {
		return "", false
	}
	c := comparer{}
	c.object(a, b, shape{}, "")
	if len(c.changes) == 0 {
		return "", true
	}
	return c.changes[0].Path, true
}

type comparer struct{ changes []FieldChange }

func (c *comparer) add(path string, old, new any) {
	if isNothing(old) {
		old = nil
	}
	if isNothing(new) {
		new = nil
	}
	c.changes = append(c.changes, FieldChange{Path: path, Old: old, New: new})
}

func (c *comparer) value(a, b any, s shape, path string) {
	switch {
	case Equal(a, b), isNothing(a) && isNothing(b):
		return
	case isNothing(a) || isNothing(b):
		x, isList := a.([]any)
		y, alsoList := b.([]any)
		if (isList || alsoList) && (s.set || len(s.keys) > 0) {
			c.list(x, y, s, path)
		} else {
			c.add(path, a, b)
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.object(x, y, s, path)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.list(x, y, s, path)
			return
		}
	}
	if !s.equal(a, b) {
		c.add(path, a, b)
	}
}

func (c *comparer) object(a, b map[string]any, s shape, path string) {
	if s.atomic {
		if !s.same(a, b) {
			c.add(path, a, b)
		}
		return
	}
	for _, name := range keysOf(a, b) {
		c.value(a[name], b[name], s.field(name), JoinPath(path, name))
	}
}

// list compares lists. Those whose elements lack their keys are one value.
func (c *comparer) list(a, b []any, s shape, path string) {
	element := s.element()
	switch {
	case s.set:
		for _, e := range a {
			if !contains(b, e) {
				c.add(path+"[="+quoteJSON(e)+"]", e, nil)
			}
		}
		for _, e := range b {
			if !contains(a, e) {
				c.add(path+"[="+quoteJSON(e)+"]", nil, e)
			}
		}
		return
	case len(s.keys) > 0:
		atA, okA := index(a, s.keys)
		atB, okB := index(b, s.keys)
		if !okA || !okB {
			break
		}
		for _, key := range keysOf(atA, atB) {
			i, inA := atA[key]
			j, inB := atB[key]
			switch {
			case !inB:
				c.add(path+ElementPath(a[i], s.keys), a[i], nil)
			case !inA:
				c.add(path+ElementPath(b[j], s.keys), nil, b[j])
			default:
				c.value(a[i], b[j], element, path+ElementPath(a[i], s.keys))
			}
		}
		return
	}
	s.keys = nil
	if !s.same(a, b) {
		c.add(path, a, b)
	}
}

// same reports whether two values mean the same as a whole.
func (s shape) same(a, b any) bool {
	if Equal(a, b) {
		return true
	}
	s.atomic = false
	x, okX := a.([]any)
	y, okY := b.([]any)
	if !okX || !okY || s.set || len(s.keys) > 0 {
		c := comparer{}
		c.value(a, b, s, "")
		return len(c.changes) == 0
	}
	if len(x) != len(y) {
		return false
	}
	element := s.element()
	for i := range x {
		if !element.same(x[i], y[i]) {
			return false
		}
	}
	return true
}

func contains(list []any, e any) bool {
	return slices.ContainsFunc(list, func(o any) bool { return Equal(o, e) })
}

func isNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if !isNothing(e) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// keysOf are the keys of two maps, sorted.
func keysOf[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
