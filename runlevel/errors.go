package runlevel

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// Effect describes what an error means for the update: whether it is trouble, or
// merely waiting. The empty effect counts as trouble.
type Effect string

// The effects of a [TaskError].
const (
	// EffectReport: tell, but do not block. A ClusterOperator that is degraded
	// while installing.
	EffectReport Effect = "Report"
	// EffectNone: normal waiting. A ClusterOperator not yet at its versions.
	EffectNone Effect = "None"
	// EffectFailAfterInterval: trouble only when it lasts over 40 minutes. A
	// degraded ClusterOperator.
	EffectFailAfterInterval Effect = "FailAfterInterval"
	// EffectFail: trouble at once. An unavailable ClusterOperator.
	EffectFail Effect = "Fail"
)

// Reasons of a [TaskError] as users know them from the conditions of
// ClusterVersion.
const (
	ReasonResourceNotFound    = "UpdatePayloadResourceNotFound"
	ReasonResourceConflict    = "UpdatePayloadResourceConflict"
	ReasonClusterDown         = "UpdatePayloadClusterDown"
	ReasonClusterError        = "UpdatePayloadClusterError"
	ReasonResourceInvalid     = "UpdatePayloadResourceInvalid"
	ReasonClusterUnauthorized = "UpdatePayloadClusterUnauthorized"
	ReasonResourceForbidden   = "UpdatePayloadResourceForbidden"
	ReasonClusterOverloaded   = "UpdatePayloadClusterOverloaded"
	ReasonResourceTypeMissing = "UpdatePayloadResourceTypeMissing"
	ReasonFailed              = "UpdatePayloadFailed"

	ReasonOperatorNoVersions   = "ClusterOperatorNoVersions"
	ReasonOperatorNotAvailable = "ClusterOperatorNotAvailable"
	ReasonOperatorDegraded     = "ClusterOperatorDegraded"
	ReasonOperatorUpdating     = "ClusterOperatorUpdating"

	ReasonWorkloadNotAvailable   = "WorkloadNotAvailable"
	ReasonWorkloadNotProgressing = "WorkloadNotProgressing"

	// ReasonJobNotComplete is ours: a Job that is awaited (see
	// [Options.AwaitJobs]) still ran when the time of the pass was over.
	ReasonJobNotComplete = "JobNotComplete"

	ReasonMultipleErrors = "MultipleErrors"
)

// TaskError is why a task, or a pass, failed. [Run] returns it, alone or as
// the sum of several; find it by errors.As.
//
// An [Applier] that returns one ends the task at once, other errors are
// retried.
type TaskError struct {
	// Task is the failed task; nil in a sum of several.
	Task *manifest.Task
	// Effect describes how grave it is.
	Effect Effect
	// Reason is the machine-readable reason.
	Reason string
	// PluralReason and PluralFormat (with one %s for the joined names) are
	// the reason and message for several ClusterOperators with the same
	// trouble. Without a PluralReason an error is never put together with
	// others.
	PluralReason, PluralFormat string
	// Message is the text of Error.
	Message string
	// Name is the object in trouble, for several their names joined by ", ".
	Name string
	// Names are the names, sorted, if there are several.
	Names []string
	// Wait describes what a ClusterOperator lacks; nil for everything else.
	Wait *Wait
	// Err is the cause; for a sum all Members joined.
	Err error
	// Members are the errors that a sum is made of.
	Members []error
}

// Error returns the message.
func (e *TaskError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.Err }

// contextEnd reports that a node stopped because the context of the pass ended. It
// is not a fault of a task: summaries leave it out.
type contextEnd struct {
	// Done and Total count the tasks of the pass.
	Done, Total int
	// Err is the error of the context, and its cause if one was given: errors.Is
	// finds both.
	Err error
}

func (e *contextEnd) Error() string {
	return fmt.Sprintf("update %v at %d of %d", e.Err, e.Done, e.Total)
}

// Unwrap returns the error of the context.
func (e *contextEnd) Unwrap() error { return e.Err }

// incompleteError reports that nodes with tasks have not run though none failed:
// the context ended in between.
type incompleteError struct {
	// Nodes counts all nodes that are not done, empty ones too.
	Nodes int
	// First is the first task of the first such node that has tasks.
	First *manifest.Task
}

func (e *incompleteError) Error() string {
	return fmt.Sprintf("%d incomplete task nodes, beginning with %s", e.Nodes, e.First)
}

// errorClass words an error of the cluster's API for people.
type errorClass struct {
	is     func(error) bool
	reason string
	cause  string
}

// anyOf returns whether one of the functions says so.
func anyOf(fs ...func(error) bool) func(error) bool {
	return func(err error) bool {
		for _, f := range fs {
			if f(err) {
				return true
			}
		}
		return false
	}
}

// classify returns the class of an error: the first that fits.
func classify(err error) (reason, cause string) {
	for _, c := range [...]errorClass{
		{anyOf(apierrors.IsNotFound, apierrors.IsAlreadyExists), ReasonResourceNotFound, "resource may have been deleted"},
		{apierrors.IsConflict, ReasonResourceConflict, "someone else is updating this resource"},
		{anyOf(apierrors.IsTimeout, apierrors.IsServiceUnavailable, apierrors.IsUnexpectedServerError), ReasonClusterDown, "the server is down or not responding"},
		{apierrors.IsInternalError, ReasonClusterError, "the server is reporting an internal error"},
		{apierrors.IsInvalid, ReasonResourceInvalid, "the object is invalid, possibly due to local cluster configuration"},
		{apierrors.IsUnauthorized, ReasonClusterUnauthorized, "could not authenticate to the server"},
		{apierrors.IsForbidden, ReasonResourceForbidden, "the server has forbidden updates to this resource"},
		{anyOf(apierrors.IsServerTimeout, apierrors.IsTooManyRequests), ReasonClusterOverloaded, "the server is overloaded and is not accepting updates"},
		{meta.IsNoMatchError, ReasonResourceTypeMissing, "the server does not recognize this resource, check extension API servers"},
	} {
		if c.is(err) {
			return c.reason, c.cause
		}
	}
	return ReasonFailed, ""
}

// taskError returns the error of a task whose attempts are over: a TaskError
// within err with the task filled in, else one that words the class of err.
func taskError(t *manifest.Task, err error) *TaskError {
	if te, ok := errors.AsType[*TaskError](err); ok {
		out := *te
		if out.Task == nil {
			out.Task = t
		}
		if err != error(te) {
			out.Err = err // keep what was wrapped around it
		}
		return &out
	}
	reason, cause := classify(err)
	message := "Could not update " + t.String()
	if cause != "" {
		message += ": " + cause
	}
	return &TaskError{Task: t, Reason: reason, Message: message, Err: err}
}

// panicError is the error of a task that panicked.
func panicError(t *manifest.Task, caught error) *TaskError {
	return &TaskError{Task: t, Reason: ReasonFailed, Err: caught,
		Message: "Could not update " + t.String() + ": " + quote(caught.Error())}
}

// isContextError reports an error that only reports that ctx ended.
func isContextError(ctx context.Context, err error) bool {
	if _, ok := errors.AsType[*TaskError](err); ok {
		return false
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	cause := context.Cause(ctx)
	return cause != nil && errors.Is(err, cause)
}

// interruption is the error of a context that ended a run. Its type distinguishes
// it from other errors, whatever its cause.
type interruption struct{ err error }

func (e *interruption) Error() string { return e.err.Error() }
func (e *interruption) Unwrap() error { return e.err }
