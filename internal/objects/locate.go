package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// locate finds the first field of content that does not convert to t, and why.
// It is for error texts only: the converter itself does not say where it
// failed. The path ends in ": ", or is empty.
func locate(t reflect.Type, content any) (string, error) {
	path, cause := descend(t, content)
	if path == "" {
		return "", cause
	}
	return strings.TrimPrefix(path, ".") + ": ", cause
}

func descend(t reflect.Type, v any) (string, error) {
	cause := decodes(t, v)
	if cause == nil {
		return "", nil
	}
	t = deref(t)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			ft := typeShape(t, name).typ
			if ft == nil {
				continue
			}
			if path, cause := descend(ft, v[name]); cause != nil {
				return "." + name + path, cause
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			break
		}
		for i := range v {
			if path, cause := descend(t.Elem(), v[i]); cause != nil {
				return fmt.Sprintf("[%d]%s", i, path), cause
			}
		}
	}
	return "", cause
}

// decodes reports whether v fits t, with an error that speaks of JSON values.
func decodes(t reflect.Type, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	err = json.Unmarshal(data, reflect.New(t).Interface())
	if e, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Errorf("got a JSON %s, want %s", e.Value, e.Type)
	}
	return err
}
