package reconcile

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the time of a [Virtual] driver, made first and given to the cluster
// too. It moves when the driver moves it. Nothing may wait on it: its timers
// panic, but for AfterFunc, which makes the driver call a function. It is safe
// for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers queue
}

var _ clock.WithTickerAndDelayedExecution = (*Clock)(nil)

// NewClock returns a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// AfterFunc makes the driver call f when d has passed. The timer's channel is
// nil.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &funcTimer{clock: c, item: item{run: f}}
	c.timers.put(&t.item, c.now.Add(d), c.now)
	return t
}

// set moves the clock forward.
func (c *Clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// due returns when the first timer is due.
func (c *Clock) due() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timers.next()
}

// take removes the first timer and returns what it calls.
func (c *Clock) take() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timers.take().run
}

const cannotWait = "reconcile: nothing may wait on a virtual clock; return when to look again instead"

// After panics: see [Clock].
func (c *Clock) After(time.Duration) <-chan time.Time { panic(cannotWait) }

// Sleep panics: see [Clock].
func (c *Clock) Sleep(time.Duration) { panic(cannotWait) }

// NewTimer panics: see [Clock].
func (c *Clock) NewTimer(time.Duration) clock.Timer { panic(cannotWait) }

// NewTicker panics: see [Clock].
func (c *Clock) NewTicker(time.Duration) clock.Ticker { panic(cannotWait) }

// Tick panics: see [Clock].
func (c *Clock) Tick(time.Duration) <-chan time.Time { panic(cannotWait) }

// funcTimer is what AfterFunc returns.
type funcTimer struct {
	clock *Clock
	item  item
}

func (t *funcTimer) C() <-chan time.Time { return nil }

func (t *funcTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	running := t.item.place > 0
	t.clock.timers.remove(&t.item)
	return running
}

func (t *funcTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	running := t.item.place > 0
	t.clock.timers.put(&t.item, t.clock.now.Add(d), t.clock.now)
	return running
}
