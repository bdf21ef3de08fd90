package policyengine_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

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
