package objects

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

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

// isAtomic reports whether server-side apply replaces a struct as a whole.
func isAtomic(t reflect.Type) bool {
	t = deref(t)
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	return t == rawExtensionType || isMarked(t.PkgPath()+"."+t.Name(), "=atomic")
}

var rawExtensionType = reflect.TypeFor[runtime.RawExtension]()

func deref(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// jsonField is a field of a struct, or of one that it embeds.
type jsonField struct {
	reflect.StructField
	keys []string
}

// fieldNamed finds a field by its JSON name.
func fieldNamed(t reflect.Type, name string) (jsonField, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case tag == name, tag == "" && !f.Anonymous && f.Name == name:
			return jsonField{f, mapKeys(t, f)}, true
		case tag == "" && f.Anonymous:
			if inner := deref(f.Type); inner.Kind() == reflect.Struct {
				if found, ok := fieldNamed(inner, name); ok {
					return found, true
				}
			}
		}
	}
	return jsonField{}, false
}
