package objects

import (
	"math"
	"reflect"
)

// ranges checks the numbers of an object against the ranges of their Go types.
// The converter itself cuts them off without a word.
type ranges struct {
	root reflect.Type
	// path leads to what is being looked at: names of fields and keys of maps,
	// "" for an element of a list. It is resolved to a type only at numbers
	// that might not fit, since most of an object is something else.
	path []string
}

// fit reports whether all numbers below v are in range.
func (r *ranges) fit(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if !r.below(name, e) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !r.below("", e) {
				return false
			}
		}
	case int64:
		if v < 0 || v > math.MaxInt8 { // others fit every type
			return intFits(r.typ(), v)
		}
	case int:
		return r.fit(int64(v))
	case float64:
		return floatFits(r.typ(), v)
	}
	return true
}

func (r *ranges) below(step string, v any) bool {
	r.path = append(r.path, step)
	ok := r.fit(v)
	r.path = r.path[:len(r.path)-1]
	return ok
}

// typ is the type of the value at the path, nil where the root's type does not know
// it.
func (r *ranges) typ() reflect.Type {
	t := deref(r.root)
	for _, step := range r.path {
		if t.Kind() == reflect.Slice {
			t = deref(t.Elem())
		} else {
			t = deref(typeShape(t, step).typ)
		}
		if t == nil {
			return nil
		}
	}
	return t
}

func intFits(t reflect.Type, n int64) bool {
	if t == nil {
		return true
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return !t.OverflowInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return n >= 0 && !t.OverflowUint(uint64(n))
	}
	return true
}

func floatFits(t reflect.Type, f float64) bool {
	if t == nil || t.Kind() < reflect.Int || t.Kind() > reflect.Uint64 {
		return true
	}
	return f >= math.MinInt64 && f < math.MaxInt64 && intFits(t, int64(f))
}
