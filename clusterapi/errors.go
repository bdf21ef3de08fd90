package clusterapi

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNotCollected says that a recording of a cluster does not contain a kind:
// whether such objects existed is not known. A live cluster never returns it.
var ErrNotCollected = errors.New("not collected in this recording")

// LimitError says that a List found more objects than its caller accepts.
type LimitError struct {
	GVK   schema.GroupVersionKind
	Limit int
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("list of %s exceeds the limit of %d objects", e.GVK.Kind, e.Limit)
}
