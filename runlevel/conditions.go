package runlevel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// How long a ClusterOperator may take before that is worth telling, or
// trouble.
const (
	// SlowAfter is the limit for waiting on versions.
	SlowAfter = 30 * time.Minute
	// SlowMachineConfigAfter is that of the operator machine-config, which
	// reboots the control plane.
	SlowMachineConfigAfter = 90 * time.Minute
	// DegradedAfter is the limit for a degraded operator.
	DegradedAfter = 40 * time.Minute
)

const (
	machineConfigOperator = "machine-config"
	// ConditionFailing is the type of the condition of ClusterVersion that
	// [Failing] makes; github.com/openshift/api has no constant for it.
	ConditionFailing = configv1.ClusterStatusConditionType("Failing")
	// ReasonSlowClusterOperator is the reason of an unknown Failing.
	ReasonSlowClusterOperator = "SlowClusterOperator"
)

// Starts tells since when a ClusterOperator is awaited; [Tracker.COStart] is
// one. It is safe for concurrent use.
type Starts func(operator string) (time.Time, bool)

// Judgement says what an error means while an update is under way: trouble,
// progress, or progress that is slow.
type Judgement struct {
	// Failure is what remains as trouble; nil when all is progress.
	Failure error
	// Progress words what is waited for; with a Failure, it replaces the
	// summary of its reason. It may be empty.
	Progress string
	// Reason is the reason to show with Progress.
	Reason string
	// Slow says that progress takes longer than expected: nobody knows
	// whether the update is failing.
	Slow bool
}

// Judge decides, from the effect of a pass's error and the time that its
// ClusterOperators have had, whether it is trouble or progress. Among several
// errors those that are normal waiting do not count as long as there are
// others.
//
// It is for updates and installations under way: while reconciling, or before
// there is any history, an error is trouble as it stands.
func Judge(failure error, starts Starts, now time.Time) Judgement {
	if failure == nil {
		return Judgement{}
	}
	failure = withoutWaiting(failure)
	te, ok := errors.AsType[*TaskError](failure)
	if !ok {
		return Judgement{Failure: failure}
	}
	since := func(operator string) (time.Duration, bool) {
		if starts == nil {
			return 0, false
		}
		start, known := starts(operator)
		return now.Sub(start), known
	}
	switch te.Effect {
	case EffectNone:
		text, slow := waitingOn(te, since)
		return Judgement{Progress: text, Reason: te.Reason, Slow: slow}
	case EffectFailAfterInterval:
		var over []string
		for _, name := range te.names() {
			if d, known := since(name); !known || d > DegradedAfter {
				over = append(over, name)
			}
		}
		if len(over) == 0 {
			return Judgement{Progress: "waiting up to 40 minutes on " + te.Name, Reason: te.Reason}
		}
		return Judgement{Failure: failure, Reason: te.Reason,
			Progress: "wait has exceeded 40 minutes for these operators: " + list(over)}
	case EffectReport:
		return Judgement{Failure: failure, Progress: te.Message, Reason: te.Reason}
	}
	return Judgement{Failure: failure}
}

// waitingOn words the wait for operators; those over their limit, if any, are
// named alone.
func waitingOn(te *TaskError, since func(string) (time.Duration, bool)) (text string, slow bool) {
	var over []string
	machineConfig := false
	for _, name := range te.names() {
		d, known := since(name)
		switch {
		case !known:
		case name == machineConfigOperator:
			machineConfig = machineConfig || d > SlowMachineConfigAfter
		case d > SlowAfter:
			over = append(over, name)
		}
	}
	if len(over) == 0 && !machineConfig {
		return "waiting on " + list(te.names()), false
	}
	var parts []string
	if len(over) > 0 {
		parts = append(parts, list(over)+" over 30 minutes")
	}
	if machineConfig {
		parts = append(parts, machineConfigOperator+" over 90 minutes")
	}
	return "waiting on " + strings.Join(parts, " and ") + " which is longer than expected", true
}

// names returns what the error is about, at least its message.
func (e *TaskError) names() []string {
	switch {
	case len(e.Names) > 0:
		return e.Names
	case e.Name != "":
		return []string{e.Name}
	}
	return []string{e.Message}
}

// withoutWaiting takes the members with the effect None out of several
// errors. If they are all there is, they become one that waits on them all.
func withoutWaiting(err error) error {
	te, ok := errors.AsType[*TaskError](err)
	if !ok || te.Reason != ReasonMultipleErrors || len(te.Members) == 0 {
		return err
	}
	var rest []error
	var names []string
	reason := ""
	for _, m := range te.Members {
		member, ok := errors.AsType[*TaskError](m)
		if !ok || member.Effect != EffectNone {
			rest = append(rest, m)
			continue
		}
		names = append(names, member.names()...)
		reason = member.Reason
	}
	switch len(rest) {
	case len(te.Members):
		return err
	case 0:
		slices.Sort(names)
		names = slices.Compact(names)
		return &TaskError{Effect: EffectNone, Reason: reason, Message: te.Message,
			Name: list(names), Names: names, Err: te.Err, Members: te.Members}
	case 1:
		return rest[0]
	}
	return multiple(rest)
}

// Status is what the conditions of a ClusterVersion are worded from.
type Status struct {
	// Failure is the worker's trouble, nil when there is none.
	Failure error
	// Version and Image are the release at work; either may be empty.
	Version, Image string
	// Reconciling says that the release is complete and being kept.
	Reconciling bool
	// History says that the ClusterVersion has a history.
	History bool
	// Invalid says that the spec of the ClusterVersion is invalid.
	Invalid bool
	// Done and Total count the tasks of the pass.
	Done, Total int
	// Starts tells since when operators are awaited; nil: not known.
	Starts Starts
	// Now is the present.
	Now time.Time
}

// judge applies Judge where it is due.
func (s *Status) judge() Judgement {
	if s.Reconciling || !s.History {
		return Judgement{Failure: s.Failure}
	}
	return Judge(s.Failure, s.Starts, s.Now)
}

// release returns the name of the release for messages.
func (s *Status) release() string {
	switch {
	case s.Version != "":
		return s.Version
	case s.Image != "":
		return s.Image
	}
	return "<unknown>"
}

// Failing returns the condition Failing: False, True with the reason and
// message of the failure, or Unknown while an operator takes longer than
// expected. The message has at most 32 KiB. The time of the transition is left to the caller.
func Failing(s Status) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: ConditionFailing, Status: configv1.ConditionFalse}
	j := s.judge()
	switch {
	case j.Failure != nil:
		c.Status, c.Message = configv1.ConditionTrue, j.Failure.Error()
		c.Reason, _ = reasonOf(j.Failure)
	case j.Slow:
		c.Status, c.Reason, c.Message = configv1.ConditionUnknown, ReasonSlowClusterOperator, j.Progress
	}
	c.Message = bounded.Text(c.Message, maxCondition)
	return c
}

// Progressing returns the condition Progressing, with the percentage of tasks
// done and what is waited for or wrong, in at most 32 KiB. The time of the
// transition is left to the caller.
func Progressing(s Status) configv1.ClusterOperatorStatusCondition {
	c := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue}
	j, v := s.judge(), s.release()
	if s.Reconciling {
		c.Status = configv1.ConditionFalse
	}
	if s.Invalid {
		c.Reason = "InvalidClusterVersion"
	}
	switch {
	case j.Failure != nil:
		reason, name := reasonOf(j.Failure)
		why := j.Progress
		if why == "" && reason != "" {
			why = Summary(reason, name)
		}
		if why == "" {
			why = "an error occurred"
		}
		c.Reason = reason
		if s.Reconciling {
			c.Message = fmt.Sprintf("Error while reconciling %s: %s", v, why)
		} else {
			c.Message = fmt.Sprintf("Unable to apply %s: %s", v, why)
		}
	case s.Reconciling && s.Invalid:
		c.Message = fmt.Sprintf("Stopped at %s: the cluster version is invalid", v)
	case s.Reconciling:
		c.Message = "Cluster version is " + v
	case s.Invalid:
		c.Message = fmt.Sprintf("Reconciling %s: the cluster version is invalid", v)
	default:
		c.Message = "Working towards " + v
		if s.Done > 0 {
			c.Message += fmt.Sprintf(": %d of %d done (%d%% complete)", s.Done, s.Total, 100*s.Done/max(s.Total, 1))
		}
		if j.Progress != "" {
			c.Reason = j.Reason
			if s.Done > 0 {
				c.Message += ", " + j.Progress
			} else {
				c.Message += ": " + j.Progress
			}
		}
	}
	c.Message = bounded.Text(c.Message, maxCondition)
	return c
}

// reasonOf returns the reason and name of an error of a task or a payload;
// others have none.
func reasonOf(err error) (reason, name string) {
	if te, ok := errors.AsType[*TaskError](err); ok {
		return te.Reason, te.Name
	}
	if me, ok := errors.AsType[*manifest.Error](err); ok {
		return me.Reason, ""
	}
	return "", ""
}
