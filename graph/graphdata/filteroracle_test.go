package graphdata_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// filterChannel returns the part of a graph that is in a channel: nodes whose
// metadata name it, and updates between them. Under compat, as with an update
// service, a conditional update stays if no node has its version. The graph is not
// changed; the other one shares its metadata and risks.
func filterChannel(g *graphdata.RawGraph, channel string, compat bool) *graphdata.RawGraph {
	in := make([]bool, len(g.Nodes))
	kept, gone := map[string]bool{}, map[string]bool{}
	for i, n := range g.Nodes {
		in[i] = n.Metadata != nil && slices.Contains(items(n.Metadata[graph.MetadataChannels]), channel)
		if in[i] {
			kept[n.Version] = true
		} else {
			gone[n.Version] = true
		}
	}
	return filter(g, in, func(version string) bool { return kept[version] || compat && !gone[version] })
}

// filterArch returns the part of a graph that is for an architecture: nodes whose
// metadata name it, without that key and with the architecture cut off their
// versions, and updates between them. Under compat, as with an update service, a
// conditional update stays where both versions contain the architecture anywhere,
// and two nodes may get one version, which is an error otherwise. The graph is not
// changed; the other one shares its risks.
func filterArch(g *graphdata.RawGraph, arch string, compat bool) (*graphdata.RawGraph, error) {
	in := make([]bool, len(g.Nodes))
	kept := map[string]bool{}
	for i, n := range g.Nodes {
		in[i] = n.Metadata != nil && slices.Contains(items(n.Metadata[graph.MetadataArch]), arch)
		kept[n.Version] = kept[n.Version] || in[i]
	}
	part := filter(g, in, func(version string) bool {
		if compat {
			return strings.Contains(version, arch)
		}
		return kept[version]
	})
	seen := map[string]string{}
	for i := range part.Nodes {
		n := &part.Nodes[i]
		version := versionOn(n.Version, arch)
		if other, twice := seen[version]; twice && !compat {
			return nil, fmt.Errorf("releases %s and %s are both %s on %s", other, n.Version, version, arch)
		}
		seen[version] = n.Version
		n.Version = version
		n.Metadata = maps.Clone(n.Metadata)
		delete(n.Metadata, graph.MetadataArch)
	}
	for _, c := range part.ConditionalEdges {
		for i, p := range c.Edges {
			c.Edges[i] = graph.VersionPair{From: versionOn(p.From, arch), To: versionOn(p.To, arch)}
		}
	}
	return part, nil
}

// filter returns the nodes that are in a part, the edges between them, and the
// conditional edges between versions that stay, by their first pair.
func filter(g *graphdata.RawGraph, in []bool, stays func(version string) bool) *graphdata.RawGraph {
	part := &graphdata.RawGraph{Nodes: []graphdata.RawNode{}, Edges: [][2]int{}, ConditionalEdges: []graph.ConditionalEdges{}}
	place := make([]int, len(g.Nodes))
	index := make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		index[n.Version] = i
		if in[i] {
			place[i] = len(part.Nodes)
			part.Nodes = append(part.Nodes, n)
		}
	}
	for _, e := range g.Edges {
		if in[e[0]] && in[e[1]] {
			part.Edges = append(part.Edges, [2]int{place[e[0]], place[e[1]]})
		}
	}
	for _, c := range g.ConditionalEdges {
		var pairs []graph.VersionPair
		for _, p := range c.Edges {
			if stays(p.From) && stays(p.To) {
				pairs = append(pairs, p)
			}
		}
		if len(pairs) > 0 {
			part.ConditionalEdges = append(part.ConditionalEdges, graph.ConditionalEdges{Edges: pairs, Risks: c.Risks})
		}
	}
	slices.SortStableFunc(part.ConditionalEdges, func(x, y graph.ConditionalEdges) int {
		return cmp.Or(cmp.Compare(index[x.Edges[0].To], index[y.Edges[0].To]), cmp.Compare(index[x.Edges[0].From], index[y.Edges[0].From]))
	})
	return part
}

// items returns the elements of a list in metadata.
func items(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// versionOn cuts an architecture off the build part of a version.
func versionOn(version, arch string) string {
	text, build, _ := strings.Cut(version, "+")
	kept := slices.DeleteFunc(strings.Split(build, "."), func(id string) bool { return id == "" || id == arch })
	if len(kept) == 0 {
		return text
	}
	return text + "+" + strings.Join(kept, ".")
}
