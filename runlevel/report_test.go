package runlevel

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// What is only told stops neither its node nor what depends on it, counts as done,
// and comes in the order of the tasks, whatever the order of the pass.
func TestReportGoesOn(t *testing.T) {
	files := []string{"0000_10_a_1", "0000_10_a_2", "0000_10_b_1", "0000_20_c_1", "0000_30_d_1", "0000_30_e_1"}
	for _, state := range []State{Initializing, Updating, Reconciling} {
		r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
			return &TaskError{Effect: EffectReport, Message: t.Manifest.Identity().Name}
		}}
		res, err := Run(t.Context(), configMaps(t, files...), Options{Applier: r, State: state, Workers: 1})
		if err != nil || res.Done != len(files) || len(r.log) != len(files) {
			t.Errorf("%s: %d done, %d applied, error %v", state, res.Done, len(r.log), err)
		}
		te, _ := errors.AsType[*TaskError](res.Report)
		if te == nil {
			t.Fatalf("%s: report %v", state, res.Report)
		}
		var got []string
		for _, m := range te.Members {
			got = append(got, m.Error())
		}
		if diff := cmp.Diff(files, got); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
	}
}

// A pass with a failure and with what is only told has both.
func TestReportBesideAFailure(t *testing.T) {
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, _ State) error {
		if t.Index == 1 {
			return &TaskError{Effect: EffectReport, Message: "told"}
		}
		return fatal("broken")
	}}
	res, err := Run(t.Context(), configMaps(t, "0000_10_a_1", "0000_10_a_2", "0000_10_a_3"), Options{Applier: r})
	if err == nil || err.Error() != "broken" || res.Report == nil || res.Report.Error() != "told" || res.Done != 1 || len(r.log) != 2 {
		t.Errorf("%+v, error %v, applied %v", res, err, r.log)
	}
}

// Events count the attempts that failed, in all tasks of a pass together, final
// ones too; creating a ClusterOperator ahead is none.
func TestEventsCountFailedAttempts(t *testing.T) {
	left := map[string][]error{
		"pre c": {errors.New("ahead")},
		"a":     {errors.New("one"), errors.New("two")},
		"b":     {&TaskError{Effect: EffectReport, Message: "told"}},
		"c":     {errors.New("one"), fatal("final")},
	}
	r := &recorder{apply: func(_ context.Context, t *manifest.Task, s State) (err error) {
		name := t.Manifest.Identity().Name
		if s == Precreating {
			name = "pre " + name
		}
		if errs := left[name]; len(errs) > 0 {
			err, left[name] = errs[0], errs[1:]
		}
		return err
	}}
	cm := configMaps(t, "a", "b")
	tasks := manifest.NewTasks([]*manifest.Manifest{cm[0].Manifest, cm[1].Manifest, operatorManifest(t, "c", "c")})
	var got []int
	_, err := Run(t.Context(), tasks, Options{Applier: r, Workers: 1, Backoff: &Backoff{Base: 1, Steps: 3}, Observe: func(e clusterapi.Event) {
		if e.Type == EventTaskStarted || e.Type == EventPassDone {
			got = append(got, progressOf(e).FailedAttempts)
		}
	}})
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff([]int{0, 2, 3, 5}, got); diff != "" {
		t.Errorf("failed attempts before each task and at the end: %s", diff)
	}
}
