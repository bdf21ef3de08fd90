package merge

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Merge returns what an object of a cluster becomes by a manifest, and whether that
// is another object than before, by meaning: what only differs in nil and empty
// lists or maps, in a default written out or left out, or in how a quantity is
// spelt, is not. If nothing changes, merged is existing itself; else it is a new
// one, with the resourceVersion of existing, and what it has in common with its
// inputs is not shared. Neither input is written to.
//
// The owners of the object must be in required. Both must be of one group, version
// and kind, and required's picks the rule. A field of the wrong type is an error
// that names the object and the field, and so is a Job's manifest with a
// spec.selector; faults in both objects come together.
func Merge(existing, required *unstructured.Unstructured) (merged *unstructured.Unstructured, changed bool, err error) {
	if existing == nil || required == nil {
		return nil, false, errors.New("merge: there must be two objects")
	}
	kind := required.GroupVersionKind()
	if got := existing.GroupVersionKind(); got != kind {
		return nil, false, fmt.Errorf("merge: a manifest of %s cannot be merged into an object of %s", kind, got)
	}
	rule, ok := rules[kind]
	if !ok {
		rule = generic
	}
	merged, changed, err = rule(existing, required)
	if err != nil {
		return nil, false, fmt.Errorf("merge: %w", err)
	}
	return merged, changed, nil
}

// HasRule reports whether objects of a kind are merged by their own rule.
func HasRule(kind schema.GroupVersionKind) bool {
	_, ok := rules[kind]
	return ok
}

// rule merges objects of one kind.
type rule func(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error)

// decode converts both objects.
func decode[T any](existing, required *unstructured.Unstructured) (e, r *T, err error) {
	e, errE := clusterapi.FromUnstructured[T](withoutManagedFields(existing))
	if errE != nil {
		errE = fmt.Errorf("the object in the cluster: %w", errE)
	}
	r, errR := clusterapi.FromUnstructured[T](withoutManagedFields(required))
	if errR != nil {
		errR = fmt.Errorf("the manifest: %w", errR)
	}
	return e, r, errors.Join(errE, errR)
}
