package graphdata_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// fullLines are the nodes and edges of a whole graph, as those of plain.
func fullLines(g *graphdata.RawGraph) []string {
	var all []string
	for _, n := range g.Nodes {
		all = append(all, plainLine(n.Version, n.Payload, n.Metadata))
	}
	for _, e := range g.Edges {
		all = append(all, g.Nodes[e[0]].Version+" → "+g.Nodes[e[1]].Version)
	}
	all = append(all, pairLines(slices.Values(g.ConditionalEdges))...)
	slices.Sort(all)
	return all
}

func pairLines(entries iter.Seq[graph.ConditionalEdges]) (all []string) {
	for c := range entries {
		var risks []plainRisk
		for _, r := range c.Risks {
			text, err := json.Marshal(r)
			if err != nil {
				panic(err)
			}
			risks = append(risks, plainRisk{r.Name, string(text)})
		}
		for _, p := range c.Edges {
			all = append(all, plainPair(p.From, p.To, risks))
		}
	}
	return all
}

// servedLines are those of a graph that is served.
func servedLines(g *graph.Graph) []string {
	var all []string
	for i, n := range g.Nodes() {
		metadata := map[string]string{}
		for key, value := range n.Metadata.All() {
			metadata[key] = fmt.Sprint(value)
		}
		all = append(all, plainLine(n.Version.Original(), n.Image, metadata))
		for e := range g.Edges(i) {
			all = append(all, n.Version.Original()+" → "+g.Node(e.To).Version.Original())
		}
	}
	all = append(all, pairLines(func(yield func(graph.ConditionalEdges) bool) {
		for _, c := range g.ConditionalEdges() {
			if !yield(c) {
				return
			}
		}
	})...)
	slices.Sort(all)
	return all
}

var (
	oddVersions    = []string{"1.0.0", "1.0.1", "1.0.1-s390x", "1.1.0-rc.0", "1.1.0", "1.1.1"}
	oddExpressions = []string{".*", "1[.]0[.]", "^1[.]0[.]1[+].*$", "[+]S390X", "(?i)[+]S3", "0$", "1[.]1[.]0", "4|RC"}
	oddKeys        = []string{graph.MetadataPreviousAdd, graph.MetadataNextAdd, graph.MetadataPreviousRemove, graph.MetadataNextRemove, graph.MetadataPreviousRemoveRegex, graph.MetadataChannels, "url"}
)

// oddValue draws a value of a key of metadata.
func oddValue(t *rapid.T, key string) string {
	switch key {
	case graph.MetadataPreviousRemoveRegex:
		return rapid.SampledFrom(append([]string{"", "("}, oddExpressions...)).Draw(t, "expression")
	case graph.MetadataChannels:
		return rapid.SampledFrom([]string{"a-1", "b-0,a-1", "plain", "c-1, plain"}).Draw(t, "channels")
	case "url":
		return "u"
	}
	items := append([]string{"*", "x", "", "1.1.0+amd64", "1.0.0+s390x", "9.9.9"}, oddVersions...)
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(items), 1, 2).Draw(t, "items"), ",")
}

func oddTarget(t *rapid.T) string {
	return rapid.SampledFrom(oddVersions).Draw(t, "to") + rapid.SampledFrom([]string{"", "", "+amd64", "+s390x"}).Draw(t, "build")
}

// oddInput draws what no maintainer writes: every rule meets every other one.
func oddInput(t *rapid.T) (*graphdata.Tree, []graphdata.Release) {
	tree := &graphdata.Tree{}
	for _, name := range []string{"a-1", "a-1", "b-0"} {
		var versions []string
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			versions = append(versions, oddTarget(t))
		}
		tree.Channels = append(tree.Channels, graphdata.Channel{Name: name, Versions: entries(versions...)})
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "edges") {
		to, from := oddTarget(t), rapid.SampledFrom(oddExpressions).Draw(t, "from")
		edge := drop(to, from)
		if rapid.Bool().Draw(t, "risk") {
			edge = risk(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "name"), to, from)
			edge.Risk.Message += rapid.SampledFrom([]string{"", "!"}).Draw(t, "message")
		}
		edge.File = fmt.Sprintf("blocked-edges/%d.yaml", i)
		if edge.Risk != nil {
			tree.Risks = append(tree.Risks, edge)
		} else {
			tree.Drops = append(tree.Drops, edge)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "raw") {
		key := rapid.SampledFrom(oddKeys).Draw(t, "raw key")
		tree.Raw = append(tree.Raw, graphdata.RawEntry{Version: oddTarget(t), Key: key, Value: oddValue(t, key)})
	}
	var releases []graphdata.Release
	for _, arch := range []string{"amd64", "s390x", ""} {
		for i, v := range oddVersions {
			if rapid.IntRange(0, 3).Draw(t, "there") == 0 || arch == "" && i > 1 {
				continue
			}
			r := release(v, arch, nil)
			for _, other := range oddVersions[:i] {
				if rapid.Bool().Draw(t, "previous") {
					r.Previous = append(r.Previous, other)
				}
			}
			if i+1 < len(oddVersions) && rapid.IntRange(0, 4).Draw(t, "next") == 0 {
				r.Next = []string{oddVersions[len(oddVersions)-1] + "+ppc64le"}
			}
			if rapid.IntRange(0, 3).Draw(t, "metadata") == 0 {
				key := rapid.SampledFrom(oddKeys).Draw(t, "key")
				r.Metadata[key] = oddValue(t, key)
			}
			releases = append(releases, r)
		}
	}
	return tree, releases
}

// TestComparison: the whole graph and all that are served, edge for edge, risk for
// risk and value for value, against the plain reading.
func TestComparison(t *testing.T) {
	built := 0
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := oddInput(t)
		for _, peer := range []bool{false, true} {
			want := readPlainly(tree, releases, peer)
			s, err := graphdata.Build(tree, rapid.Permutation(releases).Draw(t, "releases"), graphdata.BuildOptions{Compat: peer})
			checktest.Equal(t, want == nil, err != nil, "peer %v: %v; the plain reading fails", peer, err)
			if err != nil {
				continue
			}
			built++
			checktest.SameIn(t, fmt.Sprintf("peer %v: -plain +built", peer), want.lines(), fullLines(s.Full()))
			for _, channel := range []string{"a-1", "b-0", "plain", "a"} {
				for _, arch := range []string{"amd64", "s390x", "64", "arm64"} {
					checktest.SameIn(t, fmt.Sprintf("peer %v: %s on %s: -plain +built", peer, channel, arch), want.served(channel, arch), servedLines(s.Graph(channel, arch)))
				}
			}
		}
	})
	if built == 0 {
		t.Error("no graph was compared")
	}
}
