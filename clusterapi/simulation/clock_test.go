package simulation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

func TestScaledClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := time.Now()
		c := simulation.ScaledClock(600)
		began := c.Now()
		timer := c.NewTimer(10 * time.Minute)
		ticker := c.NewTicker(2 * time.Minute)
		defer ticker.Stop()
		ticks := 0
		for done := false; !done; {
			select {
			case at := <-timer.C():
				if d := at.Sub(began); d < 10*time.Minute || d > 10*time.Minute+time.Second {
					t.Errorf("the timer said %v", d)
				}
				done = true
			case <-ticker.C():
				ticks++
			}
		}
		if d := time.Since(real); d < time.Second || d > time.Second+time.Millisecond {
			t.Errorf("ten minutes took %v, want 1s", d)
		}
		if d := c.Since(began); d < 10*time.Minute || d > 10*time.Minute+time.Second {
			t.Errorf("Since: %v", d)
		}
		if ticks < 4 || ticks > 5 {
			t.Errorf("%d ticks of 2 minutes", ticks)
		}

		if timer.Reset(time.Hour) {
			t.Error("Reset of a timer that has fired: true")
		}
		if !timer.Stop() {
			t.Error("Stop of a running timer: false")
		}
		ticker.Stop()
		synctest.Wait()
		select {
		case <-ticker.C(): // one that was on its way
		default:
		}
		c.Sleep(time.Hour)
		select {
		case <-timer.C():
			t.Error("a stopped timer fired")
		case <-ticker.C():
			t.Error("a stopped ticker ticked")
		case <-c.After(time.Minute):
		}
	})
}

func TestScaledClockOddFactors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, factor := range []float64{0, -1} {
			c := simulation.ScaledClock(factor)
			began := c.Now()
			time.Sleep(time.Minute)
			if d := c.Since(began); d != time.Minute {
				t.Errorf("factor %v: a minute is %v", factor, d)
			}
		}
		c := simulation.ScaledClock(600)
		select {
		case <-c.After(0):
		case <-time.After(time.Second):
			t.Error("After(0) does not fire")
		}
	})
}
