package clusterapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// FieldChange is one field in which two objects differ, by its path and values.
type FieldChange = objects.FieldChange

// Compare returns the fields in which two states of an object differ, sorted by
// path. Where only one of them has a field, the topmost such field is the change.
//
// Values are compared by meaning: an absent one, null, {} and [] are the same,
// and so are numbers, quantities and int-or-string of the same value. Elements
// of lists that have keys are matched by these, in any order; sets have no order
// either; every other list is one value.
//
// Which list is which, the Go types say for kinds of k8s.io/api and
// github.com/openshift/api, and for a custom resource the openAPIV3Schema of its
// definition, which wins if it is given; definition may be nil. What neither knows
// is a map of maps, and its lists are values. Both objects should be of one kind;
// new's decides. A nil object is one without fields.
func Compare(old, new *unstructured.Unstructured, definition map[string]any) []FieldChange {
	return objects.Compare(old, new, definition)
}
