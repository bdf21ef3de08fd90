package policyengine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// Handler serves update graphs. It is an [http.Handler], safe for concurrent use.
// Make one with [New].
type Handler struct {
	o       Options
	routes  map[string]route
	signed  string // what the paths of signatures start with; empty if absent
	counts  *counts
	maxAge  []string
	current atomic.Pointer[current]

	mu    sync.Mutex
	since time.Time // of the latest content
	seen  map[pair]seen
}

// current is what is served, and since when it is known to be right.
type current struct {
	content *content
	at      time.Time
}

// route serves one path and returns the status, and the kind of an error.
type route func(w http.ResponseWriter, r *http.Request) (code int, kind string)

// New returns a handler without a graph, which [Handler.Set] gives it. The error
// reports what is wrong with the options: a number below zero, or an invalid prefix
// or architecture.
func New(o Options) (*Handler, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{o: o, seen: map[pair]seen{}, maxAge: []string{fmt.Sprintf("public, max-age=%d", int64(o.MaxAge/time.Second))}}
	openapi := h.openAPI()
	h.routes = map[string]route{
		o.Prefix + "/graph": h.graph, o.Prefix + "/v1/graph": h.graph,
		o.Prefix + "/openapi": openapi, o.Prefix + "/v1/openapi": openapi,
	}
	if o.GraphData != nil {
		h.routes[o.Prefix+"/graph-data"] = h.graphData
	}
	if o.Signatures != nil {
		h.signed = o.Prefix + "/signatures"
	}
	h.counts = newCounts([]string{o.Prefix + "/graph", o.Prefix + "/v1/graph"}, h.signed)
	return h, nil
}

// Set makes g what is served from now on, at once for all requests that come after
// it. Content that equals what was served keeps its answers, and is known to be
// right as of now. nil, also a nil Snapshot: nothing is served.
func (h *Handler) Set(g Grapher) {
	if s, ok := g.(*graphdata.Snapshot); g == nil || ok && s == nil {
		h.current.Store(nil)
		return
	}
	revision, nodes := describe(g)
	h.mu.Lock()
	now := h.o.Clock.Now()
	c, changed := h.current.Load(), false
	if c != nil && c.content.revision == revision {
		c = &current{content: c.content, at: now}
	} else {
		c, changed = &current{content: h.newContent(g, revision, nodes, now), at: now}, true
	}
	h.current.Store(c)
	h.mu.Unlock()
	if changed {
		h.log(slog.LevelInfo, "The graph has changed", "revision", revision, "nodes", nodes)
	}
	if h.o.Metrics != nil {
		_ = panics.Catch(func() error { h.o.Metrics.Snapshot(revision, nodes, now); return nil })
	}
}

// newContent makes room for the answers of g. h.mu is held.
func (h *Handler) newContent(g Grapher, revision string, nodes int, now time.Time) *content {
	now = now.Truncate(time.Second)
	if !now.After(h.since) {
		now = h.since.Add(time.Second) // two within a second: their times must differ
	}
	h.since = now
	c := &content{graphs: g, revision: revision, nodes: nodes, since: now,
		entries: map[pair]*entry{}, bodies: map[*entry]int64{}, nothing: &entry{}}
	for _, arch := range g.Arches() {
		for _, channel := range g.Channels(arch) {
			c.entries[pair{channel, arch}] = &entry{}
		}
	}
	for p := range h.seen {
		if c.entries[p] == nil {
			delete(h.seen, p)
		}
	}
	none := newBody(appendGraph(nil), c.since)
	c.nothing.known.Store(none.known)
	c.nothing.body.Store(none)
	return c
}

// Revision names the content that is served; empty if absent.
func (h *Handler) Revision() string {
	if c := h.current.Load(); c != nil {
		return c.content.revision
	}
	return ""
}

// describe returns the revision of a Grapher and how many releases it has.
func describe(g Grapher) (string, int) {
	if s, ok := g.(interface {
		Revision() string
		Nodes() int
	}); ok {
		return s.Revision(), s.Nodes()
	}
	sum, nodes := sha256.New(), map[pair]bool{}
	for _, arch := range g.Arches() {
		for _, channel := range g.Channels(arch) {
			served := g.Graph(channel, arch)
			_, _ = fmt.Fprintf(sum, "%q %q %s\n", arch, channel, appendGraph(served))
			if served == nil {
				continue
			}
			for _, n := range served.Nodes() {
				nodes[pair{n.Version.Original(), arch}] = true
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), len(nodes)
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := h.o.Clock.Now()
	path, serve := h.route(r.URL.Path)
	code, kind := h.answer(w, r, serve)
	took := h.o.Clock.Since(start)
	h.counts.request(path, code, kind, took)
	if h.o.Metrics != nil {
		_ = panics.Catch(func() error { h.o.Metrics.Request(path, code, kind, took); return nil })
	}
}

// route returns the name and the function of a path; nil if absent.
func (h *Handler) route(path string) (string, route) {
	if serve, ok := h.routes[path]; ok {
		return path, serve
	}
	if rest, ok := strings.CutPrefix(path, h.signed+"/"); ok && h.signed != "" && strings.Count(rest, "/") == 1 {
		return h.signed, h.signature
	}
	return "", nil
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, serve route) (code int, kind string) {
	h.allowOrigin(w, r)
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		return h.preflight(w, r), ""
	}
	if serve == nil {
		empty(w, http.StatusNotFound)
		return http.StatusNotFound, ""
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		empty(w, http.StatusMethodNotAllowed)
		return http.StatusMethodNotAllowed, ""
	}
	if failed := tooLong(r); failed != nil {
		failed.write(w, r)
		return failed.code, failed.kind
	}
	return serve(w, r)
}

// tooLong refuses requests past the limits, whatever the server lets through.
func tooLong(r *http.Request) *failure {
	if len(r.URL.RawQuery) > maxQuery {
		return &failure{http.StatusRequestURITooLong, kindInvalidParams, "invalid client parameters: the query is longer than 4096 bytes"}
	}
	size := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if size > maxHead {
		return &failure{http.StatusRequestURITooLong, kindInvalidParams, "invalid client parameters: the head is longer than 16384 bytes"}
	}
	return nil
}

// log writes to the logger, which must not end a request.
func (h *Handler) log(level slog.Level, text string, args ...any) {
	if h.o.Logger != nil {
		_ = panics.Catch(func() error { h.o.Logger.Log(context.Background(), level, text, args...); return nil })
	}
}
