package upgradeconfig_test

import (
	"math"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func TestBackoff(t *testing.T) {
	const m = time.Minute
	for _, tt := range []struct {
		name string
		b    upgradeconfig.Backoff
		want []time.Duration // from attempt 0
	}{
		{"default", upgradeconfig.Backoff{}, []time.Duration{m, m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 60 * m, 60 * m}},
		{"own", upgradeconfig.Backoff{Initial: 2 * time.Second, Factor: 3, Max: 50 * time.Second}, []time.Duration{2 * time.Second, 2 * time.Second, 6 * time.Second, 18 * time.Second, 50 * time.Second, 50 * time.Second}},
		{"factor 1.5", upgradeconfig.Backoff{Factor: 1.5}, []time.Duration{m, m, 90 * time.Second, 135 * time.Second}},
		{"constant", upgradeconfig.Backoff{Factor: 1}, []time.Duration{m, m, m, m}},
		{"never shorter", upgradeconfig.Backoff{Factor: -3}, []time.Duration{m, m, m}},
		{"no number", upgradeconfig.Backoff{Factor: math.NaN()}, []time.Duration{m, m, 2 * m}},
		{"initial above max", upgradeconfig.Backoff{Initial: time.Hour, Max: m}, []time.Duration{m, m, m}},
	} {
		for attempt, want := range tt.want {
			checktest.Equal(t, want, tt.b.Next(attempt), "%s: attempt %d", tt.name, attempt)
		}
	}
	for _, attempt := range []int{1000, math.MaxInt} {
		checktest.Equal(t, time.Hour, (upgradeconfig.Backoff{}).Next(attempt), "attempt %d", attempt)
	}
	checktest.Equal(t, m, (upgradeconfig.Backoff{}).Next(math.MinInt), "attempt of the least integer")
}
