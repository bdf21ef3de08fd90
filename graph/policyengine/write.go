package policyengine

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// write answers with a body of which v is known, or reports that the client's own
// is the same. Only if it is not is load asked for the body.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, v *validators, contentType, vary []string, load func(zip bool) ([]byte, []string, *failure)) (int, string) {
	zip := v.compressible && acceptsGzip(r.Header["Accept-Encoding"])
	etag := v.etag
	if zip {
		etag = v.etagGzip
	}
	var text []byte
	var length []string
	same := notModified(r, etag[0], v.modified)
	if !same {
		var failed *failure
		text, length, failed = load(zip)
		if failed != nil {
			failed.write(w, r)
			return failed.code, failed.kind
		}
	}
	header := w.Header()
	header["Etag"] = etag
	if !h.sent(v.modified).IsZero() {
		header["Last-Modified"] = v.lastModified
	}
	header["Cache-Control"] = h.maxAge
	header["Vary"] = vary
	if same {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified, ""
	}
	header["Content-Type"] = contentType
	header["Content-Length"] = length
	if zip {
		header["Content-Encoding"] = gzipped
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text) // the client has left
	}
	return http.StatusOK, ""
}

// sent returns the time of a change as clients may see it: zero, which leaves it out,
// while it lies ahead of the clock. See RFC 9110, section 8.8.2.1.
func (h *Handler) sent(changed time.Time) time.Time {
	if changed.After(h.o.Clock.Now()) {
		return time.Time{}
	}
	return changed
}

// notModified evaluates If-None-Match or, if there is none, If-Modified-Since. See
// RFC 9110, section 13.2.2.
func notModified(r *http.Request, etag string, modified time.Time) bool {
	if list := r.Header["If-None-Match"]; len(list) > 0 {
		return slices.ContainsFunc(list, func(tags string) bool { return matches(tags, etag) })
	}
	if since := r.Header["If-Modified-Since"]; len(since) > 0 {
		t, err := http.ParseTime(since[0])
		return err == nil && !modified.After(t)
	}
	return false
}

// matches reports whether a list of entity tags has one, weakly compared. Anything
// after an element that is not a tag does not count.
func matches(list, etag string) bool {
	for list != "" {
		list = strings.TrimLeft(list, " \t,")
		if strings.HasPrefix(list, "*") {
			return strings.Trim(list[1:], " \t") == ""
		}
		list = strings.TrimPrefix(list, "W/")
		if !strings.HasPrefix(list, `"`) {
			return false
		}
		end := strings.IndexByte(list[1:], '"')
		if end < 0 {
			return false
		}
		if list[:end+2] == etag {
			return true
		}
		list = list[end+2:]
	}
	return false
}
