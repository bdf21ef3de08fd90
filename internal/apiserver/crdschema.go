package apiserver

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Parse reads an openAPIV3Schema, or a part of one, with the types that its
// extensions imply, and without defaults and the formats that an API server does
// not know. It does not change tree.
func Parse(tree any) (*spec.Schema, error) {
	data, err := json.Marshal(plain(tree))
	if err != nil {
		return nil, err
	}
	out := new(spec.Schema)
	return out, json.Unmarshal(data, out)
}

func plain(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	m = maps.Clone(m)
	delete(m, "default")
	if m["x-kubernetes-int-or-string"] == true {
		m["type"] = []any{"integer", "string"}
	}
	if f, _ := m["format"].(string); !strfmt.Default.ContainsName(f) && !slices.Contains([]string{"int32", "int64", "float", "double"}, f) {
		delete(m, "format")
	}
	for _, name := range []string{"properties", "patternProperties"} {
		if p, ok := m[name].(map[string]any); ok {
			p = maps.Clone(p)
			for k, e := range p {
				p[k] = plain(e)
			}
			m[name] = p
		}
	}
	for _, name := range []string{"items", "additionalProperties", "not"} {
		if e, ok := m[name]; ok {
			m[name] = plain(e)
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		if l, ok := m[name].([]any); ok {
			l = slices.Clone(l)
			for i, e := range l {
				l[i] = plain(e)
			}
			m[name] = l
		}
	}
	return m
}
