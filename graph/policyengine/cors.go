package policyengine

import (
	"net/http"
	"strconv"
)

// allowOrigin lets scripts of the request's origin read the answer.
func (h *Handler) allowOrigin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header["Origin"]
	if len(origin) == 0 || !h.allows(origin[0]) {
		return
	}
	w.Header()["Access-Control-Allow-Origin"] = origin[:1:1]
}

func (h *Handler) allows(origin string) bool {
	return h.o.AllowOrigin == "" || h.o.AllowOrigin == origin
}

// preflight answers what a browser asks before a script's request.
func (h *Handler) preflight(w http.ResponseWriter, r *http.Request) int {
	refused := ""
	switch method := r.Header.Get("Access-Control-Request-Method"); {
	case !h.allows(r.Header.Get("Origin")) && r.Header.Get("Origin") != "":
		refused = "Origin is not allowed to make this request"
	case method != http.MethodGet && method != http.MethodHead:
		refused = "Requested method is not allowed"
	case len(r.Header["Access-Control-Request-Headers"]) > 0:
		refused = "One or more request headers are not allowed"
	default:
		w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
		empty(w, http.StatusOK)
		return http.StatusOK
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header()["Cache-Control"] = noStore
	w.Header()["Vary"] = varyOrigin
	w.Header().Set("Content-Length", strconv.Itoa(len(refused)))
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(refused)) // the client has left
	return http.StatusBadRequest
}
