package runlevel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/manifest"
)

func TestErrorClasses(t *testing.T) {
	gr := schema.GroupResource{Group: "g", Resource: "r"}
	unexpected := apierrors.NewGenericServerResponse(http.StatusBadGateway, "get", gr, "n", "", 0, true)
	for _, c := range []struct {
		name   string
		err    error
		reason string
		cause  string
	}{
		{"not found", apierrors.NewNotFound(gr, "n"), "UpdatePayloadResourceNotFound", "resource may have been deleted"},
		{"wrapped", fmt.Errorf("get: %w", apierrors.NewNotFound(gr, "n")), "UpdatePayloadResourceNotFound", "resource may have been deleted"},
		{"already exists", apierrors.NewAlreadyExists(gr, "n"), "UpdatePayloadResourceNotFound", "resource may have been deleted"},
		{"conflict", apierrors.NewConflict(gr, "n", errors.New("x")), "UpdatePayloadResourceConflict", "someone else is updating this resource"},
		{"timeout", apierrors.NewTimeoutError("x", 1), "UpdatePayloadClusterDown", "the server is down or not responding"},
		{"unavailable", apierrors.NewServiceUnavailable("x"), "UpdatePayloadClusterDown", "the server is down or not responding"},
		{"unexpected", unexpected, "UpdatePayloadClusterDown", "the server is down or not responding"},
		{"internal", apierrors.NewInternalError(errors.New("x")), "UpdatePayloadClusterError", "the server is reporting an internal error"},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{}, "n", nil), "UpdatePayloadResourceInvalid", "the object is invalid, possibly due to local cluster configuration"},
		{"unauthorized", apierrors.NewUnauthorized("x"), "UpdatePayloadClusterUnauthorized", "could not authenticate to the server"},
		{"forbidden", apierrors.NewForbidden(gr, "n", errors.New("x")), "UpdatePayloadResourceForbidden", "the server has forbidden updates to this resource"},
		{"server timeout", apierrors.NewServerTimeout(gr, "get", 1), "UpdatePayloadClusterOverloaded", "the server is overloaded and is not accepting updates"},
		{"too many requests", apierrors.NewTooManyRequests("x", 1), "UpdatePayloadClusterOverloaded", "the server is overloaded and is not accepting updates"},
		{"no such kind", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "K"}}, "UpdatePayloadResourceTypeMissing", "the server does not recognize this resource, check extension API servers"},
		{"other", errors.New("x"), "UpdatePayloadFailed", ""},
		{"bad request", apierrors.NewBadRequest("x"), "UpdatePayloadFailed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{apply: func(context.Context, *manifest.Task, State) error { return c.err }}
			_, err := Run(t.Context(), configMaps(t, "n"), Options{Wrap: r.wrap, Backoff: &Backoff{Steps: 1}})
			te, ok := errors.AsType[*TaskError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			want := `Could not update configmap "ns/n" (1 of 1)`
			if c.cause != "" {
				want += ": " + c.cause
			}
			if te.Reason != c.reason || te.Error() != want || te.Effect != "" || !errors.Is(err, c.err) {
				t.Fatalf("%s: %q (%s)", te.Reason, te.Error(), te.Effect)
			}
		})
	}
}

// operatorTask is a task of a ClusterOperator, for errors that belong to one.
func operatorTask(t testing.TB, name string) *manifest.Task {
	return tasksOf(t, fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: ClusterOperator, metadata: {name: %q}}", name))[0]
}

func operatorErr(t testing.TB, name string, effect Effect, reason, plural string) *TaskError {
	return &TaskError{
		Task: operatorTask(t, name), Effect: effect, Reason: reason, PluralReason: plural,
		Message: "Cluster operator " + name + " is " + reason, PluralFormat: "Cluster operators %s are " + reason, Name: name,
	}
}

func TestSummarize(t *testing.T) {
	ctxErr := &contextEnd{Done: 1, Total: 2, Err: context.Canceled}
	incomplete := &incompleteError{Nodes: 2, First: configMaps(t, "n")[0]}
	api := func(name, text string) *TaskError {
		return &TaskError{Task: operatorTask(t, name), Reason: "UpdatePayloadResourceNotFound", Message: text}
	}
	type sum struct {
		Reason, Message, Name string
		Names                 []string
		Effect                Effect
		Members               int
	}
	for _, c := range []struct {
		name string
		errs []error
		want *sum
	}{
		{"nothing", nil, nil},
		{"context errors", []error{ctxErr, ctxErr}, nil},
		{"incomplete with its context", []error{incomplete, context.DeadlineExceeded}, nil},
		{"incomplete with another end of the context", []error{incomplete, context.Canceled}, nil},
		{"an end of the context drops nothing else", []error{operatorErr(t, "a", "", "R", "Rs"), context.Canceled}, &sum{Reason: "R", Message: "Cluster operator a is R", Name: "a"}},
		{"one stays", []error{ctxErr, api("a", "m")}, &sum{Reason: "UpdatePayloadResourceNotFound", Message: "m"}},
		{"operators with one reason", []error{
			operatorErr(t, "b", EffectNone, "R", "Rs"), operatorErr(t, "a", EffectFail, "R", "Rs"), operatorErr(t, "c", "", "R", "Rs"),
		}, &sum{Reason: "Rs", Message: "Cluster operators a, b, c are R", Name: "a, b, c", Names: []string{"a", "b", "c"}, Effect: EffectFail, Members: 3}},
		{"an empty effect is the weakest", []error{
			operatorErr(t, "b", "", "R", "Rs"), operatorErr(t, "a", EffectReport, "R", "Rs"),
		}, &sum{Reason: "Rs", Message: "Cluster operators a, b are R", Name: "a, b", Names: []string{"a", "b"}, Effect: EffectReport, Members: 2}},
		{"fail after interval over none", []error{
			operatorErr(t, "b", EffectNone, "R", "Rs"), operatorErr(t, "a", EffectFailAfterInterval, "R", "Rs"),
		}, &sum{Reason: "Rs", Message: "Cluster operators a, b are R", Name: "a, b", Names: []string{"a", "b"}, Effect: EffectFailAfterInterval, Members: 2}},
		{"no plural, no group", []error{api("a", "second"), api("b", "first"), api("c", "second")},
			&sum{Reason: "MultipleErrors", Message: "Multiple errors are preventing progress:\n* first\n* second", Members: 3}},
		{"only errors of operators are put together", []error{
			&TaskError{Task: configMaps(t, "x")[0], Reason: "R", PluralReason: "Rs", Message: "a"},
			&TaskError{Reason: "R", PluralReason: "Rs", Message: "b"},
		}, &sum{Reason: "MultipleErrors", Message: "Multiple errors are preventing progress:\n* a\n* b", Members: 2}},
		{"equal texts are one line", []error{api("a", "m"), api("b", "m")},
			&sum{Reason: "MultipleErrors", Message: "Multiple errors are preventing progress:\n* m", Members: 2}},
		{"groups and others", []error{
			operatorErr(t, "z", EffectNone, "S", "Ss"), api("x", "plain"), operatorErr(t, "b", EffectNone, "R", "Rs"), operatorErr(t, "a", EffectNone, "R", "Rs"),
		}, &sum{Reason: "MultipleErrors", Message: "Multiple errors are preventing progress:\n* Cluster operator z is S\n* Cluster operators a, b are R\n* plain", Members: 3}},
		{"incomplete without a context", []error{incomplete, api("a", "m")},
			&sum{Reason: "MultipleErrors", Message: "Multiple errors are preventing progress:\n* 2 incomplete task nodes, beginning with configmap \"ns/n\" (1 of 1)\n* m", Members: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := summarize(c.errs)
			var got *sum
			if err != nil {
				te, ok := errors.AsType[*TaskError](err)
				if !ok {
					t.Fatalf("error %v", err)
				}
				got = &sum{te.Reason, te.Message, te.Name, te.Names, te.Effect, len(te.Members)}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// An error that is not of a task stays beside the end of the context.
func TestSummarizeKeepsForeignErrors(t *testing.T) {
	plain := errors.New("plain")
	if err := summarize([]error{plain, context.Canceled}); err != plain {
		t.Errorf("error %v", err)
	}
}

// Others come first in their order, then groups by reason.
func TestSummarizeOrder(t *testing.T) {
	plain := &TaskError{Message: "plain"}
	err := summarize([]error{
		operatorErr(t, "z", "", "S", "Ss"), plain, operatorErr(t, "b", "", "R", "Rs"), operatorErr(t, "a", "", "R", "Rs"),
	})
	te, _ := errors.AsType[*TaskError](err)
	var got []string
	for _, m := range te.Members {
		got = append(got, m.Error())
	}
	if diff := cmp.Diff([]string{"plain", "Cluster operators a, b are R", "Cluster operator z is S"}, got); diff != "" {
		t.Fatal(diff)
	}
}

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
