package memory

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/clusterupdate/clusterupdate/internal/apiserver"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// copyTree deep-copies what a caller passed. Go numbers of all kinds become
// the two that JSON trees have; a value that JSON does not have is an error
// that names its path. Maps and lists that are those of stored, at the same
// place, are not copied: they are shared, and nobody changes them.
func copyTree(v, stored any, path string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return nil, nil
		}
		old, _ := stored.(map[string]any)
		if old != nil && objects.SameMap(v, old) {
			return v, nil
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			switch e := e.(type) { // scalars need no path, which is costly
			case string, bool, int64, nil:
				out[k] = e
				continue
			}
			if objects.Same(e, old[k]) {
				out[k] = e
				continue
			}
			c, err := copyTree(e, old[k], path+"."+k)
			if err != nil {
				return nil, err
			}
			out[k] = c
		}
		return out, nil
	case []any:
		if v == nil {
			return nil, nil
		}
		old, _ := stored.([]any)
		if objects.Same(v, stored) && len(v) > 0 {
			return v, nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			var at any
			if i < len(old) {
				at = old[i]
			}
			c, err := copyTree(e, at, path+"["+strconv.Itoa(i)+"]")
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	case string, bool, int64, nil:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s: %v is not a JSON number", path, v)
		}
		if i := int64(v); float64(i) == v && math.Abs(v) < 1<<53 {
			return i, nil // as JSON writes and reads it
		}
		return v, nil
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return f, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out, nil
	case map[string]string:
		out := make(map[string]any, len(v))
		for k, s := range v {
			out[k] = s
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: a %T is not a JSON value", path, v)
}

// dropNulls returns the tree without nulls in maps; it shares what had none.
func dropNulls(v any) any {
	return objects.Rewrite(v, func(_ string, e any) (any, bool) { return dropNulls(e), e != nil }, dropNulls)
}

// dropForbiddenNulls returns the tree without the nulls in fields that the
// OpenAPI schema of a definition does not call nullable; it shares what had
// none. An API server does so before it gives defaults and validates.
func dropForbiddenNulls(schema map[string]any, v any) any {
	properties, _ := schema["properties"].(map[string]any)
	others, _ := schema["additionalProperties"].(map[string]any)
	items, _ := schema["items"].(map[string]any)
	return objects.Rewrite(v, func(k string, e any) (any, bool) {
		field, ok := properties[k].(map[string]any)
		if !ok {
			field = others
		}
		return dropForbiddenNulls(field, e), e != nil || field == nil || field["nullable"] == true
	}, func(e any) any { return dropForbiddenNulls(items, e) })
}

// prune returns an object without fields that its schema lacks; it shares what had
// none.
func (k *kind) prune(v map[string]any) map[string]any {
	switch {
	case k.openAPI != nil:
		return apiserver.Prune(v, k.openAPI, nil)
	case k.types == nil:
		return v
	}
	out, _ := pruneValue(k.types.Schema, k.types.TypeRef, v).(map[string]any)
	return out
}

func pruneValue(s *smd.Schema, tr smd.TypeRef, v any) any {
	atom, ok := s.Resolve(tr)
	if _, isMap := v.(map[string]any); !ok || isMap && atom.Map == nil || !isMap && atom.List == nil {
		return v
	}
	return objects.Rewrite(v, func(k string, e any) (any, bool) {
		if f, ok := atom.Map.FindField(k); ok {
			return pruneValue(s, f.Type, e), true
		}
		if atom.Map.ElementType == (smd.TypeRef{}) {
			return nil, false
		}
		return pruneValue(s, atom.Map.ElementType, e), true
	}, func(e any) any { return pruneValue(s, atom.List.ElementType, e) })
}
