package ignition

import (
	"maps"
	"reflect"
	"slices"
)

// Equal compares parts of configs; nothing and an empty list are equal.
func Equal(a, b any) bool {
	return equal(reflect.ValueOf(a), reflect.ValueOf(b))
}

func equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return empty(a) && empty(b)
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map: // an object of JSON
		for _, k := range append(a.MapKeys(), b.MapKeys()...) {
			x, y := a.MapIndex(k), b.MapIndex(k)
			if !(empty(x) && empty(y)) && !equal(x, y) {
				return false
			}
		}
		return true
	}
	return a.Interface() == b.Interface()
}

// empty says that a value of JSON is absent, null, or without elements.
func empty(v reflect.Value) bool {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return !v.IsValid() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// ChangedFiles returns the paths of files that were added, removed or changed, sorted.
func ChangedFiles(a, b *Config) []string {
	return changed(a.Storage.Files, b.Storage.Files, func(f File) string { return f.Path })
}

// ChangedUnits returns the names of units likewise.
func ChangedUnits(a, b *Config) []string {
	return changed(a.Systemd.Units, b.Systemd.Units, func(u Unit) string { return u.Name })
}

func changed[T any](a, b []T, name func(T) string) []string {
	old, names := map[string]T{}, map[string]bool{}
	for _, v := range a {
		old[name(v)] = v
		names[name(v)] = true
	}
	for _, v := range b {
		if was, ok := old[name(v)]; ok && Equal(was, v) {
			delete(names, name(v))
		} else {
			names[name(v)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
