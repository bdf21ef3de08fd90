package memory

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxObject is how large an object may be as JSON: what etcd takes.
	maxObject = 1536 << 10
	// maxDepth is how deep values may be nested.
	maxDepth = 1000
)

// measure refuses trees that are too large or too deep before they are copied.
func measure(content map[string]any) error {
	left := maxObject
	if deep := shrink(content, &left, maxDepth); deep {
		return apierrors.NewBadRequest(fmt.Sprintf("values are nested more than %d deep", maxDepth))
	}
	if left < 0 {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxObject))
	}
	return nil
}

// shrink takes the size of v from what is left, and stops at less than none.
func shrink(v any, left *int, depth int) (deep bool) {
	if depth == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		*left -= 2
		for name, e := range v {
			if name == "managedFields" {
				continue // the cluster's own
			}
			*left -= len(name) + 4
			if *left < 0 || shrink(e, left, depth-1) {
				return *left >= 0
			}
		}
	case []any:
		*left -= 2
		for _, e := range v {
			*left--
			if *left < 0 || shrink(e, left, depth-1) {
				return *left >= 0
			}
		}
	case string:
		*left -= len(v) + 2
	default:
		*left -= 4
	}
	return false
}
