// Package simtest runs deterministic simulation tests: the same run under many
// seeds, each with its own faults. A seed that fails is shrunk to the faults that
// it takes, and the failure reports how to play it again.
package simtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Variable is the environment variable that chooses the seeds of every
// simulation test: "N" means 1 to N, "A-B" means A to B, and none means as many
// as suit an ordinary run. It is not a flag, so that go test can cache results.
const Variable = "CLUSTERUPDATE_SEEDS"

var (
	seed = flag.Uint64("seed", 0, "the only seed that simulation tests run; 0 means many")
	only = flag.String("only", "", "with -seed: the faults that take place, separated by semicolons; empty means all")
)

// Seeds of an ordinary run, and of one under the race detector.
const (
	ordinary = 200
	raced    = 20
)

// Run is one run of a test under a seed. It returns the faults that took place and
// what was found wrong. only, if not nil, are the faults that may take place. Runs
// of different seeds continue at the same time.
type Run func(seed uint64, only map[string]bool) (faults []string, err error)

// Test plays run under the seeds that Variable names. share is the part of the
// usual number of seeds in an ordinary run, for runs that are long; zero means
// all of them.
func Test(t *testing.T, share float64, run Run) {
	t.Helper()
	if *seed != 0 {
		var chosen map[string]bool
		if *only != "" {
			chosen = set(strings.Split(*only, ";"))
		}
		faults, err := guarded(run, *seed, chosen)
		t.Logf("seed %d: %d faults:\n%s", *seed, len(faults), strings.Join(faults, "\n"))
		if err != nil {
			t.Fatalf("seed %d: %v", *seed, err)
		}
		return
	}
	seeds := checktest.Get(Chosen(os.Getenv(Variable)))(t)
	if seeds == (Range{}) {
		seeds = Range{First: 1, Last: count(share)}
	}
	if err := All(seeds, run); err != nil {
		t.Fatalf("%v\nto play it again: go test -run '^%s$' %s", err, t.Name(), err.flags())
	}
}

// Range is the seeds from First to Last, both included.
type Range struct{ First, Last uint64 }

// Chosen parses the value of Variable. The zero Range means that it is empty.
func Chosen(value string) (Range, error) {
	if value == "" {
		return Range{}, nil
	}
	first, last, ranged := strings.Cut(value, "-")
	if !ranged {
		first, last = "1", value
	}
	from, errFirst := strconv.ParseUint(first, 10, 32)
	to, errLast := strconv.ParseUint(last, 10, 32)
	if errFirst != nil || errLast != nil || from == 0 || to < from {
		return Range{}, fmt.Errorf("%s=%q: want N or A-B, with 1 ≤ A ≤ B", Variable, value)
	}
	return Range{First: from, Last: to}, nil
}

// count returns the number of seeds of a test that gets a share of an ordinary run.
func count(share float64) uint64 {
	n := ordinary
	if israce.Enabled {
		n = raced
	}
	if testing.Short() {
		n /= 10
	}
	if share > 0 {
		n = int(float64(n) * share)
	}
	return uint64(max(n, 1))
}

// Failure is a seed that failed, with the faults that it takes.
type Failure struct {
	Seed   uint64
	Faults []string // in order; those without which it does not fail
	All    int      // how many there were before
	Err    error    // of the shrunk run
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %v\nwith %d of %d faults:\n\t%s", f.Seed, f.Err, len(f.Faults), f.All, strings.Join(f.Faults, "\n\t"))
}

func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) flags() string {
	flags := fmt.Sprintf("-seed %d", f.Seed)
	if len(f.Faults) > 0 {
		flags += " -only '" + strings.Join(f.Faults, ";") + "'"
	}
	return flags
}

// All plays run under the given seeds, on all processors, and returns the
// failure of the smallest seed that fails, nil if none does.
func All(seeds Range, run Run) *Failure {
	var next, failed atomic.Uint64
	var group sync.WaitGroup
	next.Store(seeds.First - 1)
	failed.Store(seeds.Last + 1)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				s := next.Add(1)
				if s >= failed.Load() {
					return
				}
				if _, err := guarded(run, s, nil); err == nil {
					continue
				}
				for smallest := failed.Load(); s < smallest && !failed.CompareAndSwap(smallest, s); {
					smallest = failed.Load()
				}
			}
		})
	}
	group.Wait()
	if s := failed.Load(); s <= seeds.Last {
		return shrink(s, run)
	}
	return nil
}

// maxShrink is how many runs shrinking may take.
const maxShrink = 200

// shrink leaves out faults, in halves, quarters and so on, as long as the run
// fails without them.
func shrink(s uint64, run Run) *Failure {
	all, err := guarded(run, s, nil)
	if err == nil {
		return &Failure{Seed: s, All: len(all), Err: fmt.Errorf("the same seed failed once, and then not: the run is not deterministic")}
	}
	f := &Failure{Seed: s, Faults: all, All: len(all), Err: err}
	runs := 0
	for size := (len(f.Faults) + 1) / 2; size > 0 && len(f.Faults) > 0; {
		less := false
		for from := 0; from < len(f.Faults) && runs < maxShrink; {
			rest := slices.Delete(slices.Clone(f.Faults), from, min(from+size, len(f.Faults)))
			runs++
			if fired, err := guarded(run, s, set(rest)); err != nil {
				f.Faults, f.Err, less = fired, err, true
				continue
			}
			from += size
		}
		if size == 1 && !less || runs >= maxShrink {
			break
		}
		if size > 1 {
			size = (size + 1) / 2
		}
	}
	return f
}

// guarded is run, with a panic as an error.
func guarded(run Run, s uint64, only map[string]bool) (faults []string, err error) {
	err = panics.Catch(func() (err error) {
		faults, err = run(s, maps.Clone(only))
		return err
	})
	return faults, err
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
