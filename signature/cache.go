package signature

import (
	"slices"
	"sync"
	"time"
)

// cacheSize is how many digests the cluster-version operator remembers.
const cacheSize = 64

// cache remembers verified digests, the most recently used last. Failures are
// never in it. It is safe for concurrent use.
type cache struct {
	size   int
	maxAge time.Duration

	mu      sync.Mutex
	entries []*cached
}

type cached struct {
	result     *Verification
	signatures [][]byte
	added      time.Time
	until      time.Time // zero: without end
}

func newCache(o Options) *cache {
	if o.NoCache {
		return &cache{}
	}
	return &cache{size: cacheSize, maxAge: o.CacheMaxAge}
}

// get returns a copy of the verdict on digest, or nil. An entry that was made later
// than now does not count: the clock was set back, and what depends on it may have
// been otherwise then.
func (c *cache) get(digest string, now time.Time) *Verification {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	i := c.index(digest)
	if i < 0 || now.Before(c.entries[i].added) {
		return nil
	}
	e := c.entries[i]
	c.entries = append(slices.Delete(c.entries, i, i+1), e)
	return &Verification{Digest: digest, Signers: slices.Clone(e.result.Signers), Cached: true}
}

// put remembers v until then; zero is without end.
func (c *cache) put(v *Verification, signatures [][]byte, now, until time.Time) {
	if c.size == 0 {
		return
	}
	e := &cached{
		result:     &Verification{Digest: v.Digest, Signers: slices.Clone(v.Signers)},
		signatures: cloneAll(signatures),
		added:      now,
		until:      until,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.index(v.Digest); i >= 0 {
		c.entries = slices.Delete(c.entries, i, i+1)
	}
	if over := len(c.entries) - c.size + 1; over > 0 {
		c.entries = slices.Delete(c.entries, 0, over)
	}
	c.entries = append(c.entries, e)
}

func (c *cache) signatures(now time.Time) map[string][][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	out := make(map[string][][]byte, len(c.entries))
	for _, e := range c.entries {
		out[e.result.Digest] = cloneAll(e.signatures)
	}
	return out
}

// recent returns the digests, the last used first.
func (c *cache) recent(now time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	out := make([]string, 0, len(c.entries))
	for _, e := range slices.Backward(c.entries) {
		out = append(out, e.result.Digest)
	}
	return out
}

// expire forgets what is too old, or no longer true.
func (c *cache) expire(now time.Time) {
	c.entries = slices.DeleteFunc(c.entries, func(e *cached) bool {
		return !e.until.IsZero() && !now.Before(e.until) || c.maxAge > 0 && now.Sub(e.added) >= c.maxAge
	})
}

func (c *cache) index(digest string) int {
	return slices.IndexFunc(c.entries, func(e *cached) bool { return e.result.Digest == digest })
}

func cloneAll(in [][]byte) [][]byte {
	out := make([][]byte, len(in))
	for i, b := range in {
		out[i] = slices.Clone(b)
	}
	return out
}
