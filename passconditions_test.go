package clusterupdate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

var passTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// startedAgo makes Starts of operators, in minutes.
func startedAgo(m map[string]int) runlevel.Starts {
	return func(name string) (time.Time, bool) {
		n, ok := m[name]
		return passTime.Add(-time.Duration(n) * time.Minute), ok
	}
}

func waiting(effect runlevel.Effect, name string) *runlevel.TaskError {
	return &runlevel.TaskError{Effect: effect, Reason: "ClusterOperatorUpdating", Message: "m [" + name + "]", Name: name}
}

func TestPassConditions(t *testing.T) {
	none, fai := runlevel.EffectNone, runlevel.EffectFailAfterInterval
	deg := waiting(fai, "a")
	deg.Reason = "ClusterOperatorDegraded"
	fail := waiting(runlevel.EffectFail, "a")
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
		s                    passStatus
		failing, progressing cond
	}{
		{"failure while reconciling is not judged", passStatus{Failure: waiting(none, "a"), Reconciling: true, History: true},
			cond{"True", "ClusterOperatorUpdating", "m [a]"},
			cond{"False", "ClusterOperatorUpdating", "Error while reconciling 1: a has an unknown error: ClusterOperatorUpdating"}},
		{"failure without history is not judged", passStatus{Failure: waiting(none, "a")},
			cond{"True", "ClusterOperatorUpdating", "m [a]"},
			cond{"True", "ClusterOperatorUpdating", "Unable to apply 1: a has an unknown error: ClusterOperatorUpdating"}},
		{"failure", passStatus{Failure: fail, History: true, Done: 5, Total: 10},
			cond{"True", "ClusterOperatorNotAvailable", "m [a]"},
			cond{"True", "ClusterOperatorNotAvailable", "Unable to apply 1: the cluster operator a is not available"}},
		{"failure, invalid too", passStatus{Failure: fail, History: true, Invalid: true},
			cond{"True", "ClusterOperatorNotAvailable", "m [a]"},
			cond{"True", "ClusterOperatorNotAvailable", "Unable to apply 1: the cluster operator a is not available"}},
		{"failure with text", passStatus{Failure: deg, History: true},
			cond{"True", "ClusterOperatorDegraded", "m [a]"},
			cond{"True", "ClusterOperatorDegraded", "Unable to apply 1: wait has exceeded 40 minutes for these operators: a"}},
		{"failure without reason", passStatus{Failure: plain, History: true, Invalid: true},
			cond{"True", "", "plain"}, cond{"True", "", "Unable to apply 1: an error occurred"}},
		{"failure of a payload", passStatus{Failure: fmt.Errorf("load: %w", integrity), History: true},
			cond{"True", "UpdatePayloadIntegrity", "load: bad file"},
			cond{"True", "UpdatePayloadIntegrity", "Unable to apply 1: the contents of the update are invalid"}},
		{"reconciling, invalid", passStatus{Reconciling: true, Invalid: true}, quiet, cond{"False", "InvalidClusterVersion", "Stopped at 1: the cluster version is invalid"}},
		{"reconciling", passStatus{Reconciling: true, Done: 3, Total: 9}, quiet, cond{"False", "", "Cluster version is 1"}},
		{"invalid", passStatus{Invalid: true, Done: 3, Total: 9}, quiet, cond{"True", "InvalidClusterVersion", "Reconciling 1: the cluster version is invalid"}},
		{"done and text", passStatus{Failure: waiting(none, "a"), History: true, Done: 53, Total: 100}, quiet,
			cond{"True", "ClusterOperatorUpdating", "Working towards 1: 53 of 100 done (53% complete), waiting on a"}},
		{"slow", passStatus{Failure: waiting(none, "a"), History: true, Done: 2, Total: 3, Starts: startedAgo(map[string]int{"a": 31})},
			cond{"Unknown", "SlowClusterOperator", "waiting on a over 30 minutes which is longer than expected"},
			cond{"True", "ClusterOperatorUpdating", "Working towards 1: 2 of 3 done (66% complete), waiting on a over 30 minutes which is longer than expected"}},
		{"done", passStatus{Done: 805, Total: 806}, quiet, cond{"True", "", "Working towards 1: 805 of 806 done (99% complete)"}},
		{"text", passStatus{Failure: waiting(none, "a"), History: true, Total: 3}, quiet, cond{"True", "ClusterOperatorUpdating", "Working towards 1: waiting on a"}},
		{"text, invalid", passStatus{Failure: waiting(none, "a"), History: true, Invalid: true}, quiet, cond{"True", "InvalidClusterVersion", "Reconciling 1: the cluster version is invalid"}},
		{"nothing", passStatus{}, quiet, cond{"True", "", "Working towards 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.s.Version, c.s.Image, c.s.Now = "1", "img", passTime
			f, p := failingCondition(c.s), progressingCondition(c.s)
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
	for want, s := range map[string]passStatus{
		"Working towards img":       {Image: "img"},
		"Working towards <unknown>": {},
	} {
		if got := progressingCondition(s).Message; got != want {
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
		if got := reasonSummary(c.reason, "N"); got != c.with {
			t.Errorf("%s: %q, want %q", c.reason, got, c.with)
		}
		if got := reasonSummary(c.reason, ""); got != c.without {
			t.Errorf("%s without a name: %q, want %q", c.reason, got, c.without)
		}
	}
}

func TestTiming(t *testing.T) {
	if a, b := passLimit(runlevel.Initializing, time.Minute), passLimit(runlevel.Updating, time.Minute); a != time.Minute || b != 2*time.Minute {
		t.Errorf("limits %v, %v", a, b)
	}
	for n, want := range map[int]time.Duration{0: 8 * time.Minute, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 4: 8 * time.Minute, 99: 8 * time.Minute} {
		if got := passDelay(n, 8*time.Minute, 0); got != want {
			t.Errorf("delay after %d failures: %v, want %v", n, got, want)
		}
	}
	if got := passDelay(1, 8*time.Minute, 0.5); got != 66*time.Second {
		t.Errorf("stretched by a tenth: %v", got)
	}
	if got := passDelay(0, 8*time.Minute, 0.5); got != 8*time.Minute {
		t.Errorf("after success: %v", got)
	}
}

func TestNextReport(t *testing.T) {
	t0, t1 := passTime.Add(-time.Hour), passTime.Add(-time.Minute)
	trouble := errors.New("x")
	for _, c := range []struct {
		name        string
		start, next passReport
		dropped     bool
		last        time.Time
	}{
		{"earlier trouble stays until passed", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10}, passReport{Image: "i", Done: 4, Total: 10}, true, time.Time{}},
		{"reached again", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10, LastProgress: t0}, passReport{Image: "i", Done: 5, Total: 10}, false, t0},
		{"passed", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10}, passReport{Image: "i", Done: 6, Total: 10}, false, passTime},
		{"fraction, not count", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10}, passReport{Image: "i", Done: 6, Total: 20}, true, time.Time{}},
		{"total not known yet", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10}, passReport{Image: "i"}, true, time.Time{}},
		{"another image", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10}, passReport{Image: "j", Done: 0, Total: 10}, false, passTime},
		{"another image with trouble", passReport{Image: "i", Done: 5, Total: 10, LastProgress: t0}, passReport{Image: "j", Failure: trouble, Done: 0, Total: 10}, false, t0},
		{"new trouble", passReport{Failure: trouble, Image: "i", Done: 5, Total: 10, LastProgress: t0}, passReport{Failure: trouble, Image: "i", Done: 1, Total: 10}, false, t0},
		{"completed", passReport{Image: "i", Done: 10, Total: 10, LastProgress: t0}, passReport{Image: "i", Done: 10, Total: 10, Completed: 1}, false, passTime},
		{"its own time is kept", passReport{Image: "i", Done: 10, Total: 10, LastProgress: t0}, passReport{Image: "i", Done: 9, Total: 10, LastProgress: t1}, false, t1},
		{"from nothing", passReport{Image: "i"}, passReport{Image: "i", Done: 1, Total: 10}, false, passTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := nextReport(c.start, c.next, passTime)
			if ok == c.dropped || !got.LastProgress.Equal(c.last) {
				t.Fatalf("%+v %v", got, ok)
			}
		})
	}
}

// TestConditionMessages: a message is cut to 32 KiB and says so.
func TestConditionMessages(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []configv1.ClusterOperatorStatusCondition{
		failingCondition(passStatus{Failure: errors.New(long), History: true}),
		progressingCondition(passStatus{Failure: &runlevel.TaskError{Effect: runlevel.EffectReport, Message: long}, History: true}),
	} {
		if len(c.Message) > 32<<10 || !strings.Contains(c.Message, "more bytes") {
			t.Errorf("%s: %d bytes", c.Type, len(c.Message))
		}
	}
}
