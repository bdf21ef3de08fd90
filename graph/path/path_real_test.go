package path_test

import (
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// Every pair of a real channel, against hop counts by repeated relaxation.
func TestRealPaths(t *testing.T) {
	for name, sink := range map[string]string{graphtest.RealGraph: "4.8.54", "candidate-4.12_multi.json": "4.12.0-rc.4"} {
		g := checktest.Must(graph.DecodeBytes(graphtest.ReadGraph(t, name), graph.DecodeOptions{}))
		n := network(t, path.NetworkOptions{}, channel("c", g))
		if heads := n.Heads(); len(heads) != 1 || heads[0].Version != sink {
			t.Errorf("%s: heads %v", name, heads)
		}
		const far = 1000
		for from, node := range g.Nodes() {
			hops := make([]int, g.Len())
			for i := range hops {
				hops[i] = far
			}
			hops[from] = 0
			for changed := true; changed; {
				changed = false
				for i := range hops {
					for e := range g.Edges(i) {
						guarded := slices.ContainsFunc(slices.Collect(conditionalPairs(g)), func(p graph.VersionPair) bool {
							return p.From == g.Node(i).Version.Original() && p.To == g.Node(e.To).Version.Original()
						})
						if !guarded && hops[i]+1 < hops[e.To] {
							hops[e.To] = hops[i] + 1
							changed = true
						}
					}
				}
			}
			reached := checktest.Must(n.Reachable(node.Version.Original(), path.Policy{}))
			for _, r := range reached {
				if i, _ := indexOf(g, r.Release.Version); hops[i] != r.Hops {
					t.Errorf("%s to %s: %d hops, want %d", node.Version, r.Release.Version, r.Hops, hops[i])
				}
			}
			for i, other := range g.Nodes() {
				p, err := n.ShortestPath(node.Version.Original(), other.Version.Original(), path.Policy{})
				switch {
				case hops[i] == far:
					checktest.ErrorIs(t, path.ErrNoPath, err)
				case err != nil || len(p.Hops) != hops[i]:
					t.Errorf("%s to %s: %v, %v, want %d hops", node.Version, other.Version, p, err, hops[i])
				}
			}
		}
	}
}

func conditionalPairs(g *graph.Graph) func(func(graph.VersionPair) bool) {
	return func(yield func(graph.VersionPair) bool) {
		for _, c := range g.ConditionalEdges() {
			for _, p := range c.Edges {
				if !yield(p) {
					return
				}
			}
		}
	}
}
