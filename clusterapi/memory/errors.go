package memory

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errIntercepted = errors.New("memory: the interceptor neither called the verb nor returned an error")

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

var errNoSuchUID = errors.New("uid mismatch: the object has a uid, and none of that name is stored")

func conflict(k *kind, name string, err error) error {
	return apierrors.NewConflict(k.resource(), name, err)
}

func invalid(k *kind, name string, err *field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, field.ErrorList{err})
}

// preconditions compares a wanted UID and resourceVersion, where set, with
// those of the stored object.
func preconditions(k *kind, e *entry, uid types.UID, revision string) error {
	if uid != "" && uid != e.obj.GetUID() {
		return conflict(k, e.obj.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, e.obj.GetUID()))
	}
	if revision != "" && revision != e.obj.GetResourceVersion() {
		return conflict(k, e.obj.GetName(), errModified)
	}
	return nil
}
