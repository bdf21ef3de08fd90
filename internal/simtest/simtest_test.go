package simtest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/simtest"
)

// toy fires ten faults in each seed, and fails in seed 7 when faults 3 and 8
// both took place.
func toy(seed uint64, only map[string]bool) ([]string, error) {
	var fired []string
	for i := range 10 {
		if name := fmt.Sprint("fault ", i); only == nil || only[name] {
			fired = append(fired, name)
		}
	}
	if seed >= 7 && slices.Contains(fired, "fault 3") && slices.Contains(fired, "fault 8") {
		return fired, errors.New("broken")
	}
	return fired, nil
}

func TestShrinks(t *testing.T) {
	f := simtest.All(simtest.Range{First: 1, Last: 50}, toy)
	checktest.FatalIf(t, f == nil, "no seed failed")
	checktest.FailIf(t, f.Seed != 7 || f.All != 10, "seed %d of %d faults failed, want 7 of 10", f.Seed, f.All)
	checktest.SameIn(t, "faults", []string{"fault 3", "fault 8"}, f.Faults)
}

func TestNoFailure(t *testing.T) {
	f := simtest.All(simtest.Range{First: 1, Last: 6}, toy)
	checktest.FailIf(t, f != nil, "All = %v", f)
}

func TestRange(t *testing.T) {
	if f := simtest.All(simtest.Range{First: 9, Last: 12}, toy); f == nil || f.Seed != 9 {
		t.Errorf("All(9-12) = %v, want a failure of seed 9", f)
	}
	if f := simtest.All(simtest.Range{First: 3, Last: 6}, toy); f != nil {
		t.Errorf("All(3-6) = %v", f)
	}
}

func TestChosen(t *testing.T) {
	for value, want := range map[string]simtest.Range{
		"":        {},
		"1":       {First: 1, Last: 1},
		"2000":    {First: 1, Last: 2000},
		"501-999": {First: 501, Last: 999},
	} {
		if got, err := simtest.Chosen(value); err != nil || got != want {
			t.Errorf("Chosen(%q) = %v, %v, want %v", value, got, err, want)
		}
	}
	for _, value := range []string{"0", "-1", "1-", "-", "x", "5-4", "0-3", "1-2-3", "1.5", "99999999999"} {
		if got, err := simtest.Chosen(value); err == nil {
			t.Errorf("Chosen(%q) = %v, want an error", value, got)
		}
	}
}

func TestPanicIsFailure(t *testing.T) {
	f := simtest.All(simtest.Range{First: 1, Last: 3}, func(uint64, map[string]bool) ([]string, error) { panic("oh") })
	checktest.FailIf(t, f == nil || f.Seed != 1 || f.Err == nil, "All = %v", f)
}

func TestNotDeterministic(t *testing.T) {
	n := 0
	f := simtest.All(simtest.Range{First: 1, Last: 1}, func(uint64, map[string]bool) ([]string, error) {
		if n++; n == 1 {
			return nil, errors.New("once")
		}
		return nil, nil
	})
	checktest.FailIf(t, f == nil || f.Err == nil, "All = %v", f)
}
