package graphdata_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// TestConnectivityProperties: the rules on ways out and patch updates, against a
// plain search over the graphs that are served.
func TestConnectivityProperties(t *testing.T) {
	pool := []string{"1.0.0", "1.0.1", "1.1.0-rc.0", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "1.2.2"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 2, -1, rapid.ID[string]).Draw(t, name)
		}
		tree := small(map[string][]string{"candidate-1.1": draw("candidate-1.1"), "candidate-1.2": draw("candidate-1.2"), "candidate-1.3": draw("candidate-1.3")})
		fast := graphdata.Channel{File: "channels/fast-1.2.yaml", Name: "fast-1.2", Versions: entries(draw("fast-1.2")...)}
		tree.Channels = append(tree.Channels, fast)
		for range rapid.IntRange(0, 3).Draw(t, "edges") {
			from := rapid.SampledFrom([]string{".*", "^1[.]0", "^1[.]2"}).Draw(t, "from")
			to := rapid.SampledFrom(pool).Draw(t, "to")
			b := drop(to, from)
			if rapid.Bool().Draw(t, "risk") {
				b = risk("A", to, from)
			}
			addEdges(tree, []graphdata.BlockedEdge{b})
		}
		var releases []graphdata.Release
		for i, v := range pool {
			previous := slices.DeleteFunc(slices.Clone(pool[:i]), func(string) bool { return rapid.Bool().Draw(t, "not") })
			releases = append(releases, release(v, "amd64", previous))
		}
		s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
		var got, want []string
		for _, p := range maintain.Lint(tree, s, maintain.LintOptions{}) {
			if p.File == fast.File && slices.Contains(snapshotRules, p.Rule) {
				got = append(got, p.Rule+" "+fast.Versions[p.Line-1].Version)
			}
		}
		in := func(v string) bool {
			return slices.ContainsFunc(fast.Versions, func(e graphdata.Entry) bool { return e.Version == v })
		}
		for _, e := range fast.Versions {
			if needsWay(e.Version) && !hasWay(s, e.Version, in) {
				want = append(want, "updates-out "+e.Version)
			}
		}
		for _, v := range needPatch(s, fast.Versions) {
			want = append(want, "updates-patch "+v)
		}
		slices.Sort(got)
		slices.Sort(want)
		checktest.Same(t, want, got)
	})
}

func needsWay(version string) bool { return graph.CompareVersions(version, "1.2.0-0") < 0 }

// hasWay searches forwards, over the candidate channels after a version's minor.
func hasWay(s *graphdata.Snapshot, version string, in func(string) bool) bool {
	offered := map[[2]string]bool{}
	for minor := version[2] - '0' + 1; minor <= 2; minor++ {
		for pair := range updates(s.Graph(fmt.Sprintf("candidate-1.%d", minor), "amd64")) {
			offered[pair] = true
		}
	}
	seen := map[string]bool{version: true}
	for queue := []string{version}; len(queue) > 0; queue = queue[1:] {
		if !needsWay(queue[0]) {
			return true
		}
		for pair := range offered {
			if pair[0] == queue[0] && in(pair[1]) && !seen[pair[1]] {
				seen[pair[1]] = true
				queue = append(queue, pair[1])
			}
		}
	}
	return false
}

// needPatch are the versions of the highest minor without a free update, except
// those that lead to one of them.
func needPatch(s *graphdata.Snapshot, versions []graphdata.Entry) (told []string) {
	var sorted []string
	for _, e := range versions {
		sorted = append(sorted, e.Version)
	}
	slices.SortFunc(sorted, graph.CompareVersions)
	highest := sorted[len(sorted)-1]
	served := updates(s.Graph("fast-1.2", "amd64"))
	for _, v := range slices.Backward(sorted[:len(sorted)-1]) {
		if v[:3] != highest[:3] || v == "1.1.0-rc.0" {
			continue
		}
		free, toTold := false, false
		for pair, unconditional := range served {
			if pair[0] == v {
				free = free || unconditional
				toTold = toTold || slices.Contains(told, pair[1])
			}
		}
		if !free && !toTold {
			told = append(told, v)
		}
	}
	return told
}
