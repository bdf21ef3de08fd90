package preconditions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// getCV and listCO are reads that checks do.
func getCV(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	_, err := clusterapi.Get[configv1.ClusterVersion](ctx, in, clusterapi.Key("", "version"))
	return nil, err
}

func listCO(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
	_, err := clusterapi.List[configv1.ClusterOperator](ctx, in, clusterapi.ListOptions{})
	return nil, err
}

func TestRunStates(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "config.openshift.io", Resource: "clusteroperators"}, "", errors.New("no RBAC"))
	var dump fakeErrs = map[string]error{"ClusterOperator": forbidden, "ClusterVersion": clusterapi.ErrNotCollected}
	for _, tt := range []struct {
		name  string
		check stub
		want  string
	}{
		{"no finding", stub{}, "Passed"},
		{"a note", stub{findings: []preconditions.Finding{finding(preconditions.Info, "I", "i")}}, "Passed\nInfo I: i"},
		{"a warning", stub{findings: []preconditions.Finding{finding(preconditions.Info, "I", "i"), finding(preconditions.Warning, "W", "w")}}, "Failed\nInfo I: i\nWarning W: w"},
		{"blocking", stub{findings: []preconditions.Finding{finding(preconditions.Blocking, "B", "b")}}, "Failed\nBlocking B: b"},
		{"does not apply", stub{applies: func(preconditions.Transition) bool { return false }, err: errors.New("x")}, "NotApplicable"},
		{"question does not arise", stub{err: fmt.Errorf("here: %w", &preconditions.NotApplicableError{Why: "no such API"})}, "NotApplicable\nInfo NotApplicable: no such API"},
		{"error", stub{err: errors.New("boom")}, "Unknown\nWarning UnknownError: boom"},
		{"error beside findings", stub{findings: []preconditions.Finding{finding(preconditions.Blocking, "B", "b")}, err: errors.New("boom")}, "Failed\nBlocking B: b\nWarning UnknownError: boom"},
		{"error beside notes", stub{findings: []preconditions.Finding{finding(preconditions.Info, "I", "i")}, err: errors.New("boom")}, "Unknown\nWarning UnknownError: boom"},
		{"no source", stub{err: &preconditions.NoSourceError{Source: "Alerts"}}, "Unknown\nWarning NoSource: no source given for Alerts"},
		{"panic", stub{run: func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) { panic("oops") }}, "Unknown\nWarning CheckPanicked: check X panicked: oops"},
		{"panic in Applies", stub{applies: func(preconditions.Transition) bool { panic("oops") }}, "Unknown\nWarning CheckPanicked: check X panicked: oops"},
		{"forbidden", stub{run: listCO}, "Unknown\nWarning NotAllowed: not allowed to list clusteroperators.config.openshift.io: " + forbidden.Error()},
		{"not in the dump", stub{run: getCV}, "Unknown\nWarning NotCollected: ClusterVersion: not collected in this recording"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.check.name = "X"
			r := reader(t)
			r.fail = dump
			result := run(t, []preconditions.Check{tt.check}, &preconditions.Input{Reader: r}).Results[0]
			checktest.Same(t, tt.want, text(result))
			if strings.Contains(tt.want, "UnknownError") && result.Err == nil || result.State == preconditions.Unknown && result.Err == nil || result.State == preconditions.Passed && result.Err != nil {
				t.Errorf("state %s, error %v", result.State, result.Err)
			}
		})
	}
}

type fakeErrs = map[string]error

func TestRunWithoutReader(t *testing.T) {
	for _, in := range []*preconditions.Input{nil, {}} {
		report := run(t, []preconditions.Check{stub{name: "Get", run: getCV}, stub{name: "List", run: listCO}}, in)
		for _, r := range report.Results {
			if got := text(r); got != "Unknown\nWarning NoSource: no source given for Reader" {
				t.Error(got)
			}
		}
	}
}

func TestRunRefusesBadSets(t *testing.T) {
	ran := false
	checks := []preconditions.Check{stub{name: "A", run: func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
		ran = true
		return nil, nil
	}}, nil, stub{}, stub{name: "A"}, (*stub)(nil)}
	report, err := preconditions.Run(context.Background(), checks, nil, preconditions.Options{})
	want := "preconditions: check 2 is nil\npreconditions: check 3 has no name\npreconditions: two checks are called \"A\"\n" +
		"preconditions: check 5: Name panicked: value method github.com/clusterupdate/clusterupdate/preconditions_test.stub.Name called using nil *stub pointer"
	if report != nil || err == nil || err.Error() != want || ran {
		t.Errorf("report %v, ran %v, error %v", report, ran, err)
	}
}

// TestRunReadsOnce: each read goes out once, failed ones too, and nobody sees
// another's changes.
func TestRunReadsOnce(t *testing.T) {
	r := reader(t, clusterVersion("4.18.5"), clusterOperator("b"), clusterOperator("a")).failing("ConfigMap", errors.New("boom"))
	spoil := func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
		gvk := configv1.GroupVersion.WithKind("ClusterVersion")
		cv, err := in.Get(ctx, gvk, clusterapi.Key("", "version"))
		if err != nil {
			return nil, err
		}
		if v, _, _ := unstructured.NestedString(cv.Object, "spec", "channel"); v != "stable-4.3" {
			return nil, fmt.Errorf("channel is %q", v)
		}
		cos, err := in.List(ctx, configv1.GroupVersion.WithKind("ClusterOperator"), clusterapi.ListOptions{})
		if err != nil {
			return nil, err
		}
		if len(cos.Items) != 2 || cos.Items[0].GetName() != "a" {
			return nil, fmt.Errorf("%d ClusterOperators", len(cos.Items))
		}
		cos.Items[0].SetName("spoiled")
		_ = unstructured.SetNestedField(cv.Object, "spoiled", "spec", "channel")
		in.TargetKernel = "mine"
		if _, err := in.Get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterapi.Key("n", "m")); err == nil || err.Error() != "boom" {
			return nil, fmt.Errorf("error %v", err)
		}
		return nil, nil
	}
	var checks []preconditions.Check
	for i := range 20 {
		checks = append(checks, stub{name: fmt.Sprint("C", i), run: spoil})
	}
	in := &preconditions.Input{Reader: r}
	report := run(t, checks, in)
	for _, result := range report.Results {
		checktest.Equal(t, preconditions.Passed, result.State, "%s: %s", result.Check, text(result))
	}
	want := map[string]int{"get ClusterVersion/version": 1, "list ClusterOperator": 1, "get ConfigMap/m": 1}
	checktest.Same(t, want, r.calls)
	if in.TargetKernel != "" || in.Reader != clusterapi.Reader(r) {
		t.Error("the caller's input changed")
	}
	var seen []string
	for _, s := range report.Seen {
		seen = append(seen, s.GVK.Kind+"/"+s.Name+"@"+s.ResourceVersion)
	}
	checktest.Same(t, []string{"ClusterOperator/a@3", "ClusterOperator/b@2", "ClusterVersion/version@1"}, seen)
}

// brokenReader answers Gets in ways that it must not.
type brokenReader struct {
	*fakeReader
	get func()
}

func (b brokenReader) Get(context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error) {
	b.get()
	return nil, nil
}

// TestRunBrokenReader: whatever a reader does, nothing passes for it.
func TestRunBrokenReader(t *testing.T) {
	for name, tt := range map[string]struct {
		get  func()
		want string
	}{
		"panics":             {func() { panic("oops") }, "Unknown\nWarning CheckPanicked: reading ClusterVersion panicked: oops"},
		"ends its goroutine": {runtime.Goexit, "Unknown\nWarning UnknownError: the reader ended its goroutine"},
	} {
		r := brokenReader{reader(t), tt.get}
		for _, check := range []preconditions.Check{stub{name: "X", run: getCV}, preconditions.Operator()[0]} {
			result := run(t, []preconditions.Check{check}, &preconditions.Input{Reader: r}).Results[0]
			checktest.SameIn(t, name, tt.want, text(result))
		}
	}
	exit := stub{name: "X", run: func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
		runtime.Goexit()
		return nil, nil
	}}
	if got := text(run(t, []preconditions.Check{exit}, nil).Results[0]); got != "Unknown\nWarning UnknownError: the check ended its goroutine" {
		t.Error(got)
	}
}

func TestRunMaxItems(t *testing.T) {
	r := reader(t, clusterOperator("a"), clusterOperator("b"), clusterOperator("c"))
	for max, want := range map[int]string{
		2: "Unknown\nWarning LimitExceeded: list of ClusterOperator: more than 2 objects (limit ListOptions.Limit)",
		3: "Passed",
	} {
		report := checktest.Get(preconditions.Run(context.Background(),
			[]preconditions.Check{stub{name: "X", run: listCO}}, &preconditions.Input{Reader: r}, preconditions.Options{MaxItems: max}))(t)
		checktest.Same(t, want, text(report.Results[0]))
	}
}

// sleeper answers after a time, or when its context ends.
func sleeper(name string, d time.Duration) stub {
	return stub{name: name, run: func(ctx context.Context, _ *preconditions.Input) ([]preconditions.Finding, error) {
		select {
		case <-time.After(d):
			return []preconditions.Finding{finding(preconditions.Info, "Slept", d.String())}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

func TestRunTimeOuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := make(chan struct{})
		ignores := stub{name: "Deaf", run: func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
			<-deaf
			return nil, nil
		}}
		checks := []preconditions.Check{sleeper("Quick", time.Second), sleeper("Slow", 2*time.Minute), ignores, sleeper("Last", 59*time.Second)}
		start := time.Now()
		report := checktest.Get(preconditions.Run(context.Background(), checks,
			&preconditions.Input{Reader: reader(t)}, preconditions.Options{}))(t)
		checktest.Equal(t, time.Minute, time.Since(start), "took")
		want := []string{
			"Passed\nInfo Slept: 1s",
			"Unknown\nWarning CheckTimedOut: no answer within 1m0s",
			"Unknown\nWarning CheckTimedOut: no answer within 1m0s",
			"Passed\nInfo Slept: 59s",
		}
		var got []string
		for _, r := range report.Results {
			got = append(got, text(r))
		}
		checktest.Same(t, want, got)
		checktest.Equal(t, time.Second, report.Results[0].Elapsed, "elapsed")
		checktest.ErrorIs(t, context.DeadlineExceeded, report.Results[1].Err)
		close(deaf)
	})
}

// TestRunTotal: eight at once, and five minutes for all.
func TestRunTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks []preconditions.Check
		for i := range 48 {
			checks = append(checks, sleeper(fmt.Sprint("C", i), 55*time.Second))
		}
		start := time.Now()
		report := checktest.Get(preconditions.Run(context.Background(), checks, nil, preconditions.Options{}))(t)
		checktest.Equal(t, 5*time.Minute, time.Since(start), "took")
		for i, r := range report.Results {
			want := "Passed\nInfo Slept: 55s"
			if i >= 40 { // five rounds of eight end in 275 s
				want = "Unknown\nWarning CheckTimedOut: the checks together took longer than 5m0s"
			}
			checktest.SameIn(t, r.Check, want, text(r))
		}
	})
}

func TestRunCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("operator went home")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(10*time.Second, func() { cancel(cause) })
		report, err := preconditions.Run(ctx, []preconditions.Check{sleeper("A", time.Second), sleeper("B", time.Minute), sleeper("C", time.Second)}, nil, preconditions.Options{Workers: 1})
		checktest.ErrorIs(t, cause, err)
		want := []string{"Passed\nInfo Slept: 1s", "Unknown\nWarning CheckCancelled: the run was cancelled: operator went home", "Unknown\nWarning CheckCancelled: the run was cancelled: operator went home"}
		for i, r := range report.Results {
			checktest.SameIn(t, r.Check, want[i], text(r))
		}
	})
}

// TestReadOutlivesItsFirstCheck: the check that reads first times out; the
// others still get the answer of the one read.
func TestReadOutlivesItsFirstCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{fakeReader: reader(t, clusterVersion("4.18.5")), delay: 90 * time.Second}
		late := stub{name: "Late", run: func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
			return getCV(ctx, in)
		}}
		report := checktest.Get(preconditions.Run(context.Background(),
			[]preconditions.Check{stub{name: "First", run: getCV}, late},
			&preconditions.Input{Reader: slow}, preconditions.Options{Workers: 1}))(t)
		if got := text(report.Results[0]); got != "Unknown\nWarning CheckTimedOut: no answer within 1m0s" {
			t.Error(got)
		}
		if got := text(report.Results[1]); got != "Passed" {
			t.Error(got)
		}
		checktest.Equal(t, 1, slow.calls["get ClusterVersion/version"], "reads")
	})
}

type slowReader struct {
	*fakeReader
	delay time.Duration
}

func (s *slowReader) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	select {
	case <-time.After(s.delay):
		return s.fakeReader.Get(ctx, gvk, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestRunDeterministic: whatever the order in which checks complete and however
// many run at once, the report is the same, byte for byte.
func TestRunDeterministic(t *testing.T) {
	answers := []func(context.Context, *preconditions.Input) ([]preconditions.Finding, error){
		getCV, listCO,
		func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
			return nil, errors.New("boom")
		},
		func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) { panic("oops") },
		func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
			return []preconditions.Finding{finding(preconditions.Warning, "W", "w")}, nil
		},
		func(context.Context, *preconditions.Input) ([]preconditions.Finding, error) {
			return nil, &preconditions.NotApplicableError{Why: "not here"}
		},
	}
	first := ""
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}} {
		for _, workers := range []int{1, 2, 6} {
			synctest.Test(t, func(t *testing.T) {
				var checks []preconditions.Check
				for i, answer := range answers {
					checks = append(checks, stub{name: fmt.Sprint("C", i), run: func(ctx context.Context, in *preconditions.Input) ([]preconditions.Finding, error) {
						time.Sleep(time.Duration(order[i]) * time.Second)
						return answer(ctx, in)
					}})
				}
				in := &preconditions.Input{Reader: reader(t, clusterVersion("4.18.5"), clusterOperator("a"), clusterOperator("b"))}
				report := checktest.Get(preconditions.Run(context.Background(), checks, in,
					preconditions.Options{Workers: workers}))(t)
				got := marshal(t, report) + report.Decide(preconditions.Policy{}).Summary
				if first != "" && got != first {
					t.Errorf("order %v, %d at once: %s\n%s", order, workers, first, got)
				}
				first = got
			})
		}
	}
}

func TestReportJSON(t *testing.T) {
	cv := clusterVersion("4.18.5@A", history("4.18.5@A C"))
	checks := []preconditions.Check{
		stub{name: "Bad", findings: []preconditions.Finding{{
			Severity: preconditions.Blocking, Reason: "B", Message: "m", Remedy: "r", Source: "s",
			Objects: []preconditions.Object{{GVK: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Namespace: "ns", Name: "n", FieldPath: "spec.x", Value: "1", Note: "o"}},
		}}},
		stub{name: "Lost", run: getCV, err: nil},
		stub{name: "Boom", err: errors.New("boom")},
	}
	in := input(reader(t, cv), cv, "4.19.1@B")
	in.Now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := checktest.Get(json.Marshal(run(t, checks, in)))(t)
	want := `{"transition":{"current":"4.18.5","target":"4.19.1","completed":"4.18.5","currentImage":"A","targetImage":"B","kind":"Minor","plan":"Full"},"time":"2026-01-02T03:04:05Z",` +
		`"results":[{"check":"Bad","state":"Failed","findings":[{"severity":"Blocking","reason":"B","message":"m","remedy":"r","objects":[{"apiVersion":"g/v1","kind":"K","namespace":"ns","name":"n","fieldPath":"spec.x","value":"1","note":"o"}],"source":"s"}]},` +
		`{"check":"Lost","state":"Passed"},{"check":"Boom","state":"Unknown","findings":[{"severity":"Warning","reason":"UnknownError","message":"boom"}],"error":"boom"}],` +
		`"seen":[{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","name":"version","resourceVersion":"1"}]}`
	checktest.Same(t, want, string(got))
}

func TestOptionsThatCannotWork(t *testing.T) {
	for want, o := range map[string]preconditions.Options{
		"Workers is negative":  {Workers: -1},
		"PerCheck is negative": {PerCheck: -time.Second},
		"Total is negative":    {Total: -1},
		"MaxItems is negative": {MaxItems: -1},
	} {
		if report, err := preconditions.Run(t.Context(), nil, nil, o); err == nil || report != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, report, err)
		}
	}
}
