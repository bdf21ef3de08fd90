package runlevel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/manifest"
)

// A task that stalled has all its attempts again when its node is stepped, as in
// a new pass.
func TestStalledTaskHasItsAttemptsAgain(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	p, s, clock, _ := newScripted(t, true, a)
	s.fail[a] = errors.New("not yet")
	node := p.Start()[0]
	for range 3 {
		step := p.Step(t.Context(), node)
		if want := clock.Now().Add(10 * time.Second); !step.At.Equal(want) || step.Stalled {
			t.Fatalf("after the first attempt: %+v, want a wait until %s", step, want)
		}
		if step = p.Step(t.Context(), node); !step.Stalled || !step.At.IsZero() {
			t.Fatalf("after the second attempt: %+v, want it stalled", step)
		}
	}
	if got := s.taken(); got != "0000_10_a_1.yaml 0000_10_a_1.yaml 0000_10_a_1.yaml 0000_10_a_1.yaml 0000_10_a_1.yaml 0000_10_a_1.yaml" {
		t.Errorf("applied %s", got)
	}
}

// A node that stalls tells what its task waits for when that is new: for an
// operator as Waiting, for anything else as TaskRetry. It ends once.
func TestStalledNodeTellsWhatIsNew(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	p, s, _, events := newScripted(t, true, a)
	waits := func(text string) error {
		return &TaskError{Effect: EffectNone, Message: text, Wait: &Wait{Operator: "a"}}
	}
	node := p.Start()[0]
	var got []string
	for _, err := range []error{waits("one"), waits("one"), waits("two"), fatal("three"), nil} {
		*events = nil
		s.fail[a] = err
		p.Step(t.Context(), node)
		text := ""
		for _, e := range *events {
			text += e + " "
		}
		got = append(got, text)
	}
	want := []string{"NodeStarted TaskStarted Waiting ", "", "Waiting ", "TaskRetry ", "TaskDone NodeDone "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An attempt that fails otherwise than by the end of the context is a failure,
// though the context has ended meanwhile.
func TestFailureWhileTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &recorder{apply: func(context.Context, *manifest.Task, State) error { cancel(); return errors.New("refused") }}
		res, err := Run(ctx, configMaps(t, "x"), Options{Applier: r})
		te, ok := errors.AsType[*TaskError](err)
		if !ok || te.Err.Error() != "refused" || res.Failure != err || len(r.log) != 1 {
			t.Errorf("error %v after %d attempts", err, len(r.log))
		}
	})
}
