package kubernetes

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"
)

// Errors that say more than the API server did. Test for them by errors.Is.
var (
	// ErrAnswer is in the chain of an error about an answer that is not what
	// was asked for: another object, a list in place of an object, an item of
	// another namespace.
	ErrAnswer = backend.ErrAnswer
	// ErrTooLarge is in the chain of an error about an answer that exceeds one
	// of the [Limits], which the error names.
	ErrTooLarge = backend.ErrTooLarge
	// ErrClosed is the error of calls that come after [Cluster.Close], or are
	// ended by it.
	ErrClosed = backend.ErrClosed
)

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// isUnserved tells a 404 of the path, which the API server does not serve,
// from one of the object.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
