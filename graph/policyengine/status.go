package policyengine

import (
	"bytes"
	"net/http"
	"strconv"
)

// Status returns a handler for those who run the service, to be served apart from
// the public one. It is safe for concurrent use. It answers
//
//	/livez, /liveness     200
//	/readyz, /readiness   200 while graphs are served, else 503
//	/metrics              the metrics of [Handler.Samples], as Prometheus reads them
//
// with empty bodies but for the last.
func (h *Handler) Status() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var serve func()
		switch r.URL.Path {
		case "/livez", "/liveness":
			serve = func() { empty(w, http.StatusOK) }
		case "/readyz", "/readiness":
			serve = func() {
				code := http.StatusOK
				if c, _ := h.fresh(); c == nil {
					code = http.StatusServiceUnavailable
				}
				empty(w, code)
			}
		case "/metrics":
			serve = func() {
				var text bytes.Buffer
				h.writeMetrics(&text)
				w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
				w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
				if r.Method != http.MethodHead {
					_, _ = w.Write(text.Bytes()) // the client has left
				}
			}
		default:
			empty(w, http.StatusNotFound)
			return
		}
		w.Header()["Cache-Control"] = noStore
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			empty(w, http.StatusMethodNotAllowed)
			return
		}
		serve()
	})
}
