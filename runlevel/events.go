package runlevel

import (
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// The types of the events of a pass. A task that is run has one EventTaskStarted,
// an EventTaskRetry for each failed attempt that is followed by another, and one
// EventTaskDone or EventTaskFailed; an EventTaskSkipped stands alone. A task that the
// end of the context interrupted has none of the last.
//
// The Subject is "manifest/<file>", for events of nodes their first task's; it is
// empty for events of the pass. Data is always a [*Progress].
const (
	EventPassStarted clusterapi.EventType = "PassStarted"
	EventNodeStarted clusterapi.EventType = "NodeStarted" // never for nodes without tasks
	EventTaskStarted clusterapi.EventType = "TaskStarted"
	// EventTaskDone: the manifest is in place. Err is set when it is, but there is
	// something to report (see [EffectReport]).
	EventTaskDone clusterapi.EventType = "TaskDone"
	// EventTaskSkipped: the manifest does not apply to this cluster; Message
	// explains why.
	EventTaskSkipped clusterapi.EventType = "TaskSkipped"
	// EventTaskFailed: all attempts failed, Err is the [*TaskError]. What comes
	// later in the node, and the nodes behind it, will not run in this pass.
	EventTaskFailed clusterapi.EventType = "TaskFailed"
	// EventTaskRetry: attempt number Attempt failed with Err, another follows. In a
	// pass that stays it also comes, once, when an attempt has become the last of
	// its series; the next series follows later.
	EventTaskRetry clusterapi.EventType = "TaskRetry"
	// EventWaiting: something is applied, but not ready; Wait reports what a
	// ClusterOperator lacks, Message words it.
	EventWaiting clusterapi.EventType = "Waiting"
	// EventWarning: something is odd about the manifest and was worked around.
	EventWarning clusterapi.EventType = "Warning"
	// EventDrifted: the object was not as it was applied; Drift holds what had become
	// of it and who did it. The pass has applied it again, or tried to.
	EventDrifted clusterapi.EventType = "Drifted"
	// EventNodeDone: a node has ended; Err is set when it failed.
	EventNodeDone clusterapi.EventType = "NodeDone"
	EventPassDone clusterapi.EventType = "PassDone"
)

// Progress is the Data of a pass's events. What its pointers lead to is not to be
// changed.
type Progress struct {
	// Task is the task, for events of tasks; else nil.
	Task *manifest.Task `json:"task,omitempty"`
	// Node is the index of the node in the graph; -1 for events of the pass,
	// and for those in the middle of applying a manifest (EventWarning,
	// EventDrifted, EventWaiting for a Job).
	Node int `json:"node"`
	// Level and Component follow from the file name of the task, or of the
	// node's first task. Both are empty for events of the pass and for file
	// names of another form.
	Level     string `json:"level,omitempty"`
	Component string `json:"component,omitempty"`
	// Attempt counts the attempts of a task, from 1; else 0.
	Attempt int `json:"attempt,omitempty"`
	// Done and Skipped count the tasks of the pass so far, Total all of them.
	Done    int `json:"done"`
	Skipped int `json:"skipped"`
	Total   int `json:"total"`
	// FailedAttempts counts the attempts at tasks that failed in the pass so far,
	// also those that were followed by another and those without an event of their
	// own. Attempts that the end of the context interrupted, and those to create
	// ClusterOperators ahead of their turn, do not count.
	FailedAttempts int `json:"failedAttempts,omitempty"`
	// LevelSettled counts the tasks of the same level that are done or skipped,
	// LevelTotal all of them. Levels differ by their text.
	LevelSettled int `json:"levelSettled,omitempty"`
	LevelTotal   int `json:"levelTotal,omitempty"`
	// Wait is what an awaited ClusterOperator lacks, for EventWaiting; else nil.
	Wait *Wait `json:"wait,omitempty"`
	// Drift is what has become of an object, for EventDrifted; else nil.
	Drift *Drift `json:"drift,omitempty"`
}

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
	// Undone are the versions that it does not report, sorted, as texts "operand
	// from A to B", or "operand to B" if it reports none.
	Undone []string `json:"undone,omitempty"`
}
