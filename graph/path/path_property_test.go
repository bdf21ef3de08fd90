package path_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"

	configv1 "github.com/openshift/api/config/v1"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// reference is a network as simple as can be: it lists every path without loops
// and sorts them.
type reference struct {
	versions []string // ascending
	edges    map[[2]string]refEdge
	present  string
}

type refEdge struct {
	channels []string
	judged   string
	withheld bool
	risks    map[string]string // name → verdict as if alone
	guarded  bool
}

var refVersions = []string{"4.1.0", "4.1.1-rc.1", "4.1.1", "4.2.0", "4.2.1", "4.3.0"}

// drawChannels draws graphs of one to three channels in the newest first order.
func drawChannels(t *rapid.T, cyclic bool) []path.ChannelGraph {
	names := []string{"stable-4.3", "fast-4.2", "zeta"}[:rapid.IntRange(1, 3).Draw(t, "channels")]
	var all []path.ChannelGraph
	for _, name := range names {
		d := graph.Data{}
		picked := rapid.SliceOfNDistinct(rapid.SampledFrom(refVersions), 2, 6, rapid.ID[string]).Draw(t, "versions")
		for _, v := range picked {
			d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(v), Image: "image-of-" + v})
		}
		index := rapid.IntRange(0, len(picked)-1)
		pair := func() (int, int) {
			a, b := index.Draw(t, "from"), index.Draw(t, "to")
			if !cyclic && graph.CompareVersions(picked[a], picked[b]) > 0 {
				a, b = b, a
			}
			return a, b
		}
		for range rapid.IntRange(3, 16).Draw(t, "edges") {
			a, b := pair()
			d.Edges = append(d.Edges, [2]int{a, b})
		}
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			a, b := pair()
			c := graph.ConditionalEdges{Edges: []graph.VersionPair{{From: picked[a], To: picked[b]}}}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 2, rapid.ID[string]).Draw(t, "risks") {
				r := graphtest.Risk(name, "-")
				r.MatchingRules = []configv1.ClusterCondition{rapid.SampledFrom([]configv1.ClusterCondition{graphtest.PromQL("T"), graphtest.PromQL("F"), graphtest.PromQL("U"), {Type: "CEL"}}).Draw(t, "rule")}
				c.Risks = append(c.Risks, r)
			}
			d.ConditionalEdges = append(d.ConditionalEdges, c)
		}
		g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
		all = append(all, path.ChannelGraph{Channel: name, Graph: g})
	}
	return all
}

func verdictOf(rule configv1.ClusterCondition) string {
	switch rule.PromQL.PromQL {
	case "T":
		return "NotRecommended"
	case "F":
		return "Recommended"
	}
	return "Unknown"
}

func newReference(graphs []path.ChannelGraph, present string) *reference {
	ref := &reference{edges: map[[2]string]refEdge{}, present: present}
	for _, g := range graphs {
		for _, n := range g.Graph.Nodes() {
			if v := n.Version.Original(); !slices.Contains(ref.versions, v) {
				ref.versions = append(ref.versions, v)
			}
		}
	}
	slices.SortFunc(ref.versions, graph.CompareVersions)
	for _, from := range ref.versions {
		for _, to := range ref.versions {
			if from == to {
				continue
			}
			e := refEdge{risks: map[string]string{}, judged: "Recommended"}
			for _, g := range graphs {
				entries, usable, held := 0, 0, false
				var risks []configv1.ConditionalUpdateRisk
				for _, c := range g.Graph.ConditionalEdges() {
					for _, p := range c.Edges {
						if p.From != from || p.To != to {
							continue
						}
						entries++
						held = true
						if !slices.ContainsFunc(c.Risks, func(r configv1.ConditionalUpdateRisk) bool { return r.MatchingRules[0].Type == "CEL" }) {
							usable++
							risks = c.Risks
						}
					}
				}
				i, ok := indexOf(g.Graph, from)
				if ok {
					for edge := range g.Graph.Edges(i) {
						held = held || g.Graph.Node(edge.To).Version.Original() == to
					}
				}
				if held {
					e.channels = append(e.channels, g.Channel)
				}
				if entries > 0 {
					e.guarded = true
					if usable != 1 {
						e.withheld = true
						continue
					}
					for _, r := range risks {
						if _, known := e.risks[r.Name]; !known {
							e.risks[r.Name] = verdictOf(r.MatchingRules[0])
						}
					}
				}
			}
			if len(e.channels) == 0 {
				continue
			}
			switch {
			case !e.guarded:
			case e.withheld, len(e.risks) == 0:
				e.judged = "Unknown"
			default:
				for _, v := range e.risks {
					if v == "NotRecommended" || v == "Unknown" && e.judged != "NotRecommended" {
						e.judged = v
					}
				}
			}
			ref.edges[[2]string{from, to}] = e
		}
	}
	return ref
}

func indexOf(g *graph.Graph, version string) (int, bool) {
	for i, n := range g.Nodes() {
		if n.Version.Original() == version {
			return i, true
		}
	}
	return 0, false
}

func (ref *reference) allows(p path.Policy, from, to string) bool {
	e, ok := ref.edges[[2]string{from, to}]
	if !ok || ref.barred(p, to) {
		return false
	}
	switch p.Edges {
	case path.AnyEdge:
		return true
	case path.AvoidRisks:
		for name := range e.risks {
			if slices.Contains(p.Risks, name) {
				return false
			}
		}
		return !e.withheld
	case path.AcceptRisks:
		if e.guarded && !e.withheld && len(e.risks) > 0 {
			for name, v := range e.risks {
				if v != "Recommended" && !slices.Contains(p.Risks, name) {
					return false
				}
			}
			return true
		}
	}
	return !e.withheld && e.judged == "Recommended"
}

func (ref *reference) barred(p path.Policy, v string) bool {
	return slices.Contains(p.Exclude, v) || p.MaxVersion != "" && graph.CompareVersions(v, p.MaxVersion) > 0 ||
		p.NoPreReleases && strings.Contains(v, "-") || len(p.Minors) > 0 && !slices.Contains(p.Minors, v[:3])
}

type refPath struct {
	versions                                []string
	hops, notRecommended, unknown, switches int
}

// paths lists all paths without loops, the best first.
func (ref *reference) paths(p path.Policy, order path.Order, from, to string) []refPath {
	var all []refPath
	var walk func(path []string)
	walk = func(path []string) {
		last := path[len(path)-1]
		if last == to {
			all = append(all, ref.describe(slices.Clone(path)))
			return
		}
		for _, next := range ref.versions {
			if !slices.Contains(path, next) && ref.allows(p, last, next) {
				walk(append(path, next))
			}
		}
	}
	walk([]string{from})
	slices.SortFunc(all, func(a, b refPath) int {
		risks := cmp.Or(cmp.Compare(a.notRecommended, b.notRecommended), cmp.Compare(a.unknown, b.unknown))
		hops := cmp.Compare(a.hops, b.hops)
		c := cmp.Or(risks, hops)
		if order == path.Shortest {
			c = cmp.Or(hops, risks)
		}
		return cmp.Or(c, cmp.Compare(a.switches, b.switches), slices.CompareFunc(b.versions, a.versions, graph.CompareVersions))
	})
	return all
}

func (ref *reference) describe(versions []string) refPath {
	p := refPath{versions: versions, hops: len(versions) - 1}
	var each [][]string
	for i := range p.hops {
		e := ref.edges[[2]string{versions[i], versions[i+1]}]
		each = append(each, e.channels)
		switch e.judged {
		case "NotRecommended":
			p.notRecommended++
		case "Unknown":
			p.unknown++
		}
	}
	var fewest func(i int, last string) int
	fewest = func(i int, last string) int {
		if i == len(each) {
			return 0
		}
		best := 1000
		for _, c := range each[i] {
			n := fewest(i+1, c)
			if last != "" && last != c {
				n++
			}
			best = min(best, n)
		}
		return best
	}
	p.switches = fewest(0, ref.present)
	return p
}

func drawPolicy(t *rapid.T) path.Policy {
	p := path.Policy{
		Edges: rapid.SampledFrom([]path.Edges{path.Recommended, path.AcceptRisks, path.AvoidRisks, path.AnyEdge, path.AnyEdge}).Draw(t, "edges"),
		Risks: rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 2).Draw(t, "listed"),
	}
	if rapid.IntRange(0, 3).Draw(t, "filtered") == 0 {
		p.Exclude = rapid.SliceOfN(rapid.SampledFrom(refVersions), 0, 2).Draw(t, "exclude")
		p.MaxVersion = rapid.SampledFrom([]string{"", "", "4.2.0"}).Draw(t, "max")
		p.NoPreReleases = rapid.Bool().Draw(t, "no pre-releases")
		p.Minors = rapid.SampledFrom([][]string{nil, nil, {"4.2", "4.3"}}).Draw(t, "minors")
	}
	return p
}

func described(p *path.Path) refPath {
	return refPath{p.Versions(), len(p.Hops), p.NotRecommended, p.Unknown, p.Switches}
}

func TestPathsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graphs := drawChannels(t, rapid.Bool().Draw(t, "cyclic"))
		present := rapid.SampledFrom([]string{"", "stable-4.3", "zeta", "elsewhere"}).Draw(t, "present")
		ref := newReference(graphs, present)
		shuffled := rapid.Permutation(graphs).Draw(t, "order of graphs")
		n, err := path.NewNetwork(context.Background(), path.NetworkOptions{Matcher: graphtest.Facts, Present: present}, shuffled...)
		checktest.OK(t, err)
		policy := drawPolicy(t)
		for _, from := range ref.versions {
			checkReach(t, n, ref, policy, from)
			for _, to := range ref.versions {
				for _, order := range []path.Order{path.Shortest, path.Safest} {
					want := ref.paths(policy, order, from, to)
					best := n.SafestPath
					if order == path.Shortest {
						best = n.ShortestPath
					}
					checkExplanation(t, n, ref, policy, from, to)
					got, err := best(from, to, policy)
					if len(want) == 0 {
						checkNoPath(t, ref, policy, from, to, err)
						continue
					}
					if err != nil {
						t.Fatalf("%s to %s: %v", from, to, err)
					}
					if fmt.Sprint(described(got)) != fmt.Sprint(want[0]) {
						t.Fatalf("%s %s to %s: %v, want %v", order, from, to, described(got), want[0])
					}
					k := rapid.IntRange(1, 7).Draw(t, "k")
					several := checktest.Must(n.Paths(from, to, k, order, policy))
					var all []refPath
					for _, p := range several {
						all = append(all, described(p))
						checkHops(t, ref, policy, p)
					}
					if want = want[:min(k, len(want))]; fmt.Sprint(all) != fmt.Sprint(want) {
						t.Fatalf("%s %s to %s, %d best: %v, want %v", order, from, to, k, all, want)
					}
				}
			}
		}
	})
}

func checkReach(t *rapid.T, n *path.Network, ref *reference, policy path.Policy, from string) {
	reached := checktest.Must(n.Reachable(from, policy))
	var want []string
	highest := from
	for _, to := range slices.Backward(ref.versions) {
		if paths := ref.paths(policy, path.Shortest, from, to); to != from && len(paths) > 0 {
			want = append(want, fmt.Sprint(to, paths[0].hops))
			if graph.CompareVersions(to, highest) > 0 {
				highest = to
			}
		}
	}
	var got []string
	for _, r := range reached {
		got = append(got, fmt.Sprint(r.Release.Version, r.Hops))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("from %s: %v, want %v", from, got, want)
	}
	checktest.Equal(t, highest, checktest.Get(n.Latest(from, "", policy))(t).Version, "latest from %s", from)
}

func checkNoPath(t *rapid.T, ref *reference, policy path.Policy, from, to string, err error) {
	var no *path.NoPathError
	if !errors.Is(err, path.ErrNoPath) || !errors.As(err, &no) {
		t.Fatalf("%s to %s: %v, want no path", from, to, err)
	}
	highest := from
	var sources []string
	for _, v := range slices.Backward(ref.versions) {
		if len(ref.paths(policy, path.Shortest, from, v)) > 0 && graph.CompareVersions(v, highest) > 0 {
			highest = v
		}
		if v != to && len(ref.paths(policy, path.Shortest, v, to)) > 0 {
			sources = append(sources, v)
		}
	}
	if no.Highest != highest || !slices.Equal(no.Sources, sources) {
		t.Fatalf("%s to %s: %+v, want %s and %v", from, to, no, highest, sources)
	}
}

func checkHops(t *rapid.T, ref *reference, policy path.Policy, p *path.Path) {
	last := ref.present
	switches := 0
	for i, h := range p.Hops {
		e := ref.edges[[2]string{h.From, h.To}]
		if !slices.Equal(h.Channels, e.channels) || !slices.Contains(h.Channels, h.Channel) {
			t.Fatalf("hop %+v, want channels %v", h, e.channels)
		}
		if h.Recommendation != e.judged || (h.Withheld != "") != e.withheld || h.Conditional != e.guarded || h.Later != (i > 0) {
			t.Fatalf("hop %+v, want %+v", h, e)
		}
		if changed := last != "" && last != h.Channel; changed != h.Switch {
			t.Fatalf("hop %+v after channel %q", h, last)
		} else if changed {
			switches++
		}
		last = h.Channel
		for _, r := range h.Risks {
			if policy.Edges == path.AvoidRisks && slices.Contains(policy.Risks, r.Risk.Name) {
				t.Fatalf("%s is to be avoided: %v", r.Risk.Name, p)
			}
		}
		if policy.Edges == path.Recommended && h.Recommendation != "Recommended" {
			t.Fatalf("a risky hop: %+v", h)
		}
	}
	if switches != p.Switches {
		t.Fatalf("%d switches, said %d", switches, p.Switches)
	}
}

func checkExplanation(t *rapid.T, n *path.Network, ref *reference, policy path.Policy, from, to string) {
	x := checktest.Must(n.Explain(path.ExplainQuery{From: from, To: to, Policy: policy}))
	if from == to {
		checktest.Equal(t, "SameVersion", x.Block, "%s: %+v", from, x)
		return
	}
	e, exists := ref.edges[[2]string{from, to}]
	if (x.Block == "") != ref.allows(policy, from, to) || (x.Block == "NoEdge") == exists || (x.Edge != nil) != exists {
		t.Fatalf("%s to %s: %+v, want %+v", from, to, x, e)
	}
	if x.Block == "" {
		return
	}
	paths := ref.paths(policy, path.Shortest, from, to)
	if (x.Via != nil) != (len(paths) > 0) || (x.NoPath != nil) != (len(paths) == 0) || x.Via != nil && !slices.Equal(x.Via.Versions(), paths[0].versions) {
		t.Fatalf("%s to %s: %+v, want %v", from, to, x, paths)
	}
}

// A plan over an odd minor is the best of all paths that never go down a minor
// and never skip one.
func TestControlPlaneOnlyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versions := []string{"4.2.0", "4.2.1", "4.3.0", "4.3.1", "4.3.2", "4.4.0", "4.4.1", "4.5.0"}
		var d graph.Data
		for _, v := range versions {
			d.Nodes = append(d.Nodes, graph.Node{Version: semver.MustParse(v), Image: "image-of-" + v})
		}
		index := rapid.IntRange(0, len(versions)-1)
		for range rapid.IntRange(0, 25).Draw(t, "edges") {
			d.Edges = append(d.Edges, [2]int{index.Draw(t, "from"), index.Draw(t, "to")})
		}
		g := checktest.Must(graph.New(d, graph.DecodeOptions{}))
		graphs := []path.ChannelGraph{{Channel: "eus-4.4", Graph: g}}
		n := checktest.Must(path.NewNetwork(context.Background(), path.NetworkOptions{}, graphs...))
		odd := func(p refPath) (stops int, ok bool) {
			minor := byte('2')
			for _, v := range p.versions {
				if v[2] < minor || v[2] > minor+1 || v[2] > '4' {
					return 0, false
				}
				minor = v[2]
				if minor == '3' {
					stops++
				}
			}
			return stops, true
		}
		best, fewest := refPath{}, 100
		for _, p := range newReference(graphs, "").paths(path.Policy{}, path.Shortest, "4.2.0", "4.4.1") {
			if stops, ok := odd(p); ok && stops < fewest {
				best, fewest = p, stops
			}
		}
		plan, err := n.ControlPlaneOnly("4.2.0", "4.4.1", path.ControlPlaneOnlyOptions{})
		if fewest == 100 {
			checktest.ErrorIs(t, path.ErrNoPath, err)
			return
		}
		if err != nil || !slices.Equal(plan.Path.Versions(), best.versions) || len(plan.Intermediate) != fewest {
			t.Fatalf("%v, %v, want %v", plan, err, best)
		}
		if h := plan.Path.Hops[plan.PauseBefore]; h.From[2] != '2' || h.To[2] != '3' || plan.UnpauseAfter != len(plan.Path.Hops)-1 {
			t.Fatalf("%+v", plan)
		}
	})
}
