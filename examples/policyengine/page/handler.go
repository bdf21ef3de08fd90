package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/text"
)

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed page.css page.js icon.svg
var assets embed.FS

//go:embed page.html
var html string

var templates = template.Must(template.New("page").Funcs(template.FuncMap{"counted": text.Plural}).Parse(html))

// Options configure a [Handler]. State is required.
type Options struct {
	// State returns what is to be shown now. It is called for each request, by
	// several goroutines at a time.
	State func() source.Last
	// Graph is the path of the graph that clusters ask for, for the links to it;
	// empty: there are no links.
	Graph string
	// Now is the clock for the age of the snapshot; nil means the real time.
	Now func() time.Time
}

// Handler serves the page at /, all updates of a channel as a table at /updates, and
// the files of the page under /page/.
type Handler struct {
	o   Options
	mux *http.ServeMux

	mu       sync.Mutex
	of       *graphdata.Snapshot
	channels map[string][]channel // of that snapshot, by architecture
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &Handler{o: o, mux: http.NewServeMux()}
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { h.show(w, r, "page") })
	h.mux.HandleFunc("GET /updates", func(w http.ResponseWriter, r *http.Request) { h.show(w, r, "all") })
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		content, err := assets.ReadFile(name)
		if err != nil {
			panic(err) // embedded: cannot be absent
		}
		h.mux.HandleFunc("GET /page/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
		})
	}
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

// show answers with a template. What was asked for and does not exist is said on the
// page, with status 404.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, name string) {
	q := r.URL.Query()
	v := h.view(h.o.State(), query{channel: q.Get("channel"), arch: q.Get("arch"), version: q.Get("version"), to: q.Get("to")}, name == "all")
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, v); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch {
	case !v.Ready:
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusServiceUnavailable)
	case len(v.Missing) > 0:
		w.WriteHeader(http.StatusNotFound)
	}
	b.WriteTo(w)
}

// isWeb reports whether an address can be linked to.
func isWeb(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}
