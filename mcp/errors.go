package mcp

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that a program switches on with errors.Is.
var (
	// ErrPoolConflict: a node belongs to more than one custom pool.
	ErrPoolConflict = errors.New("node belongs to more than one custom pool")
	// ErrInvalidMaxUnavailable: a pool's spec.maxUnavailable is negative or
	// neither a number nor a percentage.
	ErrInvalidMaxUnavailable = errors.New("maxUnavailable is not valid")
)

// PoolConflictError determines which custom pools claim a node. Until its labels
// are right the node counts in no pool, and is neither drained nor uncordoned.
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

// SelectorError reports that a pool's spec.nodeSelector cannot be used.
type SelectorError struct {
	Pool string
	Err  error
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("pool %s: invalid label selector: %v", e.Pool, e.Err)
}

func (e *SelectorError) Unwrap() error { return e.Err }

// maxUnavailableError keeps the text that users know and is
// [ErrInvalidMaxUnavailable] all the same.
type maxUnavailableError struct{ err error }

func (e *maxUnavailableError) Error() string { return "maxUnavailable: " + e.err.Error() }

func (e *maxUnavailableError) Unwrap() []error { return []error{ErrInvalidMaxUnavailable, e.err} }
