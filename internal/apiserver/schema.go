package apiserver

import "k8s.io/apimachinery/pkg/runtime"

// FillSchema returns a copy of a custom resource's value with the defaults of
// its openAPIV3Schema, as the API server fills them in: first the field of an
// object, then what is below it. A null counts as absent where the schema has a
// default and does not allow null. A nil schema has none.
func FillSchema(value any, schema map[string]any) any {
	value = runtime.DeepCopyJSONValue(value)
	fillSchema(value, schema)
	return value
}

func fillSchema(value any, schema map[string]any) {
	if schema == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			below, _ := p.(map[string]any)
			d, has := below["default"]
			e, there := v[name]
			if has && (!there || e == nil && below["nullable"] != true) {
				v[name] = runtime.DeepCopyJSONValue(d)
			}
			if e, there := v[name]; there {
				fillSchema(e, below)
			}
		}
		if others, ok := schema["additionalProperties"].(map[string]any); ok {
			for name, e := range v {
				if _, known := properties[name]; !known {
					fillSchema(e, others)
				}
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, e := range v {
			fillSchema(e, items)
		}
	}
}
