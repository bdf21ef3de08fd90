package upgradetest_test

import (
	"context"
	"fmt"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

// Extra nodes take ten minutes to become ready, by a clock that a test moves.
func ExampleCapacity() {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	capacity := &upgradetest.Capacity{Clock: clock, Ready: 10 * time.Minute}
	for range 2 {
		state, err := capacity.Reserve(context.Background(), nil)
		fmt.Println(state, err)
		clock.SetTime(clock.Now().Add(10 * time.Minute))
	}
	// Output:
	// Pending <nil>
	// Ready <nil>
}
