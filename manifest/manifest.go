package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/clusterupdate/clusterupdate/internal/yamljson"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Manifest is one Kubernetes object of a payload. It is read-only, and so is
// its object: change a deep copy. It is safe for concurrent use and must not be
// copied.
type Manifest struct {
	// Filename is the base name of the object's file; empty if it is not known.
	// Runlevel and component follow from it alone.
	Filename string
	// Document is the object's place among the objects of its file, from 1;
	// empty documents are not counted. 0 if it is not known.
	Document int
	// Raw is the object in JSON: as the file has it, or converted from YAML
	// with sorted keys. The hash of a payload is made from it.
	Raw []byte

	meta   meta
	decode sync.Once // makes object from Raw
	object *unstructured.Unstructured
	// derived is what other packages have made of the object; see [Derived].
	derived sync.Map
}

// meta is what inclusion and ordering ask of an object again and again.
type meta struct {
	gvk         schema.GroupVersionKind
	id          Identity
	annotations map[string]string
	unreadable  bool // there are annotations, which count as absent since one is not a string
}

// New returns the manifest of an object that did not come from a file, such as
// one made by a program. Raw is its JSON form with sorted keys. The object is
// kept, so the caller must not change it any more.
//
// A nil object, one that JSON cannot hold, and one without a kind or a name are
// errors; in the last case the manifest is returned with the error.
func New(filename string, obj *unstructured.Unstructured) (*Manifest, error) {
	if obj == nil {
		return nil, errors.New("a manifest needs an object")
	}
	raw, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", filename, err)
	}
	m := &Manifest{Filename: filename, Raw: raw, object: obj, meta: newMeta(obj)}
	return m, m.meta.validate()
}

// Object returns the object, which is decoded from Raw when it is asked for the
// first time: most manifests of a payload never are. Numbers are int64 where they
// are whole and fit, else float64. It is nil for a Manifest that is neither from a
// file nor from [New].
func (m *Manifest) Object() *unstructured.Unstructured {
	m.decode.Do(func() {
		if m.object != nil || len(m.Raw) == 0 {
			return
		}
		// Loading has checked the text, so that there is nothing to report here.
		if object, ok := yamljson.Object(string(m.Raw)); ok {
			m.object = &unstructured.Unstructured{Object: object}
		}
	})
	return m.object
}

// Derived returns what make makes of a manifest. Of a key it keeps the first value: all
// passes, previews and clusters that have the manifest share it, so it must not be
// changed. A key is of a type of the caller's own. An error of make is returned and not kept.
func Derived[K comparable, T any](m *Manifest, key K, make func() (T, error)) (T, error) {
	if known, ok := m.derived.Load(key); ok {
		return known.(T), nil
	}
	value, err := make()
	if err != nil {
		return value, err
	}
	known, _ := m.derived.LoadOrStore(key, value)
	return known.(T), nil
}

// Identity returns which resource the manifest is.
func (m *Manifest) Identity() Identity { return m.meta.id }

// GVK returns the manifest's group, version and kind.
func (m *Manifest) GVK() schema.GroupVersionKind { return m.meta.gvk }

// Annotations returns the object's annotations, not to be changed. They are nil
// when there are none or when the value of any of them is neither a string nor
// null; an empty map is not nil, and a value null reads as the empty string.
// Inclusion depends on these distinctions (see [LoadFilter.Judge]).
func (m *Manifest) Annotations() map[string]string { return m.meta.annotations }

const (
	annotationDelete     = "release.openshift.io/delete"
	annotationCreateOnly = "release.openshift.io/create-only"
)

// Deletes reports whether the manifest asks for its object to be gone: whatever
// the annotation's value, such an object is never applied. On a ClusterOperator
// the annotation means nothing.
func (m *Manifest) Deletes() bool {
	_, ok := m.Annotations()[annotationDelete]
	return ok && m.GVK() != clusterOperatorKind.WithVersion("v1")
}

// CreatesOnly reports whether the manifest asks for its object to be created, but
// left alone if it exists. On a ClusterOperator the annotation means nothing.
func (m *Manifest) CreatesOnly() bool {
	return strings.EqualFold(m.Annotations()[annotationCreateOnly], "true") && m.GVK() != clusterOperatorKind.WithVersion("v1")
}

// OperandVersions returns the status.versions of a ClusterOperator, which are those
// that it has to report; nil where they are not of the right form.
func (m *Manifest) OperandVersions() []configv1.OperandVersion {
	var co configv1.ClusterOperator
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object().Object, &co); err != nil {
		return nil
	}
	return co.Status.Versions
}

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

func newMeta(obj *unstructured.Unstructured) meta {
	gvk := obj.GroupVersionKind()
	annotations, found, err := unstructured.NestedNullCoercingStringMap(obj.Object, "metadata", "annotations")
	return meta{
		gvk:         gvk,
		id:          Identity{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()},
		annotations: annotations,
		unreadable:  !found && err != nil,
	}
}

func (m *meta) validate() error {
	if m.id.Kind == "" || m.id.Name == "" {
		return fmt.Errorf("Resource with fields %s must contain kubernetes required fields kind and name", m.id) // a text that users search for
	}
	return nil
}

// isNull reports whether raw is an empty document.
func isNull(raw []byte) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
