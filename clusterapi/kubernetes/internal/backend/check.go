package backend

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// BadRequest returns an error that apierrors.IsBadRequest recognises.
func BadRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// CheckName refuses what would be another path than that of an object.
func CheckName(what, name string) error {
	if name == "" {
		return BadRequest("%s: a name is required", what)
	}
	if problems := rest.IsValidPathSegmentName(name); len(problems) > 0 {
		return BadRequest("%s: the name %q %s", what, name, problems[0])
	}
	return nil
}

// CheckNamespace refuses what would be another path than that of a namespace,
// where one is given.
func CheckNamespace(what, namespace string) error {
	if problems := rest.IsValidPathSegmentName(namespace); namespace != "" && len(problems) > 0 {
		return BadRequest("%s: the namespace %q %s", what, namespace, problems[0])
	}
	return nil
}

// Replaceable refuses what many kinds' servers accept: an update that does not
// say what it replaces.
func Replaceable(obj *unstructured.Unstructured) error {
	if obj.GetResourceVersion() != "" {
		return nil
	}
	return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"),
	})
}
