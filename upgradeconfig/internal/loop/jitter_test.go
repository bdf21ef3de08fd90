package loop_test

import (
	"math"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
	"pgregory.net/rapid"
)

func TestJitter(t *testing.T) {
	var asked int64
	lowest := func(n int64) int64 { asked = n; return 0 }
	for _, tt := range []struct {
		d         time.Duration
		factor    float64
		low, high time.Duration // high is exclusive
	}{
		{time.Minute, 0.1, 54 * time.Second, 66 * time.Second},
		{time.Hour, 0.1, 54 * time.Minute, 66 * time.Minute},
		{10, 0.1, 9, 11},
		{11, 0.1, 9, 13}, // 9.9 and 12.1
		{1, 0.1, 0, 2},
		{3, 0.5, 1, 5},
		{time.Hour, 1, 0, 2 * time.Hour},
		{time.Hour, 7, 0, 2 * time.Hour},
		{time.Hour, math.Inf(1), 0, 2 * time.Hour},
		{math.MaxInt64, 0.1, 8301034833169298226, math.MaxInt64},
	} {
		low := loop.Jitter(tt.d, tt.factor, lowest)
		if low != tt.low || low+time.Duration(asked) != tt.high {
			t.Errorf("%v ± %v: [%v, %v), want [%v, %v)", tt.d, tt.factor, low, low+time.Duration(asked), tt.low, tt.high)
		}
	}
	never := func(int64) int64 { t.Error("asked for a random number"); return 0 }
	for _, factor := range []float64{0, -0.1, math.NaN(), math.Inf(-1)} {
		checktest.Equal(t, time.Hour, loop.Jitter(time.Hour, factor, never), "factor %v", factor)
	}
	checktest.Equal(t, 0, loop.Jitter(0, 0.1, never), "of nothing")
}

func TestJitterStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "d"))
		factor := rapid.Float64Range(0, 2).Draw(t, "factor")
		got := loop.Jitter(d, factor, func(n int64) int64 {
			if n <= 0 {
				t.Fatalf("asked for a number below %d", n)
			}
			return rapid.Int64Range(0, n-1).Draw(t, "random")
		})
		if got < 0 || float64(got) < (1-factor)*float64(d)*(1-1e-9)-1 || float64(got) > (1+factor)*float64(d)*(1+1e-9)+1 {
			t.Fatalf("%v ± %v: %v", d, factor, got)
		}
	})
}
