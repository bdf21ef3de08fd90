package graphdata_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// shared is what tests share: making it takes longer than using it.
var shared struct {
	sync.Mutex
	tree     *graphdata.Tree
	releases []graphdata.Release
}

// approximated are the releases of approximate, in a list of the caller's own.
func approximated(tree *graphdata.Tree) []graphdata.Release {
	shared.Lock()
	defer shared.Unlock()
	if tree != shared.tree {
		return approximate(tree)
	}
	if shared.releases == nil {
		shared.releases = approximate(tree)
	}
	return slices.Clone(shared.releases)
}

// approximate are releases for all versions of a tree's channels, with the
// predecessors that builds were told to name.
func approximate(tree *graphdata.Tree) []graphdata.Release {
	seen := map[string]bool{}
	var known []string
	for _, c := range tree.Channels {
		for _, e := range c.Versions {
			v, _, _ := strings.Cut(e.Version, "+")
			if !seen[v] {
				seen[v] = true
				known = append(known, v)
			}
		}
	}
	slices.SortFunc(known, graph.CompareVersions)
	var releases []graphdata.Release
	for _, arch := range []string{"amd64", "arm64", "multi", "ppc64le", "s390x"} {
		for _, v := range known {
			releases = append(releases, release(v, arch, tree.Suggested(v, arch, known)))
		}
	}
	return releases
}

// loadReal returns the real tree, which tests do not change.
func loadReal(tb testing.TB) *graphdata.Tree {
	shared.Lock()
	defer shared.Unlock()
	if shared.tree != nil {
		return shared.tree
	}
	tree := checktest.Must(graphdata.Load(tb.Context(), realTree(tb), graphdata.LoadOptions{}))
	shared.tree = tree
	return tree
}

// TestBuildRealTree: every channel of the real tree builds for every architecture,
// package graph decodes it, and all is the same whatever the order of the input.
func TestBuildRealTree(t *testing.T) {
	tree := loadReal(t)
	releases := approximated(tree)
	s := build(t, tree, releases, graphdata.BuildOptions{})
	r := s.Report()
	if len(r.Problems) > 0 {
		t.Errorf("%d problems, the first is %v", len(r.Problems), r.Problems[0])
	}
	if len(s.Arches()) != 5 || len(s.Channels("amd64")) != len(tree.Channels) {
		t.Errorf("%v, %d channels", s.Arches(), len(s.Channels("amd64")))
	}
	t.Logf("%d releases, %d edges, %d conditional, %d removed, %d unknown targets, %d unknown versions", len(releases), r.Edges, r.Conditional, r.Removed, len(r.UnknownTargets), len(r.UnknownVersions))
	const arch = "arm64" // the others are alike
	for _, channel := range s.Channels(arch) {
		g := s.Graph(channel, arch)
		decoded, err := graph.DecodeBytes(g.AppendJSON(nil), graph.DecodeOptions{})
		if err != nil {
			t.Fatalf("%s: %v", channel, err)
		}
		if !decoded.Equal(g) {
			t.Errorf("%s: another graph comes back", channel)
		}
	}
	if israce.Enabled {
		return // the properties permute small input
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(releases), func(i, j int) { releases[i], releases[j] = releases[j], releases[i] })
	shuffled := *tree
	shuffled.Channels, shuffled.Risks = slices.Clone(tree.Channels), slices.Clone(tree.Risks)
	random.Shuffle(len(shuffled.Channels), func(i, j int) {
		shuffled.Channels[i], shuffled.Channels[j] = shuffled.Channels[j], shuffled.Channels[i]
	})
	again := build(t, &shuffled, releases, graphdata.BuildOptions{})
	if !reflect.DeepEqual(s.Full(), again.Full()) {
		t.Error("another order of releases, channels and risks makes another graph")
	}
}
