package graphdata_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var (
	someVersions    = []string{"1.0.0", "1.0.1", "1.0.2", "1.1.0-rc.0", "1.1.0", "1.1.1"}
	someArches      = []string{"amd64", "s390x"}
	someExpressions = []string{".*", "1[.]0[.]", "^1[.]0[.]1[+].*$", "[+]s390x", "0$", "1[.]1[.]0"}
)

// input draws a tree whose channels lie within each other, and releases that lead
// upwards.
func input(t *rapid.T) (*graphdata.Tree, []graphdata.Release) {
	tree := &graphdata.Tree{}
	versions := someVersions
	for _, name := range []string{"candidate-1.1", "fast-1.1", "stable-1.1"} {
		if len(versions) > 0 {
			versions = rapid.SliceOfDistinct(rapid.SampledFrom(versions), rapid.ID[string]).Draw(t, name)
		}
		tree.Channels = append(tree.Channels, graphdata.Channel{File: name, Name: name, Versions: entries(versions...)})
	}
	for range rapid.IntRange(0, 4).Draw(t, "edges") {
		to, from := rapid.SampledFrom(someVersions).Draw(t, "to"), rapid.SampledFrom(someExpressions).Draw(t, "from")
		if rapid.Bool().Draw(t, "one architecture") {
			to += "+" + rapid.SampledFrom(someArches).Draw(t, "arch")
		}
		if rapid.Bool().Draw(t, "drop") {
			tree.Drops = append(tree.Drops, drop(to, from))
		} else {
			tree.Risks = append(tree.Risks, risk(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "name"), to, from))
		}
	}
	var releases []graphdata.Release
	for i, v := range someVersions {
		for _, arch := range someArches {
			if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
				previous := slices.DeleteFunc(slices.Clone(someVersions[:i]), func(string) bool { return rapid.IntRange(0, 2).Draw(t, "names") == 0 })
				releases = append(releases, release(v, arch, previous))
			}
		}
	}
	return tree, releases
}

// updates are the updates of a graph, and whether each is without condition.
func updates(g *graph.Graph) map[[2]string]bool {
	all := map[[2]string]bool{}
	for i, n := range g.Nodes() {
		for e := range g.Edges(i) {
			all[[2]string{n.Version.Original(), g.Node(e.To).Version.Original()}] = true
		}
	}
	for _, c := range g.ConditionalEdges() {
		for _, p := range c.Edges {
			all[[2]string{p.From, p.To}] = false
		}
	}
	return all
}

// TestBuildProperties: the order of the input does not matter; no update that a
// drop matches is served; what is served in a channel is served in those around it.
func TestBuildProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := input(t)
		s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
		other := &graphdata.Tree{
			Channels: rapid.Permutation(tree.Channels).Draw(t, "channels"),
			Drops:    rapid.Permutation(tree.Drops).Draw(t, "drops"),
			Risks:    rapid.Permutation(tree.Risks).Draw(t, "risks"),
		}
		shuffled, err := graphdata.Build(other, rapid.Permutation(releases).Draw(t, "releases"), graphdata.BuildOptions{})
		if err != nil || !bytes.Equal(encoded(s), encoded(shuffled)) {
			t.Fatalf("another order makes another graph: %v", err)
		}
		for _, arch := range s.Arches() {
			var around map[[2]string]bool
			for _, channel := range []string{"candidate-1.1", "fast-1.1", "stable-1.1"} {
				served := updates(s.Graph(channel, arch))
				for pair, free := range served {
					if around != nil {
						if was, ok := around[pair]; !ok || was != free {
							t.Fatalf("%s: %v is not so in the channel around it", channel, pair)
						}
					}
					for _, d := range tree.Drops {
						re := checktest.Must(graphdata.CompileFrom(d.From))
						if (d.To == pair[1] || d.To == pair[1]+"+"+arch) && re.MatchString(pair[0]+"+"+arch) {
							t.Fatalf("%s: %v is served in spite of %v", channel, pair, d)
						}
					}
					conditional := slices.ContainsFunc(s.Why(pair[0], pair[1], arch), func(c graphdata.Cause) bool { return c.Effect == "Conditional" })
					if conditional == free {
						t.Fatalf("%s: %v is free %v, and Why says %v", channel, pair, free, s.Why(pair[0], pair[1], arch))
					}
				}
				around = served
			}
		}
	})
}
