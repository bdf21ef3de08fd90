package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// Errors that a program switches on with errors.Is.
var (
	// ErrPlanHeld: another runner has the plan.
	ErrPlanHeld = errors.New("another runner has the plan")
	// ErrPlanChanged: the plan is not the one that was started.
	ErrPlanChanged = errors.New("the plan is not the one that was started")
	// ErrPlanConflict: another plan that has not finished has changed the object.
	ErrPlanConflict = errors.New("another plan that has not finished has changed the object")
	// ErrPlanStopped: the plan failed or was stopped, and continues with the mode
	// [Resume] alone.
	ErrPlanStopped = errors.New("the plan was stopped; it goes on when it is resumed")
	// ErrTimeout: a step took longer than its Timeout.
	ErrTimeout = errors.New("the step's timeout has passed")
)

// StepError determines which step of a plan failed, and why.
type StepError struct {
	Plan string
	Step string
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("plan %s, step %s: %v", e.Plan, e.Step, e.Err) }

func (e *StepError) Unwrap() error { return e.Err }

// StalledError reports that a step waited for pools in which nothing moved for
// long.
type StalledError struct {
	Pools []string
	// Node is one that is not done, in Phase; empty if none is known.
	Node  string
	Phase mcp.Phase
	Since time.Time // of the last change of a phase
}

func (e *StalledError) Error() string {
	text := fmt.Sprintf("nothing has changed in %s since %s", poolList(e.Pools), e.Since.UTC().Format(time.RFC3339))
	if e.Node != "" {
		text += fmt.Sprintf("; node %s is in phase %s", e.Node, e.Phase)
	}
	return text
}

func poolList(pools []string) string {
	if len(pools) == 1 {
		return "pool " + pools[0]
	}
	return "pools " + strings.Join(pools, ", ")
}
