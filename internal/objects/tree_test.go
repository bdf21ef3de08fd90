package objects_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Trees have the same hash if they are equal, and only then.
func TestHash(t *testing.T) {
	trees := []any{
		nil, true, false, "", "a", "1", int64(1), 1.0, 1.5, int64(1 << 53), int64(1<<53 + 1), 1e300, "[]", "{}",
		[]any{}, []any{nil}, []any{[]any{}}, []any{"a", "b"}, []any{"b", "a"}, []any{"a", "a"}, []any{[]any{"a"}, "b"},
		map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": "b"}, map[string]any{"b": "a"},
		map[string]any{"a": "b", "b": "a"}, map[string]any{"b": "a", "a": "b"}, map[string]any{"a": "a", "b": "b"},
		map[string]any{"a": map[string]any{"b": int64(1)}}, map[string]any{"a": map[string]any{"b": 1.0}},
		map[string]any{"a": map[string]any{}, "b": int64(1)}, []any{map[string]any{"a": "b"}},
	}
	for _, a := range trees {
		for _, b := range trees {
			checktest.Equal(t, objects.Equal(a, b), objects.Hash(a, nil) == objects.Hash(b, nil), "%#v, %#v", a, b)
		}
	}
	skip := func(field string) bool { return field == "b" }
	checktest.Equal(t, objects.Hash(map[string]any{"a": []any{map[string]any{}}}, nil),
		objects.Hash(map[string]any{"a": []any{map[string]any{"b": true}}, "b": "a"}, skip), "without b")
}
