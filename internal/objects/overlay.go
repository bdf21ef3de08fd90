package objects

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Overlay lays the difference between two typed objects of one type onto u, of
// which before is the typed form, and reports whether there was any. With
// statusOnly, differences outside the field status are left out.
//
// before and after are pointers to structs of the same type. u.Object is replaced
// if there is a difference; what it held is shared with the new one and not
// changed. A value that JSON cannot hold is an error.
func Overlay(u *unstructured.Unstructured, before, after any, statusOnly bool) (bool, error) {
	before, after = differing(before, after, statusOnly)
	b, err := ToUnstructured(before)
	if err != nil {
		return false, err
	}
	a, err := ToUnstructured(after)
	if err != nil {
		return false, err
	}
	// The kind is u's own: typed objects often leave it out.
	for _, field := range []string{"apiVersion", "kind"} {
		delete(b.Object, field)
		delete(a.Object, field)
	}
	s := shape{typ: reflect.TypeOf(after).Elem()}
	l := layer{nulls: statusOnly}
	if !statusOnly {
		if Equal(b.Object, a.Object) {
			return false, nil
		}
		u.Object = l.object(u.Object, b.Object, a.Object, s)
		return true, nil
	}
	if Equal(b.Object["status"], a.Object["status"]) {
		return false, nil
	}
	u.Object = l.object(u.Object, only(b.Object, "status"), only(a.Object, "status"), s)
	return true, nil
}

// differing returns copies of two structs in which the fields that are equal, or
// do not matter, are zero: to convert those would be wasted.
func differing(before, after any, statusOnly bool) (b, a any) {
	bv, av := reflect.ValueOf(before), reflect.ValueOf(after)
	if bv.Kind() != reflect.Pointer || bv.Type() != av.Type() || bv.IsNil() || av.IsNil() || bv.Elem().Kind() != reflect.Struct {
		return before, after // conversion reports what is wrong
	}
	if _, own := before.(json.Marshaler); own {
		return before, after
	}
	bv, av = shallow(bv.Elem()), shallow(av.Elem())
	clearEqual(bv, av, statusOnly)
	return bv.Addr().Interface(), av.Addr().Interface()
}

// clearEqual makes equal fields of two structs zero, in structs that they have
// as fields too.
func clearEqual(bv, av reflect.Value, statusOnly bool) {
	for i, t := 0, bv.Type(); i < t.NumField(); i++ {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" || tag == "-" { // embedded, or without a name to know it by
			continue
		}
		b, a := bv.Field(i), av.Field(i)
		if statusOnly && tag != "status" || reflect.DeepEqual(b.Addr().Interface(), a.Addr().Interface()) {
			b.SetZero()
			a.SetZero()
		} else if f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(marshaler) {
			clearEqual(b, a, false)
		}
	}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

func shallow(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	return out
}

// only returns one field of an object, if it is there.
func only(object map[string]any, name string) map[string]any {
	if v, ok := object[name]; ok {
		return map[string]any{name: v}
	}
	return nil
}

// layer lays differences onto JSON trees. The trees before and after are
// typed objects in their JSON form; the first argument of each method is the
// stored form, which may have more fields. Maps of it that change are copied.
type layer struct {
	// nulls completes changed objects by the nulls that their type always
	// writes: the API requires them in status.
	nulls bool
}

func (l layer) value(stored, before, after any, s shape) any {
	if Equal(before, after) {
		return stored
	}
	switch after := after.(type) {
	case map[string]any:
		have, _ := stored.(map[string]any)
		was, _ := before.(map[string]any)
		return l.object(have, was, after, s)
	case []any:
		have, _ := stored.([]any)
		was, _ := before.([]any)
		if len(have) != len(was) || len(have) == 0 {
			return after
		}
		return l.list(have, was, after, s)
	}
	return after
}

func (l layer) object(stored, before, after map[string]any, s shape) map[string]any {
	if len(stored) == 0 {
		return after
	}
	stored = maps.Clone(stored)
	for name, av := range after {
		bv, had := before[name]
		if had && Equal(bv, av) {
			if _, ok := stored[name]; !ok && av == nil && l.nulls {
				stored[name] = nil
			}
			continue
		}
		stored[name] = l.value(stored[name], bv, av, s.field(name))
	}
	for name, bv := range before {
		if _, ok := after[name]; ok {
			continue
		}
		// A struct that became zero is left out by its type, yet only its
		// known fields were cleared. A pointer, list or map set to nil is
		// removed with all that it holds.
		if field := s.field(name); field.omitted {
			rest, ok := l.value(stored[name], bv, map[string]any{}, field).(map[string]any)
			if ok && len(rest) > 0 {
				stored[name] = rest
				continue
			}
		}
		delete(stored, name)
	}
	return stored
}

func (l layer) list(stored, before, after []any, s shape) []any {
	element := s.element()
	out := make([]any, len(after))
	for i, j := range matchElements(before, after, s.keys) {
		if j < 0 {
			out[i] = after[i]
		} else {
			out[i] = l.value(stored[j], before[j], after[i], element)
		}
	}
	return out
}
