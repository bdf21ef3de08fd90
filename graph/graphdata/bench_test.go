package graphdata_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// releasesFor are so many releases: of those for the real tree, and where they do
// not suffice, more that each name 24 others.
func releasesFor(b *testing.B, tree *graphdata.Tree, n int) []graphdata.Release {
	all := approximated(tree)
	if n <= len(all) {
		some := make([]graphdata.Release, n)
		for i := range some {
			some[i] = all[i*len(all)/n]
		}
		return some
	}
	var before []string
	for i := len(all); i < n; i++ {
		version := fmt.Sprintf("9.0.%d", i)
		all = append(all, release(version, "amd64", before))
		before = append(before[max(0, len(before)-23):len(before):len(before)], version)
	}
	return all
}

// BenchmarkBuild builds graphs of the real tree.
func BenchmarkBuild(b *testing.B) {
	tree := loadReal(b)
	for _, compat := range []bool{false, true} {
		for _, n := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("compat=%v/releases=%d", compat, n), func(b *testing.B) {
				releases := releasesFor(b, tree, n)
				b.ReportAllocs()
				for b.Loop() {
					s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{Compat: compat}))
					r := s.Report()
					b.ReportMetric(float64(r.Edges+r.Conditional+r.Removed), "edges")
				}
			})
		}
	}
}

// BenchmarkGraph selects and encodes the graph of one channel, a large one.
func BenchmarkGraph(b *testing.B) {
	tree := loadReal(b)
	s := checktest.Must(graphdata.Build(tree, approximated(tree), graphdata.BuildOptions{}))
	b.ReportAllocs()
	var text []byte
	for b.Loop() {
		text = s.Graph("candidate-4.14", "amd64").AppendJSON(text[:0])
	}
	g := s.Graph("candidate-4.14", "amd64")
	b.ReportMetric(float64(g.Len()), "nodes")
	b.ReportMetric(float64(len(text)), "bytes")
}

// BenchmarkGraphs selects and encodes every graph.
func BenchmarkGraphs(b *testing.B) {
	tree := loadReal(b)
	s := checktest.Must(graphdata.Build(tree, approximated(tree), graphdata.BuildOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(encoded(s))))
	}
}

// BenchmarkStored writes and reads the whole graph of the real tree.
func BenchmarkStored(b *testing.B) {
	tree := loadReal(b)
	s := checktest.Must(graphdata.Build(tree, approximated(tree), graphdata.BuildOptions{}))
	text := checktest.Must(s.Full().MarshalJSON())
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			checktest.Must(s.Full().MarshalJSON())
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			checktest.Must(graphdata.DecodeRaw(bytes.NewReader(text), graphdata.RawOptions{}))
		}
	})
}
