package clusterapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
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

// SchemaChange is how the schema of a version of a CustomResourceDefinition
// differs between two states of that. It is plain data.
type SchemaChange struct {
	Version string `json:"version"`
	// Served reports that the new state serves it.
	Served bool `json:"served"`
	// Fields are those of the schema; their paths start at it. Descriptions are
	// among them only where they were asked for.
	Fields []FieldChange `json:"fields,omitempty"`
	// Descriptions counts the descriptions that differ.
	Descriptions int `json:"descriptions,omitempty"`
}

// Compare returns the fields in which two states of an object differ, sorted by
// path. Where only one of them has a field, the topmost such field is the change.
//
// Values are compared by meaning: an absent one, null, {} and [] are the same,
// and so are numbers, quantities and int-or-string of the same value. Elements
// of lists that have keys are matched by these, in any order; sets have no order
// either; every other list is one value.
//
// Which list is which, the Go types say for kinds of k8s.io/api and
// github.com/openshift/api, and for a custom resource the openAPIV3Schema of its
// definition, which wins if it is given; definition may be nil. What neither knows
// is a map of maps, and its lists are values. Both objects should be of one kind;
// new's decides. A nil object is one without fields. Nothing is left out: see
// [WithoutServerFields].
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

// shape is what is known about a value: by its Go type, by a schema, or nothing.
type shape struct {
	typ         reflect.Type
	schema      map[string]any
	keys        []string // the keys of the elements of a list
	set, atomic bool     // a list without order; a value that is one
	omitted     bool     // a struct that its type leaves out if it is zero
}

// field is the shape of a field of an object, or of a key of a map.
func (s shape) field(name string) shape {
	if s.schema == nil {
		return typeShape(deref(s.typ), name)
	}
	properties, _ := s.schema["properties"].(map[string]any)
	below, ok := properties[name].(map[string]any)
	if !ok {
		below, _ = s.schema["additionalProperties"].(map[string]any)
	}
	return schemaShape(below)
}

// typeShape is the shape of a field of a struct, or of a value of a map.
func typeShape(t reflect.Type, name string) shape {
	switch {
	case t == nil:
		return shape{}
	case t.Kind() == reflect.Map:
		return shape{typ: t.Elem(), atomic: isAtomic(t.Elem())}
	case t.Kind() != reflect.Struct:
		return shape{}
	}
	f, ok := fieldNamed(t, name)
	if !ok {
		return shape{}
	}
	full := t.PkgPath() + "." + t.Name() + "." + f.Name
	return shape{
		typ: f.Type, keys: f.keys, set: isMarked(full, "=set"), atomic: isMarked(full, "=atomic") || isAtomic(f.Type),
		omitted: f.Type.Kind() == reflect.Struct,
	}
}

func schemaShape(s map[string]any) shape {
	if s == nil {
		s = map[string]any{}
	}
	out := shape{schema: s, atomic: s["x-kubernetes-map-type"] == "atomic"}
	switch s["x-kubernetes-list-type"] {
	case "set":
		out.set = true
	case "map":
		keys, _ := s["x-kubernetes-list-map-keys"].([]any)
		for _, k := range keys {
			if name, ok := k.(string); ok {
				out.keys = append(out.keys, name)
			}
		}
	}
	return out
}

// element is the shape of a list's elements.
func (s shape) element() shape {
	if s.schema != nil {
		items, _ := s.schema["items"].(map[string]any)
		return schemaShape(items)
	}
	t := deref(s.typ)
	if t == nil || t.Kind() != reflect.Slice {
		return shape{}
	}
	return shape{typ: t.Elem(), atomic: isAtomic(t.Elem())}
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
)

// equal compares two scalars.
func (s shape) equal(a, b any) bool {
	if equalJSON(a, b) {
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
	case equalJSON(a, b), isNothing(a) && isNothing(b):
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
	if equalJSON(a, b) {
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
	return slices.ContainsFunc(list, func(o any) bool { return equalJSON(o, e) })
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

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// JoinPath appends the name of a field, or the key of a map, to a path: a.b, or
// a["b.c"] where a key has other than letters, digits, _ and -.
func JoinPath(path, name string) string {
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + quoteJSON(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// ElementPath returns the key of a list's element as it is written in a path:
// [name=x], or [containerPort=8443,protocol=TCP]. Keys that the element lacks are
// left out, but for a protocol, which is TCP then.
func ElementPath(element any, keys []string) string {
	m, _ := element.(map[string]any)
	var sb strings.Builder
	for _, k := range keys {
		v, ok := m[k]
		if !ok && k == "protocol" {
			v, ok = "TCP", true
		}
		if !ok {
			continue
		}
		if sb.Len() > 0 {
			sb.WriteByte(',')
		}
		sb.WriteString(k + "=")
		if s := plainText(v); plainKey.MatchString(s) {
			sb.WriteString(s)
		} else {
			sb.WriteString(quoteJSON(v))
		}
	}
	return "[" + sb.String() + "]"
}

// plainText is a string itself, and the JSON of everything else.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return text(v)
}

func quoteJSON(v any) string {
	var sb strings.Builder
	e := json.NewEncoder(&sb)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return text(v)
	}
	return strings.TrimSuffix(sb.String(), "\n")
}
