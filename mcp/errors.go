package mcp

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that a program switches on with errors.Is.
var (
	// ErrPoolConflict: a node belongs to more than one custom pool.
	ErrPoolConflict = errors.New("node belongs to more than one custom pool")
	// ErrInvalidMaxUnavailable: a pool's spec.maxUnavailable is negative or
	// neither a number nor a percentage.
	ErrInvalidMaxUnavailable = errors.New("maxUnavailable is not valid")
	// ErrControllerActive: a machine-config controller runs in this cluster, so
	// a [Rollout] must not drive it.
	ErrControllerActive = errors.New("a machine-config controller is active in this cluster: use mode Observe, or stop it first")
)

// PoolConflictError says which custom pools claim a node. Until its labels are
// right the node counts in no pool, and is neither drained nor uncordoned.
type PoolConflictError struct {
	Node  string   // empty where only labels are known
	Pools []string // sorted
}

func (e *PoolConflictError) Error() string {
	return fmt.Sprintf("node %s belongs to %d custom roles, cannot proceed with this Node: pools %s",
		e.Node, len(e.Pools), strings.Join(e.Pools, ", "))
}

// Is makes the error equal to [ErrPoolConflict].
func (e *PoolConflictError) Is(target error) bool { return target == ErrPoolConflict }

// SelectorError says that a pool's spec.nodeSelector cannot be used.
type SelectorError struct {
	Pool string
	Err  error
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("pool %s: invalid label selector: %v", e.Pool, e.Err)
}

func (e *SelectorError) Unwrap() error { return e.Err }

// TargetError says that a node could not be given its desired config.
type TargetError struct {
	Node   string
	Config string
	Err    error
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("setting desired %s for node %s: %v", e.Config, e.Node, e.Err)
}

func (e *TargetError) Unwrap() error { return e.Err }

// DrainErrorKind says what stands in the way of a drain.
type DrainErrorKind string

// The kinds of a [DrainError].
const (
	DrainBudget   DrainErrorKind = "Budget"   // a PodDisruptionBudget refuses the eviction
	DrainEviction DrainErrorKind = "Eviction" // the eviction failed for another reason
	DrainTimeout  DrainErrorKind = "Timeout"  // the pod did not go within one attempt
	DrainPods     DrainErrorKind = "Pods"     // the pods could not be listed or judged
	DrainCordon   DrainErrorKind = "Cordon"   // the node could not be (un)cordoned
)

// DrainError is why one pod, or where Pod is empty the node as a whole, keeps a
// drain from its end. The drain goes on: it is retried until it succeeds.
type DrainError struct {
	Node   string
	Pod    string // namespace/name
	Budget string // name of the PodDisruptionBudget, where the answer named it
	Kind   DrainErrorKind
	Err    error
}

func (e *DrainError) Error() string { return e.Err.Error() }

func (e *DrainError) Unwrap() error { return e.Err }

// StalledError says that nothing has moved in a node's pool for so long that
// somebody should look.
type StalledError struct {
	Node  string
	Phase Phase
	Since time.Time // of the last change of a phase in the pool
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("node %s is in phase %s and nothing has changed in its pool since %s",
		e.Node, e.Phase, e.Since.UTC().Format(time.RFC3339))
}

// maxUnavailableError keeps the text that users know and is
// [ErrInvalidMaxUnavailable] all the same.
type maxUnavailableError struct{ err error }

func (e *maxUnavailableError) Error() string { return "maxUnavailable: " + e.err.Error() }

func (e *maxUnavailableError) Unwrap() []error { return []error{ErrInvalidMaxUnavailable, e.err} }
