package fieldchange

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// Shown returns changes of an object of a kind with credentials hidden.
func Shown(kind schema.GroupKind, changes []clusterapi.FieldChange) []clusterapi.FieldChange {
	if changes == nil {
		return nil
	}
	out := make([]clusterapi.FieldChange, len(changes))
	for i, f := range changes {
		out[i].Path, out[i].Old = Hide(kind, f.Path, f.Old)
		_, out[i].New = Hide(kind, f.Path, f.New)
	}
	return out
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// Hide returns one field of an object of a kind with credentials hidden.
func Hide(kind schema.GroupKind, path string, val any) (string, any) {
	shown, hide := redact.Path(path)
	if kind == secretKind && !strings.HasPrefix(path, "metadata") && path != "type" && path != "immutable" {
		hide = true
	}
	return shown, value(val, hide)
}

// value is a value without credentials.
func value(v any, hide bool) any {
	switch {
	case v == nil:
		return nil
	case hide:
		return redact.Digest(v)
	}
	return redact.Value(v)
}
