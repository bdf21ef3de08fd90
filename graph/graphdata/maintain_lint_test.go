package graphdata_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// lintFiles are those of a tree that no rule finds fault with.
var lintFiles = map[string]string{
	"channels/stable-4.1.yaml":         "-",
	"channels/candidate-4.6.yaml":      "name: candidate-4.6\nfeeder: {name: candidate, delay: PT0H, filter: '4[.](5|6)[.].*'}\nversions: [4.5.1, 4.6.1, 4.6.2]\n",
	"channels/fast-4.6.yaml":           "name: fast-4.6\nfeeder: {name: fast, delay: PT0H, filter: '4[.](5|6)[.].*'}\nversions: [4.5.1, 4.6.1+amd64]\n",
	"channels/stable-4.6.yaml":         "name: stable-4.6\nfeeder: {name: stable, delay: P1W, filter: '4[.](5|6)[.].*'}\nversions: [4.5.1]\n",
	"channels/eus-4.6.yaml":            "name: eus-4.6\nfeeder: {name: stable, delay: PT0H}\nversions: [4.5.1]\n",
	"internal-channels/candidate.yaml": "name: candidate\ntombstones: [4.6.0]\nversions: [4.5.1, 4.6.0, 4.6.1]\n",
	"internal-channels/fast.yaml":      "name: fast\nfeeder: {name: candidate, errata: public, delay: PT48H}\nversions: [4.5.1, 4.6.1]\n",
	"internal-channels/stable.yaml":    "name: stable\nfeeder: {name: fast, delay: P2DT3H}\nversions: [4.5.1]\n",
	"blocked-edges/4.6.1-Slow.yaml":    "to: 4.6.1\nfrom: 4[.]5[.].*\nurl: https://example.com/1\nname: Slow\nmessage: It is slow.\nmatchingRules: [{type: Always}]\n",
	"blocked-edges/4.6.2.yaml":         "to: 4.6.2\nfrom: ^4[.]5[.]1[+].*$\n",
}

// lintTree is the tree of lintFiles, with some files replaced.
func lintTree(t *testing.T, files map[string]string) *graphdata.Tree {
	t.Helper()
	all := maps.Clone(lintFiles)
	maps.Copy(all, files)
	tree, problems := load(t, treeOf(all), graphdata.LoadOptions{})
	if tree == nil {
		t.Fatal(problems)
	}
	return tree
}

func lintText(problems []graphdata.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String()+" ["+p.Rule+"]")
	}
	return strings.Join(lines, "\n")
}

// TestLint: each rule has a case, which finds that and nothing else.
func TestLint(t *testing.T) {
	const risk = "blocked-edges/4.6.1-Slow.yaml"
	riskText := "to: 4.6.1\nfrom: 4[.]5[.].*\nurl: https://example.com/1\nname: Slow\nmessage: It is slow.\nmatchingRules: [{type: Always}]\n"
	change := func(old, new string) map[string]string {
		checktest.Has(t, riskText, old)
		return map[string]string{risk: strings.Replace(riskText, old, new, 1)}
	}
	file := func(name, text string) map[string]string { return map[string]string{name: text} }
	release := func(version string, previous ...string) graphdata.Release {
		return graphdata.Release{Version: version, Arch: "amd64", Source: "list", Previous: previous,
			Metadata: map[string]string{graph.MetadataURL: "https://access.redhat.com/errata/RHSA-2026:1234"}}
	}
	all := []graphdata.Release{release("4.5.1"), release("4.6.0"), release("4.6.1"), release("4.6.2")}
	const suggestion = "default: {minor_min: 4.5.1, minor_max: 4.5.9999, minor_block_list: [], z_min: 4.6.1, z_max: 4.6.9999, z_block_list: []}\n"
	for _, c := range []struct {
		rule     string
		files    map[string]string
		releases []graphdata.Release
		want     string
	}{
		{"", nil, nil, ""},
		{"", nil, all, ""},
		{"", file("channels/stable-4.1.yaml", "name: stable-4.1\nversions: [4.1.0]\n"), nil, ""},
		{"risk-file-name", map[string]string{risk: "-", "blocked-edges/Slow.yaml": riskText}, nil, "blocked-edges/Slow.yaml:1: to: conditional risk to version 4.6.1 should be declared in a 4.6.1-<...>.yaml file"},
		{"risk-url", change("https:", "http:"), nil, risk + `:3: url: url must be an https:// URI, not 'http://example.com/1'`},
		{"risk-name", change("Slow", "slow"), nil, risk + `:4: name: name must be a CamelCase reason, not 'slow' (must match '^[A-Z][A-Za-z0-9_]*$')`},
		{"risk-rules", change("[{type: Always}]", "[]"), nil, risk + ":6: matchingRules: matchingRules must be an array with at least one member"},
		{"rule-twice", change("[{type: Always}]", "[{type: Always}, {type: Always}]"), nil, risk + ":6: matchingRules[1]: type Always appears multiple times in matchingRules"},
		{"risk-diverges", file("blocked-edges/4.6.2-Slow.yaml", strings.NewReplacer("4.6.1", "4.6.2", "4[.]5[.].*", "4[.]6[.]1", "It", "This", "Always", "PromQL, promql: {promql: up}").Replace(riskText)+"fixedIn: 4.6.3\n"), nil,
			"blocked-edges/4.6.2-Slow.yaml:5: message: risk Slow diverges on message from " + risk + " [risk-diverges]\nblocked-edges/4.6.2-Slow.yaml:6: matchingRules: risk Slow diverges on matchingRules from " + risk},
		{"risk-diverges", map[string]string{risk: strings.Replace(riskText, "It is", "Is it", 1), "blocked-edges/4.6.2.yaml": "-", "blocked-edges/4.6.2-a.yaml": strings.ReplaceAll(riskText, "4.6.1", "4.6.2"), "blocked-edges/4.6.2-b.yaml": strings.ReplaceAll(riskText, "4.6.1", "4.6.2")}, nil,
			risk + ":5: message: risk Slow diverges on message from blocked-edges/4.6.2-a.yaml"},
		{"not-string", change("It is slow.", "404"), nil, risk + ":5:10: message: must be a string, not int: other readers of YAML need quotes"},
		{"fixed-in", change("url", "fixedIn: 4.7.1\nurl"), nil, risk + ":3: fixedIn: 4.7.1 is of another minor than 4.6.1"},
		{"fixed-in", change("url", "fixedIn: 4.6.1\nurl"), nil, risk + ":3: fixedIn: 4.6.1 is not above 4.6.1"},
		{"fixed-in", change("url", "fixedIn: 4.6.2\nurl"), nil, ""},
		{"promql", change("{type: Always}", "{type: PromQL, promql: {promql: 'group(up'}}"), nil, risk + ":6: matchingRules[0]: cannot be parsed: group(up is not closed"},
		{"promql", change("{type: Always}", "{type: PromQL, promql: {promql: up}}"), nil, ""},
		{"from-within-number", map[string]string{risk: strings.Replace(riskText, "4[.]5[.].*", "^4[.]5[.][14]", 1), "channels/x-4.6.yaml": "name: x-4.6\nversions: [4.5.12]\n"}, nil,
			risk + `:2: from: "^4[.]5[.][14]" ends within a number of 4.5.12, which [+] would exclude`},
		{"from-within-number", map[string]string{risk: strings.Replace(riskText, "4[.]5[.].*", "4[.]5[.][14][+]", 1), "channels/x-4.6.yaml": "name: x-4.6\nversions: [4.5.12]\n"}, nil, ""},
		{"from-half-dead", change("4[.]5[.].*", "4[.](4[.].*|5[.](0|1|50]))[+].*"), nil, risk + `:2: from: "4[.](4[.].*|5[.](0|1|50]))[+].*": the alternative 4\..* matches no version`},
		{"from-half-dead", change("4[.]5[.].*", "4[.](5[.](1|50])|6[.]1)[+].*"), nil, risk + `:2: from: "4[.](5[.](1|50])|6[.]1)[+].*": the alternative 50\] matches no version`},
		{"from-other-minor", change("4[.]5[.].*", "4[.]5[.].*|4[.]6"), nil, ""},
		{"from-other-minor", map[string]string{risk: strings.Replace(riskText, "4[.]5[.].*", "4.5.*", 1), "channels/x-4.6.yaml": "name: x-4.6\nversions: [4.4.5]\n"}, nil, risk + `:2: from: "4.5.*" begins with 4.5 and matches 4.4.5 too`},
		{"from-matches-nothing", change("4[.]5[.].*", "4[.]6[.][12]"), nil, risk + `:2: from: "4[.]6[.][12]" matches no version of a channel below 4.6.1`},
		{"from-without-architecture", file("blocked-edges/4.6.2.yaml", "to: 4.6.2\nfrom: ^4[.]5[.]1$\n"), nil,
			`blocked-edges/4.6.2.yaml:2: from: "^4[.]5[.]1$" matches 4.5.1, but not with an architecture, as in 4.5.1+amd64`},
		{"overlap", file("blocked-edges/4.6.1.yaml", "to: 4.6.1+amd64\nfrom: 4[.]5[.]1\n"), nil, risk + ":2: from: the update from 4.5.1 is dropped by blocked-edges/4.6.1.yaml"},
		{"overlap", map[string]string{risk: strings.Replace(riskText, "4.6.1", "4.6.1+s390x", 1), "blocked-edges/4.6.1.yaml": "to: 4.6.1+amd64\nfrom: 4[.]5[.]1\n"}, nil, risk + ":1: to: conditional risk to version 4.6.1+s390x should be declared in a 4.6.1+s390x-<...>.yaml file [risk-file-name]"},
		{"channel-twice", file("channels/eus.yaml", "name: eus-4.6\nversions: []\n"), nil, "channels/eus.yaml:1: name: multiple definitions for eus-4.6: channels/eus-4.6.yaml and channels/eus.yaml"},
		{"promotion-order", file("channels/stable-4.6.yaml", "name: stable-4.6\nversions: [4.6.2]\n"), nil, "channels/stable-4.6.yaml:2: versions[0]: Release 4.6.2 present in stable-4.6, but not in fast-4.6"},
		{"promotion-order", file("channels/fast-4.7.yaml", "name: fast-4.7\nversions: []\n"), nil, "channels/fast-4.7.yaml:1: name: Channel fast-4.7 exists, but not candidate-4.7"},
		{"channel-file-name", file("channels/x.yaml", "name: a-b\nversions: []\n"), nil, `channels/x.yaml:1: name: the channel is "a-b", not "x" as the name of the file says`},
		{"channel-name", file("channels/x.yaml", "name: x\nversions: []\n"), nil, `channels/x.yaml:1: name: "x" has no hyphen`},
		{"channel-minor", file("channels/x-4.5.yaml", "name: x-4.5\nversions: [4.6.1, 4.4.9]\n"), nil, "channels/x-4.5.yaml:2: versions[0]: 4.6.1 is above the minor of x-4.5"},
		{"version-twice", file("channels/x-4.6.yaml", "name: x-4.6\nversions: [4.6.1,\n4.6.1]\n"), nil, "channels/x-4.6.yaml:3: versions[1]: 4.6.1 is there twice, first on line 2"},
		{"version-build", file("channels/x-4.6.yaml", "name: x-4.6\nversions: [4.6.1+amd64, 4.6.1]\n"), nil, "channels/x-4.6.yaml:2: versions[0]: 4.6.1+amd64 is there for every architecture, on line 2"},
		{"tombstone", file("channels/x-4.6.yaml", "name: x-4.6\ntombstones: [4.6.1]\nversions: []\n"), nil, "channels/x-4.6.yaml:2: tombstones[0]: 4.6.1 is not in the channel"},
		{"tombstone-promoted", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: candidate, delay: PT0H}\nversions: [4.6.0]\n"), nil, "channels/x-4.6.yaml:3: versions: some versions in x-4.6 despite tombstones in candidate: 4.6.0"},
		{"feeder-unknown", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: nightly, delay: PT0H}\nversions: []\n"), nil, `channels/x-4.6.yaml:2: feeder.name: there is no channel "nightly"`},
		{"feeder-cycle", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: x-4.6, delay: PT0H}\nversions: []\n"), nil, "channels/x-4.6.yaml:2: feeder.name: x-4.6 is fed by itself"},
		{"feeder-delay", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: PT5M}\nversions: []\n"), nil, `channels/x-4.6.yaml:2: feeder.delay: invalid or unsupported ISO 8601 duration 'PT5M'.  Tooling currently only supports P<number>W for weeks, or P<number>DT<number>H for day/hour offsets`},
		{"feeder-delay", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P1DT}\nversions: []\n"), nil, `channels/x-4.6.yaml:2: feeder.delay: invalid or unsupported ISO 8601 duration 'P1DT'.  Tooling currently only supports P<number>W for weeks, or P<number>DT<number>H for day/hour offsets`},
		{"feeder-errata", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, errata: all}\nversions: []\n"), nil, `channels/x-4.6.yaml:2: feeder.errata: invalid errata value for x-4.6: "all"`},
		{"feeder-waits", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast}\nversions: []\n"), nil, "channels/x-4.6.yaml:2: feeder: has neither a delay nor errata: nothing is ever promoted"},
		{"filter", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P, filter: '('}\nversions: []\n"), nil, "channels/x-4.6.yaml:2: feeder.filter: error parsing regexp: missing closing ): `(`"},
		{"filter-parentheses", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P, filter: '4[.]6[.].*|4[.]5[.]1'}\nversions: []\n"), nil, ""},
		{"filter-parentheses", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P, filter: '4[.]5|4[.]6[.].*'}\nversions: []\n"), nil, `channels/x-4.6.yaml:2: feeder.filter: "4[.]5|4[.]6[.].*" is not the same for 4.5.1 once it stands between ^ and $: use parentheses`},
		{"filter-excludes", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P, filter: '4[.]6[.].*'}\nversions: [4.5.1, 4.6.1]\n"), nil, `channels/x-4.6.yaml:2: feeder.filter: "4[.]6[.].*" excludes versions of the channel: 4.5.1`},
		{"filter-own-minor", file("channels/x-4.6.yaml", "name: x-4.6\nfeeder: {name: fast, delay: P, filter: '4[.]5[.].*'}\nversions: [4.6.1]\n"), nil, `channels/x-4.6.yaml:2: feeder.filter: "4[.]5[.].*" lets no version of 4.6 pass`},
		{"filter-own-minor", file("channels/candidate-4.9.yaml", "name: candidate-4.9\nfeeder: {name: candidate, delay: P, filter: '4[.](8|9)[.][0-9].*'}\nversions: []\n"), nil, ""},
		{"eus-missing", file("channels/eus-4.6.yaml", "-"), nil, "channels/stable-4.6.yaml:1: name: there is no channel eus-4.6"},
		{"eus-feeder", file("channels/eus-4.6.yaml", "name: eus-4.6\nfeeder: {name: fast, delay: PT0H}\nversions: []\n"), nil, `channels/eus-4.6.yaml:2: feeder: is "fast" with delay "PT0H", which should be stable with PT0H`},
		{"eus-feeder", file("channels/eus-4.7.yaml", "name: eus-4.7\nversions: []\n"), nil, "channels/eus-4.7.yaml:1: name: its minor has no extended support"},
		{"release-missing", nil, all[1:2], strings.Join([]string{
			"blocked-edges/4.6.2.yaml:1: to: there is no release 4.6.2 [release-missing]",
			"channels/candidate-4.6.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]", "channels/candidate-4.6.yaml:3: versions[1]: there is no release 4.6.1 [release-missing]", "channels/candidate-4.6.yaml:3: versions[2]: there is no release 4.6.2 [release-missing]",
			"channels/eus-4.6.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]",
			"channels/fast-4.6.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]", "channels/fast-4.6.yaml:3: versions[1]: there is no release 4.6.1+amd64 [release-missing]",
			"channels/stable-4.6.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]",
			"internal-channels/candidate.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]", "internal-channels/candidate.yaml:3: versions[2]: there is no release 4.6.1 [release-missing]",
			"internal-channels/fast.yaml:3: versions[0]: there is no release 4.5.1 [release-missing]", "internal-channels/fast.yaml:3: versions[1]: there is no release 4.6.1 [release-missing]",
			"internal-channels/stable.yaml:3: versions[0]: there is no release 4.5.1",
		}, "\n")},
		{"release-unsigned", file("blocked-edges/4.5.9-s390x.yaml", "to: 4.5.9-s390x\nfrom: 4[.]5[.]1\n"), append(slices.Clone(all), release("4.6.2-unsigned"), graphdata.Release{Version: "4.6.2", Arch: "unsigned", Source: "a", Metadata: all[0].Metadata},
			graphdata.Release{Version: "4.5.9-s390x", Arch: "unsigned", Source: "b"}, graphdata.Release{Version: "4.5.9-s390x+s390x", Source: "c unsigned"}),
			"a: 4.6.2+unsigned has no signature [release-unsigned]\nc unsigned: 4.5.9-s390x+s390x has no signature"},
		{"release-url", nil, append(slices.Clone(all), graphdata.Release{Version: "4.6.3", Source: "a"}, graphdata.Release{Version: "4.6.4", Source: "b", Metadata: map[string]string{"url": "https://example.com"}}, graphdata.Release{Version: "4.6.5-rc.0"}),
			"a: Missing url key in 4.6.3 [release-url]\nb: Invalid errata link in 4.6.4: https://example.com"},
		{"", file("build-suggestions/4.6.yaml", suggestion), []graphdata.Release{all[0], release("4.6.0", "4.5.1", "4.5.0"), release("4.6.1", "4.5.1+amd64"), release("4.6.2", "4.6.1", "4.5.1")}, ""},
		{"suggestion-differs", file("build-suggestions/4.6.yaml", suggestion), []graphdata.Release{all[0], release("4.6.0", "4.5.1"), release("4.6.1", "4.6.0"), release("4.6.2", "4.6.1", "4.5.1")},
			"list: 4.6.1 lacks predecessors that are suggested: 4.5.1 [suggestion-differs]\nlist: 4.6.1 names predecessors that are not suggested: 4.6.0"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			want := c.want
			if want != "" && !strings.HasSuffix(want, "]") || strings.HasSuffix(want, "[2]") {
				want += " [" + c.rule + "]"
			}
			unclosed := func(query string) error {
				if strings.HasSuffix(query, ")") || !strings.Contains(query, "(") {
					return nil
				}
				return fmt.Errorf("%s is not closed", query)
			}
			signed := func(r graphdata.Release) bool { return r.Arch != "unsigned" && r.Source != "c unsigned" }
			got := lintText(maintain.Lint(lintTree(t, c.files), nil, maintain.LintOptions{Releases: c.releases, Signed: signed, PromQL: unclosed}))
			checktest.Same(t, want, got)
		})
	}
}

// TestLintBrokenFile: what a broken file holds is not missed elsewhere, and the rest of
// the tree is looked at.
func TestLintBrokenFile(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"channels/fast-4.6.yaml", "name: fast-4.6\nversions: [4.6]\n", `:2:12: versions[0]: "4.6" is not a valid semver: invalid semantic version [version]`},
		{"channels/eus-4.6.yaml", "{", ":1: did not find expected node content [yaml]"},
		{"internal-channels/fast.yaml", "- 1\n", ":1:1: is a list, not a map [type]"},
		{"blocked-edges/4.6.2.yml", "", `: has an invalid extension "yml" [invalid-extension]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			const other = "blocked-edges/4.6.1-slow.yaml"
			files := maps.Clone(lintFiles)
			files[c.name] = c.text
			files[other] = strings.Replace(files["blocked-edges/4.6.1-Slow.yaml"], "Slow", "slow", 1)
			_, err := graphdata.Load(t.Context(), treeOf(files), graphdata.LoadOptions{InternalChannels: true})
			var refused *graphdata.LoadError
			if !errors.As(err, &refused) || refused.Tree == nil {
				t.Fatal(err)
			}
			want := c.name + c.want
			rest := other + ":4: name: name must be a CamelCase reason, not 'slow' (must match '^[A-Z][A-Za-z0-9_]*$') [risk-name]"
			if want < rest {
				want += "\n" + rest
			} else {
				want = rest + "\n" + want
			}
			checktest.Same(t, want, lintText(maintain.Lint(refused.Tree, nil, maintain.LintOptions{})))
		})
	}
}

// TestLintFeederWithoutInternalChannels: a tree that was read without its internal
// channels may lack the three that there are, and no others.
func TestLintFeederWithoutInternalChannels(t *testing.T) {
	for feeder, unknown := range map[string]bool{"candidate": false, "fast": false, "stable": false, "nightly": true, "fast-1.0": true} {
		tree := &graphdata.Tree{Channels: []graphdata.Channel{{File: "channels/a-1.1.yaml", Name: "a-1.1", Feeder: &graphdata.Feeder{Name: feeder, Delay: "PT0H"}}}}
		checktest.Equal(t, unknown, lintText(maintain.Lint(tree, nil, maintain.LintOptions{})) != "", "%s", feeder)
	}
}

// TestLintShowsProblemsOfTheTree: one list for a check before merging.
func TestLintShowsProblemsOfTheTree(t *testing.T) {
	tree := lintTree(t, map[string]string{"build-suggestions/notes.txt": ""})
	if got, want := lintText(maintain.Lint(tree, nil, maintain.LintOptions{})), `build-suggestions/notes.txt: has an invalid extension "txt" [invalid-extension]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := maintain.Lint(&graphdata.Tree{}, nil, maintain.LintOptions{}); len(got) != 0 {
		t.Error(got)
	}
}

// TestConnectivityProperties: the rules on ways out and patch updates, against a
// plain search over the graphs that are served.
func TestConnectivityProperties(t *testing.T) {
	pool := []string{"1.0.0", "1.0.1", "1.1.0-rc.0", "1.1.0", "1.1.1", "1.2.0", "1.2.1", "1.2.2"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 2, -1, rapid.ID[string]).Draw(t, name)
		}
		tree := small(map[string][]string{"candidate-1.1": draw("candidate-1.1"), "candidate-1.2": draw("candidate-1.2"), "candidate-1.3": draw("candidate-1.3")})
		fast := graphdata.Channel{File: "channels/fast-1.2.yaml", Name: "fast-1.2", Versions: entries(draw("fast-1.2")...)}
		tree.Channels = append(tree.Channels, fast)
		for range rapid.IntRange(0, 3).Draw(t, "edges") {
			from := rapid.SampledFrom([]string{".*", "^1[.]0", "^1[.]2"}).Draw(t, "from")
			to := rapid.SampledFrom(pool).Draw(t, "to")
			b := drop(to, from)
			if rapid.Bool().Draw(t, "risk") {
				b = risk("A", to, from)
			}
			addEdges(tree, []graphdata.BlockedEdge{b})
		}
		var releases []graphdata.Release
		for i, v := range pool {
			previous := slices.DeleteFunc(slices.Clone(pool[:i]), func(string) bool { return rapid.Bool().Draw(t, "not") })
			releases = append(releases, release(v, "amd64", previous))
		}
		s := checktest.Must(graphdata.Build(tree, releases, graphdata.BuildOptions{}))
		var got, want []string
		for _, p := range maintain.Lint(tree, s, maintain.LintOptions{}) {
			if p.File == fast.File && slices.Contains(snapshotRules, p.Rule) {
				got = append(got, p.Rule+" "+fast.Versions[p.Line-1].Version)
			}
		}
		in := func(v string) bool {
			return slices.ContainsFunc(fast.Versions, func(e graphdata.Entry) bool { return e.Version == v })
		}
		for _, e := range fast.Versions {
			if needsWay(e.Version) && !hasWay(s, e.Version, in) {
				want = append(want, "updates-out "+e.Version)
			}
		}
		for _, v := range needPatch(s, fast.Versions) {
			want = append(want, "updates-patch "+v)
		}
		slices.Sort(got)
		slices.Sort(want)
		checktest.Same(t, want, got)
	})
}

func needsWay(version string) bool { return graph.CompareVersions(version, "1.2.0-0") < 0 }

// hasWay searches forwards, over the candidate channels after a version's minor.
func hasWay(s *graphdata.Snapshot, version string, in func(string) bool) bool {
	offered := map[[2]string]bool{}
	for minor := version[2] - '0' + 1; minor <= 2; minor++ {
		for pair := range updates(s.Graph(fmt.Sprintf("candidate-1.%d", minor), "amd64")) {
			offered[pair] = true
		}
	}
	seen := map[string]bool{version: true}
	for queue := []string{version}; len(queue) > 0; queue = queue[1:] {
		if !needsWay(queue[0]) {
			return true
		}
		for pair := range offered {
			if pair[0] == queue[0] && in(pair[1]) && !seen[pair[1]] {
				seen[pair[1]] = true
				queue = append(queue, pair[1])
			}
		}
	}
	return false
}

// needPatch are the versions of the highest minor without a free update, except
// those that lead to one of them.
func needPatch(s *graphdata.Snapshot, versions []graphdata.Entry) (told []string) {
	var sorted []string
	for _, e := range versions {
		sorted = append(sorted, e.Version)
	}
	slices.SortFunc(sorted, graph.CompareVersions)
	highest := sorted[len(sorted)-1]
	served := updates(s.Graph("fast-1.2", "amd64"))
	for _, v := range slices.Backward(sorted[:len(sorted)-1]) {
		if v[:3] != highest[:3] || v == "1.1.0-rc.0" {
			continue
		}
		free, toTold := false, false
		for pair, unconditional := range served {
			if pair[0] == v {
				free = free || unconditional
				toTold = toTold || slices.Contains(told, pair[1])
			}
		}
		if !free && !toTold {
			told = append(told, v)
		}
	}
	return told
}

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
