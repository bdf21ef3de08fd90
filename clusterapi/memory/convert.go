package memory

import (
	"fmt"
	"maps"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// record is an object on its way through a field manager. It keeps the managed
// fields in their own form, so that they are not converted at every step.
type record struct {
	*unstructured.Unstructured
	managed []metav1.ManagedFieldsEntry
	// owned is what new entries of managed say, if that is known.
	owned ownership
	// given reports that managed is the caller's.
	given bool
	// statusOnly reports that nothing but the status was written.
	statusOnly bool
}

func (r *record) GetManagedFields() []metav1.ManagedFieldsEntry  { return r.managed }
func (r *record) SetManagedFields(m []metav1.ManagedFieldsEntry) { r.managed = m }

// DeepCopyObject is called for an object that an Apply leaves as it is; the
// caller only replaces its managed fields, so the content is shared.
func (r *record) DeepCopyObject() runtime.Object {
	return &record{Unstructured: r.Unstructured, managed: r.managed}
}

// typeConverter converts records of one type.
type typeConverter struct{ types typed.ParseableType }

func (c typeConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	r, ok := obj.(*record)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", obj)
	}
	return c.types.FromUnstructured(r.Object, opts...)
}

func (c typeConverter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	content, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in place of an object", v.AsValue().Unstructured())
	}
	return &record{Unstructured: &unstructured.Unstructured{Object: content}}, nil
}

// schemaType returns a named type of a schema.
func schemaType(s *smd.Schema, name string) *typed.ParseableType {
	return &typed.ParseableType{TypeRef: smd.TypeRef{NamedType: &name}, Schema: s}
}

// objectConverter is the converter between versions, the defaulter and the
// creater that field managers ask for. Versions differ only in
// apiVersion, and it has no defaults.
type objectConverter struct{}

func (objectConverter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	want, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok {
		return nil, fmt.Errorf("%s does not convert to %s", gvk, target.Identifier())
	}
	if want == gvk {
		return in, nil
	}
	r, ok := in.(*record)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", in)
	}
	return &record{Unstructured: inVersion(r.Unstructured, want.GroupVersion()), managed: r.managed}, nil
}

func (objectConverter) Convert(in, out, context any) error {
	return fmt.Errorf("conversion of %T to %T is not supported", in, out)
}

func (objectConverter) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", fmt.Errorf("field label %s of %s is not supported", url.QueryEscape(label), gvk)
}

func (objectConverter) Default(runtime.Object) {}

func (objectConverter) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return newRecord(gvk), nil
}

// newRecord is an empty object of a kind.
func newRecord(gvk schema.GroupVersionKind) *record {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return &record{Unstructured: u}
}

// inVersion returns the object in another version of its kind, sharing all
// that it holds.
func inVersion(obj *unstructured.Unstructured, gv schema.GroupVersion) *unstructured.Unstructured {
	if obj.GetAPIVersion() == gv.String() {
		return obj
	}
	content := maps.Clone(obj.Object)
	content["apiVersion"] = gv.String()
	return &unstructured.Unstructured{Object: content}
}
