package graphdata_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// effect is what a snapshot serves: releases and updates, as texts.
type effect struct {
	nodes   map[[2]string]string       // version and architecture → state
	updates map[[4]string]string       // from, to, architecture and channel → offer
	risks   map[string]map[string]bool // name → contents
}

func nothing() effect {
	return effect{map[[2]string]string{}, map[[4]string]string{}, map[string]map[string]bool{}}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// effectOf reads what is served, and releases that are in no channel.
func effectOf(s *graphdata.Snapshot) effect {
	e := nothing()
	for _, n := range s.Full().Nodes {
		arch := n.Metadata[graph.MetadataArch]
		if arch == "" {
			continue
		}
		m := maps.Clone(n.Metadata)
		delete(m, graph.MetadataArch)
		delete(m, graph.MetadataPreviousRemoveRegex)
		version, _, _ := strings.Cut(n.Version, "+")
		e.nodes[[2]string{version, arch}] = text(maintain.NodeState{Image: n.Payload, Metadata: m})
	}
	for _, group := range s.Full().ConditionalEdges {
		e.content(group.Risks)
	}
	for _, arch := range s.Arches() {
		for _, channel := range s.Channels(arch) {
			g := s.Graph(channel, arch)
			for i, n := range g.Nodes() {
				for to := range g.Edges(i) {
					e.updates[[4]string{n.Version.Original(), g.Node(to.To).Version.Original(), arch, channel}] = text(maintain.Offer{Kind: "Recommended"})
				}
			}
			for _, group := range g.ConditionalEdges() {
				for _, p := range group.Edges {
					e.updates[[4]string{p.From, p.To, arch, channel}] = text(maintain.Offer{Kind: "Conditional", Risks: group.Risks})
				}
			}
		}
	}
	return e
}

func (e effect) content(risks []configv1.ConditionalUpdateRisk) {
	for _, r := range risks {
		if e.risks[r.Name] == nil {
			e.risks[r.Name] = map[string]bool{}
		}
		e.risks[r.Name][text(r)] = true
	}
}

// apply makes an effect another one, and checks that it was as the changes say.
func (e effect) apply(t checktest.T, c *maintain.Changes) {
	for _, n := range c.Nodes {
		key := [2]string{n.Version, n.Arch}
		was := ""
		if n.Was != nil {
			was = text(n.Was)
		}
		checktest.Equal(t, was, e.nodes[key], "%v was", key)
		delete(e.nodes, key)
		if n.Is != nil {
			e.nodes[key] = text(n.Is)
		}
	}
	for _, u := range c.Updates {
		for _, channel := range u.Channels {
			key := [4]string{u.From, u.To, u.Arch, channel}
			was := text(u.Was)
			if u.Was.Kind == "None" {
				was = ""
			}
			checktest.Equal(t, was, e.updates[key], "%v was", key)
			delete(e.updates, key)
			if u.Is.Kind != "None" {
				e.updates[key] = text(u.Is)
			}
		}
	}
	for _, r := range c.Risks {
		delete(e.risks, r.Name)
		e.content(r.Is)
	}
}

// reversed is the way back.
func reversed(c *maintain.Changes) *maintain.Changes {
	back := &maintain.Changes{}
	for _, n := range c.Nodes {
		n.Was, n.Is, n.Joined, n.Left = n.Is, n.Was, n.Left, n.Joined
		back.Nodes = append(back.Nodes, n)
	}
	for _, u := range c.Updates {
		u.Was, u.Is = u.Is, u.Was
		back.Updates = append(back.Updates, u)
	}
	for _, r := range c.Risks {
		r.Was, r.Is = r.Is, r.Was
		back.Risks = append(back.Risks, r)
	}
	return back
}

// sortUpdates: an update that changes in two ways has them in an order that is
// another on the way back.
func sortUpdates(c *maintain.Changes) *maintain.Changes {
	slices.SortFunc(c.Updates, func(a, b maintain.UpdateChange) int { return strings.Compare(text(a), text(b)) })
	return c
}

// TestDiffProperties: equal graphs have no changes; changes make one graph the
// other; the way back is the same, the other way round; nothing is told that does
// not change.
func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := func() *graphdata.Snapshot {
			tree, releases := input(t)
			for i := range tree.Risks {
				if rapid.Bool().Draw(t, "another text") {
					tree.Risks[i].Risk.Message = "Another text."
				}
			}
			for i := range releases {
				releases[i].Image += rapid.SampledFrom([]string{"", "-b"}).Draw(t, "image")
			}
			s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
			return s
		}
		a, b := snapshot(), snapshot()
		for _, pair := range [][2]*graphdata.Snapshot{{a, b}, {a, nil}, {nil, b}} {
			changes := maintain.Diff(pair[0], pair[1])
			was, is := nothing(), nothing()
			if pair[0] != nil {
				was = effectOf(a)
			}
			if pair[1] != nil {
				is = effectOf(b)
			}
			was.apply(t, changes)
			checktest.Same(t, is, was, cmp.AllowUnexported(effect{}))
			checktest.SameIn(t, "the way back", sortUpdates(reversed(changes)), sortUpdates(maintain.Diff(pair[1], pair[0])))
			for _, n := range changes.Nodes {
				if n.Was != nil && n.Is != nil && text(n.Was) == text(n.Is) {
					t.Fatalf("%+v does not change", n)
				}
				if joined := memberships(n.Is, n.Was); !slices.Equal(joined, n.Joined) {
					t.Fatalf("%+v joins %v", n, joined)
				}
			}
			for _, u := range changes.Updates {
				if text(u.Was) == text(u.Is) || len(u.Channels) == 0 {
					t.Fatalf("%+v does not change", u)
				}
			}
			checktest.Equal(t, changes.String() == "", changes.Empty(), "empty %v: %s", changes.Empty(), changes)
		}
		if c := maintain.Diff(a, a); !c.Empty() {
			t.Fatalf("a graph differs from itself:\n%s", c)
		}
	})
}

// memberships are the channels of a and not of b.
func memberships(a, b *maintain.NodeState) (names []string) {
	of := func(s *maintain.NodeState) []string {
		if s == nil || s.Metadata[graph.MetadataChannels] == "" {
			return nil
		}
		return strings.Split(s.Metadata[graph.MetadataChannels], ",")
	}
	for _, name := range of(a) {
		if !slices.Contains(of(b), name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, graph.CompareChannels)
	return names
}

// TestDiff: what is told of each kind of change.
func TestDiff(t *testing.T) {
	type edit func(tree *graphdata.Tree, releases []graphdata.Release) []graphdata.Release
	of := func(change func(*graphdata.Tree)) edit {
		return func(tree *graphdata.Tree, releases []graphdata.Release) []graphdata.Release {
			change(tree)
			return releases
		}
	}
	for _, c := range []struct {
		name string
		edit edit
		want []string
	}{
		{"nothing", of(func(*graphdata.Tree) {}), nil},
		{"a version joins a channel", of(func(tree *graphdata.Tree) {
			tree.Channels[1].Versions = append(tree.Channels[1].Versions, graphdata.Entry{Version: "1.0.0"})
		}), []string{"release 1.0.0 joins fast-1.1 (amd64)", "updates to 1.0.1 from 1.0.0 appear in fast-1.1 (amd64)"}},
		{"a version leaves a channel", of(func(tree *graphdata.Tree) { tree.Channels[0].Versions = entries("1.0.0", "1.0.1") }),
			[]string{"release 1.1.0 leaves candidate-1.1 (amd64, s390x)", "updates to 1.1.0 from 1.0.1 vanish in candidate-1.1 (amd64)"}},
		{"a channel vanishes", of(func(tree *graphdata.Tree) { tree.Channels = tree.Channels[:1] }),
			[]string{"release 1.0.1 leaves fast-1.1 (amd64)", "release 1.1.0 leaves fast-1.1 (amd64)", "updates to 1.1.0 from 1.0.1 vanish in fast-1.1 (amd64)"}},
		{"a drop goes", of(func(tree *graphdata.Tree) { tree.Drops = nil }),
			[]string{"updates to 1.1.0 from 1.0.0 appear under R in candidate-1.1 (amd64)"}},
		{"a drop comes", of(func(tree *graphdata.Tree) { addEdges(tree, []graphdata.BlockedEdge{drop("1.0.1", ".*")}) }),
			[]string{"updates to 1.0.1 from 1.0.0 vanish in candidate-1.1 (amd64)"}},
		{"a risk goes", of(func(tree *graphdata.Tree) { tree.Risks = nil }),
			[]string{"risk R vanishes", "updates to 1.1.0 from 1.0.1 become unconditional, and were under R in candidate-1.1, fast-1.1 (amd64)"}},
		{"a risk comes", of(func(tree *graphdata.Tree) { addEdges(tree, []graphdata.BlockedEdge{risk("S", "1.0.1", ".*")}) }),
			[]string{"risk S appears", "updates to 1.0.1 from 1.0.0 become conditional under S in candidate-1.1 (amd64)"}},
		{"one more risk", of(func(tree *graphdata.Tree) { addEdges(tree, []graphdata.BlockedEdge{risk("S", "1.1.0", ".*")}) }),
			[]string{"risk S appears", "updates to 1.1.0 from 1.0.1 are under R, S, and were under R in candidate-1.1, fast-1.1 (amd64)"}},
		{"a risk says something else", of(func(tree *graphdata.Tree) { tree.Risks[0].Risk.Message = "New." }),
			[]string{"risk R says something else", "updates to 1.1.0 from 1.0.1 stay in candidate-1.1, fast-1.1 under R, which says something else (amd64)"}},
		{"a release of another architecture", func(_ *graphdata.Tree, releases []graphdata.Release) []graphdata.Release {
			return append(releases, release("1.0.1", "s390x", nil))
		}, []string{"release 1.0.1 appears; joins candidate-1.1, fast-1.1 (s390x)", "updates to 1.1.0 from 1.0.1 appear under R in candidate-1.1 (s390x)"}},
		{"a release vanishes, another image and other metadata", func(_ *graphdata.Tree, releases []graphdata.Release) []graphdata.Release {
			releases[1].Image, releases[1].Metadata["url"] = "other", "x"
			return releases[1:]
		}, []string{"release 1.0.0 vanishes; leaves candidate-1.1 (amd64)", "release 1.0.1 has another image; has other metadata: url (amd64)", "updates to 1.0.1 from 1.0.0 vanish in candidate-1.1 (amd64)"}},
		{"a release without a channel", func(_ *graphdata.Tree, releases []graphdata.Release) []graphdata.Release {
			return append(releases, release("1.0.5", "amd64", []string{"1.0.1"}))
		}, []string{"release 1.0.5 appears (amd64)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, releases := worked()
			was := build(t, tree, releases, graphdata.BuildOptions{})
			tree, releases = worked()
			releases = c.edit(tree, releases)
			got := maintain.Diff(was, build(t, tree, releases, graphdata.BuildOptions{})).String()
			want := strings.Join(append(c.want, ""), "\n")
			checktest.Same(t, want, got)
		})
	}
}

// TestDiffArchitectures: stored releases may be of several architectures.
func TestDiffArchitectures(t *testing.T) {
	tree := small(map[string][]string{"fast-1.1": {"1.0.0", "1.1.0"}})
	stored := func(arches string) *graphdata.Snapshot {
		return build(t, tree, []graphdata.Release{release("1.0.0", "", nil, graph.MetadataArch, arches), release("1.1.0", "", []string{"1.0.0"}, graph.MetadataArch, arches)}, graphdata.BuildOptions{})
	}
	want := "release 1.0.0 appears; joins fast-1.1 (s390x)\nrelease 1.1.0 appears; joins fast-1.1 (s390x)\nupdates to 1.1.0 from 1.0.0 appear in fast-1.1 (s390x)\n"
	checktest.Same(t, want, maintain.Diff(stored("amd64"), stored("amd64,s390x")).String())
}

// TestDiffTogether: sources and architectures that change alike are on one line.
func TestDiffTogether(t *testing.T) {
	var releases []graphdata.Release
	for _, arch := range []string{"amd64", "s390x"} {
		releases = append(releases, release("1.0.0", arch, nil), release("1.0.1", arch, nil), release("1.1.0", arch, []string{"1.0.0", "1.0.1"}))
	}
	tree := small(map[string][]string{"fast-1.1": {"1.0.0", "1.0.1", "1.1.0"}, "candidate-1.1": {"1.0.0", "1.0.1", "1.1.0"}})
	other := *tree
	addEdges(&other, []graphdata.BlockedEdge{risk("A", "1.1.0", ".*")})
	changes := maintain.Diff(build(t, tree, releases, graphdata.BuildOptions{}), build(t, &other, releases, graphdata.BuildOptions{}))
	want := "risk A appears\nupdates to 1.1.0 from 1.0.0, 1.0.1 become conditional under A in candidate-1.1, fast-1.1 (amd64, s390x)\n"
	checktest.Same(t, want, changes.String())
}

func BenchmarkDiff(b *testing.B) {
	tree := loadReal(b)
	releases := approximated(tree)
	was := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
	other := *tree
	other.Risks = tree.Risks[:len(tree.Risks)/2]
	is := checktest.Must(graphdata.Build(&other, releases, graphdata.BuildOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		changes := maintain.Diff(was, is)
		b.ReportMetric(float64(len(changes.Updates)), "updates")
	}
}
