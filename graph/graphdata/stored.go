package graphdata

import (
	"context"
	"io/fs"
	"iter"
	"maps"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/regular"
)

// Releases returns the releases of a stored graph: the nodes with an image. An edge
// is a predecessor that its target names; if that is not a release, a successor
// that its source names. source is how problems name the graph.
//
// A conditional update was declared by a release before a tree put it under a risk,
// so it is a predecessor as well: without the risk in the tree of the next build it
// is without condition. The key previous.remove_regex, which builders write from
// trees, is left out of the metadata for the same reason: the tree of the next
// build decides anew. What a builder removed is not in the graph and does not
// return. Channels stay, and are joined with those of the tree.
func (g *RawGraph) Releases(source string) []Release {
	var releases []Release
	place := make([]int, len(g.Nodes)) // of each node in releases, from 1
	index := make(map[string]int, len(g.Nodes))
	for i, n := range g.Nodes {
		index[n.Version] = i
		if n.Metadata == nil {
			continue
		}
		metadata := maps.Clone(n.Metadata)
		delete(metadata, graph.MetadataPreviousRemoveRegex)
		releases = append(releases, Release{Version: n.Version, Arch: n.Metadata[graph.MetadataArch], Image: n.Payload,
			Digest: n.Metadata[graph.MetadataManifestRef], Metadata: metadata, Source: source})
		place[i] = len(releases)
	}
	declare := func(from, to int) {
		switch {
		case place[to] > 0:
			r := &releases[place[to]-1]
			r.Previous = append(r.Previous, g.Nodes[from].Version)
		case place[from] > 0:
			r := &releases[place[from]-1]
			r.Next = append(r.Next, g.Nodes[to].Version)
		}
	}
	for _, e := range g.Edges {
		declare(e[0], e[1])
	}
	for _, c := range g.ConditionalEdges {
		for _, p := range c.Edges {
			from, known := index[p.From]
			to, ok := index[p.To]
			if known && ok {
				declare(from, to)
			}
		}
	}
	return releases
}

// Stored is a source of the releases of a graph in a file, as a builder serves it;
// see [RawGraph.Releases].
type Stored struct {
	FS      fs.FS
	Name    string
	Options RawOptions
}

// Releases implements [ReleaseSource]. A graph that cannot be read, with the errors
// of [DecodeRaw], has none.
func (s Stored) Releases(ctx context.Context) iter.Seq2[Release, error] {
	return func(yield func(Release, error) bool) {
		f, err := regular.Open(s.FS, s.Name)
		if err != nil {
			yield(Release{Source: s.Name}, err)
			return
		}
		defer f.Close()
		g, err := DecodeRaw(f, s.Options)
		if err != nil {
			yield(Release{Source: s.Name}, err)
			return
		}
		for _, r := range g.Releases(s.Name) {
			if ctx.Err() != nil || !yield(r, nil) {
				return
			}
		}
	}
}
