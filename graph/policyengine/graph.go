package policyengine

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ageHeader is how old the graph is, in seconds. Age would tell caches that the answer
// is that old already, beyond its max-age.
const ageHeader = "X-Graph-Age"

// graph serves /graph.
func (h *Handler) graph(w http.ResponseWriter, r *http.Request) (code int, kind string) {
	c, p, contentType, failed := h.evaluate(r)
	if failed != nil {
		failed.write(w, r)
		return failed.code, failed.kind
	}
	e := c.content.entry(p)
	encode := func() (*body, *failure) {
		if b := c.content.lookup(e); b != nil {
			return b, nil
		}
		b, err := h.encode(c.content, e, p)
		if err != nil {
			h.log(slog.LevelError, "A graph cannot be served", "channel", p.channel, "arch", p.arch, "error", err)
			return nil, &failure{http.StatusInternalServerError, kindFailedExecution, "failed to execute plugins: the graph cannot be made"}
		}
		return b, nil
	}
	if e.known.Load() == nil {
		_, failed = encode()
		if failed != nil {
			failed.write(w, r)
			return failed.code, failed.kind
		}
	}
	header := w.Header()
	header[ageHeader] = []string{strconv.FormatInt(int64(max(h.o.Clock.Since(c.at), 0)/time.Second), 10)}
	return h.write(w, r, e.known.Load(), contentType, varyGraph, func(zip bool) (text []byte, length []string, failed *failure) {
		b, failed := encode()
		if failed != nil {
			return nil, nil, failed
		}
		if !zip {
			return b.plain, b.plainLength, nil
		}
		text, length, made := b.compressed()
		if made {
			c.content.keep(e, b, int64(len(text)), h.o.MaxCached)
		}
		return text, length, nil
	})
}

// evaluate makes the checks of a request for a graph, in their order.
func (h *Handler) evaluate(r *http.Request) (*current, pair, []string, *failure) {
	contentType, ok := negotiate(r.Header["Accept"], h.o.Compat)
	if !ok {
		return nil, pair{}, nil, &failure{http.StatusNotAcceptable, kindInvalidContentType, "invalid Content-Type requested"}
	}
	p := parse(r.URL.RawQuery, h.o.Mandatory)
	if len(p.missing) > 0 {
		return nil, pair{}, nil, missingParams(strings.Join(p.missing, ", "))
	}
	if !p.hasArch {
		p.arch = h.o.DefaultArch
	}
	invalid := p.check()
	if invalid != nil && !h.o.Compat {
		return nil, pair{}, nil, invalid
	}
	c, why := h.fresh()
	if c == nil {
		code := http.StatusServiceUnavailable
		if h.o.Compat {
			code = http.StatusInternalServerError
		}
		return nil, pair{}, nil, &failure{code, kindFailedUpstreamFetch, "failed to fetch upstream graph: " + why}
	}
	return c, pair{p.channel, p.arch}, contentType, invalid
}

// fresh returns what is served, or why nothing is.
func (h *Handler) fresh() (*current, string) {
	c := h.current.Load()
	switch {
	case c == nil:
		return nil, "there is no graph yet"
	case h.o.Clock.Since(c.at) > h.o.MaxStale:
		return nil, fmt.Sprintf("the graph is older than %s", h.o.MaxStale)
	}
	return c, ""
}
