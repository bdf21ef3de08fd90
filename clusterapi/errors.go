package clusterapi

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// ErrNotCollected reports that a recording of a cluster does not contain a kind:
// whether such objects existed is not known. A live cluster never returns it.
var ErrNotCollected = errors.New("not collected in this recording")

// LimitError reports that something passed a limit. A List returns one if it
// finds more objects than its caller accepts.
type LimitError = limit.LimitError

// Exceeded returns the error of a List of gvk that finds more objects than o accepts.
func (o ListOptions) Exceeded(gvk schema.GroupVersionKind) *LimitError {
	return &LimitError{Where: "list of " + gvk.Kind, Limit: "ListOptions.Limit", Max: int64(o.Limit), What: "objects"}
}

// IsMissing reports whether an error says that an object, or its kind, does not exist in the
// cluster. What a recording did not collect is not known: see [ErrNotCollected].
func IsMissing(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// IsAbsent reports whether an error says that an object, or its kind, does not exist, or
// that it is not known: [IsMissing], or [ErrNotCollected].
func IsAbsent(err error) bool { return IsMissing(err) || errors.Is(err, ErrNotCollected) }
