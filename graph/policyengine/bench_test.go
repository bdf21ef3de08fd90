package policyengine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/policyengine"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// wide is a graph of one channel of so many releases, each with ten predecessors.
func wide(tb testing.TB, releases int) *graphdata.Snapshot {
	channel := graphdata.Channel{File: "channels/fast-1.1.yaml", Name: "fast-1.1"}
	var list []graphdata.Release
	var versions []string
	for i := range releases {
		v := fmt.Sprintf("1.1.%d", i)
		channel.Versions = append(channel.Versions, graphdata.Entry{Version: v})
		list = append(list, graphdata.Release{Version: v, Arch: "amd64", Image: "registry.example/release@sha256:" + v, Previous: versions[max(0, i-10):], Source: v})
		versions = append(versions, v)
	}
	s, err := graphdata.Build(&graphdata.Tree{Channels: []graphdata.Channel{channel}}, list, graphdata.BuildOptions{})
	checktest.OK(tb, err)
	return s
}

// BenchmarkHandler: an answer that is kept, plain and in gzip; one that the client
// has; one that is not kept; an error.
func BenchmarkHandler(b *testing.B) {
	for _, releases := range []int{100, 1000, 10_000} {
		g := wide(b, releases)
		for _, bb := range []struct {
			name, query string
			headers     []string
			kept        int64
			code        int
		}{
			{"hit", "channel=fast-1.1&arch=amd64&id=" + clusterID + "&version=1.1.1", nil, 0, 200},
			{"gzip", "channel=fast-1.1&arch=amd64&id=" + clusterID + "&version=1.1.1", []string{"Accept-Encoding", "gzip"}, 0, 200},
			{"304", "channel=fast-1.1", []string{"If-None-Match", "*"}, 0, 304},
			{"miss", "channel=fast-1.1", nil, 1, 200},
			{"miss-gzip", "channel=fast-1.1", []string{"Accept-Encoding", "gzip"}, 1, 200},
			{"unknown", "channel=none", nil, 0, 200},
			{"error", "channel=B", nil, 0, 400},
		} {
			b.Run(fmt.Sprintf("%d/%s", releases, bb.name), func(b *testing.B) {
				h := checktest.Must(policyengine.New(policyengine.Options{MaxCached: bb.kept}))
				h.Set(g)
				r := httptest.NewRequest("GET", "/graph?"+bb.query, nil)
				for i := 0; i+1 < len(bb.headers); i += 2 {
					r.Header.Set(bb.headers[i], bb.headers[i+1])
				}
				first := httptest.NewRecorder()
				if h.ServeHTTP(first, r); first.Code != bb.code {
					b.Fatal(first.Code)
				}
				w := discard{http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					h.ServeHTTP(w, r)
				}
			})
		}
	}
}

// BenchmarkSet sets a graph that is the one that is served, and another one.
func BenchmarkSet(b *testing.B) {
	graphs := []*graphdata.Snapshot{wide(b, 10_000), wide(b, 9999)}
	for name, step := range map[string]int{"same": 0, "other": 1} {
		b.Run(name, func(b *testing.B) {
			h := checktest.Must(policyengine.New(policyengine.Options{}))
			b.ReportAllocs()
			for i := 0; b.Loop(); i += step {
				h.Set(graphs[i%2])
			}
		})
	}
}

// BenchmarkRealTree sets the graph of the real tree and asks for all that it has.
func BenchmarkRealTree(b *testing.B) {
	g := realSnapshot(b, allArches...)
	for name, encoding := range map[string]string{"plain": "identity", "gzip": "gzip"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := checktest.Must(policyengine.New(policyengine.Options{}))
				h.Set(g)
				for _, arch := range g.Arches() {
					for _, channel := range g.Channels(arch) {
						r := httptest.NewRequest("GET", "/graph?channel="+channel+"&arch="+arch, nil)
						r.Header.Set("Accept-Encoding", encoding)
						h.ServeHTTP(discard{http.Header{}}, r)
					}
				}
			}
		})
	}
}

// loopback is a server on loopback and clients that keep their connections.
type loopback struct {
	url    string
	client *http.Client
}

func listen(b *testing.B, h http.Handler, path string, clients int) loopback {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	t := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: clients}
	b.Cleanup(t.CloseIdleConnections)
	return loopback{s.URL + path, &http.Client{Transport: t}}
}

// get asks once, and wants a body of one of some sizes.
func (l loopback) get(sizes ...int64) error {
	resp, err := l.client.Get(l.url)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !slices.Contains(sizes, n)) {
		err = fmt.Errorf("%s with %d bytes", resp.Status, n)
	}
	return err
}

// timings are what some requests took.
type timings struct {
	wall  time.Duration
	times []time.Duration
}

// run asks n times, by so many clients at a time.
func (l loopback) run(b *testing.B, clients, n int, sizes ...int64) (done timings) {
	b.Helper()
	times := make([][]time.Duration, clients)
	var group sync.WaitGroup
	start := time.Now()
	for c := range clients {
		group.Go(func() {
			for i := c; i < n; i += clients {
				began := time.Now()
				if err := l.get(sizes...); err != nil {
					b.Error(err)
					return
				}
				times[c] = append(times[c], time.Since(began))
			}
		})
	}
	group.Wait()
	return timings{time.Since(start), slices.Concat(times...)}
}

func (l *timings) add(more timings) {
	l.wall += more.wall
	l.times = append(l.times, more.times...)
}

func (l *timings) rate() float64 { return float64(len(l.times)) / l.wall.Seconds() }

func (l *timings) report(b *testing.B, name string) {
	if len(l.times) == 0 {
		return // all failed, which has been told
	}
	slices.Sort(l.times)
	b.ReportMetric(l.rate(), name+"req/s")
	b.ReportMetric(float64(l.times[(len(l.times)-1)*99/100].Microseconds())/1000, name+"p99-ms")
}

// BenchmarkLoopback is what 32 clients on loopback get of a channel: requests a
// second and the time within which 99 of 100 are answered. The answer is kept, is
// not kept, or the graph is swapped every second; beside sends batches in turn to the
// engine and to an http.FileServer with the same bytes. A request that fails, or
// gets something else, is an error.
func BenchmarkLoopback(b *testing.B) {
	const clients = 32
	for _, bb := range []struct {
		name     string
		releases int
		kept     int64 // Options.MaxCached
		swapped  bool
	}{
		{"cached", 100, 0, false},
		{"cached", 1000, 0, false},
		{"cached", 10_000, 0, false},
		{"uncached", 1000, 1, false},
		{"swapped", 1000, 0, true},
	} {
		b.Run(fmt.Sprintf("%s/releases=%d", bb.name, bb.releases), func(b *testing.B) {
			h, graphs, sizes := loaded(b, bb.releases, bb.kept)
			engine := listen(b, h, "/graph?channel=fast-1.1", clients)
			if bb.swapped {
				swap(b, h, graphs)
			}
			b.ReportAllocs()
			b.ResetTimer()
			total := engine.run(b, clients, b.N, sizes...)
			b.StopTimer()
			total.report(b, "")
		})
	}
	for _, releases := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("beside/releases=%d", releases), func(b *testing.B) {
			h, graphs, sizes := loaded(b, releases, 0)
			dir := b.TempDir()
			checktest.OK(b, os.WriteFile(filepath.Join(dir, "graph.json"), graphs[0].Graph("fast-1.1", "amd64").AppendJSON(nil), 0o644))
			engine := listen(b, h, "/graph?channel=fast-1.1", clients)
			files := listen(b, http.FileServer(http.Dir(dir)), "/graph.json", clients)
			const batch = 8 * clients
			var ours, theirs timings
			b.ResetTimer()
			for left := b.N; left > 0; left -= batch {
				ours.add(engine.run(b, clients, min(left, batch), sizes[0]))
				theirs.add(files.run(b, clients, min(left, batch), sizes[0]))
			}
			b.StopTimer()
			ours.report(b, "")
			theirs.report(b, "files-")
			b.ReportMetric(ours.rate()/theirs.rate(), "ratio")
		})
	}
}

// loaded returns a handler, graphs to serve, of which the first is set, and how long
// their answers are.
func loaded(b *testing.B, releases int, kept int64) (h *policyengine.Handler, graphs []policyengine.Grapher, sizes []int64) {
	h = checktest.Must(policyengine.New(policyengine.Options{MaxCached: kept}))
	for i := range 2 {
		g := wide(b, releases-i)
		graphs = append(graphs, g)
		sizes = append(sizes, int64(len(g.Graph("fast-1.1", "amd64").AppendJSON(nil))))
	}
	h.Set(graphs[0])
	return h, graphs, sizes
}

// swap sets one graph after the other, every second until the benchmark ends.
func swap(b *testing.B, h *policyengine.Handler, graphs []policyengine.Grapher) {
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for i := 1; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				h.Set(graphs[i%len(graphs)])
			}
		}
	})
	b.Cleanup(func() { cancel(); group.Wait() })
}
