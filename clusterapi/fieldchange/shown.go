package fieldchange

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// Hider hides credentials in the changes of one report. A value that is hidden is
// shown as (redacted-12 digits), which are the same for equal values of the
// report. Make it with [NewHider]; the zero value shows no digits. It is safe for
// concurrent use.
type Hider struct{ r redact.Redactor }

// NewHider returns a Hider. Its key makes the digits, so that nobody finds a value
// by trial; a nil one is random.
func NewHider(key []byte) Hider { return Hider{*redact.New(key)} }

// Shown returns changes of an object of a kind with credentials hidden.
func (h Hider) Shown(kind schema.GroupKind, changes []clusterapi.FieldChange) []clusterapi.FieldChange {
	if changes == nil {
		return nil
	}
	out := make([]clusterapi.FieldChange, len(changes))
	for i, f := range changes {
		out[i].Path, out[i].Old = h.Field(kind, f.Path, f.Old)
		_, out[i].New = h.Field(kind, f.Path, f.New)
	}
	return out
}

// Field returns one field of an object of a kind with credentials hidden.
func (h Hider) Field(kind schema.GroupKind, path string, value any) (string, any) {
	return h.r.Field(kind.Group, kind.Kind, path, value)
}

// Object returns a copy of an object with credentials hidden; nil for nil.
func (h Hider) Object(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: h.r.Object(obj.Object)}
}
