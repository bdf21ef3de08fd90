package policyengine

import (
	"net/http"
	"strconv"

	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
)

// The kinds of errors. Those of the existing service that cannot occur here are
// left out.
const (
	kindInvalidContentType  = "invalid_content_type"    // 406
	kindMissingParams       = "missing_params"          // 400
	kindInvalidParams       = "invalid_params"          // 400, and 414 past a limit
	kindFailedUpstreamFetch = "failed_upstream_fetch"   // 503: no graph, or one that is too old
	kindFailedExecution     = "failed_plugin_execution" // 500
	kindFileOpen            = "file_open_err"           // 500
	kindDoesNotExist        = "does_not_exist"          // 404
)

// failure is an answer that is an error; its text is the body's value.
type failure struct {
	code  int
	kind  string
	value string
}

func invalidParams(text string) *failure {
	return &failure{http.StatusBadRequest, kindInvalidParams, "invalid client parameters: " + text}
}

func missingParams(names string) *failure {
	return &failure{http.StatusBadRequest, kindMissingParams, "mandatory client parameters missing: " + names}
}

// body is the error as JSON, with its texts as they are.
func (f *failure) body() []byte {
	text, _ := schema.JSON(struct { // texts alone
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}{f.kind, f.value})
	return text
}

// write answers with the error.
func (f *failure) write(w http.ResponseWriter, r *http.Request) {
	b := f.body()
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	h["Vary"] = varyOrigin
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	if f.kind == kindFailedUpstreamFetch {
		h["Retry-After"] = retryAfter
	}
	w.WriteHeader(f.code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b) // the client has left
	}
}

// Values of headers, shared by all answers. Nobody changes them.
var (
	jsonType   = []string{"application/json"}
	vendorType = []string{"application/vnd.redhat.cincinnati.v1+json"}
	gzipped    = []string{"gzip"}
	noStore    = []string{"no-store"}
	retryAfter = []string{"10"}
	varyGraph  = []string{"Accept, Accept-Encoding, Origin"}
	varyOrigin = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	noBytes    = []string{"0"}
)

// empty answers with a status and nothing else. Caches may keep a 404 or 405 unless
// a header forbids it.
func empty(w http.ResponseWriter, code int) {
	if code >= http.StatusBadRequest {
		w.Header()["Cache-Control"] = noStore
	}
	w.Header()["Content-Length"] = noBytes
	w.Header()["Vary"] = varyOrigin
	w.WriteHeader(code)
}
