package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func BenchmarkDecode(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, _ string) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		}
	})
}

// BenchmarkFetch fetches over loopback and answers one query.
func BenchmarkFetch(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, version string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
		defer server.Close()
		client := &graph.Client{Upstream: server.URL}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			checktest.OK(b, fetch(client, version))
		}
	})
}

// BenchmarkFetchPlainly does the same by the standard library alone, without
// an index, limits or checks: net/http, io.ReadAll, encoding/json, a search
// through the nodes.
func BenchmarkFetchPlainly(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, version string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
		defer server.Close()
		defer http.DefaultClient.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			checktest.OK(b, fetchPlainly(server.URL, version))
		}
	})
}

// BenchmarkFetchRatio takes turns with both, so that the machine's moods meet
// them alike, and reports how many times as fast Fetch is: by the sum of all, and
// by the fastest of each.
func BenchmarkFetchRatio(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, version string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
		defer server.Close()
		client := &graph.Client{Upstream: server.URL}
		defer client.CloseIdleConnections()
		defer http.DefaultClient.CloseIdleConnections()
		var sum, fastest [2]time.Duration
		measure := func(i int, f func() error) {
			start := time.Now()
			checktest.OK(b, f())
			took := time.Since(start)
			if sum[i] += took; fastest[i] == 0 || took < fastest[i] {
				fastest[i] = took
			}
		}
		for b.Loop() {
			measure(0, func() error { return fetch(client, version) })
			measure(1, func() error { return fetchPlainly(server.URL, version) })
		}
		b.ReportMetric(float64(sum[1])/float64(sum[0]), "x-plain")
		b.ReportMetric(float64(fastest[1])/float64(fastest[0]), "x-plain-fastest")
	})
}

func fetch(client *graph.Client, version string) error {
	g, err := client.Fetch(context.Background(), graph.Query{Channel: "stable-4.8", Arch: "amd64", Version: version, ClusterID: clusterID})
	if err != nil {
		return err
	}
	_, err = g.Updates(graph.UpdatesQuery{Version: version, Channel: "stable-4.8", Architecture: "amd64"})
	return err
}

type plainNode struct {
	Version  string            `json:"version"`
	Payload  string            `json:"payload"`
	Metadata map[string]string `json:"metadata"`
}

func fetchPlainly(address, version string) error {
	resp, err := http.Get(address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	var g struct {
		Nodes            []plainNode              `json:"nodes"`
		Edges            [][2]int                 `json:"edges"`
		ConditionalEdges []graph.ConditionalEdges `json:"conditionalEdges"`
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return err
	}
	current := -1
	for i, n := range g.Nodes {
		v, err := graph.ParseVersion(n.Version)
		if err != nil {
			return err
		}
		if v.Original() == version {
			current = i
		}
	}
	var targets []plainNode
	for _, e := range g.Edges {
		if e[0] == current {
			targets = append(targets, g.Nodes[e[1]])
		}
	}
	if len(targets) == 0 {
		return errors.New("no targets")
	}
	return nil
}

func BenchmarkUpdates(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, version string) {
		g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		q := graph.UpdatesQuery{Version: version, Channel: "stable-4.8", Architecture: "amd64"}
		b.ReportAllocs()
		for b.Loop() {
			checktest.Must(g.Updates(q))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, _ string) {
		g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		b.ReportAllocs()
		for b.Loop() {
			checktest.Must(g.MarshalJSON())
		}
	})
}
