package clusterapi

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Unchanged returns an error if a shared object, or a typed one that [As] made of it,
// differs from an earlier copy of it: somebody changed what must not be changed. The
// error names the first such field. It is for tests, of
// backends that are [Shared] and of their users.
func (o *Object) Unchanged(was *unstructured.Unstructured) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if path, ok := objects.Difference(was.Object, o.u.Object); ok {
		return fmt.Errorf("%s is shared, and somebody changed %s", objects.Describe(was), path)
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
		if path, ok := objects.Difference(want, got); ok {
			return fmt.Errorf("%s is shared as %T, and somebody changed %s", objects.Describe(was), typed, path)
		}
	}
	return nil
}
