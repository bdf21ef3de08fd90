package graphdata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// lines are the updates of the whole graph: "1.0.0+amd64 → 1.1.0+amd64 [R]".
func lines(g *graphdata.RawGraph) (lines []string) {
	for _, e := range g.Edges {
		lines = append(lines, g.Nodes[e[0]].Version+" → "+g.Nodes[e[1]].Version)
	}
	for _, c := range g.ConditionalEdges {
		var names []string
		for _, r := range c.Risks {
			names = append(names, r.Name)
		}
		for _, p := range c.Edges {
			lines = append(lines, p.From+" → "+p.To+" ["+strings.Join(names, " ")+"]")
		}
	}
	slices.Sort(lines)
	return lines
}

// TestWorkedExampleFull: the whole graph of the worked example in both modes, and
// what differs of what is served.
func TestWorkedExampleFull(t *testing.T) {
	const conditional = "1.0.0+amd64 → 1.1.0+amd64 [R]"
	want := []string{
		"1.0.0+amd64 → 1.0.1+amd64",
		"1.0.1+amd64 → 1.1.0+amd64 [R]",
		"1.0.1+s390x → 1.1.0+s390x [R]",
		"1.0.9+amd64 → 1.1.0+amd64 [R]",
		"1.1.0+amd64 → 1.2.0+amd64",
	}
	for _, compat := range []bool{false, true} {
		tree, releases := worked()
		s := build(t, tree, releases, graphdata.BuildOptions{Compat: compat})
		full := s.Full()
		wanted, served := slices.Clone(want), []string{"1.0.0", "1.0.0 → 1.0.1", "1.0.1", "1.1.0", "1.0.1 → 1.1.0 [R]"}
		if compat {
			wanted = slices.Insert(wanted, 1, conditional)
			served = slices.Insert(served, 4, "1.0.0 → 1.1.0 [R]")
		}
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), wanted, lines(full))
		var versions []string
		for _, n := range full.Nodes {
			if n.Metadata == nil {
				n.Version = "abstract " + n.Version
			} else if regex := n.Metadata[graph.MetadataPreviousRemoveRegex]; strings.HasPrefix(n.Version, "1.1.0") != (regex == `^1[.]0[.]0[+].*$|1[.]0[.].*`) {
				t.Errorf("%s: %q", n.Version, regex)
			}
			versions = append(versions, n.Version)
		}
		if diff := cmp.Diff([]string{"1.0.0+amd64", "1.0.1+amd64", "abstract 1.0.1+s390x", "abstract 1.0.9+amd64", "1.1.0+amd64", "1.1.0+s390x", "abstract 1.2.0+amd64"}, versions); diff != "" {
			t.Errorf("compat %v: -want +got\n%s", compat, diff)
		}
		for _, c := range []struct {
			channel, arch string
			want          []string
		}{
			{"candidate-1.1", "amd64", served},
			{"candidate-1.1", "s390x", []string{"1.1.0"}},
			{"fast-1.1", "amd64", []string{"1.0.1", "1.1.0", "1.0.1 → 1.1.0 [R]"}},
			{"fast-1.1", "s390x", nil},
		} {
			checktest.SameIn(t, fmt.Sprintf("compat %v: %s for %s", compat, c.channel, c.arch), c.want, picture(s.Graph(c.channel, c.arch)))
		}
	}
}

// blocked makes a tree of blocked edges, whose files are named in their order.
func blocked(edges ...graphdata.BlockedEdge) *graphdata.Tree {
	tree := &graphdata.Tree{}
	for i, e := range edges {
		e.File = "blocked-edges/" + string(rune('a'+i)) + ".yaml"
		if e.Risk != nil {
			tree.Risks = append(tree.Risks, e)
		} else {
			tree.Drops = append(tree.Drops, e)
		}
	}
	return tree
}

// TestBuildCompat: each point on which the update service builds another graph,
// for the updates to 1.1.0 from 1.0.0 and 1.0.1 on two architectures.
func TestBuildCompat(t *testing.T) {
	raw := func(tree *graphdata.Tree, version, key, value string) *graphdata.Tree {
		tree.Raw = append(tree.Raw, graphdata.RawEntry{Version: version, Key: key, Value: value})
		return tree
	}
	const amd64, s390x = "0+a 1+a ", "0+s 1+s "
	for _, c := range []struct {
		name            string
		tree            *graphdata.Tree
		metadata        []string // of 1.1.0
		source          []string // of 1.0.1
		strict, compat  string   // "0+a" is 1.0.0+amd64 → 1.1.0+amd64
		err             string   // under Compat
		regex, relisted string   // of 1.1.0+amd64: strict, compat
	}{
		{name: "nothing", tree: blocked(), strict: amd64 + s390x, compat: amd64 + s390x},
		{name: "raw metadata with a build", tree: raw(blocked(), "1.1.0+amd64", graph.MetadataPreviousRemove, "1.0.0"), strict: "1+a " + s390x, compat: "1+a 1+s"},
		{name: "two drops", tree: blocked(drop("1.1.0", "1[.]0[.]0"), drop("1.1.0", "1[.]0[.]1[+]")), compat: amd64[:4] + s390x[:3],
			regex: "1[.]0[.]0|1[.]0[.]1[+]", relisted: "1[.]0[.]1[+]"},
		{name: "a drop and an own expression", tree: blocked(drop("1.1.0", "1[.]0[.]0")), metadata: []string{graph.MetadataPreviousRemoveRegex, "1[.]0[.]1"}, compat: "1+a 1+s",
			regex: "1[.]0[.]1|1[.]0[.]0", relisted: "1[.]0[.]0"},
		{name: "a risk and an own expression", tree: blocked(risk("A", "1.1.0", "1[.]0[.]0")), metadata: []string{graph.MetadataPreviousRemoveRegex, "1[.]0[.]"}, compat: "0+a[A] 0+s[A]",
			regex: "1[.]0[.]|1[.]0[.]0", relisted: "1[.]0[.]|1[.]0[.]0"},
		{name: "a drop and a risk", tree: blocked(drop("1.1.0", ".*"), risk("A", "1.1.0", "0[+]")), compat: "0+a[A] 0+s[A]"},
		{name: "previous.remove and a risk", tree: blocked(risk("A", "1.1.0", "0[+]")), metadata: []string{graph.MetadataPreviousRemove, "*"}, compat: "0+a[A] 0+s[A]"},
		{name: "next.remove and a risk", tree: blocked(risk("A", "1.1.0", ".*")), source: []string{graph.MetadataNextRemove, "1.1.0"}, strict: "0+a[A] 0+s[A]", compat: "0+a[A] 0+s[A] 1+a[A] 1+s[A]"},
		{name: "a risk for one architecture", tree: blocked(risk("A", "1.1.0+amd64", "0[+]")), strict: "0+a[A] 0+s 1+a 1+s", compat: "0+a[A] 1+a 1+s"},
		{name: "a drop for one architecture", tree: blocked(drop("1.1.0+amd64", "0[+]")), strict: "0+s 1+a 1+s", compat: "0+s 1+a 1+s"},
		{name: "the order of risks", tree: blocked(risk("B", "1.1.0", "0[+]"), risk("A", "1.1.0", "0[+]a")), strict: "0+a[A B] 0+s[B] 1+a 1+s", compat: "0+a[B A] 0+s[B] 1+a 1+s"},
		{name: "one risk in two files", tree: blocked(risk("A", "1.1.0", "0[+]"), risk("A", "1.1.0", "0[+]a")), strict: "0+a[A] 0+s[A] 1+a 1+s", compat: "0+a[A A] 0+s[A] 1+a 1+s"},
		{name: "a flag of another expression", tree: blocked(risk("A", "1.1.0", "(?i)0[+]AMD"), risk("B", "1.1.0", "0[+]S390")), strict: "0+a[A] 0+s 1+a 1+s", compat: "0+a[A] 1+a 1+s"},
		{name: "an empty own expression", tree: blocked(), metadata: []string{graph.MetadataPreviousRemoveRegex, ""}},
		{name: "an own expression that does not compile", tree: blocked(), metadata: []string{graph.MetadataPreviousRemoveRegex, "["}, strict: amd64 + s390x,
			err: "1.1.0+amd64: io.openshift.upgrades.graph.previous.remove_regex: error parsing \"[\" as Regex: error parsing regexp: missing closing ]: `[`"},
		{name: "a trailing comma", tree: blocked(), metadata: []string{graph.MetadataPreviousRemove, "1.0.0,"}, strict: "1+a 1+s",
			err: `1.1.0+amd64: io.openshift.upgrades.graph.previous.remove: "" is not a valid semver`},
		{name: "no version in next.add", tree: blocked(), source: []string{graph.MetadataNextAdd, "x"}, strict: amd64 + s390x,
			err: `1.0.1+amd64: io.openshift.upgrades.graph.next.add: "x" is not a valid semver`},
		{name: "no version in next.remove", tree: blocked(), source: []string{graph.MetadataNextRemove, "x"}, strict: amd64 + s390x,
			err: `1.0.1+amd64: io.openshift.upgrades.graph.next.remove: "x" is not a valid semver`},
		{name: "no version in previous.add", tree: blocked(), metadata: []string{graph.MetadataPreviousAdd, "x"}, strict: amd64 + s390x,
			err: `1.1.0+amd64: io.openshift.upgrades.graph.previous.add: "x" is not a valid semver`},
		{name: "a channel without a hyphen", tree: blocked(), metadata: []string{graph.MetadataChannels, "a-1,plain"}, strict: amd64 + s390x,
			err: `1.1.0+amd64: channel "plain" has no hyphen in its name`},
		{name: "one channel without a hyphen", tree: blocked(), metadata: []string{graph.MetadataChannels, "plain"}, strict: amd64 + s390x, compat: amd64 + s390x},
	} {
		t.Run(c.name, func(t *testing.T) {
			var releases []graphdata.Release
			for _, arch := range []string{"amd64", "s390x"} {
				releases = append(releases, release("1.0.0", arch, nil), release("1.0.1", arch, nil, c.source...), release("1.1.0", arch, []string{"1.0.0", "1.0.1"}, c.metadata...))
			}
			short := strings.NewReplacer("1.0.0+amd64 → 1.1.0+amd64", "0+a", "1.0.1+amd64 → 1.1.0+amd64", "1+a", "1.0.0+s390x → 1.1.0+s390x", "0+s", "1.0.1+s390x → 1.1.0+s390x", "1+s")
			for _, compat := range []bool{false, true} {
				s, err := graphdata.Build(c.tree, releases, graphdata.BuildOptions{Compat: compat})
				want, regex := c.strict, c.regex
				if compat {
					want, regex = c.compat, c.relisted
				}
				if compat && c.err != "" {
					if err == nil || err.Error() != c.err {
						t.Errorf("%v, want %s", err, c.err)
					}
					continue
				}
				checktest.OK(t, err)
				var got []string
				for _, line := range lines(s.Full()) {
					got = append(got, strings.Replace(short.Replace(line), " [", "[", 1))
				}
				slices.Sort(got)
				wanted := words(want)
				checktest.SameIn(t, fmt.Sprintf("compat %v", compat), wanted, got)
				if r := s.Report(); r.Edges+r.Conditional != len(got) || r.Removed+len(got) != 4 {
					t.Errorf("compat %v: %+v", compat, r)
				}
				for _, n := range s.Full().Nodes {
					if got := n.Metadata[graph.MetadataPreviousRemoveRegex]; regex != "" && n.Version == "1.1.0+amd64" && got != regex {
						t.Errorf("compat %v: %s, want %s", compat, got, regex)
					}
				}
			}
		})
	}
}

// words splits a text at blanks that are not within brackets.
func words(text string) (words []string) {
	for _, word := range strings.Fields(text) {
		if n := len(words); n > 0 && strings.Contains(words[n-1], "[") && !strings.HasSuffix(words[n-1], "]") {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// TestAbstractTarget: the updates to a version that there is no release of stay in
// the whole graph, beside conditional ones.
func TestAbstractTarget(t *testing.T) {
	first := release("1.0.0", "amd64", nil)
	first.Next = []string{"1.0.1"}
	tree := blocked(drop("1.0.1", ".*"), risk("A", "1.0.1", ".*"))
	tree.Channels = []graphdata.Channel{{Name: "a-1", Versions: entries("1.0.0", "1.0.1")}}
	for _, compat := range []bool{false, true} {
		s := build(t, tree, []graphdata.Release{first}, graphdata.BuildOptions{Compat: compat})
		if diff := cmp.Diff([]string{"1.0.0+amd64 → 1.0.1+amd64", "1.0.0+amd64 → 1.0.1+amd64 [A]"}, lines(s.Full())); diff != "" {
			t.Errorf("compat %v: -want +got\n%s", compat, diff)
		}
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), []string{"1.0.0"}, picture(s.Graph("a-1", "amd64")))
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), []string{"blocked-edges/a.yaml", "blocked-edges/b.yaml"}, s.Report().UnknownTargets)
	}
	first.Metadata[graph.MetadataNextRemove] = "1.0.1"
	for compat, want := range map[bool][]string{false: nil, true: {"1.0.0+amd64 → 1.0.1+amd64 [A]"}} {
		s := build(t, tree, []graphdata.Release{first}, graphdata.BuildOptions{Compat: compat})
		checktest.SameIn(t, fmt.Sprintf("compat %v", compat), want, lines(s.Full()))
	}
}
