package objects

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
)

// Equal compares JSON trees; a number is equal to itself in either of the
// forms int64 and float64.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if SameMap(a, b) {
			return true
		}
		for k, av := range a {
			bv, ok := b[k]
			if !ok || !Equal(av, bv) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) || (a == nil) != (b == nil) {
			return false
		}
		if len(a) > 0 && &a[0] == &b[0] {
			return true
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
	}
	return a == b
}

// SameMap reports whether two maps are one.
func SameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

var seed = maphash.MakeSeed()

// Hash returns the same number for JSON trees that are [Equal], in one process, and
// different ones for others but for one chance in 2^64. An integer that is only nearly
// the float64 that Equal takes it for, which takes more than 53 bits, differs from that.
// Fields that skip reports true for do not matter; nil skips none.
func Hash(v any, skip func(field string) bool) uint64 {
	type named struct {
		name string
		hash uint64
	}
	switch v := v.(type) {
	case map[string]any:
		var sum uint64 // in whatever order
		for name, e := range v {
			if skip == nil || !skip(name) {
				sum += maphash.Comparable(seed, named{name, Hash(e, skip)})
			}
		}
		return maphash.Comparable(seed, named{"{}", sum})
	case []any:
		list := uint64(len(v))
		for _, e := range v {
			list = maphash.Comparable(seed, [2]uint64{list, Hash(e, skip)})
		}
		return maphash.Comparable(seed, named{"[]", list})
	case float64:
		if i := int64(v); float64(i) == v {
			return Hash(i, skip)
		}
	}
	return maphash.Comparable(seed, v)
}

// Rewrite returns v with new fields, if it is a map, or new elements, if it is a list.
// field returns a field's new value and whether it stays. What does not
// change is shared: nothing is copied if nothing changes.
func Rewrite(v any, field func(key string, value any) (any, bool), element func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		var out map[string]any
		for k, e := range v {
			changed, stays := field(k, e)
			if stays && Same(changed, e) {
				continue
			}
			if out == nil {
				out = maps.Clone(v)
			}
			if stays {
				out[k] = changed
			} else {
				delete(out, k)
			}
		}
		if out != nil {
			return out
		}
	case []any:
		var out []any
		for i, e := range v {
			changed := element(e)
			if Same(changed, e) {
				continue
			}
			if out == nil {
				out = slices.Clone(v)
			}
			out[i] = changed
		}
		if out != nil {
			return out
		}
	}
	return v
}

// Same reports whether two values are one: a map or list that is the same, or equal
// scalars.
func Same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && SameMap(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}
