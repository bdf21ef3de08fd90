package runlevel

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// How long a ClusterOperator may take before that is worth telling, or
// trouble.
const (
	// slowAfter is the limit for waiting on versions.
	slowAfter = 30 * time.Minute
	// slowMachineConfigAfter is the delay of the operator machine-config, which
	// reboots the control plane.
	slowMachineConfigAfter = 90 * time.Minute
	// degradedAfter is the limit for a degraded operator.
	degradedAfter = 40 * time.Minute
)

const machineConfigOperator = "machine-config"

// Starts returns since when a ClusterOperator is awaited; [Tracker.COStart] is one.
// It is safe for concurrent use.
type Starts func(operator string) (time.Time, bool)

// Judgement describes what an error means while an update is under way: trouble,
// progress, or progress that is slow.
type Judgement struct {
	// Failure is what remains as trouble; nil when all is progress.
	Failure error
	// Progress words what is waited for; with a Failure, it replaces the
	// summary of its reason. It may be empty.
	Progress string
	// Reason is the reason to show with Progress.
	Reason string
	// Slow reports that progress takes longer than expected: nobody knows whether
	// the update is failing.
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
			if d, known := since(name); !known || d > degradedAfter {
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
			machineConfig = machineConfig || d > slowMachineConfigAfter
		case d > slowAfter:
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
