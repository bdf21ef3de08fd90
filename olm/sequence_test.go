package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// TestSequenceFailingForward: what a failed operator was to replace leaves with
// it.
func TestSequenceFailingForward(t *testing.T) {
	c := contents(t, "a.v1", "a.v2 >a.v1", "a.v3 >a.v2", "a.v4 >a.v3", "a.v5 >a.v4")
	csvs := phase(installed("a.v1", "a.v2 >a.v1", "a.v3 >a.v2"), olmapi.CSVPhaseReplacing, olmapi.CSVPhaseReplacing, olmapi.CSVPhaseFailed)
	s := snapshot(c, csvs, sub("a", "a.v3"))
	s.OperatorGroups[0].Spec.UpgradeStrategy = "TechPreviewUnsafeFailForward"
	for _, o := range []olm.Options{{}, {AllOrNothing: true}} {
		generations := checktest.Get(olm.Sequence(context.Background(), s, o))(t)
		var got []string
		for _, g := range generations {
			got = append(got, members(g))
		}
		if diff := cmp.Diff([]string{"a.v4", "a.v5", "a.v5"}, got); diff != "" {
			t.Errorf("%+v: generations (-want +got):\n%s", o, diff)
		}
	}
}

// TestApplyTakenName: a Subscription that has the name of a new one stays, as it
// does on a cluster.
func TestApplyTakenName(t *testing.T) {
	c := contents(t, "a.v1 -K", "k.v1 K", "z.v1")
	s := snapshot(c, nil, sub("a", ""), sub("z", "", named("k-stable-c-olm")))
	generations := checktest.Get(olm.Sequence(context.Background(), s, olm.Options{}))(t)
	want := `kept a.v1 for subscription a
kept z.v1 for subscription k-stable-c-olm
kept k.v1
`
	checktest.SameIn(t, "last generation", want, generations[len(generations)-1].String())
}

func TestSequenceCycle(t *testing.T) {
	// Each of two channels skips to its own version.
	c := contents(t, "a.v1 @alpha range=>=2.0.0", "a.v2 @beta range=<2.0.0")
	s := snapshot(c, installed("a.v1"), sub("a", "a.v1", channel("")))
	generations, err := olm.Sequence(context.Background(), s, olm.Options{})
	var cycle *olm.CycleError
	if !errors.As(err, &cycle) {
		t.Fatalf("error %v, want a CycleError", err)
	}
	if got, want := err.Error(), "updates lead in a circle: a.v1 -> a.v2 -> a.v1"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if len(generations) != 2 {
		t.Errorf("%d generations, want the 2 that were found", len(generations))
	}
}

func TestSequenceError(t *testing.T) {
	s := with(snapshot(contents(t, "a.v1"), nil, sub("a", "")), broken("olm", "d", errors.New("down")))
	if _, err := olm.Sequence(context.Background(), s, olm.Options{}); err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("error %v", err)
	}
}
