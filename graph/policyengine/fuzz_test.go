package policyengine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"testing/fstest"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// FuzzRequest: whatever is asked, the answer is a graph, an error of a known kind,
// or nothing, and says so; and what the existing service answers stays an answer.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, query, accept, encoding, match, since string }{
		{"GET", "/api/graph", "channel=candidate-1.1", "application/json", "gzip", `"x", *`, "Tue, 04 Feb 2031 08:30:00 GMT"},
		{"HEAD", "/api/v1/graph", "channel=%66ast-1.1&arch=s390x&&=%&a+b", "*/*;q=0.5, application/vnd.redhat.cincinnati.v1+json;q=1.000", "br, *;q=0", `W/"a`, "x"},
		{"GET", "/api/graph", "channel=%ff%zz&channel=", `application/json;a="\"";q=0`, "", "", ""},
		{"POST", "/api/signatures/sha256=../signature-1", "", "", "", "", ""},
		{"OPTIONS", "/api/openapi", "", "*", "identity", "*", ""},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.accept, seed.encoding, seed.match, seed.since)
	}
	snapshot := sample(f)
	handlers := map[bool]*policyengine.Handler{}
	for _, compat := range []bool{false, true} {
		h, err := policyengine.New(policyengine.Options{Prefix: "/api", Compat: compat, Signatures: fstest.MapFS{"secret": {Data: []byte("secret")}}, Clock: clocktesting.NewFakePassiveClock(start)})
		checktest.OK(f, err)
		h.Set(snapshot)
		handlers[compat] = h
	}
	kinds := []string{"invalid_content_type", "missing_params", "invalid_params", "does_not_exist"}
	f.Fuzz(func(t *testing.T, method, path, query, accept, encoding, match, since string) {
		r := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, RequestURI: path + "?" + query}
		for name, value := range map[string]string{"Accept": accept, "Accept-Encoding": encoding, "If-None-Match": match, "If-Modified-Since": since} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		var types []string // of 200, by mode
		for _, compat := range []bool{true, false} {
			w := httptest.NewRecorder()
			handlers[compat].ServeHTTP(w, r.Clone(t.Context()))
			types = append(types, "")
			switch {
			case w.Code == 200 && method != "HEAD" && (path == "/api/graph" || path == "/api/v1/graph"):
				types[len(types)-1] = w.Header().Get("Content-Type")
				body := io.Reader(w.Body)
				if w.Header().Get("Content-Encoding") == "gzip" {
					zipped := checktest.Must(gzip.NewReader(body))
					body = zipped
				}
				checktest.Must(graph.Decode(body, graph.DecodeOptions{}))
			case w.Code >= 400 && w.Body.Len() > 0 && method != "OPTIONS":
				var e struct{ Kind, Value string }
				if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || !slices.Contains(kinds, e.Kind) || e.Value == "" || w.Header().Get("Cache-Control") != "no-store" {
					t.Fatalf("%d %s: %v", w.Code, w.Body, err)
				}
			case w.Code != 200 && w.Body.Len() > 0 && method != "OPTIONS" || w.Code >= 500:
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if bytes.Contains(w.Body.Bytes(), []byte("secret")) && method != "OPTIONS" && !bytes.Contains([]byte(path+query), []byte("secret")) {
				t.Fatal("a file that is no signature")
			}
		}
		if types[0] != "" && types[0] != types[1] {
			t.Fatalf("Accept %q: %s with Compat, %s without", accept, types[0], types[1])
		}
	})
}
