package simulation

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ScaledClock returns a clock on which time passes factor times as fast as
// real time, from the present on: with 600, ten simulated minutes take a
// second. A factor that is not positive counts as 1. It is safe for concurrent
// use.
//
// A step of the program itself takes scaled time too: at a factor of 1000, a
// millisecond of computing is a simulated second. Inside testing/synctest use
// clock.RealClock instead, which is virtual there.
func ScaledClock(factor float64) clock.WithTicker {
	if !(factor > 0) {
		factor = 1
	}
	return &scaledClock{factor: factor, start: time.Now()}
}

type scaledClock struct {
	factor float64
	start  time.Time
}

func (c *scaledClock) Now() time.Time {
	elapsed := time.Since(c.start)
	return c.start.Add(time.Duration(float64(elapsed) * c.factor))
}

func (c *scaledClock) Since(t time.Time) time.Duration        { return c.Now().Sub(t) }
func (c *scaledClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }
func (c *scaledClock) Sleep(d time.Duration)                  { time.Sleep(c.real(d)) }
func (c *scaledClock) Tick(d time.Duration) <-chan time.Time  { return c.NewTicker(d).C() }

func (c *scaledClock) NewTimer(d time.Duration) clock.Timer {
	t := &scaledTimer{clock: c, c: make(chan time.Time, 1)}
	t.timer = time.AfterFunc(c.real(d), t.fire)
	return t
}

func (c *scaledClock) NewTicker(d time.Duration) clock.Ticker {
	if d <= 0 {
		panic("simulation: non-positive interval for NewTicker") // as package time does
	}
	t := &scaledTicker{clock: c, c: make(chan time.Time, 1), every: max(c.real(d), 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.every, t.fire)
	return t
}

// real converts scaled into real time, rounded up so that a timer never fires
// before its scaled time has come.
func (c *scaledClock) real(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(float64(d)/c.factor) + 1
}

type scaledTimer struct {
	clock *scaledClock
	timer *time.Timer
	c     chan time.Time
}

func (t *scaledTimer) C() <-chan time.Time { return t.c }
func (t *scaledTimer) Stop() bool          { return t.timer.Stop() }

func (t *scaledTimer) Reset(d time.Duration) bool { return t.timer.Reset(t.clock.real(d)) }

func (t *scaledTimer) fire() {
	select {
	case t.c <- t.clock.Now():
	default: // nobody took the last one
	}
}

type scaledTicker struct {
	clock *scaledClock
	c     chan time.Time
	every time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

func (t *scaledTicker) C() <-chan time.Time { return t.c }

func (t *scaledTicker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

func (t *scaledTicker) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	select {
	case t.c <- t.clock.Now():
	default: // a slow reader loses ticks, as with package time
	}
	t.timer.Reset(t.every)
}
