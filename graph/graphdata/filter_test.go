package graphdata_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
)

// drawing shows a whole graph as picture shows that of a channel.
func drawing(g *graphdata.RawGraph) []string {
	var all []string
	for i, n := range g.Nodes {
		all = append(all, n.Version)
		for _, e := range g.Edges {
			if e[0] == i {
				all = append(all, n.Version+" → "+g.Nodes[e[1]].Version)
			}
		}
	}
	conditional := lines(&graphdata.RawGraph{ConditionalEdges: g.ConditionalEdges})
	return append(all, conditional...)
}

// sorted sorts the conditional updates at the end of a picture.
func sorted(picture []string) []string {
	at := slices.IndexFunc(picture, func(line string) bool { return line[len(line)-1] == ']' })
	if at >= 0 {
		slices.Sort(picture[at:])
	}
	return picture
}

// TestFilterProperties: the two filters make of the whole graph what a snapshot
// serves, strict ones in both orders.
func TestFilterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, releases := input(t)
		compat := rapid.Bool().Draw(t, "compat")
		s, err := graphdata.Build(tree, releases, graphdata.BuildOptions{Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		full := s.Full()
		channel := rapid.SampledFrom([]string{"candidate-1.1", "fast-1.1", "stable-1.1", "stable-1"}).Draw(t, "channel")
		arch := rapid.SampledFrom([]string{"amd64", "s390x", "90", "arm64"}).Draw(t, "arch")
		want := sorted(picture(s.Graph(channel, arch)))
		part, err := filterArch(filterChannel(full, channel, compat), arch, compat)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, drawing(part)); diff != "" {
			t.Fatalf("-snapshot +filters\n%s", diff)
		}
		other, err := filterArch(full, arch, compat)
		if err != nil {
			t.Fatal(err)
		}
		if compat {
			return // the service's filters do not commute: the second one knows fewer versions
		}
		if diff := cmp.Diff(part, filterChannel(other, channel, compat)); diff != "" {
			t.Fatalf("-channel, arch +arch, channel\n%s", diff)
		}
		if diff := cmp.Diff(full, s.Full()); diff != "" {
			t.Fatalf("the graph was changed: %s", diff)
		}
	})
}

// TestFilters: what no snapshot has: pairs of unknown versions, names that hold
// others, versions that become one.
func TestFilters(t *testing.T) {
	node := func(version, arch, channels string) graphdata.RawNode {
		return graphdata.RawNode{Version: version, Payload: "p", Metadata: map[string]string{graph.MetadataArch: arch, graph.MetadataChannels: channels}}
	}
	g := &graphdata.RawGraph{
		Nodes:            []graphdata.RawNode{node("1.0.0+amd64", "amd64", "a-1.1"), node("1.0.1+amd64.x", "x, amd64", " a-1.10 ,a-1.1"), node("1.0.2+x", "", "a-1.1"), {Version: "1.0.3+amd64"}},
		Edges:            [][2]int{{0, 1}, {1, 2}, {2, 3}},
		ConditionalEdges: []graph.ConditionalEdges{{Edges: []graph.VersionPair{{From: "9.0.0+amd64", To: "1.0.0+amd64"}, {From: "1.0.3+amd64", To: "1.0.0+amd64"}}}},
	}
	for _, c := range []struct {
		channel string
		compat  bool
		want    []string
	}{
		{"a-1.1", false, []string{"1.0.0+amd64", "1.0.0+amd64 → 1.0.1+amd64.x", "1.0.1+amd64.x", "1.0.1+amd64.x → 1.0.2+x", "1.0.2+x"}},
		{"a-1.1", true, []string{"1.0.0+amd64", "1.0.0+amd64 → 1.0.1+amd64.x", "1.0.1+amd64.x", "1.0.1+amd64.x → 1.0.2+x", "1.0.2+x", "9.0.0+amd64 → 1.0.0+amd64 []"}},
		{"a-1.10", false, []string{"1.0.1+amd64.x"}},
		{"a-1", false, nil},
	} {
		if diff := cmp.Diff(c.want, drawing(filterChannel(g, c.channel, c.compat))); diff != "" {
			t.Errorf("%s, compat %v: -want +got\n%s", c.channel, c.compat, diff)
		}
	}
	for arch, want := range map[string][]string{"amd64": {"1.0.0", "1.0.0 → 1.0.1+x", "1.0.1+x"}, "x": {"1.0.1+amd64"}, "": nil} {
		part, err := filterArch(g, arch, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, drawing(part)); diff != "" {
			t.Errorf("%s: -want +got\n%s", arch, diff)
		}
	}
	g.Nodes = append(g.Nodes, node("1.0.0", "amd64", ""))
	if _, err := filterArch(g, "amd64", false); err == nil || err.Error() != "releases 1.0.0+amd64 and 1.0.0 are both 1.0.0 on amd64" {
		t.Error(err)
	}
	if part, err := filterArch(g, "amd64", true); err != nil || len(part.Nodes) != 3 {
		t.Errorf("%+v, %v", part, err)
	}
}
