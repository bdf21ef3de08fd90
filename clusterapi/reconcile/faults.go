package reconcile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Faults are what a [Virtual] driver does to its processes. Each rate is the
// part of the calls or events that it strikes, from 0 to 1. The name of a fault has
// the process, the call, the object and the number of the call of that kind; a
// fault is drawn from its name and the seed alone, so that leaving one out moves no
// other. The zero value does nothing.
type Faults struct {
	// Before and After are calls that fail with an error of the server, before
	// or after they took effect. Reads fail before.
	Before, After float64
	// Conflict is the part of the conditional writes that meet a conflict which
	// is not there.
	Conflict float64
	// Slow calls run into their deadline; whether they took effect is drawn. In a
	// job they take [VirtualOptions].CallTimeout.
	Slow float64
	// Stale reads return what was true up to 2 seconds ago, though never what is
	// older than what a watch has shown the process.
	Stale float64
	// Late events arrive up to 5 seconds late; the order of the events of a watch
	// stays. Double ones come twice. Merged ones wait for the next change of the
	// object, if it comes within that time.
	Late, Double, Merge float64
	// Crash is the part of the calls at which the process crashes. From then on
	// each of its calls fails; what it had started is dropped; a second later it is
	// made again.
	Crash float64
	// Outage and ClockBack are probabilities for each 10 minutes of virtual
	// time: that the API is away for up to 3 minutes, and that the clock of a
	// process is set back, or right again, by up to 10 minutes.
	Outage, ClockBack float64
	// Until is how long after the start faults take place; zero means an hour.
	// After it the clocks of processes are right.
	Until time.Duration
	// Processes are the names of the processes that faults strike; empty means
	// all.
	Processes []string
	// Only, if not nil, are the names of the faults that take place: those of
	// an earlier run of the same seed, or some of them.
	Only map[string]bool
}

// any reports whether any fault may take place.
func (f *Faults) any() bool {
	for _, rate := range []float64{f.Before, f.After, f.Conflict, f.Slow, f.Stale, f.Late, f.Double, f.Merge, f.Crash, f.Outage, f.ClockBack} {
		if rate > 0 {
			return true
		}
	}
	return false
}

const (
	staleBy = 2 * time.Second
	lateBy  = 5 * time.Second
)

// faultWindow is the time for which an outage and a shift of a clock are drawn.
const faultWindow = 10 * time.Minute

// faults draws the faults of one run.
type faults struct {
	Faults
	seed  uint64
	start time.Time
	count map[call]uint64
	fired []string
	begun map[string]bool // faults that last
	tell  func(name string)
}

// call is what the faults of a call are drawn from, in addition to its number.
type call struct {
	process, verb, kind string
	key                 types.NamespacedName
}

func (c call) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s %s", c.process, c.verb, c.kind, strings.TrimPrefix(c.key.String(), "/")), " ")
}

// newFaults returns nil where no fault takes place.
func newFaults(f Faults, seed uint64, start time.Time) *faults {
	if !f.any() {
		return nil
	}
	f.Until = cmp.Or(f.Until, time.Hour)
	return &faults{Faults: f, seed: seed, start: start, count: make(map[call]uint64), begun: make(map[string]bool)}
}

// strikes reports whether faults strike a process now.
func (f *faults) strikes(process string, now time.Time) bool {
	return f != nil && now.Sub(f.start) < f.Until && (len(f.Processes) == 0 || slices.Contains(f.Processes, process))
}

// draws is one call or event, for which faults are drawn.
type draws struct {
	f    *faults
	call call
	n    uint64
	base uint64
}

func (f *faults) of(c call) draws {
	f.count[c]++
	n := f.count[c]
	return draws{f, c, n, mix(f.seed, hash(c.process), hash(c.verb), hash(c.kind), hash(c.key.Namespace), hash(c.key.Name), n)}
}

// number draws a number in [0, 1) for a purpose.
func (d draws) number(what string) float64 { return unit(mix(d.base, hash(what))) }

// hit draws whether the fault of a name takes place, and records it if so.
func (d draws) hit(what string, rate float64) bool {
	if rate <= 0 || d.number(what) >= rate {
		return false
	}
	return d.f.take(fmt.Sprintf("%s #%d: %s", d.call, d.n, what))
}

// take notes a fault, unless it is to be left out.
func (f *faults) take(name string) bool {
	if f.Only != nil && !f.Only[name] {
		return false
	}
	f.fired = append(f.fired, name)
	f.tell(name)
	return true
}

// window draws a fault of the present window of time: whether it holds now.
func (f *faults) window(process, what string, rate float64, now time.Time) (number float64, on bool) {
	if rate <= 0 {
		return 0, false
	}
	w := uint64(now.Sub(f.start) / faultWindow)
	base := mix(f.seed, hash(process), hash(what), w)
	if unit(base) >= rate {
		return 0, false
	}
	name := fmt.Sprintf("%s, from %s on: %s", process, time.Duration(w)*faultWindow, what)
	if !f.begun[name] {
		if !f.take(name) {
			return 0, false
		}
		f.begun[name] = true
	}
	return unit(mix(base, 1)), true
}

// away reports whether the API is away for all processes.
func (f *faults) away(now time.Time) bool {
	number, on := f.window("the API", "away", f.Outage, now)
	if !on {
		return false
	}
	const longest = 3 * time.Minute
	into := now.Sub(f.start) % faultWindow
	begin := time.Duration(number * float64(faultWindow-longest))
	length := longest/6 + time.Duration(math.Mod(number*7919, 1)*float64(longest)*5/6)
	return into >= begin && into < begin+length
}

// skew is by how much the clock of a process is off.
func (f *faults) skew(process string, now time.Time) time.Duration {
	if !f.strikes(process, now) {
		return 0
	}
	number, on := f.window(process, "clock set back", f.ClockBack, now)
	if !on {
		return 0
	}
	return -time.Duration(number * float64(10*time.Minute)).Truncate(time.Second)
}

// hash is FNV-1a, the same on every machine.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix puts numbers together by splitmix64.
func mix(numbers ...uint64) uint64 {
	h := uint64(0)
	for _, n := range numbers {
		h = (h ^ n) + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// unit maps a number to [0, 1).
func unit(n uint64) float64 { return float64(n>>11) / (1 << 53) }
