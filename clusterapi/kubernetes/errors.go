package kubernetes

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// isUnserved tells a 404 of the path, which the API server does not serve,
// from one of the object.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// passing tells whether a fault may go away by itself: one of the network or
// of the server, not one of the request.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !meta.IsNoMatchError(err)
	}
	code := status.Status().Code
	return code == 429 || code >= 500 || code == 0
}
