package runlevel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// minutesAgo makes Starts of operators.
func minutesAgo(m map[string]int) runlevel.Starts {
	return func(name string) (time.Time, bool) {
		n, ok := m[name]
		return now.Add(-time.Duration(n) * time.Minute), ok
	}
}

func waitErr(effect runlevel.Effect, names ...string) *runlevel.TaskError {
	te := &runlevel.TaskError{Effect: effect, Reason: "ClusterOperatorUpdating", Message: "m " + fmt.Sprint(names), Name: names[0]}
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

func many(errs ...error) error { return runlevel.Summarize(errs) }

func TestJudge(t *testing.T) {
	none, fai := runlevel.EffectNone, runlevel.EffectFailAfterInterval
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
		{"report", &runlevel.TaskError{Effect: runlevel.EffectReport, Message: "told"}, nil, "told", true, false},
		{"fail", waitErr(runlevel.EffectFail, "a"), nil, "", true, false},
		{"empty", waitErr("", "a"), nil, "", true, false},
		{"not of a task", plain, nil, "", true, false},
		{"several: waiting does not count, one left in time", many(waitErr(none, "a"), waitErr(fai, "b")), map[string]int{"a": 99, "b": 1}, "waiting up to 40 minutes on b", false, false},
		{"several: two left", many(waitErr(none, "a"), waitErr(runlevel.EffectFail, "b"), plain), nil, "", true, false},
		{"several: all wait", many(waitErr(none, "b"), waitErr(none, "a")), map[string]int{"a": 1}, "waiting on a, b", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := runlevel.Judge(c.err, minutesAgo(c.started), now)
			if j.Progress != c.p || (j.Failure != nil) != c.failure || j.Slow != c.slow {
				t.Fatalf("%+v", j)
			}
		})
	}
	if j := runlevel.Judge(nil, nil, now); j != (runlevel.Judgement{}) {
		t.Fatalf("nothing is %+v", j)
	}
}

func TestSeveralErrorsAreWordedWithoutWaiting(t *testing.T) {
	err := many(waitErr(runlevel.EffectNone, "a"), waitErr(runlevel.EffectFail, "b"), errors.New("plain"))
	j := runlevel.Judge(err, nil, now)
	if want := "Multiple errors are preventing progress:\n* m [b]\n* plain"; j.Failure.Error() != want {
		t.Fatalf("%q", j.Failure)
	}
}

func TestConditions(t *testing.T) {
	none, fai := runlevel.EffectNone, runlevel.EffectFailAfterInterval
	deg := waitErr(fai, "a")
	deg.Reason = "ClusterOperatorDegraded"
	fail := waitErr(runlevel.EffectFail, "a")
	fail.Reason = "ClusterOperatorNotAvailable"
	plain := errors.New("plain")
	integrity := &manifest.Error{Reason: "UpdatePayloadIntegrity", Err: errors.New("bad file")}
	type cond struct {
		Status          configv1.ConditionStatus
		Reason, Message string
	}
	quiet := cond{Status: "False"}
	for _, c := range []struct {
		name                 string
		s                    runlevel.Status
		failing, progressing cond
	}{
		{"failure while reconciling is not judged", runlevel.Status{Failure: waitErr(none, "a"), Reconciling: true, History: true},
			cond{"True", "ClusterOperatorUpdating", "m [a]"},
			cond{"False", "ClusterOperatorUpdating", "Error while reconciling 1: a has an unknown error: ClusterOperatorUpdating"}},
		{"failure without history is not judged", runlevel.Status{Failure: waitErr(none, "a")},
			cond{"True", "ClusterOperatorUpdating", "m [a]"},
			cond{"True", "ClusterOperatorUpdating", "Unable to apply 1: a has an unknown error: ClusterOperatorUpdating"}},
		{"failure", runlevel.Status{Failure: fail, History: true, Done: 5, Total: 10},
			cond{"True", "ClusterOperatorNotAvailable", "m [a]"},
			cond{"True", "ClusterOperatorNotAvailable", "Unable to apply 1: the cluster operator a is not available"}},
		{"failure, invalid too", runlevel.Status{Failure: fail, History: true, Invalid: true},
			cond{"True", "ClusterOperatorNotAvailable", "m [a]"},
			cond{"True", "ClusterOperatorNotAvailable", "Unable to apply 1: the cluster operator a is not available"}},
		{"failure with text", runlevel.Status{Failure: deg, History: true},
			cond{"True", "ClusterOperatorDegraded", "m [a]"},
			cond{"True", "ClusterOperatorDegraded", "Unable to apply 1: wait has exceeded 40 minutes for these operators: a"}},
		{"failure without reason", runlevel.Status{Failure: plain, History: true, Invalid: true},
			cond{"True", "", "plain"}, cond{"True", "", "Unable to apply 1: an error occurred"}},
		{"failure of a payload", runlevel.Status{Failure: fmt.Errorf("load: %w", integrity), History: true},
			cond{"True", "UpdatePayloadIntegrity", "load: bad file"},
			cond{"True", "UpdatePayloadIntegrity", "Unable to apply 1: the contents of the update are invalid"}},
		{"reconciling, invalid", runlevel.Status{Reconciling: true, Invalid: true}, quiet, cond{"False", "InvalidClusterVersion", "Stopped at 1: the cluster version is invalid"}},
		{"reconciling", runlevel.Status{Reconciling: true, Done: 3, Total: 9}, quiet, cond{"False", "", "Cluster version is 1"}},
		{"invalid", runlevel.Status{Invalid: true, Done: 3, Total: 9}, quiet, cond{"True", "InvalidClusterVersion", "Reconciling 1: the cluster version is invalid"}},
		{"done and text", runlevel.Status{Failure: waitErr(none, "a"), History: true, Done: 53, Total: 100}, quiet,
			cond{"True", "ClusterOperatorUpdating", "Working towards 1: 53 of 100 done (53% complete), waiting on a"}},
		{"slow", runlevel.Status{Failure: waitErr(none, "a"), History: true, Done: 2, Total: 3, Starts: minutesAgo(map[string]int{"a": 31})},
			cond{"Unknown", "SlowClusterOperator", "waiting on a over 30 minutes which is longer than expected"},
			cond{"True", "ClusterOperatorUpdating", "Working towards 1: 2 of 3 done (66% complete), waiting on a over 30 minutes which is longer than expected"}},
		{"done", runlevel.Status{Done: 805, Total: 806}, quiet, cond{"True", "", "Working towards 1: 805 of 806 done (99% complete)"}},
		{"text", runlevel.Status{Failure: waitErr(none, "a"), History: true, Total: 3}, quiet, cond{"True", "ClusterOperatorUpdating", "Working towards 1: waiting on a"}},
		{"text, invalid", runlevel.Status{Failure: waitErr(none, "a"), History: true, Invalid: true}, quiet, cond{"True", "InvalidClusterVersion", "Reconciling 1: the cluster version is invalid"}},
		{"nothing", runlevel.Status{}, quiet, cond{"True", "", "Working towards 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Version, c.s.Image, c.s.Now = "1", "img", now
			f, p := runlevel.Failing(c.s), runlevel.Progressing(c.s)
			if f.Type != "Failing" || p.Type != "Progressing" {
				t.Fatalf("types %s, %s", f.Type, p.Type)
			}
			if diff := cmp.Diff(c.failing, cond{f.Status, f.Reason, f.Message}); diff != "" {
				t.Error("Failing", diff)
			}
			if diff := cmp.Diff(c.progressing, cond{p.Status, p.Reason, p.Message}); diff != "" {
				t.Error("Progressing", diff)
			}
		})
	}
}

func TestReleaseInMessages(t *testing.T) {
	for want, s := range map[string]runlevel.Status{
		"Working towards img":       {Image: "img"},
		"Working towards <unknown>": {},
	} {
		if got := runlevel.Progressing(s).Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct{ reason, with, without string }{
		{"UpdatePayloadResourceNotFound", "some resources could not be updated", ""},
		{"UpdatePayloadResourceConflict", "some resources could not be updated", ""},
		{"UpdatePayloadClusterDown", "the control plane is down or not responding", ""},
		{"UpdatePayloadClusterError", "the control plane is reporting an internal error", ""},
		{"UpdatePayloadClusterOverloaded", "the control plane is overloaded and is not accepting updates", ""},
		{"UpdatePayloadClusterUnauthorized", "could not authenticate to the server", ""},
		{"UpdatePayloadRetrievalFailed", "could not download the update", ""},
		{"UpdatePayloadResourceForbidden", "the server is rejecting updates", ""},
		{"UpdatePayloadResourceTypeMissing", "a required extension is not available to update", ""},
		{"UpdatePayloadResourceInvalid", "some cluster configuration is invalid", ""},
		{"UpdatePayloadIntegrity", "the contents of the update are invalid", ""},
		{"ImageVerificationFailed", "the image may not be safe to use", ""},
		{"UpgradePreconditionCheckFailed", "it may not be safe to apply this update", ""},
		{"ClusterOperatorDegraded", "the cluster operator N is degraded", "a cluster operator is degraded"},
		{"ClusterOperatorNotAvailable", "the cluster operator N is not available", "a cluster operator is not available"},
		{"ClusterOperatorsNotAvailable", "some cluster operators are not available", ""},
		{"ClusterOperatorNoVersions", "the cluster operator N does not declare expected versions", "a cluster operator does not declare expected versions"},
		{"WorkloadNotAvailable", "the workload N has not yet successfully rolled out", "a workload has not yet rolled out"},
		{"WorkloadNotProgressing", "the workload N cannot roll out", "a workload cannot roll out"},
		{"UpdatePayloadFailed", "the update could not be applied", ""},
		{"ClusterOperatorUpdating", "N has an unknown error: ClusterOperatorUpdating", "an unknown error has occurred: ClusterOperatorUpdating"},
		{"MultipleErrors", "N has an unknown error: MultipleErrors", "an unknown error has occurred: MultipleErrors"},
	} {
		if c.without == "" {
			c.without = c.with
		}
		if got := runlevel.Summary(c.reason, "N"); got != c.with {
			t.Errorf("%s: %q, want %q", c.reason, got, c.with)
		}
		if got := runlevel.Summary(c.reason, ""); got != c.without {
			t.Errorf("%s without a name: %q, want %q", c.reason, got, c.without)
		}
	}
}

func TestTiming(t *testing.T) {
	if got := []time.Duration{runlevel.Interval(0), runlevel.Interval(0.5)}; got[0] != 2*time.Minute || got[1] != 3*time.Minute {
		t.Errorf("intervals %v", got)
	}
	if a, b := runlevel.PassLimit(runlevel.Initializing, time.Minute), runlevel.PassLimit(runlevel.Updating, time.Minute); a != time.Minute || b != 2*time.Minute {
		t.Errorf("limits %v, %v", a, b)
	}
	for n, want := range map[int]time.Duration{0: 8 * time.Minute, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 8 * time.Minute, 99: 8 * time.Minute} {
		if got := runlevel.Delay(n, 8*time.Minute, 0); got != want {
			t.Errorf("delay after %d failures: %v, want %v", n, got, want)
		}
	}
	if got := runlevel.Delay(1, 8*time.Minute, 0.5); got != 66*time.Second {
		t.Errorf("stretched by a tenth: %v", got)
	}
	if got := runlevel.Delay(0, 8*time.Minute, 0.5); got != 8*time.Minute {
		t.Errorf("after success: %v", got)
	}
}

func TestFold(t *testing.T) {
	t0, t1 := now.Add(-time.Hour), now.Add(-time.Minute)
	trouble := errors.New("x")
	for _, c := range []struct {
		name        string
		start, next runlevel.Report
		dropped     bool
		last        time.Time
	}{
		{"earlier trouble stays until passed", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10}, runlevel.Report{Image: "i", Done: 4, Total: 10}, true, time.Time{}},
		{"reached again", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10, LastProgress: t0}, runlevel.Report{Image: "i", Done: 5, Total: 10}, false, t0},
		{"passed", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10}, runlevel.Report{Image: "i", Done: 6, Total: 10}, false, now},
		{"fraction, not count", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10}, runlevel.Report{Image: "i", Done: 6, Total: 20}, true, time.Time{}},
		{"total not known yet", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10}, runlevel.Report{Image: "i"}, true, time.Time{}},
		{"another image", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10}, runlevel.Report{Image: "j", Done: 0, Total: 10}, false, now},
		{"another image with trouble", runlevel.Report{Image: "i", Done: 5, Total: 10, LastProgress: t0}, runlevel.Report{Image: "j", Failure: trouble, Done: 0, Total: 10}, false, t0},
		{"new trouble", runlevel.Report{Failure: trouble, Image: "i", Done: 5, Total: 10, LastProgress: t0}, runlevel.Report{Failure: trouble, Image: "i", Done: 1, Total: 10}, false, t0},
		{"completed", runlevel.Report{Image: "i", Done: 10, Total: 10, LastProgress: t0}, runlevel.Report{Image: "i", Done: 10, Total: 10, Completed: 1}, false, now},
		{"its own time is kept", runlevel.Report{Image: "i", Done: 10, Total: 10, LastProgress: t0}, runlevel.Report{Image: "i", Done: 9, Total: 10, LastProgress: t1}, false, t1},
		{"from nothing", runlevel.Report{Image: "i"}, runlevel.Report{Image: "i", Done: 1, Total: 10}, false, now},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := runlevel.NextReport(c.start, c.next, now)
			if ok == c.dropped || !got.LastProgress.Equal(c.last) {
				t.Fatalf("%+v %v", got, ok)
			}
		})
	}
}
