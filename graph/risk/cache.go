package risk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/options"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/clock"
)

// ErrThrottled is what a [*ThrottledError] is, for errors.Is.
var ErrThrottled = errors.New("evaluation is throttled")

// ThrottledError reports that a query has to wait for its turn.
type ThrottledError struct {
	// Until is the end of the wait. A request at that very moment still waits.
	Until time.Time
	// taken reports that the turn went to another query.
	taken bool
}

// Error is the text of ErrThrottled, with the time to ask again if it is known.
func (e *ThrottledError) Error() string {
	if e.taken {
		return ErrThrottled.Error()
	}
	return fmt.Sprintf("%s until %s", ErrThrottled, e.Until.Format("15:04:05Z07"))
}

// Is finds ErrThrottled.
func (e *ThrottledError) Is(target error) bool { return target == ErrThrottled }

// How long a rule is remembered, and the first and the longest wait after a failure.
const (
	expiration   = 24 * time.Hour
	firstRetry   = 30 * time.Second
	longestRetry = 10 * time.Minute
)

// Cache is a [graph.RiskMatcher] that spares the one behind it: equal rules
// share an answer, which stays for an hour, and between two evaluations of any
// rules lies a second. A rule that has no answer yet fails with a
// [*ThrottledError] until its turn comes; the one that was asked for and is
// the longest without an evaluation comes first. A failure is an answer, too,
// and is tried again after 30 s, then after twice as long each time, up to 10
// minutes. A rule is forgotten 24 h after its last evaluation.
//
// Set its fields before the first use; after that it is safe for concurrent
// use. It must not be copied.
type Cache struct {
	// Matcher evaluates rules.
	Matcher graph.RiskMatcher
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock
	// MinBetween is the time between two evaluations; zero means 1 s.
	MinBetween time.Duration
	// MinFor is how long an answer stays; zero means 1 h.
	MinFor time.Duration
	// MaxRules is how many rules are remembered; zero means 2,000, which is half
	// of the seconds of an hour. MaxBytes is how many bytes of text they have
	// together; zero means 8 MiB. Past either, the rules that were asked for the
	// longest ago are forgotten.
	MaxRules, MaxBytes int

	mu      sync.Mutex
	entries []*cacheEntry // in the order of their first request
	byKey   map[string]*cacheEntry
	bytes   int       // of keys
	last    time.Time // end of the last evaluation of any
	busy    bool      // a rule is being evaluated
}

type cacheEntry struct {
	key      string
	rule     configv1.ClusterCondition
	when     time.Time // end of its last evaluation, zero for none
	access   time.Time // last request
	matched  bool
	err      error
	failures int // in a row
}

func (c *Cache) now() time.Time {
	if c.Clock == nil {
		return time.Now()
	}
	return c.Clock.Now()
}

// Match answers from the cache or evaluates the rule, or, in its place, one
// that has waited longer. Errors: those of the Matcher, which are remembered; a
// [*ThrottledError]; the context's; one that names a field below zero.
func (c *Cache) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	text, err := json.Marshal(rule)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		if err := options.NonNegative(c); err != nil {
			return false, err
		}
		c.byKey = map[string]*cacheEntry{}
	}
	now := c.now()
	c.expire(now)
	e := c.byKey[string(text)]
	if e == nil {
		// Without a request before, it takes no part in whose turn it is.
		e = &cacheEntry{key: string(text), rule: *rule.DeepCopy()}
		c.add(e)
	}
	// A request counts from its end: an evaluation in between answers it.
	defer func() { e.access = later(now, e.when) }()

	if !c.due(e, now) {
		return e.matched, e.err
	}
	between := cmp.Or(c.MinBetween, time.Second)
	if until := c.last.Add(between); c.busy || !c.last.IsZero() && !now.After(until) {
		if !e.when.IsZero() {
			return e.matched, e.err
		}
		if c.busy {
			until = now.Add(between)
		}
		return false, &ThrottledError{Until: until}
	}
	next := c.stalest(now)
	if next == nil {
		next = e
	}
	now = c.evaluate(ctx, next)
	if e.when.IsZero() {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return false, &ThrottledError{Until: c.last.Add(between), taken: true}
	}
	return e.matched, e.err
}

// expire forgets rules of long ago.
func (c *Cache) expire(now time.Time) {
	c.forget(func(e *cacheEntry) bool {
		since := e.when
		if since.IsZero() {
			since = e.access
		}
		return !since.IsZero() && now.Sub(since) > expiration
	})
}

// add remembers a rule, and forgets others if there are too many.
func (c *Cache) add(e *cacheEntry) {
	c.byKey[e.key] = e
	c.entries = append(c.entries, e)
	c.bytes += len(e.key)
	maxRules, maxBytes := cmp.Or(c.MaxRules, 2_000), cmp.Or(c.MaxBytes, 8<<20)
	for len(c.entries) > 1 && (len(c.entries) > maxRules || c.bytes > maxBytes) {
		oldest := slices.MinFunc(c.entries[:len(c.entries)-1], func(a, b *cacheEntry) int { return a.access.Compare(b.access) })
		c.forget(func(e *cacheEntry) bool { return e == oldest })
	}
}

// forget drops rules.
func (c *Cache) forget(old func(*cacheEntry) bool) {
	kept := c.entries[:0]
	for _, e := range c.entries {
		if old(e) {
			delete(c.byKey, e.key)
			c.bytes -= len(e.key)
		} else {
			kept = append(kept, e)
		}
	}
	clear(c.entries[len(kept):])
	c.entries = kept
}

// due reports whether an answer is missing or has served its time.
func (c *Cache) due(e *cacheEntry, now time.Time) bool {
	if e.when.IsZero() {
		return true
	}
	lasts := cmp.Or(c.MinFor, time.Hour)
	if e.failures > 0 {
		lasts = min(firstRetry<<min(e.failures-1, 5), longestRetry)
	}
	return now.Sub(e.when) >= lasts
}

// stalest finds the rule that was asked for since its evaluation and whose
// evaluation is the longest ago.
func (c *Cache) stalest(now time.Time) *cacheEntry {
	var stalest *cacheEntry
	for _, e := range c.entries {
		if !e.access.After(e.when) || !c.due(e, now) {
			continue
		}
		if stalest == nil || e.when.Before(stalest.when) || e.when.Equal(stalest.when) && e.access.Before(stalest.access) {
			stalest = e
		}
	}
	return stalest
}

// evaluate asks the matcher, with the lock released, and returns the time.
func (c *Cache) evaluate(ctx context.Context, e *cacheEntry) time.Time {
	c.busy = true
	c.mu.Unlock()
	matched, err := false, errors.New("the matcher panicked")
	defer func() {
		c.mu.Lock()
		c.busy = false
		end := c.now()
		c.last = end
		if err != nil && ctx.Err() != nil {
			return // the caller gave up: that says nothing about the rule
		}
		e.when, e.matched, e.err = end, matched, err
		e.failures++
		if err == nil {
			e.failures = 0
		}
	}()
	matched, err = c.Matcher.Match(ctx, e.rule)
	return c.now()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
