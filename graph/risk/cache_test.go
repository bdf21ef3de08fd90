package risk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// cacheAt returns a cache whose evaluations are recorded. The query F fails.
func cacheAt(now *testingclock.FakePassiveClock, asked *[]string) *risk.Cache {
	return &risk.Cache{Clock: now, Matcher: graph.RiskMatcherFunc(func(_ context.Context, rule configv1.ClusterCondition) (bool, error) {
		*asked = append(*asked, rule.PromQL.PromQL)
		if strings.HasPrefix(rule.PromQL.PromQL, "F") {
			return false, errors.New("failed")
		}
		return true, nil
	})}
}

// ask returns what the cache says: true, failed, or throttled.
func ask(c *risk.Cache, query string) string {
	matched, err := c.Match(context.Background(), graphtest.PromQL(query))
	var throttled *risk.ThrottledError
	switch {
	case errors.As(err, &throttled):
		return "throttled"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(matched)
}

func TestCacheRounds(t *testing.T) {
	var asked []string
	now := testingclock.NewFakePassiveClock(graphtest.Start)
	c := cacheAt(now, &asked)
	round := func() string { return ask(c, "A") + " " + ask(c, "B") + " " + ask(c, "C") }
	for i, want := range []string{"true throttled throttled", "true true throttled", "true true true", "true true true"} {
		checktest.Equal(t, want, round(), "round %d", i+1)
		now.SetTime(now.Now().Add(1001 * time.Millisecond))
	}
	checktest.FailIf(t, !slices.Equal(asked, []string{"A", "B", "C"}), "evaluated %v", asked)
	now.SetTime(graphtest.Start.Add(time.Hour + time.Minute))
	if got := round(); got != "true true true" || len(asked) != 4 {
		t.Errorf("after an hour: %s, evaluated %v", got, asked)
	}
}

func TestCacheTurns(t *testing.T) {
	var asked []string
	now := testingclock.NewFakePassiveClock(graphtest.Start)
	c := cacheAt(now, &asked)
	if got := ask(c, "A"); got != "true" {
		t.Fatal(got)
	}
	_, err := c.Match(context.Background(), graphtest.PromQL("B"))
	var throttled *risk.ThrottledError
	if !errors.Is(err, risk.ErrThrottled) || !errors.As(err, &throttled) || !throttled.Until.Equal(graphtest.Start.Add(time.Second)) ||
		err.Error() != "evaluation is throttled until 12:00:01Z" {
		t.Errorf("%v", err)
	}
	// B has been waiting, so that it takes the turn of a newcomer.
	now.SetTime(graphtest.Start.Add(2 * time.Second))
	if _, err := c.Match(context.Background(), graphtest.PromQL("C")); !errors.Is(err, risk.ErrThrottled) || err.Error() != "evaluation is throttled" || !slices.Equal(asked, []string{"A", "B"}) {
		t.Errorf("%v, evaluated %v", err, asked)
	}
	// After an hour the stalest comes first, and others keep their answers.
	now.SetTime(graphtest.Start.Add(2 * time.Hour))
	for _, q := range []string{"A", "B"} {
		checktest.Equal(t, "true", ask(c, q), "%v", q)
	}
	if !slices.Equal(asked, []string{"A", "B", "C"}) { // C was asked for and never evaluated
		t.Errorf("evaluated %v", asked)
	}
	// A day later nothing is left.
	now.SetTime(graphtest.Start.Add(48 * time.Hour))
	if ask(c, "B"); !slices.Equal(asked, []string{"A", "B", "C", "B"}) {
		t.Errorf("evaluated %v", asked)
	}
}

func TestCacheBackoff(t *testing.T) {
	var asked []string
	now := testingclock.NewFakePassiveClock(graphtest.Start)
	c := cacheAt(now, &asked)
	var at []string
	for s := 0; s <= 40*60; s += 10 {
		now.SetTime(graphtest.Start.Add(time.Duration(s) * time.Second))
		before := len(asked)
		if got := ask(c, "F"); got != "failed" {
			t.Fatal(got)
		}
		if len(asked) > before {
			at = append(at, fmt.Sprint(time.Duration(s)*time.Second))
		}
	}
	checktest.Same(t, []string{"0s", "30s", "1m30s", "3m30s", "7m30s", "15m30s", "25m30s", "35m30s"}, at)
}

// While one rule is evaluated, others wait and know until when.
func TestCacheBusy(t *testing.T) {
	now := testingclock.NewFakePassiveClock(graphtest.Start)
	started, finish := make(chan struct{}), make(chan struct{})
	c := &risk.Cache{Clock: now, Matcher: graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) {
		close(started)
		<-finish
		return true, nil
	})}
	done := make(chan string)
	go func() { done <- ask(c, "A") }()
	<-started
	var throttled *risk.ThrottledError
	if _, err := c.Match(context.Background(), graphtest.PromQL("B")); !errors.As(err, &throttled) || !throttled.Until.Equal(graphtest.Start.Add(time.Second)) {
		t.Error(err)
	}
	close(finish)
	checktest.Equal(t, "true", <-done, "value")
}

func TestCacheConcurrent(t *testing.T) {
	var mu sync.Mutex
	running := 0
	c := &risk.Cache{MinBetween: time.Nanosecond, Matcher: graph.RiskMatcherFunc(func(context.Context, configv1.ClusterCondition) (bool, error) {
		mu.Lock()
		running++
		if running > 1 {
			t.Error("two evaluations at once")
		}
		mu.Unlock()
		mu.Lock()
		running--
		mu.Unlock()
		return true, nil
	})}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() { ask(c, fmt.Sprint(i%5)) })
	}
	group.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gone := &risk.Cache{Matcher: graph.RiskMatcherFunc(func(ctx context.Context, _ configv1.ClusterCondition) (bool, error) { return false, ctx.Err() })}
	checktest.ErrorIs(t, context.Canceled, checktest.Err(gone.Match(ctx, graphtest.PromQL("A"))))
}

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
