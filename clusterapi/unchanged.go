package clusterapi

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Unchanged returns an error where a shared object, or a typed one that [As] made
// of it, is no longer as it was in a copy of it from before: somebody changed what
// must not be changed. The error names the first such field. It is for tests, of
// backends that are [Shared] and of their users.
func (o *Object) Unchanged(was *unstructured.Unstructured) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if path, ok := difference(was.Object, o.u.Object); ok {
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
		if path, ok := difference(want, got); ok {
			return fmt.Errorf("%s is shared as %T, and somebody changed %s", describe(was), typed, path)
		}
	}
	return nil
}

// difference returns the path of the first field in which two JSON trees
// differ, empty if they differ in what means the same alone.
func difference(a, b map[string]any) (path string, ok bool) {
	if equalJSON(a, b) {
		return "", false
	}
	c := comparer{}
	c.object(a, b, shape{}, "")
	if len(c.changes) == 0 {
		return "", true
	}
	return c.changes[0].Path, true
}
