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
		g, err := graph.DecodeBytes(text, graph.DecodeOptions{})
		checktest.OK(b, err)
		n := network(b, path.NetworkOptions{}, path.ChannelGraph{Channel: "stable-4.8", Graph: g})
		_, highest, err := n.Bounds("")
		checktest.OK(b, err)
		if _, err := n.ShortestPath(from, highest.Version, anyEdge); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		f(b, n, from, highest.Version)
	})
}

var anyEdge = path.Policy{Edges: path.AnyEdge}

func BenchmarkNewNetwork(b *testing.B) {
	graphtest.EachSize(b, func(b *testing.B, text []byte, _ string) {
		g, err := graph.DecodeBytes(text, graph.DecodeOptions{})
		checktest.OK(b, err)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := path.NewNetwork(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Graph: g}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkShortestPath(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			if _, err := n.ShortestPath(from, to, anyEdge); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSafestPath(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			if _, err := n.SafestPath(from, to, anyEdge); err != nil {
				b.Fatal(err)
			}
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
			if _, err := n.Reachable(from, anyEdge); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkExplain(b *testing.B) {
	eachNetwork(b, func(b *testing.B, n *path.Network, from, to string) {
		for b.Loop() {
			if _, err := n.Explain(path.ExplainQuery{From: from, To: to, Policy: anyEdge}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
