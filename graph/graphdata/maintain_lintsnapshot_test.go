package graphdata_test

import (
	"slices"
	"testing"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// snapshotRules are the rules that need a snapshot. TestLintSnapshot has a case of
// each.
var snapshotRules = []string{"updates-out", "updates-patch"}

// small is a tree of a few channels and edges.
func small(channels map[string][]string, edges ...graphdata.BlockedEdge) *graphdata.Tree {
	tree := &graphdata.Tree{}
	for _, name := range []string{"candidate-1.1", "candidate-1.2", "candidate-1.3", "candidate-2.0", "fast-1.1", "fast-1.3", "fast-2.0", "plain"} {
		if versions, ok := channels[name]; ok {
			tree.Channels = append(tree.Channels, graphdata.Channel{File: "channels/" + name + ".yaml", Name: name, Versions: entries(versions...)})
		}
	}
	addEdges(tree, edges)
	return tree
}

// ruled keeps the problems of some rules.
func ruled(problems []graphdata.Problem, rules ...string) string {
	return lintText(slices.DeleteFunc(problems, func(p graphdata.Problem) bool { return !slices.Contains(rules, p.Rule) }))
}

// TestLintSnapshot: what the rules find that look at updates.
func TestLintSnapshot(t *testing.T) {
	type channels = map[string][]string
	all := func(previous map[string][]string) (list []graphdata.Release) {
		for _, v := range []string{"1.1.0", "1.1.1", "1.1.2-rc.0", "1.1.2", "1.2.0", "1.3.0", "2.0.0"} {
			list = append(list, release(v, "amd64", previous[v]))
		}
		return append(list, release("1.1.1", "s390x", nil))
	}
	upwards := map[string][]string{"1.1.1": {"1.1.0"}, "1.1.2": {"1.1.1"}, "1.2.0": {"1.1.1"}, "1.3.0": {"1.2.0"}, "2.0.0": {"1.3.0"}}
	seen := map[string]bool{}
	for _, c := range []struct {
		name, rule string
		tree       *graphdata.Tree
		previous   map[string][]string
		want       string
	}{
		{"a way", "updates-out", small(channels{"candidate-1.2": {"1.1.0", "1.1.1", "1.2.0"}, "candidate-1.3": {"1.2.0", "1.3.0"}, "fast-1.3": {"1.1.0", "1.1.1", "1.2.0", "1.3.0"}}), upwards, ""},
		{"a way under a risk", "updates-out", small(channels{"candidate-1.2": {"1.1.1", "1.2.0"}, "candidate-1.3": {"1.2.0", "1.3.0"}, "fast-1.3": {"1.1.1", "1.2.0", "1.3.0"}}, risk("A", "1.2.0", ".*")), upwards, ""},
		{"dropped", "updates-out", small(channels{"candidate-1.2": {"1.1.1", "1.2.0"}, "candidate-1.3": {"1.2.0", "1.3.0"}, "fast-1.3": {"1.1.1", "1.2.0", "1.3.0"}}, drop("1.2.0", ".*")), upwards,
			"channels/fast-1.3.yaml:1: versions[0]: No paths from 1.1.1 to 1.3 in candidate-1.2, candidate-1.3"},
		{"a way around the channel", "updates-out", small(channels{"candidate-1.2": {"1.1.1", "1.2.0"}, "candidate-1.3": {"1.2.0", "1.3.0"}, "fast-1.3": {"1.1.1", "1.3.0"}}), upwards,
			"channels/fast-1.3.yaml:1: versions[0]: No paths from 1.1.1 to 1.3 in candidate-1.2, candidate-1.3"},
		{"no candidate channel has the update", "updates-out", small(channels{"candidate-1.3": {"1.2.0"}, "fast-1.3": {"1.2.0", "1.3.0"}}), upwards,
			"channels/fast-1.3.yaml:1: versions[0]: No paths from 1.2.0 to 1.3 in candidate-1.3"},
		{"no candidate channel at all", "updates-out", small(channels{"fast-1.3": {"1.2.0", "1.3.0"}}), upwards,
			"channels/fast-1.3.yaml:1: versions[0]: No paths from 1.2.0 to 1.3 in any candidate channel"},
		{"across a major", "updates-out", small(channels{"candidate-2.0": {"1.3.0", "2.0.0"}, "fast-2.0": {"1.3.0", "1.2.0", "2.0.0"}}), upwards,
			"channels/fast-2.0.yaml:2: versions[1]: No paths from 1.2.0 to 2.0 in candidate-2.0"},
		{"candidates and channels without a minor need none", "updates-out", small(channels{"candidate-1.3": {"1.2.0", "1.3.0"}, "plain": {"1.1.0"}}), nil, ""},
		{"above the minor", "updates-out", small(channels{"candidate-1.1": {"1.1.1", "1.2.0"}, "candidate-1.2": {"1.1.1", "1.2.0"}, "fast-1.1": {"1.1.1", "1.2.0"}}), upwards,
			"channels/fast-1.1.yaml:2: versions[1]: No paths from 1.2.0 to 1.1 in any candidate channel"},
		{"no release", "updates-out", small(channels{"candidate-1.3": {"1.2.0", "1.3.0"}, "fast-1.3": {"1.2.7", "1.1.1+s390x", "1.3.0"}}), upwards, ""},

		{"patches", "updates-patch", small(channels{"fast-1.1": {"1.1.0", "1.1.1", "1.1.2"}}), upwards, ""},
		{"a pre-release needs none", "updates-patch", small(channels{"fast-1.1": {"1.1.2-rc.0", "1.1.2"}}), upwards, ""},
		{"an earlier minor needs none", "updates-patch", small(channels{"fast-1.3": {"1.1.2", "1.2.0", "1.3.0"}}), upwards, ""},
		{"an update to elsewhere", "updates-patch", small(channels{"fast-1.1": {"1.1.0", "1.1.2"}}), upwards, "channels/fast-1.1.yaml:1: versions[0]: 1.1.0 has no patch updates in fast-1.1"},
		{"twice in the channel", "updates-patch", small(channels{"fast-1.1": {"1.1.0", "1.1.0", "1.1.2"}}), upwards, "channels/fast-1.1.yaml:1: versions[0]: 1.1.0 has no patch updates in fast-1.1"},
		{"risks", "updates-patch", small(channels{"fast-1.1": {"1.1.0", "1.1.1", "1.1.2"}}, risk("B", "1.1.2", ".*"), risk("A", "1.1.2", ".*")), upwards,
			"channels/fast-1.1.yaml:2: versions[1]: 1.1.1 has patch updates in fast-1.1, but they are exposed to risks: A, B"},
		{"to one that is told about", "updates-patch", small(channels{"fast-1.1": {"1.1.0", "1.1.1", "1.1.2"}}, risk("A", "1.1.1", ".*"), drop("1.1.2", ".*")), upwards,
			"channels/fast-1.1.yaml:2: versions[1]: 1.1.1 has no patch updates in fast-1.1"},

		{"a predecessor", "from-matches-nothing", small(nil, drop("1.1.2", "1[.]1[.]1")), upwards, ""},
		{"a version, and no predecessor", "from-matches-nothing", small(nil, drop("1.1.2", "1[.]1[.]0")), upwards, `blocked-edges/1.1.2.yaml:2: from: "1[.]1[.]0" matches no version that updates to 1.1.2`},
		{"a predecessor without a release", "from-matches-nothing", small(nil, drop("1.1.2", "1[.]0[.]9")), map[string][]string{"1.1.2": {"1.0.9"}}, ""},
		{"no such release", "from-matches-nothing", small(nil, drop("1.1.7", "x")), upwards, ""},
		{"not on this architecture", "from-matches-nothing", small(nil, drop("1.1.1+s390x", ".*")), upwards, `blocked-edges/1.1.1+s390x.yaml:2: from: ".*" matches no version that updates to 1.1.1+s390x`},

		{"a release of another minor", "from-other-minor", small(nil, drop("1.3.0", "1.2.*")), upwards, `blocked-edges/1.3.0.yaml:2: from: "1.2.*" begins with 1.2 and matches 1.1.2-rc.0 too`},
		{"a minor alone", "from-other-minor", small(nil, drop("1.3.0", "1[.]1")), upwards, ""},
		{"a minor alone that others hold", "from-other-minor", small(nil, drop("1.3.0", "1[.]0")), upwards, `blocked-edges/1.3.0.yaml:2: from: "1[.]0" begins with 1.0 and matches 1.1.0 too`},
		{"no release of another minor", "from-other-minor", small(channels{"plain": {"1.4.3"}}, drop("1.3.0", "1.4.*")), upwards, ""},
		{"without an architecture", "from-without-architecture", small(nil, drop("1.3.0", "^1[.]2[.]0$")), upwards, `blocked-edges/1.3.0.yaml:2: from: "^1[.]2[.]0$" matches 1.2.0, but not with an architecture, as in 1.2.0+amd64`},

		{"one update", "overlap", small(nil, drop("1.2.0", "1[.]1"), risk("A", "1.2.0", ".*")), upwards, "blocked-edges/1.2.0-A.yaml:2: from: the update from 1.1.1+amd64 is dropped by blocked-edges/1.2.0.yaml"},
		{"versions that do not update", "overlap", small(nil, drop("1.2.0", "1[.]1[.]0"), risk("A", "1.2.0", "1[.]1[.]")), upwards, ""},
		{"another architecture", "overlap", small(nil, drop("1.2.0+s390x", ".*"), risk("A", "1.2.0", ".*")), upwards, ""},
	} {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			seen[c.rule] = true
			want := c.want
			if want != "" {
				want += " [" + c.rule + "]"
			}
			got := ruled(maintain.Lint(c.tree, build(t, c.tree, all(c.previous), graphdata.BuildOptions{}), maintain.LintOptions{}), c.rule)
			checktest.Same(t, want, got)
		})
	}
	for _, rule := range snapshotRules {
		if !seen[rule] {
			t.Errorf("no case for %s", rule)
		}
	}
}

// TestLintSnapshotDeclared: an update counts for an expression however it is
// declared, and whatever becomes of it.
func TestLintSnapshotDeclared(t *testing.T) {
	next := release("1.0.0", "amd64", nil)
	next.Next = []string{"1.1.0"}
	stored := release("1.0.0", "", nil, graph.MetadataNextAdd, "1.1.0")
	for _, c := range []struct {
		name     string
		releases []graphdata.Release
	}{
		{"previous", []graphdata.Release{release("1.0.0", "amd64", nil), release("1.1.0", "amd64", []string{"1.0.0"})}},
		{"next", []graphdata.Release{next, release("1.1.0", "amd64", nil)}},
		{"previous.add", []graphdata.Release{release("1.0.0", "amd64", nil), release("1.1.0", "amd64", nil, graph.MetadataPreviousAdd, "1.0.0")}},
		{"next.add", []graphdata.Release{release("1.0.0", "amd64", nil, graph.MetadataNextAdd, "1.1.0"), release("1.1.0", "amd64", nil)}},
		{"next.add, without an architecture", []graphdata.Release{stored, release("1.1.0", "", nil)}},
		{"removed by metadata", []graphdata.Release{release("1.0.0", "amd64", nil), release("1.1.0", "amd64", []string{"1.0.0"}, graph.MetadataPreviousRemove, "*")}},
	} {
		tree := small(nil, drop("1.1.0", "^1[.]0[.]0"))
		got := ruled(maintain.Lint(tree, build(t, tree, c.releases, graphdata.BuildOptions{}), maintain.LintOptions{}), "from-matches-nothing")
		checktest.Equal(t, "", got, "%s", c.name)
		tree = small(nil, drop("1.1.0", "^2"))
		if got := ruled(maintain.Lint(tree, build(t, tree, c.releases, graphdata.BuildOptions{}), maintain.LintOptions{}), "from-matches-nothing"); got == "" {
			t.Errorf("%s: an expression that matches nothing is not found", c.name)
		}
	}
}

// TestLintOverlapMetadata: metadata that remove an update under a risk, each place once.
func TestLintOverlapMetadata(t *testing.T) {
	for _, c := range []struct {
		name           string
		source, target []string // metadata of 1.0.0 and of 1.1.0
		raw            []graphdata.RawEntry
		want           string
	}{
		{name: "nothing"},
		{name: "of another update", target: []string{graph.MetadataPreviousRemove, "1.0.2", graph.MetadataPreviousRemoveRegex, "^1[.]0[.]2"}},
		{name: "previous.remove", target: []string{graph.MetadataPreviousRemove, "1.0.0,1.0.1"}, want: "1.1.0-amd64: " + graph.MetadataPreviousRemove},
		{name: "previous.remove of all", target: []string{graph.MetadataPreviousRemove, "*"}, want: "1.1.0-amd64: " + graph.MetadataPreviousRemove},
		{name: "next.remove", source: []string{graph.MetadataNextRemove, "1.1.0"}, want: "1.0.0-amd64: " + graph.MetadataNextRemove},
		{name: "an expression", target: []string{graph.MetadataPreviousRemoveRegex, "1[.]0"}, want: "1.1.0-amd64: " + graph.MetadataPreviousRemoveRegex},
		{name: "raw metadata", raw: []graphdata.RawEntry{{Line: 3, Version: "1.1.0", Key: graph.MetadataPreviousRemove, Value: "1.0.0"}}, want: "raw/metadata.json:3: " + graph.MetadataPreviousRemove},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := small(nil, risk("A", "1.1.0", "^1[.]0[.][01]"))
			tree.Raw = c.raw
			releases := []graphdata.Release{release("1.0.0", "amd64", nil, c.source...), release("1.0.1", "amd64", nil), release("1.0.2", "amd64", nil),
				release("1.1.0", "amd64", []string{"1.0.0", "1.0.1", "1.0.2"}, c.target...)}
			want := c.want
			if want != "" {
				want = "blocked-edges/1.1.0-A.yaml:2: from: the update from 1.0.0+amd64 is removed by " + want + " [overlap]"
			}
			got := ruled(maintain.Lint(tree, build(t, tree, releases, graphdata.BuildOptions{}), maintain.LintOptions{}), "overlap")
			checktest.Same(t, want, got)
		})
	}
}

// TestLintEmptySnapshot: a snapshot without releases finds nothing.
func TestLintEmptySnapshot(t *testing.T) {
	tree := small(map[string][]string{"fast-1.1": {"1.1.0"}}, drop("1.1.0", ".*"))
	if got := ruled(maintain.Lint(tree, build(t, tree, nil, graphdata.BuildOptions{}), maintain.LintOptions{}), "updates-out", "updates-patch", "from-matches-nothing"); got != "" {
		t.Error(got)
	}
}
