package graphdata_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// TestMirrorRealTree: clusters of today's tree get over a new major, from one minor
// with extended support to another, and past channels that are empty. What the tree
// is cut down to for the mirror still has each way.
func TestMirrorRealTree(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine computes for long: nothing that a race detector looks for")
	}
	tree := loadReal(t)
	releases := approximated(tree)
	channels := []string{"eus-4.12", "eus-4.13", "eus-4.14", "eus-4.16", "candidate-4.22", "candidate-4.23", "candidate-5.0"}
	wants := []path.Want{
		{Cluster: "old", From: "4.12.40", To: "4.16.20", Arch: "amd64"},
		{Cluster: "arm", From: "4.14.20", To: "4.16.20", Arch: "arm64"},
		{Cluster: "new", From: "4.22.0-rc.0", To: "5.0.0-ec.1", Arch: "amd64"},
	}
	for i := range wants {
		wants[i].Policy.Edges = path.AnyEdge
	}
	mirror := func(s *graphdata.Snapshot) *path.MirrorPlan {
		var graphs []path.ChannelGraph
		for _, arch := range []string{"amd64", "arm64"} {
			for _, channel := range channels {
				graphs = append(graphs, path.ChannelGraph{Channel: channel, Arch: arch, Graph: s.Graph(channel, arch)})
			}
		}
		networks := checktest.Get(path.ByArchitecture(t.Context(), path.NetworkOptions{}, graphs...))(t)
		return checktest.Get(path.Mirror(t.Context(), networks, wants))(t)
	}
	ways := func(plan *path.MirrorPlan) (texts []string) {
		for _, w := range plan.Ways {
			texts = append(texts, w.Want.Cluster+": "+w.Path.String())
		}
		return texts
	}
	plan := mirror(build(t, tree, releases, graphdata.BuildOptions{}))
	t.Logf("%d releases\n%s", len(plan.Releases), strings.Join(ways(plan), "\n"))
	copied := map[string]bool{}
	for _, r := range plan.Releases {
		copied[r.Release.Version+"+"+r.Arch] = true
	}
	var there []graphdata.Release
	for _, r := range releases {
		if copied[r.Version+"+"+r.Arch] {
			there = append(there, r)
		}
	}
	alone := build(t, graphdata.Subset(tree, plan.Versions()), there, graphdata.BuildOptions{Partial: true})
	checktest.Same(t, ways(plan), ways(mirror(alone)))
}
