package reconcile

import (
	"container/heap"
	"maps"
	"slices"
	"time"
)

// agenda says which keys of a reconciler to look at, and when. It has no clock,
// and is not safe for concurrent use.
type agenda struct {
	keys  map[Key]*entry
	queue queue[*entry]
	order uint64
}

// entry is what is known of a key. It is in the queue while a look is planned
// and none is under way.
type entry struct {
	key   Key
	index int // in the queue; -1 while it is not there
	order uint64

	due    time.Time // of the next look; zero: none is planned
	hold   time.Time // no look before: the server asked to be left alone
	at     time.Time // what the latest Result said, while that is to come
	parked bool      // no look before unpark

	running   bool
	begun     time.Time // the time that the last look was given
	conflicts int
	failing   failing

	jobs    map[any]*job  // those that the latest Result names
	watches []*subscriber // likewise
}

// when is the time of the next look.
func (e *entry) when() time.Time {
	if e.hold.After(e.due) {
		return e.hold
	}
	return e.due
}

// of returns what is known of a key.
func (a *agenda) of(key Key) *entry {
	e := a.keys[key]
	if e == nil {
		if a.keys == nil {
			a.keys = make(map[Key]*entry)
		}
		e = &entry{key: key, index: -1}
		a.keys[key] = e
	}
	return e
}

// want plans a look at a time, unless an earlier one is planned. What is due
// waits in the order in which it became due, so a time in the past is now.
func (a *agenda) want(e *entry, at, now time.Time) {
	if at.Before(now) {
		at = now
	}
	if !e.due.IsZero() && !at.Before(e.due) {
		return
	}
	e.due = at
	a.place(e)
}

// place puts an entry where it belongs, after it changed.
func (a *agenda) place(e *entry) {
	if e.index >= 0 {
		heap.Remove(&a.queue, e.index)
	}
	if !e.due.IsZero() && !e.running && !e.parked {
		a.order++
		e.order = a.order
		heap.Push(&a.queue, e)
	}
}

// take begins the look that is due first, nil where none is.
func (a *agenda) take(now time.Time) *entry {
	if len(a.queue) == 0 || a.queue[0].when().After(now) {
		return nil
	}
	e := heap.Pop(&a.queue).(*entry)
	e.running, e.due, e.begun = true, time.Time{}, now
	if !e.at.After(now) {
		e.at = time.Time{}
	}
	return e
}

// setBack takes in that the clock was set back by d: what was to come is as far off
// as before.
func (a *agenda) setBack(d time.Duration) {
	for _, e := range a.keys {
		for _, t := range []*time.Time{&e.due, &e.hold, &e.at, &e.begun} {
			if !t.IsZero() {
				*t = t.Add(-d)
			}
		}
	}
}

// next returns when the next look is due; false: never.
func (a *agenda) next() (time.Time, bool) {
	if len(a.queue) == 0 {
		return time.Time{}, false
	}
	return a.queue[0].when(), true
}

// sorted returns all entries by key.
func (a *agenda) sorted() []*entry {
	return slices.SortedFunc(maps.Values(a.keys), func(x, y *entry) int { return x.key.Compare(y.key) })
}

// release ends a look, and forgets a key of which nothing is left.
func (a *agenda) release(e *entry) {
	e.running = false
	if e.due.IsZero() && len(e.jobs) == 0 && len(e.watches) == 0 && e.failing.count == 0 && e.conflicts == 0 {
		delete(a.keys, e.key)
		return
	}
	a.place(e)
}

func (e *entry) turn() uint64 { return e.order }
func (e *entry) moved(to int) { e.index = to }

// queued is what stands in a [queue].
type queued interface {
	when() time.Time
	turn() uint64 // among those of one time
	moved(to int) // -1: it has left
}

// queue is a heap of what is due, the first at its front.
type queue[T queued] []T

func (q queue[T]) Len() int { return len(q) }
func (q queue[T]) Less(i, j int) bool {
	if a, b := q[i].when(), q[j].when(); !a.Equal(b) {
		return a.Before(b)
	}
	return q[i].turn() < q[j].turn()
}
func (q queue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].moved(i)
	q[j].moved(j)
}
func (q *queue[T]) Push(x any) {
	x.(queued).moved(len(*q))
	*q = append(*q, x.(T))
}
func (q *queue[T]) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	last.moved(-1)
	return last
}

// failing is what is known of failures in a row. The zero value is none.
type failing struct {
	count       int
	since, last time.Time
	next        time.Duration // how long it lasts when it is told again
	busy        bool          // that the server is busy was told
	absent      bool          // that a kind is not served was told
	told        bool          // anything was
}

// fail counts a failure and reports whether it is to be told: the first is, and
// one after 10 seconds, 100 seconds and so on.
func (f *failing) fail(now time.Time) bool {
	f.count++
	f.last = now
	if f.since.After(now) {
		f.since = now // the clock was set back
	}
	switch {
	case f.count == 1:
		f.since, f.next = now, 10*time.Second
	case now.Sub(f.since) < f.next:
		return false
	default:
		for f.next <= now.Sub(f.since) {
			f.next *= 10
		}
	}
	return true
}

// wait returns the delay before what failed is tried again, and whether it is
// the server that asked for it.
func (f *failing) wait(err error) (delay time.Duration, busy bool) {
	delay = backoff(f.count)
	if asked, ok := retryAfter(err); ok && asked > delay {
		return asked, true
	}
	return delay, false
}
