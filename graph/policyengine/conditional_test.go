package policyengine_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const candidate = "/api/graph?channel=candidate-1.1"

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// TestAnswer: headers and bytes of an answer, plain and in gzip.
func TestAnswer(t *testing.T) {
	snapshot := sample(t)
	s := serve(t, policyengine.Options{MaxAge: 90 * time.Second}, snapshot)
	want := snapshot.Graph("candidate-1.1", "amd64").AppendJSON(nil)
	small := snapshot.Graph("fast-1.10", "amd64").AppendJSON(nil)
	if len(want) < 1024 || len(small) >= 1024 {
		t.Fatalf("the samples have %d and %d bytes", len(want), len(small))
	}
	s.clock.SetTime(start.Add(5*time.Second + time.Millisecond))
	for _, tt := range []struct {
		encoding string
		zip      bool
	}{
		{"", false}, {"gzip", true}, {"GZIP", true}, {"x-gzip", true}, {"*", true}, {"deflate, gzip;q=0.1", true}, {"br;q=1, *;q=0.5", true},
		{"identity", false}, {"gzip;q=0", false}, {"*, gzip;q=0", false}, {"*;q=0", false}, {"gzip;q=2", false}, {"deflate", false}, {"gz ip", false}, {"gzip;q=0.001", true},
	} {
		for _, channel := range []string{"candidate-1.1", "fast-1.10"} {
			text, zip := want, tt.zip
			if channel == "fast-1.10" {
				text, zip = small, false // not worth it
			}
			got := s.get(t, "/api/graph?channel="+channel, "Accept", plain, "Accept-Encoding", tt.encoding)
			body, etag, encoding := []byte(got.body), tagOf(text), ""
			if zip {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatalf("%q: %v", tt.encoding, err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
				encoding, etag = "gzip", etag[:33]+`-gzip"`
			}
			if !bytes.Equal(body, text) {
				t.Errorf("%q: other bytes", tt.encoding)
			}
			for name, value := range map[string]string{
				"Content-Encoding": encoding, "Etag": etag, "Content-Length": strconv.Itoa(len(got.body)), "Content-Type": plain, "Age": "", "X-Graph-Age": "5",
				"Last-Modified": start.Format(http.TimeFormat), "Cache-Control": "public, max-age=90", "Vary": "Accept, Accept-Encoding, Origin",
			} {
				checktest.Equal(t, value, got.Get(name), "%q: %s", tt.encoding, name)
			}
		}
	}
}

// TestConditional: what a client's own validators come to.
func TestConditional(t *testing.T) {
	s := serve(t, policyengine.Options{}, sample(t))
	first := s.get(t, candidate)
	etag := first.Get("ETag")
	zipped := s.get(t, candidate, "Accept-Encoding", "gzip").Get("ETag")
	at := func(d time.Duration) string { return start.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name    string
		headers []string
		code    int
	}{
		{"the tag", []string{"If-None-Match", etag}, 304},
		{"weak", []string{"If-None-Match", "W/" + etag}, 304},
		{"any", []string{"If-None-Match", "*"}, 304},
		{"in a list", []string{"If-None-Match", `"x", W/"y" ,` + etag}, 304},
		{"in a second line", []string{"If-None-Match", `"x"`, "If-None-Match", etag}, 304},
		{"a comma within", []string{"If-None-Match", `"a,b", ` + etag}, 304},
		{"another", []string{"If-None-Match", `"x"`}, 200},
		{"without quotes", []string{"If-None-Match", etag[1:33]}, 200},
		{"half quoted", []string{"If-None-Match", etag[:33]}, 200},
		{"any among others", []string{"If-None-Match", `*, "x"`}, 200},
		{"empty", []string{"If-None-Match", ""}, 200},
		{"that of gzip", []string{"If-None-Match", zipped}, 200},
		{"gzip", []string{"If-None-Match", zipped, "Accept-Encoding", "gzip"}, 304},
		{"plain for gzip", []string{"If-None-Match", etag, "Accept-Encoding", "gzip"}, 200},
		{"since then", []string{"If-Modified-Since", at(0)}, 304},
		{"since later", []string{"If-Modified-Since", at(time.Hour)}, 304},
		{"since earlier", []string{"If-Modified-Since", at(-time.Second)}, 200},
		{"no time", []string{"If-Modified-Since", "yesterday"}, 200},
		{"the tag goes first", []string{"If-None-Match", `"x"`, "If-Modified-Since", at(0)}, 200},
		{"errors go first", []string{"If-None-Match", "*", "Accept", "x"}, 406},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				got := s.ask(t, method, candidate, tt.headers...)
				checktest.Equal(t, tt.code, got.code, "%s", method)
				if tt.code != 304 {
					continue
				}
				if got.body != "" || got.Get("Content-Type") != "" || got.Get("ETag") == "" || got.Get("Cache-Control") != "public, max-age=60" || got.Get("Vary") == "" || got.Get("Last-Modified") != at(0) {
					t.Errorf("%q %v", got.body, got.Header)
				}
			}
		})
	}
	if got := s.get(t, "/api/graph", "If-None-Match", "*"); got.code != 400 {
		t.Errorf("%d", got.code)
	}
	openapi := s.get(t, "/api/openapi").Get("ETag")
	if got := s.get(t, "/api/openapi", "If-None-Match", openapi); got.code != 304 {
		t.Errorf("%d", got.code)
	}
}

// TestValidatorsAcrossSets: content that stays has the same tag and time. Other content
// has another tag and is newer than any time that a client has, however quickly it came,
// and no time is ahead of the clock.
func TestValidatorsAcrossSets(t *testing.T) {
	one, two := sample(t), sample(t, "1.1.1")
	s := serve(t, policyengine.Options{}, one)
	const fast, unknown = "/api/graph?channel=fast-1.1", "/api/graph?channel=none"
	before := map[string]reply{}
	for _, path := range []string{candidate, fast, unknown} {
		before[path] = s.get(t, path)
	}
	for i, next := range []*graphdata.Snapshot{two, sample(t, "1.1.1"), one, two} {
		changed := i != 1
		if i == 3 {
			s.clock.SetTime(start.Add(time.Hour))
		}
		s.Set(next)
		for path, was := range before {
			got := s.get(t, path)
			same := path == fast || !changed
			if path != unknown {
				checktest.Equal(t, same, got.Get("ETag") == was.Get("ETag"), "%d: %s: the tag stayed", i, path)
			}
			if at := got.Get("Last-Modified"); at != "" && checktest.Must(http.ParseTime(at)).After(s.clock.Now()) {
				t.Errorf("%d: %s: modified at %s, now it is %s", i, path, at, s.clock.Now())
			}
			if since := was.Get("Last-Modified"); since != "" {
				code := map[bool]int{true: 304, false: 200}[same]
				checktest.Equal(t, code, s.get(t, path, "If-Modified-Since", since).code, "%d: %s since %s", i, path, since)
			}
			before[path] = got
		}
	}
	checktest.Equal(t, start.Add(time.Hour).Format(http.TimeFormat), before[candidate].Get("Last-Modified"), "modified")
}
