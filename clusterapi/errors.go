package clusterapi

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// ErrNotCollected reports that a recording of a cluster does not contain a kind:
// whether such objects existed is not known. A live cluster never returns it.
var ErrNotCollected = errors.New("not collected in this recording")

// LimitError reports that something passed a limit. A List returns one if it
// finds more objects than its caller accepts.
type LimitError = limit.LimitError

// TooMany is the error of a List of gvk that finds more than limit objects.
func TooMany(gvk schema.GroupVersionKind, limit int) *LimitError {
	return &LimitError{Where: "list of " + gvk.Kind, Limit: "ListOptions.Limit", Max: int64(limit), What: "objects"}
}
