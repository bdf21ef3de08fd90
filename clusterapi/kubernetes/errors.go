package kubernetes

import "github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/backend"

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
