package risk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// Whatever is asked when: evaluations keep their distance, a good answer is not
// evaluated again within the hour, a failure not within half a minute, an
// answer is the last evaluation's, and a rule that is asked for again and again
// gets its turn.
func TestCacheProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := testingclock.NewFakePassiveClock(graphtest.Start)
		last := time.Time{}
		type evaluation struct {
			at     time.Time
			failed bool
		}
		done := map[string]evaluation{}
		fails := false
		c := &risk.Cache{Clock: now, Matcher: graph.RiskMatcherFunc(func(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
			at, query := now.Now(), rule.PromQL.PromQL
			if !last.IsZero() && at.Sub(last) <= time.Second {
				t.Fatalf("%s evaluated %s after another", query, at.Sub(last))
			}
			if before, ok := done[query]; ok {
				least := time.Hour
				if before.failed {
					least = 30 * time.Second
				}
				if at.Sub(before.at) < least {
					t.Fatalf("%s evaluated again after %s", query, at.Sub(before.at))
				}
			}
			last = at
			done[query] = evaluation{at, fails}
			if fails {
				return false, errors.New("failed")
			}
			return true, nil
		})}
		ask := func(query string) {
			matched, err := c.Match(context.Background(), graphtest.PromQL(query))
			e, known := done[query]
			switch {
			case errors.Is(err, risk.ErrThrottled):
				if known && now.Now().Sub(e.at) < 24*time.Hour {
					t.Fatalf("%s is throttled and has an answer", query)
				}
			case !known || matched == e.failed || (err != nil) != e.failed:
				t.Fatalf("%s: %v, %v, want that of %+v", query, matched, err, e)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now.SetTime(now.Now().Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 2 * time.Second, time.Minute, time.Hour, 25 * time.Hour}).Draw(t, "pause")))
			fails = rapid.Bool().Draw(t, "fails")
			ask(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "query")))
		}
		fails = false
		now.SetTime(now.Now().Add(time.Hour))
		start := now.Now()
		for range 4 {
			now.SetTime(now.Now().Add(2 * time.Second))
			for query := range 4 {
				ask(fmt.Sprint(query))
			}
		}
		for query := range 4 {
			if e := done[fmt.Sprint(query)]; e.at.Before(start.Add(-time.Hour)) {
				t.Fatalf("%d waits in vain", query)
			}
		}
	})
}
