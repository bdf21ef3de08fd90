package runlevel

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minutesAgo makes Starts of operators.
func minutesAgo(m map[string]int) Starts {
	return func(name string) (time.Time, bool) {
		n, ok := m[name]
		return now.Add(-time.Duration(n) * time.Minute), ok
	}
}

func waitErr(effect Effect, names ...string) *TaskError {
	te := &TaskError{Effect: effect, Reason: "ClusterOperatorUpdating", Message: "m " + fmt.Sprint(names), Name: names[0]}
	if len(names) > 1 {
		te.Reason, te.Names, te.Name = "ClusterOperatorsUpdating", names, ""
		for i, n := range names {
			if i > 0 {
				te.Name += ", "
			}
			te.Name += n
		}
	}
	return te
}

func many(errs ...error) error { return summarize(errs) }

func TestJudge(t *testing.T) {
	none, fai := EffectNone, EffectFailAfterInterval
	plain := errors.New("plain")
	for _, c := range []struct {
		name    string
		err     error
		started map[string]int
		p       string
		failure bool
		slow    bool
	}{
		{"none", waitErr(none, "a", "b"), map[string]int{"a": 30, "b": 1}, "waiting on a, b", false, false},
		{"no start time is never slow", waitErr(none, "a"), nil, "waiting on a", false, false},
		{"slow ones alone", waitErr(none, "a", "b", "c"), map[string]int{"a": 31, "b": 1, "c": 99}, "waiting on a, c over 30 minutes which is longer than expected", false, true},
		{"with machine-config", waitErr(none, "a", "machine-config"), map[string]int{"a": 31, "machine-config": 91}, "waiting on a over 30 minutes and machine-config over 90 minutes which is longer than expected", false, true},
		{"machine-config alone", waitErr(none, "a", "machine-config"), map[string]int{"a": 30, "machine-config": 91}, "waiting on machine-config over 90 minutes which is longer than expected", false, true},
		{"machine-config in time", waitErr(none, "machine-config"), map[string]int{"machine-config": 90}, "waiting on machine-config", false, false},
		{"degraded in time", waitErr(fai, "a"), map[string]int{"a": 40}, "waiting up to 40 minutes on a", false, false},
		{"several degraded in time", waitErr(fai, "a", "b"), map[string]int{"a": 40, "b": 2}, "waiting up to 40 minutes on a, b", false, false},
		{"degraded too long", waitErr(fai, "a", "b", "c"), map[string]int{"a": 41, "b": 2}, "wait has exceeded 40 minutes for these operators: a, c", true, false},
		{"degraded without start time", waitErr(fai, "a"), nil, "wait has exceeded 40 minutes for these operators: a", true, false},
		{"report", &TaskError{Effect: EffectReport, Message: "told"}, nil, "told", true, false},
		{"fail", waitErr(EffectFail, "a"), nil, "", true, false},
		{"empty", waitErr("", "a"), nil, "", true, false},
		{"not of a task", plain, nil, "", true, false},
		{"several: waiting does not count, one left in time", many(waitErr(none, "a"), waitErr(fai, "b")), map[string]int{"a": 99, "b": 1}, "waiting up to 40 minutes on b", false, false},
		{"several: two left", many(waitErr(none, "a"), waitErr(EffectFail, "b"), plain), nil, "", true, false},
		{"several: all wait", many(waitErr(none, "b"), waitErr(none, "a")), map[string]int{"a": 1}, "waiting on a, b", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := Judge(c.err, minutesAgo(c.started), now)
			if j.Progress != c.p || (j.Failure != nil) != c.failure || j.Slow != c.slow {
				t.Fatalf("%+v", j)
			}
		})
	}
	if j := Judge(nil, nil, now); j != (Judgement{}) {
		t.Fatalf("nothing is %+v", j)
	}
}

func TestSeveralErrorsAreWordedWithoutWaiting(t *testing.T) {
	err := many(waitErr(EffectNone, "a"), waitErr(EffectFail, "b"), errors.New("plain"))
	j := Judge(err, nil, now)
	if want := "Multiple errors are preventing progress:\n* m [b]\n* plain"; j.Failure.Error() != want {
		t.Fatalf("%q", j.Failure)
	}
}

// The reason of what is waited for is that of the error; several waits for
// different things are one wait, and name each thing once.
func TestJudgementReason(t *testing.T) {
	job := &TaskError{Effect: EffectNone, Reason: ReasonJobNotComplete, Message: "job", Name: "a"}
	for _, c := range []struct {
		name   string
		err    error
		reason string
		p      string
	}{
		{"one", waitErr(EffectNone, "a"), "ClusterOperatorUpdating", "waiting on a"},
		{"several operators", waitErr(EffectNone, "a", "b"), "ClusterOperatorsUpdating", "waiting on a, b"},
		{"in time", &TaskError{Effect: EffectFailAfterInterval, Reason: "R", Name: "c"}, "R", "waiting up to 40 minutes on c"},
		{"too long", &TaskError{Effect: EffectFailAfterInterval, Reason: "R", Name: "d"}, "R", "wait has exceeded 40 minutes for these operators: d"},
		{"told", &TaskError{Effect: EffectReport, Reason: "R", Message: "m"}, "R", "m"},
		{"several waits", many(waitErr(EffectNone, "a"), job), "JobNotComplete", "waiting on a"},
		{"one left of several", many(waitErr(EffectNone, "a"), &TaskError{Effect: EffectFailAfterInterval, Reason: "R", Name: "c"}), "R", "waiting up to 40 minutes on c"},
		{"failure", &TaskError{Effect: EffectFail, Reason: "R"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if j := Judge(c.err, minutesAgo(map[string]int{"a": 1, "b": 1, "c": 1}), now); j.Reason != c.reason || j.Progress != c.p {
				t.Errorf("%+v", j)
			}
		})
	}
}
