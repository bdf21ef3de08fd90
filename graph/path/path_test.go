package path_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/graphtest"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func network(t testing.TB, o path.NetworkOptions, graphs ...path.ChannelGraph) *path.Network {
	t.Helper()
	n := checktest.Must(path.NewNetwork(context.Background(), o, graphs...))
	return n
}

func channel(name string, g *graph.Graph) path.ChannelGraph {
	return path.ChannelGraph{Channel: name, Graph: g}
}

func TestPathOrders(t *testing.T) {
	spec := "1.0.0>1.1.0 1.0.0>1.1.1 1.1.0>1.2.0 1.1.1>1.2.0:Q"
	for name, test := range map[string]struct {
		edges string
		o     path.NetworkOptions
		p     path.Policy
		want  string
	}{
		"recommended without a matcher": {edges: spec, want: "1.0.0 -> 1.1.0 -> 1.2.0"},
		"fewest unknown decides":        {edges: spec, p: path.Policy{Edges: path.AnyEdge}, want: "1.0.0 -> 1.1.0 -> 1.2.0"},
		"equal precedence: greater text": {edges: "1.0.0>1.1.0+a 1.0.0>1.1.0+b 1.1.0+a>1.2.0 1.1.0+b>1.2.0",
			want: "1.0.0 -> 1.1.0+b -> 1.2.0"},
		"withheld passes any":  {edges: "1.0.0>1.2.0:CEL", p: path.Policy{Edges: path.AnyEdge}, want: "1.0.0 -> 1.2.0"},
		"twice":                {edges: "1.0.0>1.2.0:F 1.0.0>1.2.0:F", o: path.NetworkOptions{Matcher: graphtest.Facts}, want: ""},
		"one of two is pruned": {edges: "1.0.0>1.2.0:F 1.0.0>1.2.0:CEL", o: path.NetworkOptions{Matcher: graphtest.Facts}, want: "1.0.0 -> 1.2.0"},
		"filters do not bind the start": {edges: "1.0.0-rc.1>1.1.0 1.1.0>1.2.0", p: path.Policy{NoPreReleases: true, Exclude: []string{"1.0.0-rc.1"}, Minors: []string{"1.1", "1.2"}},
			want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(t, test.o, channel("c", graphtest.Sketch(t, test.edges, nil)))
			from := "1.0.0"
			if strings.Contains(test.edges, "rc.1") {
				from, test.want = "1.0.0-rc.1", "1.0.0-rc.1 -> 1.1.0 -> 1.2.0"
			}
			p, err := n.ShortestPath(from, "1.2.0", test.p)
			if test.want == "" {
				checktest.ErrorIs(t, path.ErrNoPath, err)
				return
			}
			checktest.OK(t, err)
			checktest.Equal(t, test.want, p.String(), "%v", p)
		})
	}
}

func TestPathEnds(t *testing.T) {
	n := network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "1.0.0>1.1.0 1.2.0>1.3.0 1.1.5>1.3.0", nil)))
	if p, err := n.ShortestPath("1.1.0", "1.1.0", path.Policy{Exclude: []string{"1.1.0"}}); err != nil || p.String() != "1.1.0" {
		t.Error(p, err)
	}
	checktest.ErrorIs(t, graph.ErrVersionNotFound, checktest.Err(n.SafestPath("1.0.0", "9.0.0", path.Policy{})))
	_, err := n.ShortestPath("1.0.0", "1.3.0", path.Policy{})
	want := "no path from 1.0.0 to 1.3.0: the highest version that can be reached is 1.1.0; 1.3.0 can be reached from 1.2.0, 1.1.5"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	many := network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "1.0.0 1.1.0>2.0.0 1.1.1>2.0.0 1.1.2>2.0.0 1.1.3>2.0.0 1.1.4>2.0.0 1.1.5>2.0.0 1.1.6>2.0.0", nil)))
	_, err = many.ShortestPath("1.0.0", "2.0.0", path.Policy{})
	want = "no path from 1.0.0 to 2.0.0: nothing above 1.0.0 can be reached from it; 2.0.0 can be reached from 1.1.6, 1.1.5, 1.1.4, 1.1.3, 1.1.2 and 2 others"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	var no *path.NoPathError
	if _, err := n.Latest("1.0.0", "1.3", path.Policy{}); !errors.As(err, &no) || no.Highest != "1.1.0" || !slices.Equal(no.Sources, []string{"1.2.0", "1.1.5"}) {
		t.Errorf("%+v", err)
	}
	if r, err := n.Latest("1.0.0", "", path.Policy{}); err != nil || r.Version != "1.1.0" {
		t.Error(r, err)
	}
	if r, err := n.Latest("1.2.0", "1.2", path.Policy{}); err != nil || r.Version != "1.2.0" {
		t.Error(r, err)
	}
	var heads []string
	for _, r := range n.Heads() {
		heads = append(heads, r.Version)
	}
	checktest.Same(t, []string{"1.3.0", "1.1.0"}, heads)
	low, high, err := n.Bounds("c")
	if err != nil || low.Version != "1.0.0" || high.Version != "1.3.0" {
		t.Error(low, high, err)
	}
	for _, p := range []path.Policy{{Edges: "None"}, {Minors: []string{"4"}}, {Exclude: []string{"x"}}, {MaxVersion: "1.0"}} {
		if _, err := n.ShortestPath("1.0.0", "1.1.0", p); err == nil || !strings.HasPrefix(err.Error(), "policy: ") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestNetworkReleases(t *testing.T) {
	n := network(t, path.NetworkOptions{}, channel("b", graphtest.Sketch(t, "1.0.0>1.1.0+x 1.0.0>1.1.0+y", nil)), channel("a", graphtest.Sketch(t, "1.1.0+x 2.0.0-rc.1", nil)))
	var versions []string
	for _, r := range n.Releases() {
		versions = append(versions, r.Version)
	}
	if diff := cmp.Diff([]string{"2.0.0-rc.1", "1.1.0+y", "1.1.0+x", "1.0.0"}, versions); diff != "" || n.Len() != 4 {
		t.Error(n.Len(), diff)
	}
	for version, want := range map[string]string{"1.1.0+x": "1.1.0+x", "1.1.0": "1.1.0+y", "1.1.0+z": "1.1.0+y", "1.0.0+a": "1.0.0", "1.1.1": "", "1.1": ""} {
		r, err := n.Release(version)
		if r.Version != want || (err == nil) == (want == "") || err != nil && !errors.Is(err, graph.ErrVersionNotFound) {
			t.Errorf("%s: %s, %v", version, r.Version, err)
		}
	}
	if got := n.ChannelsWith("3.0.0"); got != nil {
		t.Error(got)
	}
	for channel, want := range map[string][2]string{"": {"1.0.0", "2.0.0-rc.1"}, "b": {"1.0.0", "1.1.0+y"}, "a": {"1.1.0+x", "2.0.0-rc.1"}} {
		if low, high, err := n.Bounds(channel); err != nil || low.Version != want[0] || high.Version != want[1] {
			t.Errorf("%s: %s, %s, %v", channel, low.Version, high.Version, err)
		}
	}
	if _, _, err := n.Bounds("c"); !errors.Is(err, path.ErrChannelEmpty) {
		t.Error(err)
	}
}

// What is wrong with a query is said wherever it is asked.
func TestPathQueryErrors(t *testing.T) {
	n := network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "1.0.0>1.1.0", nil)))
	bad := path.Policy{Edges: "None"}
	for name, ask := range map[string]func(from, to string, p path.Policy) error{
		"shortest": func(from, to string, p path.Policy) error { _, err := n.ShortestPath(from, to, p); return err },
		"safest":   func(from, to string, p path.Policy) error { _, err := n.SafestPath(from, to, p); return err },
		"paths": func(from, to string, p path.Policy) error {
			_, err := n.Paths(from, to, 3, path.Safest, p)
			return err
		},
		"reachable": func(from, _ string, p path.Policy) error { _, err := n.Reachable(from, p); return err },
		"latest":    func(from, _ string, p path.Policy) error { _, err := n.Latest(from, "1.1", p); return err },
		"control plane": func(from, to string, p path.Policy) error {
			_, err := n.ControlPlaneOnly(from, to, path.ControlPlaneOnlyOptions{Policy: p})
			return err
		},
		"picture": func(from, _ string, p path.Policy) error {
			_, err := n.Picture(path.PictureOptions{From: from, Policy: p})
			return err
		},
	} {
		if err := ask("1.0.1", "1.1.0", path.Policy{}); !errors.Is(err, graph.ErrVersionNotFound) || !strings.Contains(err.Error(), "1.0.1") {
			t.Errorf("%s: %v", name, err)
		}
		if err := ask("1.0.0", "1.1.0", bad); err == nil || !strings.HasPrefix(err.Error(), "policy: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := n.ShortestPath("1.0.1", "1.0.2", path.Policy{}); !errors.Is(err, graph.ErrVersionNotFound) || !strings.Contains(err.Error(), "1.0.1") || !strings.Contains(err.Error(), "1.0.2") {
		t.Error(err)
	}
	checktest.Fails(t, checktest.Err(n.Latest("1.0.0", "1", path.Policy{})), "a minor that is none")
	if p, err := n.Paths("1.0.0", "1.0.0", 3, path.Safest, path.Policy{}); err != nil || len(p) != 1 || p[0].String() != "1.0.0" {
		t.Error(p, err)
	}
	checktest.ErrorHas(t, `order "Best" is neither Safest nor Shortest`, checktest.Err(n.Paths("1.0.0", "1.1.0", 3, "Best", path.Policy{})))
	for _, edges := range []path.Edges{"", "Recommended"} {
		if p, err := n.Paths("1.0.0", "1.1.0", 3, "", path.Policy{Edges: edges}); err != nil || len(p) != 1 {
			t.Errorf("%q: %v, %v", edges, p, err)
		}
	}
	if p, err := n.Paths("1.0.0", "1.1.0", 0, path.Safest, path.Policy{}); err != nil || p != nil {
		t.Error(p, err)
	}
	var no *path.NoPathError
	if _, err := n.Paths("1.1.0", "1.0.0", 2, path.Safest, path.Policy{}); !errors.As(err, &no) || no.Highest != "1.1.0" {
		t.Error(err)
	}
}

// An edge to a release whose metadata are invalid is withheld, since a cluster
// is not offered it. In the union one channel that says so is enough.
func TestInvalidMetadataAreWithheld(t *testing.T) {
	bad := graphtest.Build(t, `4.1.0 4.1.1={"url":1} 4.1.2`, "[0,1],[1,2]", "")
	good := graphtest.Build(t, `4.1.0 4.1.1 4.1.2`, "[0,1]", "")
	for name, graphs := range map[string][]path.ChannelGraph{
		"alone": {channel("stable-4.1", bad)}, "with a good one": {channel("stable-4.1", bad), channel("fast-4.1", good)},
	} {
		n := network(t, path.NetworkOptions{Matcher: graphtest.Facts}, graphs...)
		x, err := n.Explain(path.ExplainQuery{From: "4.1.0", To: "4.1.1"})
		if err != nil || x.Block != "InvalidMetadata" || x.Edge.Withheld != graph.InvalidMetadata || x.Edge.Recommendation != "Unknown" || x.Edge.Conditional {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
		if x != nil && !strings.Contains(x.Detail, "URL is not a string: 1") {
			t.Errorf("%s: %s", name, x.Detail)
		}
		checktest.ErrorIs(t, path.ErrNoPath, checktest.Err(n.ShortestPath("4.1.0", "4.1.2", path.Policy{})))
		p, err := n.ShortestPath("4.1.0", "4.1.2", path.Policy{Edges: path.AnyEdge})
		if err != nil || p.String() != "4.1.0 -> 4.1.1 -> 4.1.2" || p.Unknown != 1 {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// A cluster is never offered an update whose risks its API server refuses, so no
// path relies on it.
func TestRefusedRisksAreWithheld(t *testing.T) {
	no := `"matchingRules":[{"type":"PromQL","promql":{"promql":"F"}}]`
	g := graphtest.Build(t, "4.1.0 4.1.1", "", graphtest.Conditional("4.1.0>4.1.1", `{"name":"A","url":"relative","message":"m",`+no+`}`))
	n := network(t, path.NetworkOptions{Matcher: graphtest.Facts}, channel("stable-4.1", g))
	checktest.ErrorIs(t, path.ErrNoPath, checktest.Err(n.ShortestPath("4.1.0", "4.1.1", path.Policy{})))
	x, err := n.Explain(path.ExplainQuery{From: "4.1.0", To: "4.1.1"})
	if err != nil || x.Block != "InvalidRisks" || x.Edge.Withheld != graph.InvalidRisks || !x.Edge.Conditional || !strings.Contains(x.Detail, `the url "relative" is not a URI`) {
		t.Errorf("%+v, %v", x, err)
	}
}

// A channel that knows of a risk guards the pair for the others, though it does
// not have the edge's start.
func TestRiskOfAnotherChannel(t *testing.T) {
	plain := graphtest.Build(t, "4.1.0 4.1.1", "[0,1]", "")
	knows := graphtest.Build(t, "4.1.1 4.1.2", "[0,1]", graphtest.Conditional("4.1.0>4.1.1", graphtest.RiskText("T", `"matchingRules":[{"type":"PromQL","promql":{"promql":"T"}}]`)))
	n := network(t, path.NetworkOptions{Matcher: graphtest.Facts}, channel("stable-4.1", plain), channel("fast-4.1", knows))
	x, err := n.Explain(path.ExplainQuery{From: "4.1.0", To: "4.1.1"})
	if err != nil || x.Block != "Risk" || !slices.Equal(x.Edge.Channels, []string{"stable-4.1"}) {
		t.Errorf("%+v, %v", x, err)
	}
	// Alone it has no edge there at all.
	n = network(t, path.NetworkOptions{Matcher: graphtest.Facts}, channel("fast-4.1", knows), channel("stable-4.1", graphtest.Build(t, "4.1.0 4.1.1", "", "")))
	if x, err = n.Explain(path.ExplainQuery{From: "4.1.0", To: "4.1.1"}); err != nil || x.Block != "NoEdge" {
		t.Errorf("%+v, %v", x, err)
	}
}

func TestUnionOfChannels(t *testing.T) {
	// The last hop starts from an older z-stream: climbing to the highest
	// first finds no way.
	old := graphtest.Sketch(t, "4.1.0>4.1.1 4.1.0>4.1.2 4.1.1>4.1.2", nil)
	young := graphtest.Sketch(t, "4.1.1>4.2.0 4.1.2", nil)
	n := network(t, path.NetworkOptions{Present: "stable-4.1"}, channel("stable-4.1", old), channel("stable-4.2", young))
	p, err := n.ShortestPath("4.1.0", "4.2.0", path.Policy{})
	if err != nil || p.String() != "4.1.0 -> 4.1.1 -> 4.2.0" || p.Switches != 1 || p.Hops[0].Switch || !p.Hops[1].Switch || p.Hops[1].Channel != "stable-4.2" {
		t.Fatalf("%+v, %v", p, err)
	}
	if !slices.Equal(n.Channels(), []string{"stable-4.2", "stable-4.1"}) || !slices.Equal(n.ChannelsWith("4.1.2"), []string{"stable-4.2", "stable-4.1"}) {
		t.Error(n.Channels(), n.ChannelsWith("4.1.2"))
	}
	// The newest channel's metadata and definition of a risk count.
	a := graphtest.Sketch(t, "4.1.0>4.2.0:Fa,Fx", map[string]string{"4.2.0": "old"})
	text, _ := a.MarshalJSON()
	b, err := graph.DecodeBytes([]byte(strings.ReplaceAll(strings.ReplaceAll(string(text), `"old"`, `"new"`), `{"promql":"F"}`, `{"promql":"T"}`)), graph.DecodeOptions{})
	checktest.OK(t, err)
	n = network(t, path.NetworkOptions{Matcher: graphtest.Facts}, channel("stable-4.9", a), channel("stable-4.10", b))
	checktest.Same(t, []string{"new"}, checktest.Get(n.Release("4.2.0"))(t).Channels)
	checktest.ErrorIs(t, path.ErrNoPath, checktest.Err(n.ShortestPath("4.1.0", "4.2.0", path.Policy{})))
}

func TestNetworkErrors(t *testing.T) {
	empty := graphtest.Sketch(t, "", nil)
	g := graphtest.Sketch(t, "1.0.0>1.1.0", nil)
	other, err := graph.New(graph.Data{Nodes: []graph.Node{{Version: semver.MustParse("1.0.0"), Image: "other"}}}, graph.DecodeOptions{})
	checktest.OK(t, err)
	for name, test := range map[string]struct {
		graphs []path.ChannelGraph
		is     error
		text   string
	}{
		"none":          {text: "no graph"},
		"empty":         {graphs: []path.ChannelGraph{channel("stable-4.1", empty)}, is: path.ErrChannelEmpty},
		"digests":       {graphs: []path.ChannelGraph{channel("a", g), channel("b", other)}, text: `release 1.0.0 is other in channel "b" and example.com/release@sha256:1.0.0 in channel "a"`},
		"architectures": {graphs: []path.ChannelGraph{{Channel: "a", Arch: "amd64", Graph: g}, {Channel: "b", Arch: "arm64", Graph: g}}, text: `graphs of the architectures "amd64" and "arm64" do not go together`},
		"same channel":  {graphs: []path.ChannelGraph{channel("a", g), channel("a", g)}, text: `two graphs of channel "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := path.NewNetwork(context.Background(), path.NetworkOptions{}, test.graphs...)
			if err == nil || test.is != nil && !errors.Is(err, test.is) || test.text != "" && err.Error() != test.text {
				t.Error(err)
			}
		})
	}
	n := network(t, path.NetworkOptions{}, channel("a", empty), channel("b", g))
	checktest.Same(t, []string{`channel "a" is left out: its graph is empty`}, n.Notes())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := path.NewNetwork(ctx, path.NetworkOptions{Matcher: graphtest.Facts}, channel("b", g)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	networks, err := path.ByArchitecture(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Channel: "a", Arch: "arm64", Graph: g}, path.ChannelGraph{Channel: "a", Arch: "amd64", Graph: g})
	if err != nil || len(networks) != 2 || networks[0].Arch() != "amd64" {
		t.Error(networks, err)
	}
	networks, err = path.ByArchitecture(context.Background(), path.NetworkOptions{}, path.ChannelGraph{Channel: "a", Arch: "arm64", Graph: empty}, path.ChannelGraph{Channel: "a", Arch: "amd64", Graph: g})
	if !errors.Is(err, path.ErrChannelEmpty) || !strings.HasPrefix(err.Error(), `architecture "arm64": `) || len(networks) != 1 {
		t.Error(networks, err)
	}
}

func TestControlPlaneOnly(t *testing.T) {
	// The newest 4.15 cannot go on to 4.16.2 yet.
	edges := "4.14.1>4.14.2 4.14.1>4.15.9 4.14.2>4.15.5 4.14.2>4.15.9 4.15.5>4.15.9 4.15.5>4.16.1 4.15.5>4.16.2 4.16.1>4.16.2 4.14.1>4.16.2 4.15.9"
	g := graphtest.Sketch(t, edges, map[string]string{"4.14.1": "stable-4.14,eus-4.16"})
	n := network(t, path.NetworkOptions{}, channel("eus-4.16", g))
	plan, err := n.ControlPlaneOnly("4.14.1", "4.16.2", path.ControlPlaneOnlyOptions{})
	checktest.OK(t, err)
	if got := plan.Path.String(); got != "4.14.1 -> 4.14.2 -> 4.15.5 -> 4.16.2" || plan.PauseBefore != 1 || plan.UnpauseAfter != 2 || !slices.Equal(plan.Intermediate, []string{"4.15.5"}) {
		t.Errorf("%s, %+v", got, plan)
	}
	checktest.Same(t, []path.PlanChannel{{"eus-4.16", true, true}, {"stable-4.16", false, false}, {"fast-4.16", false, false}}, plan.Channels)
	if plan, err = n.ControlPlaneOnly("4.14.1", "4.16.2", path.ControlPlaneOnlyOptions{AllowSkip: true}); err != nil || !strings.HasPrefix(plan.String(), "Control-plane-only update 4.14.1 -> 4.16.2\n") {
		t.Error(plan, err)
	}
	for _, pair := range [][2]string{{"4.14.1", "4.15.5"}, {"4.15.5", "4.16.2"}, {"4.14.1", "4.14.2"}, {"4.16.1", "4.14.1"}} {
		if _, err := n.ControlPlaneOnly(pair[0], pair[1], path.ControlPlaneOnlyOptions{}); !errors.Is(err, path.ErrNotControlPlaneOnly) {
			t.Error(pair, err)
		}
	}
	var no *path.NoPathError
	if _, err := n.ControlPlaneOnly("4.14.1", "4.16.2", path.ControlPlaneOnlyOptions{Policy: path.Policy{Exclude: []string{"4.14.2"}}}); !errors.As(err, &no) ||
		no.Highest != "4.15.9" || !slices.Equal(no.Sources, []string{"4.16.1", "4.15.5", "4.14.2"}) {
		t.Errorf("%+v", err)
	}
	// Odd minors are not ends, and the other channels have three minors from 4.14 on.
	n = network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "4.12.0>4.13.0 4.13.0>4.14.0 4.14.0>4.15.0 4.10.0>4.11.0 4.11.0>4.12.0", nil)))
	if _, err := n.ControlPlaneOnly("4.13.0", "4.15.0", path.ControlPlaneOnlyOptions{}); !errors.Is(err, path.ErrNotControlPlaneOnly) {
		t.Error(err)
	}
	for pair, want := range map[[2]string]int{{"4.12.0", "4.14.0"}: 3, {"4.10.0", "4.12.0"}: 1} {
		if plan, err := n.ControlPlaneOnly(pair[0], pair[1], path.ControlPlaneOnlyOptions{}); err != nil || len(plan.Channels) != want {
			t.Error(pair, plan, err)
		}
	}
	// From OpenShift 4 to 5 two minors are in between, and 4.23 stands beside 5.0.
	n = network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "4.22.1>5.0.3 5.0.3>5.1.2 5.1.2>5.2.0 5.0.3>5.2.1 4.22.2>4.23.1 4.23.1>5.1.2 5.2.0>5.3.0 5.3.0>5.4.0 5.4.0>5.5.0", nil)))
	for _, tt := range []struct{ from, to, want string }{
		{"4.22.1", "5.2.0", "5.0.3 5.1.2"}, {"4.22.2", "5.2.0", "4.23.1 5.1.2"}, {"5.2.0", "5.5.0", "5.3.0 5.4.0"}, {"4.22.1", "5.2.1", ""}, {"4.22.1", "5.1.2", "-"}, {"5.0.3", "5.2.0", "-"},
	} {
		plan, err := n.ControlPlaneOnly(tt.from, tt.to, path.ControlPlaneOnlyOptions{})
		switch tt.want {
		case "-":
			checktest.ErrorIs(t, path.ErrNotControlPlaneOnly, err)
		case "":
			checktest.ErrorIs(t, path.ErrNoPath, err)
		default:
			checktest.OK(t, err)
			checktest.Equal(t, tt.want, strings.Join(plan.Intermediate, " "), "%s to %s", tt.from, tt.to)
			checktest.Equal(t, "eus-"+tt.to[:3], plan.Channels[0].Name, "channel")
		}
	}
	// Fewer stops in the odd minor win over fewer hops.
	n = network(t, path.NetworkOptions{}, channel("c", graphtest.Sketch(t, "4.4.0>4.4.1 4.4.1>4.4.2 4.4.2>4.5.1 4.4.0>4.5.0 4.5.0>4.5.1 4.5.1>4.6.0", nil)))
	if plan, err = n.ControlPlaneOnly("4.4.0", "4.6.0", path.ControlPlaneOnlyOptions{}); err != nil || plan.Path.String() != "4.4.0 -> 4.4.1 -> 4.4.2 -> 4.5.1 -> 4.6.0" || len(plan.Channels) != 1 {
		t.Error(plan, err)
	}
}

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
