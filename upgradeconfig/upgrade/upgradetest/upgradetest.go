package upgradetest

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
)

// Capacity is an [upgrade.Capacity] that only takes time. It is safe for
// concurrent use; its fields are set before.
type Capacity struct {
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
	// Ready is how long nodes take to become ready; 0 means no time.
	Ready time.Duration
	// TimeOut is how long to wait for them; 0 means without end.
	TimeOut time.Duration
	// Fixed reports that there is nothing that could be scaled.
	Fixed bool

	mu    sync.Mutex
	since time.Time // zero: nothing is reserved
}

// Reserve never returns an error.
func (c *Capacity) Reserve(context.Context, *upgradeconfig.UpgradeConfig) (upgrade.CapacityState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Fixed {
		return upgrade.CapacityNone, nil
	}
	now := clock.RealClock{}.Now()
	if c.Clock != nil {
		now = c.Clock.Now()
	}
	if c.since.IsZero() {
		c.since = now
	}
	switch waited := now.Sub(c.since); {
	case waited >= c.Ready:
		return upgrade.CapacityReady, nil
	case c.TimeOut > 0 && waited >= c.TimeOut:
		return upgrade.CapacityTimedOut, nil
	}
	return upgrade.CapacityPending, nil
}

// Release ends the reservation at once and never returns an error.
func (c *Capacity) Release(context.Context, *upgradeconfig.UpgradeConfig) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Time{}
	return true, nil
}

// Reserved reports whether a reservation is held.
func (c *Capacity) Reserved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero()
}

// Maintenance is an [upgrade.Maintenance] that remembers which windows are open.
// The zero value is ready to use, and safe for concurrent use.
type Maintenance struct{ open sync.Map }

// Start opens the window of a plane and never returns an error.
func (m *Maintenance) Start(_ context.Context, _ *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	m.open.Store(p, true)
	return nil
}

// End closes the window of a plane and never returns an error.
func (m *Maintenance) End(_ context.Context, _ *upgradeconfig.UpgradeConfig, p upgrade.Plane) error {
	m.open.Delete(p)
	return nil
}

// Open reports whether a plane has a window.
func (m *Maintenance) Open(p upgrade.Plane) bool {
	_, open := m.open.Load(p)
	return open
}
