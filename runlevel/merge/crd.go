package merge

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
)

// crdKind's Go types are not among those that are linked, so definitions are
// merged as JSON.
var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// shapeOfDefinition is what is looked at in a definition, for its types.
type shapeOfDefinition struct {
	Spec struct {
		Names struct {
			Kind     string `json:"kind"`
			ListKind string `json:"listKind"`
			Plural   string `json:"plural"`
			Singular string `json:"singular"`
		} `json:"names"`
		Conversion struct {
			Strategy string `json:"strategy"`
			Webhook  struct {
				ClientConfig struct {
					CABundle []byte `json:"caBundle"`
					Service  struct {
						Port int32 `json:"port"`
					} `json:"service"`
				} `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
		Versions []struct {
			Name   string         `json:"name"`
			Schema map[string]any `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// definition replaces the spec. A CA bundle that the service-ca operator has
// written stays.
func definition(existing, required *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
	before, wanted, err := metadataOf(existing, required)
	if err != nil {
		return nil, false, err
	}
	if _, _, err := decode[shapeOfDefinition](existing, required); err != nil {
		return nil, false, err
	}
	has, wants := definitionSpec(existing), definitionSpec(required)
	if before.Annotations[annotationInjectCA] == "true" {
		keepCABundle(wants, has)
	}
	after := *before
	mergeMeta(&after, wanted)
	sameSpec := sameDefinition(has, wants, false)
	if !sameSpec {
		has, wants = asStored(has), asStored(wants)
		sameSpec = sameDefinition(has, wants, false)
	}
	if sameSpec && equality.Semantic.DeepEqual(before, &after) {
		return existing, false, nil
	}
	merged := shallow(existing)
	if !sameSpec {
		merged.Object["spec"] = wants
	}
	merged = merged.DeepCopy()
	setMeta(merged, &after)
	return merged, true, nil
}

// definitionSpec returns the spec with its defaults, but for those of schemas; it
// shares the versions with u.
func definitionSpec(u *unstructured.Unstructured) map[string]any {
	spec := cloneMap(u.Object["spec"])
	versions, ok := spec["versions"]
	delete(spec, "versions")
	spec = asStored(spec)
	if ok {
		spec["versions"] = versions
	}
	return spec
}

// asStored returns a copy of a spec as a server stores it: without keywords of schemas
// that it does not know.
func asStored(spec map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(crdKind)
	return cloneMap(apiserver.Fill(u).Object["spec"])
}

// clientConfig returns a copy of the conversion webhook's client configuration, put
// in the place of the original.
func clientConfig(conversion map[string]any) (map[string]any, bool) {
	webhook, ok := conversion["webhook"].(map[string]any)
	if !ok {
		return nil, false
	}
	webhook = cloneMap(webhook)
	client, ok := webhook["clientConfig"].(map[string]any)
	if !ok {
		return nil, false
	}
	client = cloneMap(client)
	webhook["clientConfig"], conversion["webhook"] = client, webhook
	return client, true
}

// keepCABundle takes the bundle over from one spec into another, which is changed.
func keepCABundle(into, from map[string]any) {
	theirs, ok := clientConfig(cloneMap(from["conversion"]))
	if !ok || theirs["caBundle"] == nil {
		return
	}
	conversion := cloneMap(into["conversion"])
	if ours, ok := clientConfig(conversion); ok {
		ours["caBundle"] = theirs["caBundle"]
		into["conversion"] = conversion
	}
}

// cloneMap returns a map that may be written to, empty for any other value.
func cloneMap(v any) map[string]any {
	m, ok := v.(map[string]any)
	if !ok || m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// shallow returns an object whose top-level keys may be replaced.
func shallow(u *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: maps.Clone(u.Object)}
}

// sameDefinition compares parts of a definition by meaning: where a server leaves a
// zero out, it is the same as absent. names reports that the keys of a and b are names
// of properties, and not fields.
func sameDefinition(a, b any, names bool) bool {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if okX && okY {
		for key, value := range x {
			if !sameField(key, value, y[key], names) {
				return false
			}
		}
		for key, value := range y {
			if _, ok := x[key]; !ok && !sameField(key, nil, value, names) {
				return false
			}
		}
		return true
	}
	p, okP := a.([]any)
	q, okQ := b.([]any)
	if okP && okQ {
		if len(p) != len(q) {
			return false
		}
		for i := range p {
			if !sameDefinition(p[i], q[i], false) {
				return false
			}
		}
		return true
	}
	return same(a, b)
}

func sameField(key string, a, b any, names bool) bool {
	if names {
		return a != nil && b != nil && sameDefinition(a, b, false)
	}
	switch key {
	case "default", "example": // any JSON: each value is one, but null
		return same(a, b)
	case "enum":
		return len(listOf(a)) == len(listOf(b)) && (len(listOf(a)) == 0 || same(a, b))
	case "additionalProperties", "additionalItems", "items", "not", "status", "scale", "subresources",
		"x-kubernetes-preserve-unknown-fields": // each says something by being there
		return (a == nil) == (b == nil) && (a == nil || sameDefinition(a, b, false))
	case "properties", "patternProperties", "definitions", "dependencies":
		return isZero(a) && isZero(b) || sameDefinition(a, b, true)
	case "priority":
		if a == nil {
			a = int64(0)
		}
		if b == nil {
			b = int64(0)
		}
	}
	return isZero(a) && isZero(b) || sameDefinition(a, b, false)
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// isZero reports what a Go type with omitempty leaves out, but for numbers, which
// are pointers where they limit something.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
