package objects

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Convert sets what out points to to the typed form of an object. It is strict about types and the
// ranges of numbers; an error names the object and the field.
func Convert(u *unstructured.Unstructured, out any) error {
	t := reflect.TypeOf(out).Elem()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out)
	if err == nil {
		if (&ranges{root: t}).fit(u.Object) {
			return nil
		}
		err = errors.New("a number is out of the range of its type")
	}
	path, cause := locate(t, u.Object)
	if cause == nil {
		cause = err
	}
	return fmt.Errorf("%s: %s%w", Describe(u), path, cause)
}

// ToUnstructured converts a pointer to a typed object. apiVersion and kind are
// those that the object names, else those of its type; with neither it fails.
// The result shares nothing with obj.
func ToUnstructured(obj any) (*unstructured.Unstructured, error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("clusterapi: cannot convert %T: want a pointer to a struct that is not nil", obj)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("clusterapi: cannot convert %T: %w", obj, err)
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() != "" && u.GetAPIVersion() != "" {
		return u, nil
	}
	gvk, err := KindOf(obj)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Describe names an object in errors: "Deployment ns/name".
func Describe(u *unstructured.Unstructured) string {
	name := u.GetName()
	if ns := u.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return u.GetKind() + " " + name
}
