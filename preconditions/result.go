package preconditions

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/preconditions/internal/facts"
)

// State is the outcome of one check.
type State string

// The states of a [Result].
const (
	Passed        State = "Passed"        // nothing found but Info
	Failed        State = "Failed"        // at least a Warning; with an Err there may be more
	NotApplicable State = "NotApplicable" // the question does not arise
	Unknown       State = "Unknown"       // could not be evaluated; never a pass
	Bypassed      State = "Bypassed"      // failed or unknown, and set aside by a Bypass (only in a Decision)
)

// Reasons of the one finding that an Unknown result has, and of the last one of
// a Failed result with an Err; an [UnknownError] has its own.
const (
	reasonUnknownError  = "UnknownError"   // a read or the check failed
	reasonTimedOut      = "CheckTimedOut"  // no answer in time
	reasonPanicked      = "CheckPanicked"  // a fault of the check
	reasonNotAllowed    = "NotAllowed"     // a read was forbidden
	reasonNoSource      = "NoSource"       // the Input lacks what it needs
	reasonNotCollected  = "NotCollected"   // the recording lacks the kind
	reasonLimitExceeded = "LimitExceeded"  // a list was longer than Options.MaxItems
	reasonCancelled     = "CheckCancelled" // the run was cancelled
)

// Result is the outcome of one check.
type Result struct {
	Check    string
	State    State
	Findings []Finding // of an Unknown one: why it is unknown
	// Err describes what could not be found out. It is set where the state is
	// Unknown, and if it is Failed by what is known although something is not: the
	// last finding then says so.
	Err error
	// Elapsed is how long the check took. It is left out of the JSON, which is
	// the same for the same input.
	Elapsed time.Duration
}

// MarshalJSON writes the error as its text.
func (r Result) MarshalJSON() ([]byte, error) {
	out := struct {
		Check    string    `json:"check"`
		State    State     `json:"state"`
		Findings []Finding `json:"findings,omitempty"`
		Error    string    `json:"error,omitempty"`
	}{Check: r.Check, State: r.State, Findings: r.Findings}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return json.Marshal(out)
}

// Report is the outcome of a run: one result per check, in registration order.
// Its JSON is the same, byte for byte, for the same input.
type Report struct {
	Transition Transition `json:"transition"`
	Time       time.Time  `json:"time"` // Input.Now
	Results    []Result   `json:"results"`
	// Seen are the objects that were read, with the versions that the
	// results depend on, sorted by kind, namespace and name. A report is
	// stale once one of them has changed.
	Seen []Object `json:"seen,omitempty"`
	// Assumed are the kinds (KIND.GROUP, sorted) of which a recording is assumed
	// to have all objects, and on which results depend.
	Assumed []string `json:"assumed,omitempty"`
}

// Result returns the result of the named check.
func (r *Report) Result(check string) (Result, bool) {
	i := slices.IndexFunc(r.Results, func(result Result) bool { return result.Check == check })
	if i < 0 {
		return Result{}, false
	}
	return r.Results[i], true
}

// PanicError is the Err of a check that panicked. Its text does not include the
// stack, so that reports are the same from run to run.
type PanicError struct {
	Where string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Where, e.Value) }

// newPanicError is called in the deferred function that recovered v.
func newPanicError(where string, v any) *PanicError {
	return &PanicError{Where: where, Value: v, Stack: debug.Stack()}
}

// judge makes a result from the values that a check returned. Certain findings
// count even if the check could not look at everything.
func judge(check string, findings []Finding, err error) Result {
	var inapplicable *NotApplicableError
	if errors.As(err, &inapplicable) {
		return Result{Check: check, State: NotApplicable, Findings: []Finding{{Severity: Info, Reason: string(NotApplicable), Message: inapplicable.Why}}}
	}
	r := Result{Check: check, State: Passed, Findings: findings}
	if r.warns() {
		r.State = Failed
	}
	switch {
	case err != nil && r.State == Failed:
		r.Err = err
		r.Findings = append(slices.Clone(findings), unknownFinding(err))
	case err != nil:
		return unknown(check, err)
	}
	return r
}

// unknown makes the result of a check that could not be evaluated.
func unknown(check string, err error) Result {
	return Result{Check: check, State: Unknown, Findings: []Finding{unknownFinding(err)}, Err: err}
}

// warns reports whether there is more than Info.
func (r Result) warns() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity >= Warning })
}

// saysUnknown reports whether finding i stands for what is not known.
func (r Result) saysUnknown(i int) bool {
	return r.Err != nil && i == len(r.Findings)-1
}

// unknownFinding describes what could not be found out, and why.
func unknownFinding(err error) Finding {
	f := Finding{Severity: Warning, Reason: reasonUnknownError, Message: err.Error()}
	var (
		read     *readError
		panicked *PanicError
		noSource *NoSourceError
		limit    *clusterapi.LimitError
		stopped  *stopError
		named    *UnknownError
	)
	switch {
	case errors.As(err, &stopped):
		f.Reason = stopped.reason
	case errors.As(err, &panicked):
		f.Reason = reasonPanicked
		f.Remedy = "report the fault; other checks are not affected"
	case errors.As(err, &named):
		f.Reason = named.Reason
	case apierrors.IsForbidden(err):
		f.Reason = reasonNotAllowed
		f.Remedy = "grant the permission"
		if errors.As(err, &read) {
			resource, _ := meta.UnsafeGuessKindToResource(read.gvk)
			f.Message = fmt.Sprintf("not allowed to %s %s: %v", read.verb, resource.GroupResource(), err)
			f.Remedy = fmt.Sprintf("grant the permission to %s %s", read.verb, resource.GroupResource())
		}
	case errors.As(err, &noSource):
		f.Reason = reasonNoSource
	case errors.Is(err, clusterapi.ErrNotCollected):
		f.Reason = reasonNotCollected
		if errors.As(err, &read) {
			f.Message = facts.About(read.gvk.Kind, err).Error()
		}
	case errors.As(err, &limit):
		f.Reason = reasonLimitExceeded
		f.Remedy = "raise Options.MaxItems"
	}
	return f
}
