package policyengine_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// counting counts how often graphs are asked for.
type counting struct {
	*graphdata.Snapshot
	asked atomic.Int64
}

func (c *counting) Graph(channel, arch string) *graph.Graph {
	c.asked.Add(1)
	return c.Snapshot.Graph(channel, arch)
}

func sampleValue(t *testing.T, samples []clusterapi.Sample, name string) float64 {
	t.Helper()
	for _, s := range samples {
		if s.Name == "cincinnati_pe_"+name {
			return s.Value
		}
	}
	t.Fatalf("no sample %s", name)
	return 0
}

// TestEncodedOnce: many requests at a time encode a graph once; it is kept until
// another is set, and unknown channels are never encoded nor kept.
func TestEncodedOnce(t *testing.T) {
	g := &counting{Snapshot: sample(t)}
	s := serve(t, policyengine.Options{}, g)
	many := func(path string) {
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() { s.get(t, path) })
		}
		group.Wait()
	}
	many(candidate)
	if n := g.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	s.get(t, candidate, "Accept", vendor)
	s.get(t, candidate, "Accept-Encoding", "gzip")
	s.Set(&counting{Snapshot: sample(t)}) // equal content
	s.get(t, candidate)
	if n := g.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	size := sampleValue(t, s.Samples(), "graph_cached_bytes")
	for i := range 50 {
		s.get(t, fmt.Sprintf("/api/graph?channel=none-%d", i))
		s.get(t, fmt.Sprintf("/api/graph?channel=candidate-1.1&arch=a%d", i))
	}
	if n := g.asked.Load(); n != 1 || sampleValue(t, s.Samples(), "graph_cached_bytes") != size || size == 0 {
		t.Errorf("asked %d times, %v bytes, then %v", n, size, sampleValue(t, s.Samples(), "graph_cached_bytes"))
	}
	other := &counting{Snapshot: sample(t, "1.1.1")}
	s.Set(other)
	s.get(t, candidate)
	if n := other.asked.Load(); n != 1 {
		t.Errorf("the new one was asked %d times", n)
	}
}

// waiting is a Grapher that answers once it may.
type waiting struct {
	counting
	may chan struct{}
}

func (w *waiting) Graph(channel, arch string) *graph.Graph {
	<-w.may
	return w.counting.Graph(channel, arch)
}

// TestNotKept: requests at a time share an answer that there is no room for, and
// later ones make it anew.
func TestNotKept(t *testing.T) {
	snapshot := sample(t)
	synctest.Test(t, func(t *testing.T) {
		g := &waiting{counting{Snapshot: snapshot}, make(chan struct{})}
		h := checktest.Must(policyengine.New(policyengine.Options{MaxCached: 1}))
		h.Set(g)
		for round := int64(1); round <= 2; round++ {
			for range 20 {
				go func() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest("GET", "/graph?channel=candidate-1.1", nil))
					if w.Code != 200 || w.Body.Len() < 100 {
						t.Errorf("%d %s", w.Code, w.Body)
					}
				}()
			}
			synctest.Wait()
			g.may <- struct{}{}
			synctest.Wait()
			if n := g.asked.Load(); n != round {
				t.Errorf("round %d: asked %d times", round, n)
			}
		}
	})
}

// TestEviction: within the bound the answers that were asked for last are kept; one
// that went is still known by its tag.
func TestEviction(t *testing.T) {
	g := &counting{Snapshot: sample(t)}
	one := len(g.Snapshot.Graph("candidate-1.1", "amd64").AppendJSON(nil))
	two := len(g.Snapshot.Graph("fast-1.1", "amd64").AppendJSON(nil))
	three := len(g.Snapshot.Graph("fast-1.10", "amd64").AppendJSON(nil))
	s := serve(t, policyengine.Options{MaxCached: int64(one + two)}, g)
	const fast, small = "/api/graph?channel=fast-1.1", "/api/graph?channel=fast-1.10"
	etag := s.get(t, candidate).Get("ETag")
	s.get(t, fast)
	s.get(t, candidate)
	asked := func(path string, want int64, headers ...string) reply {
		t.Helper()
		before := g.asked.Load()
		got := s.get(t, path, headers...)
		if n := g.asked.Load() - before; n != want {
			t.Errorf("%s: asked %d times, want %d", path, n, want)
		}
		if size := sampleValue(t, s.Samples(), "graph_cached_bytes"); size > float64(one+two) {
			t.Errorf("%v bytes are kept", size)
		}
		return got
	}
	asked(small, 1) // fast-1.1 goes, which was asked for before candidate-1.1
	asked(candidate, 0)
	asked(fast, 1) // fast-1.10 goes
	asked(candidate, 0)
	asked(small, 1) // fast-1.1 goes
	asked(fast, 1)  // candidate-1.1 goes
	if got := asked(candidate, 0, "If-None-Match", etag); got.code != 304 {
		t.Errorf("%d", got.code)
	}
	if got := asked(candidate, 1); got.Get("ETag") != etag || len(got.body) != one {
		t.Errorf("%s, %d bytes", got.Get("ETag"), len(got.body))
	}
	tiny := serve(t, policyengine.Options{MaxCached: int64(three - 1)}, g)
	for range 2 {
		asked(candidate, 0, "If-None-Match", etag)
		if got := tiny.get(t, candidate, "Accept-Encoding", "gzip"); got.code != 200 || sampleValue(t, tiny.Samples(), "graph_cached_bytes") != 0 {
			t.Errorf("%d, kept %v", got.code, sampleValue(t, tiny.Samples(), "graph_cached_bytes"))
		}
	}
}

// fixed is a Grapher that has no revision of its own.
type fixed struct{ s *graphdata.Snapshot }

func (f fixed) Graph(channel, arch string) *graph.Graph { return f.s.Graph(channel, arch) }
func (f fixed) Channels(arch string) []string           { return f.s.Channels(arch) }
func (f fixed) Arches() []string                        { return f.s.Arches() }

// TestRevision: a revision names the content.
func TestRevision(t *testing.T) {
	for name, of := range map[string]func(*graphdata.Snapshot) policyengine.Grapher{
		"snapshot": func(s *graphdata.Snapshot) policyengine.Grapher { return s },
		"others":   func(s *graphdata.Snapshot) policyengine.Grapher { return fixed{s} },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, policyengine.Options{}, of(sample(t)))
			first := s.Revision()
			s.Set(of(sample(t)))
			if again := s.Revision(); again != first || len(first) != 32 || strings.Trim(first, "0123456789abcdef") != "" {
				t.Errorf("%q, then %q", first, again)
			}
			checktest.Equal(t, 4, sampleValue(t, s.Samples(), "graph_final_releases"), "releases")
			s.Set(of(sample(t, "1.1.1")))
			if s.Revision() == first {
				t.Error("other content, one revision")
			}
		})
	}
}

// TestManyClients: hundreds of clients ask on loopback while graphs are swapped by
// several at a time and answers do not all fit. No request fails, and each answer is
// whole and one of those that were set, under the tag of its own content.
func TestManyClients(t *testing.T) {
	clients, requests := 400, 6
	if israce.Enabled {
		clients, requests = 200, 3
	}
	graphs := []*graphdata.Snapshot{sample(t), sample(t, "1.1.1"), sample(t, "1.1.1", "1.1.2")}
	channels := append(graphs[0].Channels("amd64"), "none")
	published := map[string]map[string]string{} // channel → body → tag
	for _, channel := range channels {
		published[channel] = map[string]string{}
		for _, g := range graphs {
			text := g.Graph(channel, "amd64").AppendJSON(nil)
			published[channel][string(text)] = tagOf(text)
		}
	}
	s := serve(t, policyengine.Options{MaxCached: 5000}, graphs[0])
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			tag := "" // of the last answer
			for n := range requests {
				if (c+n)%20 == 0 {
					s.Set(graphs[(c/20+n)%len(graphs)])
					_ = s.Samples()
				}
				channel := channels[c%len(channels)]
				headers := [][]string{{}, {"Accept-Encoding", "gzip"}, {"If-None-Match", tag}}[(c+n)%3]
				got, err := s.try(http.MethodGet, "/api/graph?channel="+channel, headers...)
				if err != nil {
					t.Error(err)
					return
				}
				if got.code == http.StatusNotModified && tag != "" && got.Get("ETag") == tag {
					continue
				}
				body, suffix := got.body, ""
				if got.Get("Content-Encoding") == "gzip" {
					body, suffix = unzipped(t, got.body), "-gzip"
				}
				want, known := published[channel][body]
				tag = got.Get("ETag")
				if got.code != http.StatusOK || !known || tag != strings.TrimSuffix(want, `"`)+suffix+`"` {
					t.Errorf("%s: %d, %s: %s", channel, got.code, tag, body)
				}
			}
		})
	}
	group.Wait()
	if n := sampleValue(t, s.Samples(), "graph_incoming_requests_total"); n != float64(clients*requests) {
		t.Errorf("%v requests are counted", n)
	}
}

func unzipped(t *testing.T, text string) string {
	r, err := gzip.NewReader(bytes.NewReader([]byte(text)))
	if err != nil {
		t.Error(err)
		return ""
	}
	plain, err := io.ReadAll(r)
	checktest.Good(t, err)
	return string(plain)
}
