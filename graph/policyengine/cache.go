package policyengine

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// content is a graph as it was set, with the answers that were made of it.
type content struct {
	graphs   Grapher
	revision string
	nodes    int
	since    time.Time // when it was first set
	entries  map[pair]*entry
	nothing  *entry // what all unknown pairs share

	uses   atomic.Uint64
	mu     sync.Mutex
	size   int64 // of all bodies
	bodies map[*entry]int64
}

// pair names a graph. Only those that a Grapher lists have an entry, so that no
// client can add one.
type pair struct{ channel, arch string }

// entry is the answer for a pair. The body may go; what it is known by stays.
type entry struct {
	mu     sync.Mutex
	flight *flight // under way; nil: none

	known atomic.Pointer[validators]
	body  atomic.Pointer[body]
	used  atomic.Uint64 // when it was last asked for, by content.uses
}

// flight is an answer that one request makes and more wait for. They get it even
// if it does not fit into the cache.
type flight struct {
	done chan struct{} // closed when body or err is there
	body *body
	err  error
}

// validators are what a body is known by, as values of headers.
type validators struct {
	etag, etagGzip []string
	modified       time.Time
	lastModified   []string
	compressible   bool
}

// body is an encoded answer.
type body struct {
	known       *validators
	plain       []byte
	plainLength []string

	once     sync.Once
	gzip     []byte
	gzLength []string
}

func newBody(text []byte, modified time.Time) *body {
	sum := sha256.Sum256(text)
	tag := hex.EncodeToString(sum[:16])
	return &body{plain: text, plainLength: []string{strconv.Itoa(len(text))}, known: &validators{
		etag: []string{`"` + tag + `"`}, etagGzip: []string{`"` + tag + `-gzip"`}, compressible: len(text) >= minGzip,
		modified: modified, lastModified: []string{modified.UTC().Format(http.TimeFormat)},
	}}
}

// compressed returns the body in gzip, made by the first who asks.
func (b *body) compressed() (text []byte, length []string, made bool) {
	b.once.Do(func() {
		var out bytes.Buffer
		out.Grow(len(b.plain) / 8)
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b.plain) // into memory
		_ = w.Close()
		b.gzip, b.gzLength, made = bytes.Clone(out.Bytes()), []string{strconv.Itoa(out.Len())}, true
	})
	return b.gzip, b.gzLength, made
}

// entry returns the entry of a pair.
func (c *content) entry(p pair) *entry {
	if e := c.entries[p]; e != nil {
		return e
	}
	return c.nothing
}

// lookup returns the body of an entry if it is there.
func (c *content) lookup(e *entry) *body {
	b := e.body.Load()
	if b != nil {
		e.used.Store(c.uses.Add(1))
	}
	return b
}

// encode returns the body of an entry, and makes it unless another request does or
// has. An error is a panic in the Grapher.
func (h *Handler) encode(c *content, e *entry, p pair) (*body, error) {
	e.mu.Lock()
	if b := c.lookup(e); b != nil {
		e.mu.Unlock()
		return b, nil
	}
	f := e.flight
	if f != nil {
		e.mu.Unlock()
		<-f.done
		return f.body, f.err
	}
	f = &flight{done: make(chan struct{})}
	e.flight = f
	e.mu.Unlock()
	f.body, f.err = h.newEntryBody(c, e, p)
	e.mu.Lock()
	e.flight = nil
	e.mu.Unlock()
	close(f.done)
	return f.body, f.err
}

// newEntryBody makes the body of an entry, and keeps it while there is room.
func (h *Handler) newEntryBody(c *content, e *entry, p pair) (*body, error) {
	var text []byte
	if err := panics.Catch(func() error { text = appendGraph(c.graphs.Graph(p.channel, p.arch)); return nil }); err != nil {
		return nil, fmt.Errorf("graph of %s for %s: %w", p.channel, p.arch, err)
	}
	b := newBody(text, c.since)
	if known := e.known.Load(); known != nil {
		b.known = known
	} else {
		if at := h.modified(c, p, b.known.etag[0]); !at.Equal(c.since) {
			b = newBody(text, at)
		}
		e.known.Store(b.known)
	}
	e.used.Store(c.uses.Add(1))
	e.body.Store(b)
	c.keep(e, b, int64(len(text)), h.o.MaxCached)
	return b, nil
}

func appendGraph(g *graph.Graph) []byte {
	if g == nil {
		g = &graph.Graph{}
	}
	text, _ := g.MarshalJSON() // has no error
	return text
}

// keep counts a body that is in its entry, or its compressed form, and lets those
// go that were not asked for longest while all are too large.
func (c *content) keep(e *entry, b *body, size, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.body.Load() != b {
		return // another call removed it
	}
	c.bodies[e] += size
	c.size += size
	for c.size > most {
		var oldest *entry
		for other := range c.bodies {
			if oldest == nil || other.used.Load() < oldest.used.Load() {
				oldest = other
			}
		}
		oldest.body.Store(nil)
		c.size -= c.bodies[oldest]
		delete(c.bodies, oldest)
	}
}

// seen is the content that a pair was last known to have.
type seen struct {
	etag     string
	modified time.Time
}

// modified returns when the content of a pair first appeared, in whole seconds.
func (h *Handler) modified(c *content, p pair, etag string) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.seen[p]; before.etag == etag {
		return before.modified
	}
	if now := h.current.Load(); now != nil && now.content == c { // else the request was late, its answer is an old one
		h.seen[p] = seen{etag, c.since}
	}
	return c.since
}
