package clusterapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Unchanged returns an error where a shared object, or a typed one that [As]
// made of it, is no longer as it was in a copy of it from before: somebody
// changed what must not be changed. The error names the first such field. It is
// for tests, of backends that are [Shared] and of those who use them.
func (o *Object) Unchanged(was *unstructured.Unstructured) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if path, ok := difference(was.Object, o.u.Object, ""); ok {
		return fmt.Errorf("%s is shared, and somebody changed %s", describe(was), path)
	}
	all := o.more
	if o.typed != nil {
		all = append([]any{o.typed}, all...)
	}
	for _, typed := range all {
		fresh := reflect.New(reflect.TypeOf(typed).Elem()).Interface()
		converter := runtime.DefaultUnstructuredConverter
		if err := converter.FromUnstructured(withoutManagedFields(was).Object, fresh); err != nil {
			return err
		}
		want, err := converter.ToUnstructured(fresh)
		if err != nil {
			return err
		}
		got, err := converter.ToUnstructured(typed)
		if err != nil {
			return err
		}
		if path, ok := difference(want, got, ""); ok {
			return fmt.Errorf("%s is shared as %T, and somebody changed %s", describe(was), typed, path)
		}
	}
	return nil
}

// difference finds the first field in which two JSON trees differ.
func difference(a, b any, path string) (string, bool) {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		return path, !equalJSON(a, b)
	}
	names := maps.Clone(am)
	if names == nil {
		names = make(map[string]any)
	}
	maps.Copy(names, bm)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, before := am[name]
		_, after := bm[name]
		if before != after {
			return JoinPath(path, name), true
		}
		if at, ok := difference(am[name], bm[name], JoinPath(path, name)); ok {
			return at, true
		}
	}
	return "", false
}
