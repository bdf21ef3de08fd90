package graphdata_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// realTree is that of the maintainers.
func realTree(tb testing.TB) fs.FS {
	return os.DirFS(filepath.Join(testdata.Dir(tb), "graph-data"))
}

// counts are what a tree holds.
type counts struct {
	Channels, Internal, Drops, Risks, Raw, Suggestions, Entries   int
	Feeders, Tombstoned, Expressions, Targets, Names, PromQL, All int
}

func count(tree *graphdata.Tree) counts {
	c := counts{Channels: len(tree.Channels), Internal: len(tree.Internal), Drops: len(tree.Drops), Risks: len(tree.Risks), Raw: len(tree.Raw), Suggestions: len(tree.Suggestions)}
	for _, list := range [][]graphdata.Channel{tree.Channels, tree.Internal} {
		for _, ch := range list {
			c.Entries += len(ch.Versions)
			if ch.Feeder != nil {
				c.Feeders++
			}
			if len(ch.Tombstones) > 0 {
				c.Tombstoned++
			}
		}
	}
	from, to, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, list := range [][]graphdata.BlockedEdge{tree.Drops, tree.Risks} {
		for _, b := range list {
			from[b.From], to[b.To] = true, true
			if b.Risk == nil {
				continue
			}
			names[b.Risk.Name] = true
			for _, r := range b.Risk.MatchingRules {
				if c.All++; r.Type == "PromQL" {
					c.PromQL++
				}
			}
		}
	}
	c.Expressions, c.Targets, c.Names = len(from), len(to), len(names)
	return c
}

// TestRealTree: the whole tree loads, strictly and as an update service loads it,
// and nothing in it is a problem.
func TestRealTree(t *testing.T) {
	want := counts{Channels: 76, Internal: 3, Drops: 116, Risks: 1601, Raw: 4, Suggestions: 21, Entries: 11956,
		Feeders: 66, Tombstoned: 7, Expressions: 109, Targets: 660, Names: 124, PromQL: 1023, All: 1601}
	for _, compat := range []bool{false, true} {
		tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{Compat: compat, InternalChannels: true})
		checktest.OK(t, err)
		for _, p := range tree.Problems {
			t.Errorf("compat %v: %v", compat, p)
		}
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), want, count(tree))
		checktest.Equal(t, "1.1.0", tree.SchemaVersion, "schema")
	}
}

func BenchmarkLoad(b *testing.B) {
	tree := realTree(b)
	b.ReportAllocs()
	for b.Loop() {
		checktest.Must(graphdata.Load(b.Context(), tree, graphdata.LoadOptions{InternalChannels: true}))
	}
}

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

// TestRealComparison: what is built of the real tree against the plain reading, in
// both modes: the first minors, which most drops are about, and later ones, which
// most risks are about.
func TestRealComparison(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine compares a lot: nothing that a race detector looks for")
	}
	tree := loadReal(t)
	all := approximated(tree)
	for _, c := range []struct{ minors, arches []string }{
		{[]string{"4.1.", "4.2.", "4.3."}, []string{"amd64", "s390x", "ppc64le"}},
		{[]string{"4.13.", "4.14."}, []string{"arm64"}},
	} {
		var releases []graphdata.Release
		for _, r := range all {
			if slices.Contains(c.arches, r.Arch) && slices.ContainsFunc(c.minors, func(minor string) bool { return strings.HasPrefix(r.Version, minor) }) {
				releases = append(releases, r)
			}
		}
		for _, peer := range []bool{false, true} {
			s := build(t, tree, releases, graphdata.BuildOptions{Compat: peer, Partial: true})
			want := readPlainly(tree, releases, peer)
			if want == nil {
				t.Fatal("the plain reading fails")
			}
			compareLines(t, want.lines(), fullLines(s.Full()))
			graphs := 0
			for _, arch := range s.Arches() {
				for at, channel := range s.Channels(arch) {
					if at%4 > 0 { // the others hold the same releases
						continue
					}
					graphs++
					compareLines(t, want.served(channel, arch), servedLines(s.Graph(channel, arch)))
				}
			}
			r := s.Report()
			t.Logf("%v, peer %v: %d releases, %d edges, %d conditional, %d removed; %d graphs compared", c.minors, peer, len(releases), r.Edges, r.Conditional, r.Removed, graphs)
		}
	}
}

// compareLines compares at once what is equal, as most is.
func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("-plain +built\n%.5000s", cmp.Diff(want, got))
	}
}

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

// TestLintRealTree: what is odd in the real tree, each kind with its cause. None
// is an error: the maintainers' own checks pass.
func TestLintRealTree(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine computes for long: nothing that a race detector looks for")
	}
	tree, err := graphdata.Load(t.Context(), realTree(t), graphdata.LoadOptions{InternalChannels: true})
	checktest.OK(t, err)
	got := map[string]int{}
	for _, p := range maintain.Lint(tree, nil, maintain.LintOptions{}) {
		got[p.Rule]++
		if !p.Warning {
			t.Error(p)
		}
	}
	want := map[string]int{
		"eus-feeder":         1,  // eus-4.8 waits a week, as stable did then
		"filter-excludes":    3,  // filters that became narrower, and one from before builds
		"from-half-dead":     5,  // 50]
		"from-within-number": 33, // 4.15.45 by 4[.]15[.][0-9]
		"from-other-minor":   8,  // 4.18.* matches 4.14.18 too
		"tombstone":          8,  // skipped, and not even in the channel
		"tombstone-promoted": 18, // tombstones that came after the promotion
		"version-twice":      1,  // 5.0.0-ec.0 in the internal candidate
	}
	checktest.Same(t, want, got)
}

// TestLintRealTreeBuilt: with the predecessors that builds were told to name, every
// release of the later channels has a patch update and a way to the channel's minor.
func TestLintRealTreeBuilt(t *testing.T) {
	if israce.Enabled {
		t.Skip("one goroutine computes for long: nothing that a race detector looks for")
	}
	tree := loadReal(t)
	s := build(t, tree, approximated(tree), graphdata.BuildOptions{})
	found := map[string]int{}
	for _, p := range maintain.Lint(tree, s, maintain.LintOptions{}) {
		found[p.Rule]++
		if p.Rule != "updates-out" && p.Rule != "updates-patch" {
			continue
		}
		name, ok := graph.ParseChannel(strings.TrimSuffix(filepath.Base(p.File), ".yaml"))
		if !ok || name.Major > 4 || name.Minor > 10 {
			t.Error(p) // the suggestions of earlier minors leave out releases
		}
	}
	for _, rule := range []string{"updates-out", "updates-patch", "from-matches-nothing"} {
		if found[rule] == 0 {
			t.Errorf("%s finds nothing in the early channels", rule)
		}
	}
	if found["from-other-minor"] != 8 {
		t.Errorf("%d expressions of two minors, as many as without releases are 8", found["from-other-minor"])
	}
}

func BenchmarkLintSnapshot(b *testing.B) {
	tree := loadReal(b)
	s := checktest.Must(graphdata.Build(tree, approximated(tree), graphdata.BuildOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		maintain.Lint(tree, s, maintain.LintOptions{})
	}
}

func BenchmarkLint(b *testing.B) {
	tree, err := graphdata.Load(b.Context(), realTree(b), graphdata.LoadOptions{InternalChannels: true})
	checktest.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		maintain.Lint(tree, nil, maintain.LintOptions{})
	}
}
