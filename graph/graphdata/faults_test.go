package graphdata_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// faultCase is a file with faults. What Compat says is what Load says, with
// warnings where an update service accepts the file.
type faultCase struct {
	name, text string
	want       string // the strict problems, one a line, without the file's name
	compat     string // the problems of Compat; "same" if they do not differ
	counts     bool   // under Compat the file counts
}

func runFaults(t *testing.T, file string, cases []faultCase, counts func(*graphdata.Tree) bool) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := treeOf(map[string]string{file: c.text})
			tree, problems := load(t, fsys, graphdata.LoadOptions{})
			checktest.SameIn(t, "strict", c.want, faultText(problems, file))
			if warned := !strings.Contains("\n"+c.want, "\n:") && !strings.HasPrefix(c.want, ":"); (tree != nil) != warned {
				t.Errorf("strict: tree %v", tree)
			}
			want := c.compat
			if want == "same" {
				want = c.want
			}
			tree, problems = load(t, fsys, graphdata.LoadOptions{Compat: true})
			checktest.SameIn(t, "compat", want, faultText(problems, file))
			if tree == nil || counts(tree) != c.counts {
				t.Errorf("compat: the file counts %v, want %v", !c.counts, c.counts)
			}
		})
	}
}

func faultText(problems []string, file string) string {
	return strings.ReplaceAll(strings.Join(problems, "\n"), file, "")
}

// TestChannelFaults: each rule of a channel's file.
func TestChannelFaults(t *testing.T) {
	const head = "name: a-4.1\nversions: []\n"
	runFaults(t, "channels/a.yaml", []faultCase{
		{"empty", "", ": is empty [yaml]", "same", false},
		{"only a comment", "# nothing\n", ": is empty [yaml]", "same", false},
		{"no YAML", "name: [\n", ":1: did not find expected node content [yaml]", "same", false},
		{"a list", "- a\n", ":1:1: is a list, not a map [type]", "same", false},
		{"two documents", head + "---\n" + head, ":3:1: has more than one document, of which one would be ignored [documents]", "same", false},
		{"broken second document", head + "--- [\n", ":3: did not find expected node content [yaml]", "same", false},
		{"key twice", head + "name: b\n", ":3:1: name: is there twice, first on line 1 [duplicate-key]", "same", false},
		{"key that is a list", head + "? [a]\n: b\n", ":3:3: a key is a list, not a text [type]", "same", false},
		{"no name", "versions: []\n", ":1:1: name: is a required property [required]", "same", false},
		{"name is a list", "name: [a]\nversions: []\n", ":1:7: name: is a list, not a text [type]", "same", false},
		{"empty name", "name:\nversions: []\n", ":1:6: name: is empty [required]", "warning: :1:6: name: is empty [required]", true},
		{"name is a number", "name: 4.2\nversions: []\n", "warning: :1:7: name: must be a string, not float: other readers of YAML need quotes [not-string]", "same", true},
		{"no versions", "name: a\n", ":1:1: versions: is a required property [required]", "same", false},
		{"versions null", "name: a\nversions: null\n", ":2:11: versions: is null, not a list [type]", "same", false},
		{"versions tilde", "name: a\nversions: ~\n", ":2:11: versions: is null, not a list [type]", "same", false},
		{"versions text", "name: a\nversions: ''\n", ":2:11: versions: is a text, not a list [type]", "same", false},
		{"versions map", "name: a\nversions: {}\n", ":2:11: versions: is a map, not a list [type]", "same", false},
		{"number that is no version", "name: a\nversions:\n- 4.20\n", ":3:3: versions[0]: \"4.20\" is not a valid semver: invalid semantic version [version]", "same", false},
		{"version that is a list", "name: a\nversions:\n- 4.1.0\n- []\n", ":4:3: versions[1]: is a list, not a text [type]", "same", false},
		{"version with white space", "name: a\nversions: [' 4.1.0']\n", ":2:12: versions[0]: \" 4.1.0\" is not a valid semver: invalid characters in version [version]",
			"warning: :2:12: versions[0]: \" 4.1.0\" is not a valid semver: invalid characters in version [version]", true},
		{"pre-release with a leading zero", "name: a\nversions: [4.1.0-01]\n", ":2:12: versions[0]: \"4.1.0-01\" is not a valid semver: version segment starts with 0 [version]",
			"warning: :2:12: versions[0]: \"4.1.0-01\" is not a valid semver: version segment starts with 0 [version]", true},
		{"pre-release with two hyphens", "name: a\nversions: [4.1.0-a--b]\n", "",
			":2:12: versions[0]: \"4.1.0-a--b\" is a version that the update service does not accept [version]", false},
		{"unknown key", head + "owner: me\n", ":3:1: owner: is not a known key [unknown-key]", "warning: :3:1: owner: is not a known key [unknown-key]", true},
		{"merge key", "x: &x {name: a}\n<<: *x\nversions: []\n", ":2:5: is an alias: write out what it stands for [alias]",
			":1:1: name: is a required property [required]\nwarning: :1:1: x: is not a known key [unknown-key]\nwarning: :2:1: <<: is not a known key [unknown-key]\nwarning: :2:5: is an alias: write out what it stands for [alias]", false},
		{"alias", "name: a\nversions: &v [4.1.0]\ntombstones: *v\n", ":3:13: is an alias: write out what it stands for [alias]", "warning: :3:13: is an alias: write out what it stands for [alias]", true},
		{"feeder is a text", head + "feeder: fast\n", ":3:9: feeder: is a text, not a map [type]", "warning: :3:9: feeder: is a text, not a map [type]", true},
		{"feeder without a name", head + "feeder: {delay: PT0H}\n", ":3:9: feeder.name: is a required property [required]", "warning: :3:9: feeder.name: is a required property [required]", true},
		{"feeder with another key", head + "feeder: {name: fast, wait: 1}\n", ":3:22: feeder.wait: is not a known key [unknown-key]", "warning: :3:22: feeder.wait: is not a known key [unknown-key]", true},
		{"feeder with an empty filter", head + "feeder: {name: fast, filter: ''}\n", ":3:30: feeder.filter: is empty [required]", "warning: :3:30: feeder.filter: is empty [required]", true},
		{"tombstone that is no version", head + "tombstones: [4]\n", ":3:14: tombstones[0]: \"4\" is not a valid semver: invalid semantic version [version]", "warning: :3:14: tombstones[0]: \"4\" is not a valid semver: invalid semantic version [version]", true},
		{"several", "name: []\nversions: [x]\nowner: me\n", ":1:7: name: is a list, not a text [type]\n:2:12: versions[0]: \"x\" is not a valid semver: invalid semantic version [version]\n:3:1: owner: is not a known key [unknown-key]",
			":1:7: name: is a list, not a text [type]\n:2:12: versions[0]: \"x\" is not a valid semver: invalid semantic version [version]\nwarning: :3:1: owner: is not a known key [unknown-key]", false},
	}, func(tree *graphdata.Tree) bool { return len(tree.Channels) == 2 })
}

// TestBlockedEdgeFaults: each rule of a file of blocked-edges.
func TestBlockedEdgeFaults(t *testing.T) {
	const rest = "url: https://example.com\nname: Slow\nmessage: It is slow.\n"
	const always = "matchingRules: [{type: Always}]\n"
	stricter := func(name, text, want string) faultCase {
		return faultCase{name, text, ":" + want, "warning: :" + want, true}
	}
	runFaults(t, "blocked-edges/a.yaml", []faultCase{
		{"no to", "from: .*\n", ":1:1: to: is a required property [required]", "same", false},
		{"no from", "to: 4.1.0\n", ":1:1: from: is a required property [required]", "same", false},
		{"to is no version", "to: 4.1\nfrom: .*\n", ":1:5: to: \"4.1\" is not a valid semver: invalid semantic version [version]", "same", false},
		{"from is a list", "to: 4.1.0\nfrom: [a]\n", ":2:7: from: is a list, not a text [type]", "same", false},
		stricter("from is empty", "to: 4.1.0\nfrom:\n", "2:6: from: is empty, which would match every version [from-empty]"),
		stricter("from is null", "to: 4.1.0\nfrom: ~\n", "2:7: from: is empty, which would match every version [from-empty]"),
		{"from does not compile", "to: 4.1.0\nfrom: 4[.29\n", ":2:7: from: error parsing 4[.29 as Regex: error parsing regexp: missing closing ]: `[.29` [from]", "same", false},
		{"from means something else", "to: 4.1.0\nfrom: '4[a&&b]'\n", ":2:7: from: error parsing 4[a&&b] as Regex: \"&&\" means something else in the update service's regular expressions [from]", "same", false},
		{"drop with an unknown key", smallDrop + "why: not\n", ":3:1: why: is not a known key [unknown-key]", "same", false},
		{"drop with fixedIn", smallDrop + "fixedIn: 4.1.1\n", "", ":3:10: fixedIn: makes the update service ignore a file without a risk [drop-key]", false},
		{"drop with autoExtend", smallDrop + "autoExtend: https://example.com\n", "", ":3:13: autoExtend: makes the update service ignore a file without a risk [drop-key]", false},
		{"some keys of a risk", smallDrop + "name: Slow\nurl: https://example.com\n", ":1:1: matchingRules: is a required property of a risk: without it the file blocks nothing [partial-risk]\n:1:1: message: is a required property of a risk: without it the file blocks nothing [partial-risk]", "same", false},
		stricter("risk with an unknown key", smallRisk+"why: not\n", "8:1: why: is not a known key [unknown-key]"),
		stricter("fixedIn is no version", smallRisk+"fixedIn: never\n", "8:10: fixedIn: \"never\" is not a valid semver: invalid semantic version [version]"),
		stricter("autoExtend is a list", smallRisk+"autoExtend: []\n", "8:13: autoExtend: is a list, not a text [type]"),
		{"fixedIn twice", smallRisk + "fixedIn: 4.1.1\nfixedIn: 4.1.1\n", ":9:1: fixedIn: is there twice, first on line 8 [duplicate-key]", "same", false},
		{"url is a map", smallDrop + "url: {}\nname: Slow\nmessage: m\n" + always, ":3:6: url: is a map, not a text [type]", "same", false},
		stricter("name is empty", smallDrop+"url: u\nname: ''\nmessage: m\n"+always, "4:7: name: is empty [required]"),
		{"message is a number", smallDrop + "url: u\nname: n\nmessage: 5\n" + always, "warning: :5:10: message: must be a string, not int: other readers of YAML need quotes [not-string]", "same", true},
		{"no rules", smallDrop + rest + "matchingRules:\n", "", "", true},
		{"empty list of rules", smallDrop + rest + "matchingRules: []\n", "", "", true},
		{"rules are null", smallDrop + rest + "matchingRules: ~\n", ":6:16: matchingRules: is null, not a list [type]", "same", false},
		{"rule is a text", smallDrop + rest + "matchingRules: [Always]\n", ":6:17: matchingRules[0]: is a text, not a map [type]", "same", false},
		stricter("rule without a type", smallDrop+rest+"matchingRules: [{}]\n", "6:17: matchingRules[0].type: type must be set for matchingRules[0] [rule-type]"),
		stricter("rule of another type", smallDrop+rest+"matchingRules: [{type: Never}]\n", "6:17: matchingRules[0].type: unrecognized matchingRules[0] type 'Never' [rule-type]"),
		stricter("rule with another key", smallDrop+rest+"matchingRules: [{type: Always, cel: 'true'}]\n", "6:32: matchingRules[0].cel: is not a known key [unknown-key]"),
		stricter("Always with a query", smallDrop+rest+"matchingRules: [{type: Always, promql: {promql: up}}]\n", "6:17: matchingRules[0].promql: unrecognized keys in 'Always' rule: promql [rule-key]"),
		stricter("PromQL without a query", smallDrop+rest+"matchingRules: [{type: PromQL}]\n", "6:17: matchingRules[0].promql: promql must be set for 'PromQL' rules [rule-key]"),
		stricter("PromQL with an empty map", smallDrop+rest+"matchingRules: [{type: PromQL, promql: {}}]\n", "6:17: matchingRules[0].promql: promql.promql must be set for 'PromQL' rules [rule-key]"),
		stricter("promql with another key", smallDrop+rest+"matchingRules: [{type: PromQL, promql: {promql: up, step: 1}}]\n", "6:53: matchingRules[0].promql.step: is not a known key [unknown-key]"),
		{"promql is a text", smallDrop + rest + "matchingRules: [{type: PromQL, promql: up}]\n", ":6:40: matchingRules[0].promql: is a text, not a map [type]", "same", false},
	}, func(tree *graphdata.Tree) bool { return len(tree.Drops)+len(tree.Risks) == 1 })
}

// TestSuggestionFaults: no update service reads them.
func TestSuggestionFaults(t *testing.T) {
	const whole = "default: {minor_min: 4.1.0, minor_max: 4.1.9, minor_block_list: [], z_min: 4.2.0, z_max: 4.2.9, z_block_list: []}\n"
	warned := func(name, text, want string) faultCase {
		return faultCase{name, text, ":" + want, "warning: :" + want, false}
	}
	runFaults(t, "build-suggestions/4.2.yaml", []faultCase{
		warned("no default", "s390x"+strings.TrimPrefix(whole, "default"), "1:1: default: is a required property [required]"),
		warned("a key is missing", strings.Replace(whole, "z_min: 4.2.0, ", "", 1), "1:10: default.z_min: is a required property [required]"),
		warned("unknown key", strings.Replace(whole, "z_min", "y_min: 1, z_min", 1), "1:69: default.y_min: is not a known key [unknown-key]"),
		warned("no version", strings.Replace(whole, "4.2.0", "4.2", 1), "1:76: default.z_min: \"4.2\" is not a valid semver: invalid semantic version [version]"),
		warned("no version in a list", strings.Replace(whole, "[]", "[x]", 1), "1:66: default.minor_block_list[0]: \"x\" is not a valid semver: invalid semantic version [version]"),
		warned("no YAML", "{", "1: did not find expected node content [yaml]"),
	}, func(tree *graphdata.Tree) bool { return len(tree.Suggestions) > 0 })
	runFaults(t, "build-suggestions/next.yaml", []faultCase{
		warned("name", whole, "1:1: the name of the file is not that of a minor, as 4.20.yaml is [suggestion-name]"),
	}, func(tree *graphdata.Tree) bool { return len(tree.Suggestions) > 0 })
}

// TestRawFaults: only versions may be wrong, for an update service.
func TestRawFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want, compat string }{
		{"no JSON", "{\n\"4.1.0\": {},\n}", ":3: invalid character '}' looking for beginning of object key string [raw-metadata]", "same"},
		{"value is a number", "{\"4.1.0\":\n {\"a\": 1}}", ":2: 4.1.0.a: expected a string, found a number [raw-metadata]", "same"},
		{"value is a text", "{\"4.1.0\": \"a\"}", ":1: 4.1.0: expected an object, found a string [raw-metadata]", "same"},
		{"key twice", "{\"4.1.0\": {\"a\": \"1\",\n\"a\": \"2\"}}", `:2: 4.1.0: key "a" comes twice [raw-metadata]`, "same"},
		{"more after it", "{} {}", ":1: invalid character '{' after top-level value [raw-metadata]", "same"},
		{"no version", "{\"4.1\": {\"a\": \"1\"}}", ":1: 4.1: is not a valid semver: invalid semantic version [version]", "warning: :1: 4.1: is not a valid semver: invalid semantic version [version]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const file = "raw/metadata.json"
			fsys := treeOf(map[string]string{file: c.text})
			tree, problems := load(t, fsys, graphdata.LoadOptions{})
			if diff := cmp.Diff(c.want, faultText(problems, file)); diff != "" || tree != nil {
				t.Errorf("strict: -want +got\n%s", diff)
			}
			want := c.compat
			if want == "same" {
				want = c.want
			}
			_, problems = load(t, fsys, graphdata.LoadOptions{Compat: true})
			checktest.SameIn(t, "compat", want, faultText(problems, file))
		})
	}
}
