package runlevel

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// A task that stalled has all its attempts again when its node goes on, as in a
// new pass.
func TestStalledTaskHasItsAttemptsAgain(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	s := newScripted(t, Options{Stay: true}, a)
	s.script.fail[a] = errors.New("not yet")
	node := s.pass.Keys()[0]
	for range 3 {
		res := s.look(t, node, 0)
		if want := passStart.Add(10 * time.Second); !res.At.Equal(want) || s.settled {
			t.Fatalf("after the first attempt: %+v, want a wait until %s", res, want)
		}
		if res = s.look(t, node, 10*time.Second); !s.settled || !res.At.IsZero() {
			t.Fatalf("after the second attempt: %+v, want it stalled", res)
		}
		s.pass.Resume()
	}
	checktest.SameIn(t, "applied", strings.TrimSpace(strings.Repeat(a+" ", 6)), s.script.taken())
}

// A node that stalls tells what its task waits for when that is new: for an
// operator as Waiting, for anything else as TaskRetry. It ends once.
func TestStalledNodeTellsWhatIsNew(t *testing.T) {
	const a = "0000_10_a_1.yaml"
	s := newScripted(t, Options{Stay: true}, a)
	waits := func(text string) error {
		return &TaskError{Effect: EffectNone, Message: text, Wait: &Wait{Operator: "a"}}
	}
	node := s.pass.Keys()[0]
	var got []string
	for _, err := range []error{waits("one"), waits("one"), waits("two"), fatal("three"), nil} {
		s.events = nil
		s.script.fail[a] = err
		s.pass.Resume()
		s.look(t, node, 0)
		got = append(got, strings.Join(s.events, " "))
	}
	checktest.SameIn(t, "events", []string{"NodeStarted TaskStarted Waiting", "", "Waiting", "TaskRetry", "TaskDone NodeDone"}, got)
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
