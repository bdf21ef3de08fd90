package path_test

import (
	"context"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// eachNetwork benchmarks networks of growing size, from a low version to the
// highest.
func eachNetwork(b *testing.B, f func(b *testing.B, n *path.Network, from, to string)) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, from string) {
		g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		n := network(b, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.8", Graph: g})
		_, highest, err := n.Bounds("")
		checktest.OK(b, err)
		checktest.Must(n.ShortestPath(from, highest.Version, anyEdge))
		b.ReportAllocs()
		f(b, n, from, highest.Version)
	})
}

var anyEdge = path.Policy{Edges: path.AnyEdge}

func BenchmarkNewNetwork(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, _ string) {
		g := checktest.Must(graph.DecodeBytes(text, graph.DecodeOptions{}))
		b.ReportAllocs()
		for b.Loop() {
			checktest.Must(path.NewNetwork(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Graph: g}))
		}
	})
}

func BenchmarkShortestPath(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			checktest.Must(n.ShortestPath(from, to, anyEdge))
		}
	})
}

func BenchmarkSafestPath(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			checktest.Must(n.SafestPath(from, to, anyEdge))
		}
	})
}

func BenchmarkTenBestPaths(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			if p, err := n.Paths(from, to, 10, path.Safest, anyEdge); err != nil || len(p) != 10 {
				b.Fatal(len(p), err)
			}
		}
	})
}

func BenchmarkReachable(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, _ string) {
		for b.Loop() {
			checktest.Must(n.Reachable(from, anyEdge))
		}
	})
}

func BenchmarkExplain(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			checktest.Must(n.Explain(path.ExplainQuery{From: from, To: to, Policy: anyEdge}))
		}
	})
}
