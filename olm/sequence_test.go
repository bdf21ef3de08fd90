package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// TestSequencePhases: what a failed operator was to replace leaves with it, and what one in
// progress replaces once that is over.
func TestSequencePhases(t *testing.T) {
	c := contents("a.v1", "a.v2 >a.v1", "a.v3 >a.v2", "a.v4 >a.v3", "a.v5 >a.v4")
	for _, tc := range []struct {
		phases   string
		strategy string
		want     []string
	}{
		{"Replacing Replacing Failed", "TechPreviewUnsafeFailForward", []string{"a.v4", "a.v5", "a.v5"}},
		{"Replacing Replacing Failed", "", []string{"a.v1 a.v2 a.v3"}},
		{"Replacing Deleting Installing", "", []string{"a.v1 a.v2 a.v3", "a.v4", "a.v5", "a.v5"}},
		{"Replacing Replacing Deleting", "", []string{"a.v1 a.v2 a.v3"}},
	} {
		csvs := phase(installed("a.v1", "a.v2 >a.v1", "a.v3 >a.v2"), strings.Fields(tc.phases)...)
		s := snapshot(c, csvs, sub("a", "a.v3"))
		s.OperatorGroups[0].Spec.UpgradeStrategy = tc.strategy
		var got []string
		for _, g := range checktest.Get(olm.Sequence(t.Context(), s, olm.Options{}))(t) {
			got = append(got, members(g))
		}
		checktest.SameIn(t, tc.phases, tc.want, got)
		if tc.strategy == "" {
			continue
		}
		generations := checktest.Get(olm.Sequence(t.Context(), s, olm.Options{AllOrNothing: true}))(t)
		checktest.Same(t, len(tc.want), len(generations))
	}
}

// TestApplyTakenName: a Subscription that has the name of a new one stays, as it
// does on a cluster.
func TestApplyTakenName(t *testing.T) {
	c := contents("a.v1 -K", "k.v1 K", "z.v1")
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
	c := contents("a.v1 @alpha range=>=2.0.0", "a.v2 @beta range=<2.0.0")
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
	s := with(snapshot(contents("a.v1"), nil, sub("a", "")), broken("olm", "d", errors.New("down")))
	if _, err := olm.Sequence(context.Background(), s, olm.Options{}); err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("error %v", err)
	}
}
