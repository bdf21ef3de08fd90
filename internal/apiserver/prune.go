package apiserver

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind returns the kind of the objects that a CustomResourceDefinition defines.
func Kind(definition map[string]any) schema.GroupKind {
	group, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "group")
	kind, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "names", "kind")
	g, _ := group.(string)
	k, _ := kind.(string)
	return schema.GroupKind{Group: g, Kind: k}
}

// Versions returns the versions of a CustomResourceDefinition, in its order; nil if absent.
func Versions(definition map[string]any) []map[string]any {
	spec, _ := definition["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	var out []map[string]any
	for _, v := range list {
		if version, ok := v.(map[string]any); ok {
			out = append(out, version)
		}
	}
	return out
}

// Of returns the openAPIV3Schema of a served version of a CustomResourceDefinition.
// It is nil if absent, or if the definition keeps all unknown fields.
func Of(definition map[string]any, version string) map[string]any {
	spec, _ := definition["spec"].(map[string]any)
	if spec["preserveUnknownFields"] == true {
		return nil
	}
	for _, v := range Versions(definition) {
		if v["name"] == version && v["served"] != false {
			s, _ := v["schema"].(map[string]any)
			tree, _ := s["openAPIV3Schema"].(map[string]any)
			return tree
		}
	}
	return nil
}

// Prune returns a custom resource without the fields that the openAPIV3Schema of its
// definition lacks, as an API server stores it. What is not of the type that the
// schema names stays, for validation to refuse. Prune calls removed, if it is not nil,
// with the path of each field that it removes, in order. The result shares with obj
// what it does not change.
func Prune(obj, tree map[string]any, removed func(path string)) map[string]any {
	p := pruning{removed: removed}
	out, _ := p.fields(obj, tree, true, tree[preserve] == true)
	return out
}

const (
	preserve = "x-kubernetes-preserve-unknown-fields"
	embedded = "x-kubernetes-embedded-resource"
)

// objectMeta is the schema of metadata, which definitions do not describe.
var objectMeta = func() map[string]any {
	text := map[string]any{"type": "string"}
	number := map[string]any{"type": "integer"}
	flag := map[string]any{"type": "boolean"}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	list := func(items map[string]any) map[string]any { return map[string]any{"type": "array", "items": items} }
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return object(map[string]any{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": number, "creationTimestamp": text, "deletionTimestamp": text, "deletionGracePeriodSeconds": number,
		"labels": texts, "annotations": texts, "finalizers": list(text),
		"ownerReferences": list(object(map[string]any{
			"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
		})),
		"managedFields": list(object(map[string]any{
			"manager": text, "operation": text, "apiVersion": text, "time": text, "fieldsType": text, "subresource": text,
			"fieldsV1": map[string]any{"type": "object", preserve: true},
		})),
	})
}()

// pruning is one walk over an object.
type pruning struct {
	removed func(path string)
	path    []byte // of the value, only if removed is set
}

// field and element extend the path; they return its length before.
func (p *pruning) field(name string) int {
	length := len(p.path)
	if p.removed != nil {
		if length > 0 {
			p.path = append(p.path, '.')
		}
		p.path = append(p.path, name...)
	}
	return length
}

func (p *pruning) element(index int) int {
	length := len(p.path)
	if p.removed != nil {
		p.path = append(strconv.AppendInt(append(p.path, '['), int64(index), 10), ']')
	}
	return length
}

// value prunes a value, and reports whether it has. kept means that the list that
// holds it keeps what is unknown.
func (p *pruning) value(v any, schema map[string]any, kept bool) (any, bool) {
	want, _ := schema["type"].(string)
	kept = kept || schema[preserve] == true
	switch v := v.(type) {
	case map[string]any:
		if want == "" || want == "object" {
			return p.fields(v, schema, schema[embedded] == true, kept)
		}
	case []any:
		if want == "" || want == "array" {
			return p.elements(v, schema, kept)
		}
	}
	return v, false
}

// fields prunes an object; resource means that it has apiVersion, kind and metadata.
func (p *pruning) fields(v, schema map[string]any, resource, kept bool) (map[string]any, bool) {
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	kept = kept || schema["additionalProperties"] == true || schema["x-kubernetes-int-or-string"] == true
	names := maps.Keys(v)
	if p.removed != nil {
		names = slices.Values(slices.Sorted(names)) // so that paths come in order
	}
	out, changed := v, false
	change := func() {
		if !changed {
			out, changed = maps.Clone(v), true
		}
	}
	for name := range names {
		if resource && (name == "apiVersion" || name == "kind") {
			continue
		}
		of, known := properties[name].(map[string]any)
		switch {
		case resource && name == "metadata":
			of = objectMeta
		case known:
		case others != nil:
			of = others
		case kept:
			continue
		default:
			length := p.field(name)
			if p.removed != nil {
				p.removed(string(p.path))
			}
			p.path = p.path[:length]
			change()
			delete(out, name)
			continue
		}
		length := p.field(name)
		if pruned, other := p.value(v[name], of, false); other {
			change()
			out[name] = pruned
		}
		p.path = p.path[:length]
	}
	return out, changed
}

// elements prunes a list.
func (p *pruning) elements(v []any, schema map[string]any, kept bool) ([]any, bool) {
	items, _ := schema["items"].(map[string]any)
	out, changed := v, false
	for i, e := range v {
		length := p.element(i)
		if pruned, other := p.value(e, items, kept); other {
			if !changed {
				out, changed = slices.Clone(v), true
			}
			out[i] = pruned
		}
		p.path = p.path[:length]
	}
	return out, changed
}
