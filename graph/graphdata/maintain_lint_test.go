package graphdata_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

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
