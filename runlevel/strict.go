package runlevel

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// kubernetesType returns the type of a kind of k8s.io/api: an API server enforces
// their schema when fields are applied.
func kubernetesType(gvk schema.GroupVersionKind) (reflect.Type, bool) {
	t, ok := objects.TypeOf(gvk)
	return t, ok && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

// removeUnknown removes the fields that the type of obj's kind does not have
// and returns their paths, sorted. Kinds other than those of k8s.io/api stay
// as they are. A field of the wrong type is an error.
func removeUnknown(obj *unstructured.Unstructured) ([]string, error) {
	t, ok := kubernetesType(obj.GroupVersionKind())
	if !ok {
		return nil, nil
	}
	var removed []string
	// the decoder stops counting at a hundred faults, so look again until
	// there is none left
	for {
		raw, err := json.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		faults, err := kjson.UnmarshalStrict(raw, reflect.New(t).Interface(), kjson.DisallowUnknownFields)
		if err != nil {
			return nil, err
		}
		if len(faults) == 0 {
			slices.Sort(removed)
			return removed, nil
		}
		// elements of lists are never removed, so paths stay valid
		for _, fault := range faults {
			field, ok := fault.(kjson.FieldError)
			if !ok || !removePath(obj.Object, field.FieldPath()) {
				return nil, fmt.Errorf("cannot remove what the schema lacks: %w", fault)
			}
			removed = append(removed, field.FieldPath())
		}
		if len(removed) > maxUnknown {
			return nil, tooManyUnknown(removed)
		}
	}
}

func tooManyUnknown(removed []string) error {
	return fmt.Errorf("more than %d fields that the schema lacks, beginning with %s", maxUnknown, quote(removed[0]))
}

// removePath removes the field at a path such as
// spec.containers[0].unknown. Keys may hold dots and brackets themselves, so
// the path is matched against what is there.
func removePath(value any, path string) bool {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v[path]; ok {
			delete(v, path)
			return true
		}
		for i := range len(path) {
			if path[i] != '.' && path[i] != '[' {
				continue
			}
			child, ok := v[path[:i]]
			if ok && removePath(child, strings.TrimPrefix(path[i:], ".")) {
				return true
			}
		}
	case []any:
		digits, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(digits)
		if !ok || err != nil || i < 0 || i >= len(v) {
			return false
		}
		return removePath(v[i], strings.TrimPrefix(rest, "."))
	}
	return false
}
