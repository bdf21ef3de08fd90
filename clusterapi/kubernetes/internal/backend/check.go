package backend

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// BadRequest returns an error that apierrors.IsBadRequest recognises.
func BadRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// CheckName refuses what would be another path than an object's.
func CheckName(what, name string) error {
	if name == "" {
		return BadRequest("%s: a name is required", what)
	}
	if problems := rest.IsValidPathSegmentName(name); len(problems) > 0 {
		return BadRequest("%s: the name %q %s", what, name, problems[0])
	}
	return nil
}

// CheckNamespace refuses what would be another path than a namespace's, if one is
// given.
func CheckNamespace(what, namespace string) error {
	if problems := rest.IsValidPathSegmentName(namespace); namespace != "" && len(problems) > 0 {
		return BadRequest("%s: the namespace %q %s", what, namespace, problems[0])
	}
	return nil
}

// Creatable refuses what no server creates, though not with the same class.
func Creatable(obj *unstructured.Unstructured) error {
	if obj.GetResourceVersion() != "" {
		return BadRequest("%s %s: resourceVersion should not be set on objects to be created", obj.GetKind(), obj.GetName())
	}
	return nil
}

// Named refuses an object without a name.
func Named(obj *unstructured.Unstructured) error {
	if obj.GetName() == "" {
		return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), "", field.ErrorList{
			field.Required(field.NewPath("metadata", "name"), "name is required"),
		})
	}
	return CheckName(obj.GetKind(), obj.GetName())
}

// Applicable makes an object one that can be applied: some servers store these
// fields of an object that does not exist yet, so that it would be born while
// it is being deleted. It refuses one without a field manager or a name.
func Applicable(obj *unstructured.Unstructured, opts clusterapi.ApplyOptions) error {
	if opts.FieldManager == "" {
		return BadRequest("a field manager is required to apply")
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", name)
	}
	return Named(obj)
}

// Replaceable refuses what many kinds' servers accept: an update that does not
// say what it replaces.
func Replaceable(obj *unstructured.Unstructured) error {
	if err := Named(obj); err != nil {
		return err
	}
	if obj.GetResourceVersion() != "" {
		return nil
	}
	return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update"),
	})
}
