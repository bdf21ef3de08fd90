package reconcile

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Cluster is what a [Virtual] driver runs processes on: an API that tells of
// its changes without a goroutine. memory.Cluster is one.
type Cluster interface {
	clusterapi.ClusterAPI
	clusterapi.Follower
}

// Order says which of several things that are due at one time comes first.
type Order int

const (
	// InOrder takes them in the order in which they became known.
	InOrder Order = iota
	// Random draws from the seed.
	Random
)

// Latency is what takes time in a virtual run, besides what faults add.
type Latency struct {
	// Watch is the longest time from a change to its event; how long each takes
	// is drawn. Calls see a change at once.
	Watch time.Duration
	// Job is the time that each job takes, besides what it sleeps.
	Job time.Duration
}

// VirtualOptions are the options of [NewVirtual].
type VirtualOptions struct {
	// Cluster is required, and so is the Clock that it was made with.
	Cluster Cluster
	Clock   *Clock
	// Seed decides all that is drawn; zero is a seed like any other.
	Seed    uint64
	Order   Order
	Latency Latency
	Faults  Faults
	// Observe is told what the driver meets; nil: nobody is.
	Observe func(clusterapi.Event)
}

// Virtual drives processes in virtual time: one goroutine, which takes one due
// thing after another and lets time jump to the next. The same seed gives the
// same run. It is not safe for concurrent use; Cluster may be changed between
// its calls.
type Virtual struct {
	o         VirtualOptions
	start     time.Time
	cursor    clusterapi.Cursor
	rand      *rand.Rand
	order     uint64
	queue     queue[*item]
	processes []*vprocess
	faults    *faults
	pending   []clusterapi.Change // read from the cursor, not told yet
	past      past

	repeats int // of keys, since time moved
	depth   int // of the step under way: it was made due by one of the depth before, at the same time
	err     error
}

// Before time has to move, keys may be looked at again so often, and a chain of
// steps, each made due by the one before, may be so deep.
const (
	maxRepeats = 10_000
	maxDepth   = 2 * maxRepeats
)

// NewVirtual returns a driver at the time of the clock. Nothing happens before
// its first step.
func NewVirtual(o VirtualOptions, processes ...Process) *Virtual {
	v := &Virtual{
		o: o, start: o.Clock.Now(), cursor: o.Cluster.Follow(),
		rand:   rand.New(rand.NewPCG(o.Seed, hash("order"))),
		faults: newFaults(o.Faults, o.Seed, o.Clock.Now()),
	}
	if v.faults != nil {
		v.faults.tell = func(name string) {
			e := eventAbout(EventFault, Attempt{}, nil)
			e.Message = name
			v.observe(e)
		}
	}
	for _, p := range processes {
		v.Add(p)
	}
	return v
}

// Close frees what the cluster remembers for the driver.
func (v *Virtual) Close() { v.cursor.Close() }

// Now returns the virtual time.
func (v *Virtual) Now() time.Time { return v.o.Clock.Now() }

// Clock returns the clock of the options.
func (v *Virtual) Clock() *Clock { return v.o.Clock }

// Faults returns the names of the faults that took place so far, in order. With
// [Faults].Only another run of the seed has the same ones, or some of them.
func (v *Virtual) Faults() []string {
	if v.faults == nil {
		return nil
	}
	return slices.Clone(v.faults.fired)
}

// Add starts a further process.
func (v *Virtual) Add(p Process) {
	vp := &vprocess{v: v, Process: p}
	v.processes = append(v.processes, vp)
	v.at(v.Now(), vp.begin)
}

// Crash ends a process as it is and makes it again after [Faults].Restart. A
// name that no process has does nothing, nor one whose process is down.
func (v *Virtual) Crash(process string) {
	for _, p := range v.processes {
		if p.Name == process {
			p.crash()
		}
	}
}

// Stop ends a process as it is, for good.
func (v *Virtual) Stop(process string) {
	v.processes = slices.DeleteFunc(v.processes, func(p *vprocess) bool {
		if p.Name == process {
			p.stopped = true
			p.drop()
		}
		return p.Name == process
	})
}

// Wake makes a reconciler look at a key now. A name that there is not does
// nothing.
func (v *Virtual) Wake(process, reconciler string, key Key) {
	for _, p := range v.processes {
		if r := p.named[reconciler]; p.Name == process && r != nil {
			r.wake(key, v.Now())
		}
	}
}

// Step does the next thing that is due, moving time to it, and reports whether
// there was one. It fails where keys are looked at again and again while time
// does not move; the error names them.
func (v *Virtual) Step() (bool, error) {
	v.drain()
	at, ok := v.next()
	if !ok || v.err != nil {
		return false, v.err
	}
	if at.After(v.Now()) {
		v.o.Clock.set(at)
		v.repeats = 0
	}
	if due, ok := v.o.Clock.due(); ok && (len(v.queue) == 0 || !v.queue[0].at.Before(due)) {
		v.repeats++ // a function may ask to be called at once again
		v.o.Clock.take()()
	} else {
		item := heap.Pop(&v.queue).(*item)
		v.depth = item.depth
		item.run()
	}
	v.drain()
	if v.repeats > maxRepeats || v.depth > maxDepth {
		v.err = v.stuck()
	}
	v.depth = 0
	return true, v.err
}

// next returns when the next thing is due.
func (v *Virtual) next() (time.Time, bool) {
	due, ok := v.o.Clock.due()
	if len(v.queue) > 0 && (!ok || v.queue[0].at.Before(due)) {
		return v.queue[0].at, true
	}
	return due, ok
}

// Next returns when the next thing is due, and false where nothing ever is.
func (v *Virtual) Next() (time.Time, bool) {
	v.drain()
	return v.next()
}

// RunUntil steps until nothing is due at t or before, and moves time to t. Its
// errors are those of [Virtual.Step].
func (v *Virtual) RunUntil(t time.Time) error {
	for {
		at, ok := v.Next()
		if !ok || at.After(t) {
			v.o.Clock.set(t)
			return v.err
		}
		if _, err := v.Step(); err != nil {
			return err
		}
	}
}

// ErrLimit says that a run did not come to its end in time.
var ErrLimit = errors.New("reconcile: the run has not ended in its time")

// RunWhile steps while cond holds, which it asks before each step. It returns
// [ErrLimit] when limit of virtual time has passed, or when nothing is due any
// more.
func (v *Virtual) RunWhile(limit time.Duration, cond func() bool) error {
	end := v.Now().Add(limit)
	for cond() {
		at, ok := v.Next()
		if !ok || at.After(end) {
			return fmt.Errorf("%w: %s", ErrLimit, limit)
		}
		if _, err := v.Step(); err != nil {
			return err
		}
	}
	return v.err
}

// stuck is the error that time does not move.
func (v *Virtual) stuck() error {
	var keys []*vkey
	for _, p := range v.processes {
		for _, r := range p.reconcilers {
			for _, k := range r.keys {
				if (k.visits > 1 || v.repeats <= maxRepeats) && k.visited.Equal(v.Now()) {
					keys = append(keys, k)
				}
			}
		}
	}
	slices.SortFunc(keys, func(a, b *vkey) int {
		if a.visits != b.visits {
			return b.visits - a.visits
		}
		return strings.Compare(a.String(), b.String())
	})
	var names []string
	for _, k := range keys[:min(len(keys), 10)] {
		names = append(names, fmt.Sprintf("%s (%d times)", k, k.visits))
	}
	return fmt.Errorf("reconcile: %d steps at %s without time moving: %s", max(v.repeats, v.depth), v.Now().Format(time.RFC3339), strings.Join(names, ", "))
}

func (v *Virtual) observe(e clusterapi.Event) {
	if v.o.Observe != nil {
		e.Time = v.Now()
		v.o.Observe(e)
	}
}

// item is something that is due at a time.
type item struct {
	at    time.Time
	order uint64
	index int // in the queue; -1 while it is not
	depth int
	run   func()
}

// at makes f run at a time.
func (v *Virtual) at(t time.Time, f func()) *item {
	i := &item{index: -1, run: f}
	v.push(i, t)
	return i
}

func (v *Virtual) push(i *item, t time.Time) {
	i.depth = 0
	if now := v.Now(); !t.After(now) {
		t, i.depth = now, v.depth+1
	}
	v.order++
	i.at, i.order = t, v.order
	if v.o.Order == Random {
		i.order = v.rand.Uint64()
	}
	heap.Push(&v.queue, i)
}

func (v *Virtual) remove(i *item) {
	if i.index >= 0 {
		heap.Remove(&v.queue, i.index)
	}
}

func (i *item) when() time.Time { return i.at }
func (i *item) turn() uint64    { return i.order }
func (i *item) moved(to int)    { i.index = to }
