package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Manifest is one Kubernetes object of a payload. It is read-only: whoever
// wants to change the object takes a deep copy of it. It is safe for
// concurrent use.
type Manifest struct {
	// Filename is the base name of the file that the object came from; empty
	// if it is not known. Runlevel and component follow from it alone.
	Filename string
	// Document is the object's place among the objects of its file, from 1;
	// empty documents are not counted. 0 if it is not known.
	Document int
	// Raw is the object in JSON: as the file has it, or converted from YAML
	// with sorted keys. The hash of a payload is made from it.
	Raw []byte
	// Object is the object. Numbers are int64 where they are whole and fit,
	// else float64.
	Object *unstructured.Unstructured

	meta *meta // what was read from Object when it was decoded; nil: read it again
}

// meta is what inclusion and ordering ask of an object again and again.
type meta struct {
	gvk         schema.GroupVersionKind
	id          Identity
	annotations map[string]string
}

// New returns the manifest of an object that did not come from a file, such as
// one made by a program. Raw is its JSON form with sorted keys. The object
// needs a kind and a name. It is kept, so the caller must not change it any
// more.
func New(filename string, obj *unstructured.Unstructured) (*Manifest, error) {
	if obj == nil {
		return nil, errors.New("a manifest needs an object")
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", filename, err)
	}
	m := &Manifest{Filename: filename, Raw: raw, Object: obj, meta: newMeta(obj)}
	return m, m.meta.validate()
}

// Identity returns which resource the manifest is.
func (m *Manifest) Identity() Identity { return m.metadata().id }

// GVK returns the manifest's group, version and kind.
func (m *Manifest) GVK() schema.GroupVersionKind { return m.metadata().gvk }

// Annotations returns the object's annotations, not to be changed. They are
// nil when there are none or when the value of any of them is neither a string
// nor null; an empty map is not nil, and a value null reads as the empty
// string. Inclusion depends on each of these (see [LoadFilter.Judge]).
func (m *Manifest) Annotations() map[string]string { return m.metadata().annotations }

// String returns the form that errors use, with the namespace if there is one
// and the file if it is known:
//
//	Filename: "F" Group: "g" Kind: "k" Namespace: "ns" Name: "n"
func (m *Manifest) String() string {
	if m.Filename == "" {
		return m.Identity().String()
	}
	return fmt.Sprintf("Filename: %q %s", m.Filename, m.Identity())
}

func (m *Manifest) metadata() *meta {
	if m.meta != nil {
		return m.meta
	}
	return newMeta(m.Object)
}

func newMeta(obj *unstructured.Unstructured) *meta {
	if obj == nil {
		return &meta{}
	}
	gvk := obj.GroupVersionKind()
	return &meta{
		gvk:         gvk,
		id:          Identity{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()},
		annotations: obj.GetAnnotations(),
	}
}

func (m *meta) validate() error {
	if m.id.Kind == "" || m.id.Name == "" {
		return fmt.Errorf("Resource with fields %s must contain kubernetes required fields kind and name", m.id) // a text that users search for
	}
	return nil
}

// hasUnreadableAnnotations reports whether the object has annotations that
// count as absent because the value of one of them is not a string.
func (m *Manifest) hasUnreadableAnnotations() bool {
	if m.Annotations() != nil {
		return false
	}
	_, found, err := unstructured.NestedNullCoercingStringMap(m.Object.Object, "metadata", "annotations")
	return !found && err != nil
}

// isNull reports whether raw is an empty document.
func isNull(raw []byte) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
