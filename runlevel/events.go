package runlevel

import (
	"log/slog"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/eventlog"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// EventType says what happened.
type EventType string

// The types of an [Event]. A task that is run has one TaskStarted, a
// TaskRetry for each failed attempt that is followed by another, and one
// TaskDone or TaskFailed; a TaskSkipped stands alone. A task that the end of
// the context interrupted has none of the last.
const (
	PassStarted EventType = "PassStarted"
	NodeStarted EventType = "NodeStarted" // never for nodes without tasks
	TaskStarted EventType = "TaskStarted"
	// TaskDone: the manifest is in place. Err is set when it is, but there is
	// something to report (see [EffectReport]).
	TaskDone EventType = "TaskDone"
	// TaskSkipped: the manifest does not apply to this cluster; Message says
	// why.
	TaskSkipped EventType = "TaskSkipped"
	// TaskFailed: all attempts failed, Err is the [*TaskError]. What comes
	// later in the node, and the nodes behind it, will not run in this pass.
	TaskFailed EventType = "TaskFailed"
	// TaskRetry: attempt number Attempt failed with Err, another one follows. In
	// a pass that stays it also comes, once, when an attempt has become the last
	// of its series; the next series follows later.
	TaskRetry EventType = "TaskRetry"
	// Waiting: something is applied, but not ready; Wait says what a
	// ClusterOperator lacks, Message words it.
	Waiting EventType = "Waiting"
	// Warning: something is odd about the manifest and was worked around.
	Warning EventType = "Warning"
	// Drifted: the object is not as it was applied; Drift says what has become of
	// it and who did it. It is applied next.
	Drifted EventType = "Drifted"
	// NodeDone: a node has ended; Err is set when it failed.
	NodeDone EventType = "NodeDone"
	PassDone EventType = "PassDone"
)

// Event is one step of a pass. Events are values; what their pointers lead to
// is not to be changed.
type Event struct {
	Type EventType
	// Time is when it happened, by the clock of the options.
	Time time.Time
	// Task is the task, for events of tasks; else nil.
	Task *manifest.Task
	// Node is the index of the node in the graph; -1 for events of the pass,
	// and for what is told in the middle of applying a manifest (Warning,
	// Drifted, Waiting for a Job).
	Node int
	// Level and Component are told by the file name of the task, or of the
	// node's first task. Both are empty for events of the pass and for file
	// names of another form.
	Level, Component string
	// Attempt counts the attempts of a task, from 1; else 0.
	Attempt int
	// Done and Skipped count the tasks of the pass so far, Total all of them.
	Done, Skipped, Total int
	// FailedAttempts counts the attempts at tasks that failed in the pass so far,
	// also those that were followed by another one and those that no event of
	// their own tells of. Attempts that the end of the context interrupted, and
	// those to create ClusterOperators ahead of their turn, are none.
	FailedAttempts int
	// LevelSettled counts the tasks of the same level that are done or
	// skipped, LevelTotal all of them. Levels are told apart by their text.
	LevelSettled, LevelTotal int
	// Wait says what an awaited ClusterOperator lacks.
	Wait *Wait
	// Drift is what has become of an object, for Drifted.
	Drift *Drift
	// Message is a text for people.
	Message string
	// Err is what went wrong.
	Err error
}

// fields is the event in the form that all packages' events have.
func (e Event) fields() eventlog.Fields {
	f := eventlog.New(e.Time, string(e.Type))
	if e.Task != nil {
		f.Add("task", e.Task.String())
		f.Add("file", e.Task.Manifest.Filename)
	}
	f.Add("level", e.Level)
	f.Add("component", e.Component)
	f.Add("attempt", e.Attempt)
	f.Set("done", e.Done)
	f.Set("skipped", e.Skipped)
	f.Set("total", e.Total)
	f.Add("failedAttempts", e.FailedAttempts)
	if e.Wait != nil {
		f.Add("wait", e.Wait)
	}
	if e.Drift != nil {
		f.Add("drift", e.Drift)
	}
	f.Add("message", e.Message)
	f.Add("error", e.Err)
	return f
}

// MarshalJSON writes the event as one flat object.
func (e Event) MarshalJSON() ([]byte, error) { return e.fields().JSON() }

// LogValue implements [slog.LogValuer].
func (e Event) LogValue() slog.Value { return e.fields().LogValue() }

// Wait is what a ClusterOperator shows while it is not good.
type Wait struct {
	// Operator is its name.
	Operator string `json:"operator"`
	// Available, Progressing and Degraded are its conditions; empty where
	// they are absent.
	Available   configv1.ConditionStatus `json:"available,omitempty"`
	Progressing configv1.ConditionStatus `json:"progressing,omitempty"`
	Degraded    configv1.ConditionStatus `json:"degraded,omitempty"`
	// Reason and Message are those of the condition that is in the way; empty
	// while only versions are missing.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Undone are the versions that it does not report, sorted, as texts
	// "operand from A to B", or "operand to B" where it reports none.
	Undone []string `json:"undone,omitempty"`
}
