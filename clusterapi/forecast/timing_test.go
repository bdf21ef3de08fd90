package forecast_test

import (
	"context"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// A cluster that has been updated shows how long its operators and reboots take, one
// that was only installed nothing.
func TestObservedTiming(t *testing.T) {
	o := newOriginal(t, nil)
	defer o.driver.Close()
	checktest.Same(
		t, forecast.DefaultTiming(), checktest.Get(forecast.ObservedTiming(context.Background(), o.Cluster))(t),
	)
	o.pass(t, 3*time.Hour)
	timing := checktest.Get(forecast.ObservedTiming(context.Background(), o.Cluster))(t)
	checktest.Has(t, timing.Operator.Source, "observed: 1 updates of this cluster, in which all operators took 24m0s")
	checktest.Equal(t, 6*time.Minute*24/60, timing.Operator.Median, "an operator's work")
	checktest.Has(t, timing.Reboots["worker"].Source, "observed: 3 nodes that returned in the update to 4.21.1")
	if timing.Drain != forecast.DefaultTiming().Drain {
		t.Errorf("nothing shows how long drains take: %+v", timing.Drain)
	}
	for name, d := range timing.Reboots {
		if d.Median < 3*time.Minute || d.Median > 4*time.Minute {
			t.Errorf("pool %s reboots in %s, and took 3m", name, d.Median)
		}
	}
}
