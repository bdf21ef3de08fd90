package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Cluster is what a [Virtual] driver runs processes on: an API that hands on
// its changes without a goroutine. memory.Cluster is one.
type Cluster interface {
	clusterapi.ClusterAPI
	clusterapi.Follower
}

// Order determines which of several things that are due at one time comes first.
type Order int

const (
	// InOrder takes them in the order in which they became known.
	InOrder Order = iota
	// Random draws from the seed.
	Random
)

// Latency is what takes time in a virtual run, in addition to faults.
type Latency struct {
	// Watch is the longest time from a change to its event; how long each takes
	// is drawn. Calls see a change at once.
	Watch time.Duration
	// Job is the time that each job takes, in addition to its sleep.
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
	// CallTimeout is the time that a call which [Faults].Slow strikes takes in
	// a job; zero means 30 seconds, [Never] none. See [WithCallTimeout].
	CallTimeout time.Duration
	// Resync is as in [Options]: zero means 10 minutes, and with [Never] there is one look
	// at all keys.
	Resync time.Duration
	// Logger logs what Observe gets; nil logs nothing.
	Logger *slog.Logger
	// Observe gets the events of the driver. nil is not called. A panic in it
	// ends the run.
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
	queue     queue
	processes []*vprocess
	faults    *faults
	past      past

	// pending are the changes that were read from the cursor and not handed on
	// yet. The number of the last one is pulled.
	pending []clusterapi.Change
	pulled  uint64
	// woken are the controllers that have something to take in.
	woken inbox[*controller]

	repeats int // of keys, since time moved
	err     error
	// observer is what Observe panicked with. It passes through what would
	// otherwise make it an error of the reconciler at work.
	observer any
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
	o.CallTimeout = orDefault(o.CallTimeout, defaultCallTimeout)
	o.Resync = orDefault(o.Resync, defaultResync)
	v := &Virtual{
		o: o, start: o.Clock.Now(), cursor: o.Cluster.Follow(),
		faults: newFaults(o.Faults, o.Seed, o.Clock.Now()),
	}
	if o.Order == Random {
		v.queue.draw = rand.New(rand.NewPCG(o.Seed, hash("order"))).Uint64
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

// Crash ends a process as it is and makes it again a second later. A
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
		if p.Name != process || !p.lives() {
			continue
		}
		if c := p.life.core.find(process, reconciler); c != nil {
			c.want(key, 0)
		}
	}
}

// Step does the next thing that is due, moving time to it, and reports whether
// there was one. It fails where keys are looked at again and again while time
// does not move, and the error names them; and where a process cannot be made,
// as [Run] does.
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
	due, ok := v.queue.next()
	timer, timed := v.o.Clock.due()
	if timed && (!ok || !due.Before(timer)) {
		v.repeats++ // a function may ask to be called at once again
		v.o.Clock.take()()
	} else {
		i := v.queue.take()
		v.queue.depth = i.depth
		i.run()
	}
	v.settle()
	v.drain()
	if v.observer != nil {
		panic(v.observer)
	}
	if v.repeats > maxRepeats || v.queue.depth > maxDepth {
		v.err = v.stuck()
	}
	v.queue.depth = 0
	return true, v.err
}

// next returns when the next thing is due.
func (v *Virtual) next() (time.Time, bool) {
	timer, timed := v.o.Clock.due()
	if due, ok := v.queue.next(); ok && (!timed || due.Before(timer)) {
		return due, true
	}
	return timer, timed
}

// Next returns when the next thing is due, and false if nothing ever is.
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

// ErrLimit reports that a run did not end in time.
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
	var keys []*entry
	for _, p := range v.processes {
		if !p.lives() {
			continue
		}
		for _, c := range p.life.core.controllers {
			for _, e := range c.keys {
				if (e.looks > 1 || v.repeats <= maxRepeats) && e.begun.Equal(v.Now()) {
					keys = append(keys, e)
				}
			}
		}
	}
	text := func(e *entry) string { return e.c.process + " " + e.c.name + " " + e.key.String() }
	slices.SortFunc(keys, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.looks, a.looks), cmp.Compare(text(a), text(b)))
	})
	var names []string
	for _, e := range keys[:min(len(keys), 10)] {
		names = append(names, fmt.Sprintf("%s (%d times)", text(e), e.looks))
	}
	return fmt.Errorf("reconcile: %d steps at %s without time moving: %s",
		max(v.repeats, v.queue.depth), v.Now().Format(time.RFC3339), strings.Join(names, ", "))
}

// at makes f run at a time.
func (v *Virtual) at(t time.Time, f func()) { v.queue.put(&item{run: f}, t, v.Now()) }

// settle lets the controllers take in what there is.
func (v *Virtual) settle() {
	for len(v.woken.in) > 0 {
		woken := v.woken.take()
		for _, c := range woken {
			c.settle()
		}
		for _, c := range woken {
			if !c.core.ended {
				c.begin()
			}
		}
	}
}

// pull reads the changes of the cluster, and remembers what was before where
// reads may be stale.
func (v *Virtual) pull() {
	for change, ok := v.cursor.Next(); ok; change, ok = v.cursor.Next() {
		if v.faults != nil && v.faults.Stale > 0 {
			v.past.add(change, v.Now())
		}
		v.pending = append(v.pending, change)
		v.pulled++
	}
}

// drain hands the changes of the cluster to the processes.
func (v *Virtual) drain() {
	for v.pull(); len(v.pending) > 0; v.pull() {
		change := v.pending[0]
		number := v.pulled - uint64(len(v.pending)) + 1
		v.pending = v.pending[1:]
		gk := change.Object().Kind().GroupKind()
		for _, p := range slices.Clone(v.processes) {
			if p.lives() {
				p.life.changed(gk, change, number)
			}
		}
	}
}

func (v *Virtual) observe(e clusterapi.Event) {
	e.Time = v.Now()
	logEvent(panics.Catch, v.o.Logger, levelOf(e), string(e.Type), e.Err, e)
	if v.o.Observe == nil {
		return
	}
	defer func() {
		if x := recover(); x != nil {
			v.observer = x
			panic(x)
		}
	}()
	v.o.Observe(e)
}
