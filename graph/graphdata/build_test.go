package graphdata_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// entries makes a list of versions.
func entries(versions ...string) (list []graphdata.Entry) {
	for i, v := range versions {
		list = append(list, graphdata.Entry{Version: v, Line: i + 1})
	}
	return list
}

// release is a release of an architecture, with pairs of metadata.
func release(version, arch string, previous []string, metadata ...string) graphdata.Release {
	m := map[string]string{}
	for i := 0; i+1 < len(metadata); i += 2 {
		m[metadata[i]] = metadata[i+1]
	}
	return graphdata.Release{Version: version, Arch: arch, Image: "registry.example/" + version + "-" + arch, Digest: "sha256:" + version + arch, Previous: previous, Metadata: m, Source: version + "-" + arch}
}

func risk(name, to, from string) graphdata.BlockedEdge {
	return graphdata.BlockedEdge{File: "blocked-edges/" + to + "-" + name + ".yaml", Line: 2, To: to, From: from,
		Risk: &configv1.ConditionalUpdateRisk{URL: "https://example.com/" + name, Name: name, Message: name + ".", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}}
}

func drop(to, from string) graphdata.BlockedEdge {
	return graphdata.BlockedEdge{File: "blocked-edges/" + to + ".yaml", Line: 2, To: to, From: from}
}

// worked are the tree and the releases of a worked example.
func worked() (*graphdata.Tree, []graphdata.Release) {
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{
			{File: "channels/candidate-1.1.yaml", Name: "candidate-1.1", Versions: entries("1.0.0", "1.0.1", "1.1.0")},
			{File: "channels/fast-1.1.yaml", Name: "fast-1.1", Versions: entries("1.0.1", "1.1.0+amd64")},
		},
		Drops: []graphdata.BlockedEdge{drop("1.1.0", `^1[.]0[.]0[+].*$`)},
		Risks: []graphdata.BlockedEdge{risk("R", "1.1.0", `1[.]0[.].*`)},
	}
	last := release("1.1.0", "amd64", []string{"1.0.0", "1.0.1", "1.0.9"})
	last.Next = []string{"1.2.0"}
	return tree, []graphdata.Release{
		release("1.0.0", "amd64", nil),
		release("1.0.1", "amd64", []string{"1.0.0"}),
		last,
		release("1.1.0", "s390x", []string{"1.0.1"}),
	}
}

// picture shows a graph as lines: versions, "a → b", "a → b [risks]".
func picture(g *graph.Graph) []string {
	var lines []string
	for i, n := range g.Nodes() {
		lines = append(lines, n.Version.Original())
		for e := range g.Edges(i) {
			lines = append(lines, n.Version.Original()+" → "+g.Node(e.To).Version.Original())
		}
	}
	for _, c := range g.ConditionalEdges() {
		var names []string
		for _, r := range c.Risks {
			names = append(names, r.Name)
		}
		for _, p := range c.Edges {
			lines = append(lines, fmt.Sprintf("%s → %s %v", p.From, p.To, names))
		}
	}
	return lines
}

func build(t *testing.T, tree *graphdata.Tree, releases []graphdata.Release, opts graphdata.BuildOptions) *graphdata.Snapshot {
	t.Helper()
	s := checktest.Must(graphdata.Build(tree, releases, opts))
	return s
}

func TestBuildWorkedExample(t *testing.T) {
	tree, releases := worked()
	s := build(t, tree, releases, graphdata.BuildOptions{})
	for _, c := range []struct {
		channel, arch string
		want          []string
	}{
		{"candidate-1.1", "amd64", []string{"1.0.0", "1.0.0 → 1.0.1", "1.0.1", "1.1.0", "1.0.1 → 1.1.0 [R]"}},
		{"candidate-1.1", "s390x", []string{"1.1.0"}},
		{"fast-1.1", "amd64", []string{"1.0.1", "1.1.0", "1.0.1 → 1.1.0 [R]"}},
		{"fast-1.1", "s390x", nil},
		{"stable-1.1", "amd64", nil},
		{"candidate-1.1", "arm64", nil},
	} {
		checktest.SameIn(t, fmt.Sprintf("%s for %s", c.channel, c.arch), c.want, picture(s.Graph(c.channel, c.arch)))
	}
	checktest.Same(t, []string{"amd64", "s390x"}, s.Arches())
	checktest.Same(t, []string{"candidate-1.1", "fast-1.1"}, s.Channels("amd64"))
	checktest.Same(t, []string{"candidate-1.1"}, s.Channels("s390x"))
	node := s.Graph("fast-1.1", "amd64").Node(1)
	want := map[string]any{
		graph.MetadataChannels:            "candidate-1.1,fast-1.1",
		graph.MetadataManifestRef:         "sha256:1.1.0amd64",
		graph.MetadataPreviousRemoveRegex: `^1[.]0[.]0[+].*$|1[.]0[.].*`,
	}
	if diff := cmp.Diff(want, maps.Collect(node.Metadata.All())); diff != "" || node.Image != "registry.example/1.1.0-amd64" {
		t.Errorf("%s: -want +got\n%s", node.Image, diff)
	}
	report := &graphdata.Report{Edges: 2, Conditional: 3, Removed: 1,
		Pairs:    map[string]int{"previous": 5, "next": 1, "blocked-edges/1.1.0.yaml": 1, "blocked-edges/1.1.0-R.yaml": 4},
		Abstract: []string{"1.0.1+s390x", "1.0.9+amd64", "1.2.0+amd64"}}
	checktest.Same(t, report, s.Report())
}

// TestBuildRiskOrder: risks of one name are in the order of their text as it is served.
func TestBuildRiskOrder(t *testing.T) {
	a, b := risk("A", "1.1.0", ".*"), risk("A", "1.1.0", ".*")
	a.Risk.Message, b.Risk.Message = "It is Zero.", "It is < 1."
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Name: "a-1.1", Versions: entries("1.0.0", "1.1.0")}}, Risks: []graphdata.BlockedEdge{a, b}}
	s := build(t, tree, []graphdata.Release{release("1.0.0", "amd64", nil), release("1.1.0", "amd64", []string{"1.0.0"})}, graphdata.BuildOptions{})
	var messages []string
	for _, c := range s.Graph("a-1.1", "amd64").ConditionalEdges() {
		for _, r := range c.Risks {
			messages = append(messages, r.Message)
		}
	}
	checktest.Same(t, []string{b.Risk.Message, a.Risk.Message}, messages)
}

// TestBuildProblems: what is left out and reported.
func TestBuildProblems(t *testing.T) {
	tree := &graphdata.Tree{
		Channels: []graphdata.Channel{{File: "c", Name: "plain", Versions: entries("1.0.0", "1.0.5")}, {File: "d", Name: "a-1.0", Versions: entries("1.0.0")}},
		Drops:    []graphdata.BlockedEdge{drop("1.0.7", ".*"), drop("1.0.0", "[")},
	}
	releases := []graphdata.Release{
		release("1.0", "amd64", nil),
		release("1.0.0", "amd64", []string{"x"}, graph.MetadataPreviousAdd, "1.0.9,y", graph.MetadataPreviousRemoveRegex, "(", graph.MetadataChannels, "z-0,plain"),
		release("1.0.0", "arm64", nil, graph.MetadataArchitecture, "multi"),
		release("1.0.0", "multi", nil, graph.MetadataArchitecture, "multi"),
		{Version: "1.0.2", Source: "folder"},
	}
	s := build(t, tree, releases, graphdata.BuildOptions{})
	var problems []string
	for _, p := range s.Report().Problems {
		problems = append(problems, p.String()+" ["+p.Rule+"]")
	}
	want := []string{
		"1.0-amd64: version: \"1.0+amd64\" is not a valid semver: invalid semantic version [release-version]",
		"1.0.0+amd64: io.openshift.upgrades.graph.previous.remove_regex: error parsing \"(\" as Regex: error parsing regexp: missing closing ): `(` [from]",
		"1.0.0+amd64: io.openshift.upgrades.graph.previous.add: \"y\" is not a valid semver [release-version]",
		"1.0.0+amd64: io.openshift.upgrades.graph.previous.add: there is no node of version \"1.0.9\" [unknown-edit]",
		"1.0.0-amd64: previous: \"x\" is not a valid semver [release-version]",
		"blocked-edges/1.0.0.yaml: from: error parsing [ as Regex: error parsing regexp: missing closing ]: `[` [from]",
		"folder: arch: 1.0.2 has no architecture: it is in no graph that is served [required]",
	}
	checktest.Same(t, want, problems)
	checktest.Same(t, []string{"blocked-edges/1.0.7.yaml"}, s.Report().UnknownTargets)
	checktest.Same(t, []string{"c:2: 1.0.5"}, s.Report().UnknownVersions)
	if diff := cmp.Diff([]string{"amd64", "multi"}, s.Arches()); diff != "" {
		t.Error(diff) // the part of the release for several architectures is no release
	}
	if got := s.Graph("plain", "amd64").Node(0).Metadata.Text(graph.MetadataChannels); got != "z-0,a-1.0,plain" {
		t.Error(got)
	}
	partial := build(t, tree, releases, graphdata.BuildOptions{Partial: true, Image: func(r graphdata.Release) string { return "mirror.example/" + r.Digest }})
	if r := partial.Report(); len(r.Problems) != 6 || len(r.UnknownTargets)+len(r.UnknownVersions) > 0 {
		t.Errorf("%+v", r)
	}
	if got := partial.Graph("plain", "amd64").Node(0).Image; got != "mirror.example/sha256:1.0.0amd64" {
		t.Errorf("the image is %s", got)
	}
}

// TestBuildMismatch: two images of one version.
func TestBuildMismatch(t *testing.T) {
	first, second := release("1.0.0", "amd64", nil), release("1.0.0", "amd64", nil, "url", "b")
	first.Source, second.Source = "a", "b"
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Name: "a-1.0", Versions: entries("1.0.0", "1.0.1")}}}
	later := release("1.0.1", "amd64", []string{"1.0.0"})
	same := build(t, tree, []graphdata.Release{second, first, later}, graphdata.BuildOptions{})
	if got := same.Graph("a-1.0", "amd64").Node(0).Metadata.Text("url"); got != "b" {
		t.Errorf("%s, not what the last source says", got)
	}
	second.Digest = ""
	_, err := graphdata.Build(tree, []graphdata.Release{second, first, later}, graphdata.BuildOptions{})
	var mismatch *graphdata.MismatchError
	if !errors.As(err, &mismatch) || err.Error() != "mismatched manifest ref for concrete release 1.0.0+amd64: none, sha256:1.0.0amd64 (from b and a)" {
		t.Error(err)
	}
	s := build(t, tree, []graphdata.Release{second, first, later}, graphdata.BuildOptions{DropMismatched: true})
	if diff := cmp.Diff([]string{"1.0.1"}, picture(s.Graph("a-1.0", "amd64"))); diff != "" || len(s.Report().Problems) != 1 {
		t.Errorf("%v, %s", s.Report().Problems, diff)
	}
}

// TestBuildCycle: updates that lead back.
func TestBuildCycle(t *testing.T) {
	tree := &graphdata.Tree{Channels: []graphdata.Channel{{Name: "a-1.0", Versions: entries("1.0.0", "1.0.1", "1.0.2", "1.0.3")}}}
	for _, c := range []struct {
		name     string
		releases []graphdata.Release
		err      string
		dropped  []string
	}{
		{"down alone", []graphdata.Release{release("1.0.0", "amd64", []string{"1.0.1"}), release("1.0.1", "amd64", nil)}, "", []string{"1.0.0", "1.0.1", "1.0.1 → 1.0.0"}},
		{"itself", []graphdata.Release{release("1.0.0", "amd64", []string{"1.0.0"})}, "updates form a cycle: 1.0.0+amd64 → 1.0.0+amd64", []string{"1.0.0"}},
		{"three", []graphdata.Release{release("1.0.0", "amd64", []string{"1.0.2", "1.0.3"}), release("1.0.1", "amd64", []string{"1.0.0"}), release("1.0.2", "amd64", []string{"1.0.1"}), release("1.0.3", "amd64", nil)},
			"updates form a cycle: 1.0.0+amd64 → 1.0.1+amd64 → 1.0.2+amd64 → 1.0.0+amd64", []string{"1.0.0", "1.0.0 → 1.0.1", "1.0.1", "1.0.1 → 1.0.2", "1.0.2", "1.0.3", "1.0.3 → 1.0.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := graphdata.Build(tree, c.releases, graphdata.BuildOptions{})
			var cycle *graphdata.CycleError
			if c.err != "" && (!errors.As(err, &cycle) || err.Error() != c.err || cycle.Arch != "amd64") || c.err == "" && err != nil {
				t.Errorf("%v, want %s", err, c.err)
			}
			s := build(t, tree, c.releases, graphdata.BuildOptions{DropCycles: true})
			if diff := cmp.Diff(c.dropped, picture(s.Graph("a-1.0", "amd64"))); diff != "" || (len(s.Report().Problems) > 0) != (c.err != "") {
				t.Errorf("%v: -want +got\n%s", s.Report().Problems, diff)
			}
			for _, p := range s.Report().Problems {
				if causes := s.Why(p.File, strings.Fields(p.Message)[3], "amd64"); len(causes) != 2 || causes[1].String() != "1.0.2-amd64: Removed by cycle" && causes[1].String() != "1.0.0-amd64: Removed by cycle" {
					t.Errorf("%v: %v", p, causes)
				}
			}
		})
	}
}

// TestBuildClash: two releases that are one once the architecture is cut off.
func TestBuildClash(t *testing.T) {
	tree := &graphdata.Tree{}
	plain := graphdata.Release{Version: "1.0.0", Metadata: map[string]string{graph.MetadataArch: "amd64"}}
	_, err := graphdata.Build(tree, []graphdata.Release{release("1.0.0", "amd64", nil), plain}, graphdata.BuildOptions{})
	if err == nil || err.Error() != "releases 1.0.0 and 1.0.0+amd64 are both 1.0.0 on amd64" {
		t.Error(err)
	}
	plain.Metadata[graph.MetadataArch] = "s390x, amd64,s390x" // twice is no clash
	if s := build(t, tree, []graphdata.Release{plain}, graphdata.BuildOptions{}); s.Nodes() != 2 {
		t.Errorf("%d releases", s.Nodes())
	}
	s390x := release("1.0.0-s390x", "s390x", nil)
	tree.Channels = []graphdata.Channel{{Name: "a-1.0", Versions: entries("1.0.0-s390x")}}
	tree.Drops = []graphdata.BlockedEdge{drop("1.0.0-s390x", ".*")}
	s := build(t, tree, []graphdata.Release{s390x}, graphdata.BuildOptions{})
	if diff := cmp.Diff([]string{"1.0.0-s390x"}, picture(s.Graph("a-1.0", "s390x"))); diff != "" || len(s.Report().UnknownTargets) > 0 {
		t.Errorf("%+v %s", s.Report(), diff)
	}
}

// TestFull: the whole graph of the worked example, as a builder has it.
func TestFull(t *testing.T) {
	tree, releases := worked()
	tree.Risks[0].Risk.MatchingRules = []configv1.ClusterCondition{{Type: "PromQL", PromQL: &configv1.PromQLClusterCondition{PromQL: "up > 0"}}}
	full := build(t, tree, releases[:3], graphdata.BuildOptions{}).Full()
	text := checktest.Must(full.MarshalJSON())
	node := func(version, metadata string) string {
		short := strings.TrimSuffix(version, "+amd64")
		return fmt.Sprintf(`{"version":%q,"payload":"registry.example/%s-amd64","metadata":{"io.openshift.upgrades.graph.previous.remove_regex":"^1[.]0[.]0[+].*$|1[.]0[.].*","io.openshift.upgrades.graph.release.arch":"amd64","io.openshift.upgrades.graph.release.channels":%q,"io.openshift.upgrades.graph.release.manifestref":"sha256:%samd64"}}`, version, short, metadata, short)
	}
	regex := `"io.openshift.upgrades.graph.previous.remove_regex":"^1[.]0[.]0[+].*$|1[.]0[.].*",`
	want := `{"nodes":[` + strings.Replace(node("1.0.0+amd64", "candidate-1.1"), regex, "", 1) + "," + strings.Replace(node("1.0.1+amd64", "candidate-1.1,fast-1.1"), regex, "", 1) +
		`,{"version":"1.0.9+amd64"},` + node("1.1.0+amd64", "candidate-1.1,fast-1.1") + `,{"version":"1.2.0+amd64"}],"edges":[[0,1],[3,4]],` +
		`"conditionalEdges":[{"edges":[{"from":"1.0.1+amd64","to":"1.1.0+amd64"},{"from":"1.0.9+amd64","to":"1.1.0+amd64"}],"risks":[{"url":"https://example.com/R","name":"R","message":"R.","matchingRules":[{"type":"PromQL","promql":{"promql":"up > 0"}}]}]}]}`
	checktest.Same(t, want, string(text))
	empty, err := build(t, &graphdata.Tree{}, nil, graphdata.BuildOptions{}).Full().MarshalJSON()
	checktest.OK(t, err)
	checktest.Equal(t, `{"nodes":[],"edges":[],"conditionalEdges":[]}`, string(empty), "%s", empty)
}

// encoded are all graphs of a snapshot.
func encoded(s *graphdata.Snapshot) []byte {
	var all bytes.Buffer
	for _, arch := range s.Arches() {
		for _, channel := range s.Channels(arch) {
			all.Write(s.Graph(channel, arch).AppendJSON(nil))
		}
	}
	return all.Bytes()
}

// TestRevision: a revision stays whatever the order of the input, and changes with
// anything that is served.
func TestRevision(t *testing.T) {
	tree, releases := worked()
	s := build(t, tree, releases, graphdata.BuildOptions{})
	first := s.Revision()
	if len(first) != 32 || s.Nodes() != 4 {
		t.Errorf("%q, %d nodes", first, s.Nodes())
	}
	tree, releases = worked()
	slices.Reverse(releases)
	slices.Reverse(tree.Channels)
	checktest.Equal(t, first, build(t, tree, releases, graphdata.BuildOptions{}).Revision(), "in another order")
	for name, change := range map[string]func(*graphdata.Tree, []graphdata.Release){
		"image":       func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Image = "other" },
		"metadata":    func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Metadata["a"] = "b" },
		"predecessor": func(_ *graphdata.Tree, r []graphdata.Release) { r[1].Previous = nil },
		"version":     func(_ *graphdata.Tree, r []graphdata.Release) { r[0].Version = "1.0.0-rc.0" },
		"arch":        func(_ *graphdata.Tree, r []graphdata.Release) { r[3].Arch = "arm64" },
		"channel":     func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Channels[0].Name = "stable-1.1" },
		"drop":        func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Drops = nil },
		"risk":        func(tree *graphdata.Tree, _ []graphdata.Release) { tree.Risks[0].Risk.Message = "other" },
	} {
		tree, releases := worked()
		change(tree, releases)
		if build(t, tree, releases, graphdata.BuildOptions{}).Revision() == first {
			t.Errorf("%s: one revision", name)
		}
	}
}
