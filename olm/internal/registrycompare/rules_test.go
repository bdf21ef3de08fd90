package registrycompare

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestSameAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"good":                                good,
		"package without a name":              good + `{"schema":"olm.package"}`,
		"package twice":                       good + `{"schema":"olm.package","name":"p"}`,
		"no DNS label":                        replaced(t, `"p"`, `"P"`),
		"channel of an unknown package":       good + `{"schema":"olm.channel","package":"q","name":"c"}`,
		"channel without a name":              good + `{"schema":"olm.channel","package":"p"}`,
		"channel twice":                       good + `{"schema":"olm.channel","package":"p","name":"c"}`,
		"entry twice":                         replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1"},{"name":"p.v1"}`),
		"bundle of no package":                good + `{"schema":"olm.bundle","name":"x"}`,
		"bundle of an unknown package":        good + `{"schema":"olm.bundle","package":"q","name":"x"}`,
		"bundle twice":                        good + bundle("p.v1", "3.0.0"),
		"property without a value":            replaced(t, `"properties":[`, `"properties":[{"type":"x"},`),
		"no olm.package":                      replaced(t, `{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}`, ``),
		"two olm.package":                     replaced(t, `{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}`, `{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.package","value":null}`),
		"olm.package of another package":      replaced(t, `"packageName":"p","version":"2.0.0"`, `"packageName":"q","version":"2.0.0"`),
		"version":                             replaced(t, `"2.0.0"`, `"v2"`),
		"no version":                          replaced(t, `,"version":"2.0.0"`, ``),
		"bundle in no channel":                good + bundle("p.v3", "3.0.0"),
		"entries without bundles":             replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1","replaces":"x.v2"},{"name":"x.v2","replaces":"x.v1"},{"name":"x.v1"}`),
		"no default channel":                  replaced(t, `,"defaultChannel":"c"`, ``),
		"unknown default channel":             replaced(t, `"defaultChannel":"c"`, `"defaultChannel":"d"`),
		"package without channels":            good + `{"schema":"olm.package","name":"q"}`,
		"package with a default channel only": good + `{"schema":"olm.package","name":"q","defaultChannel":"c"}`,
		"channel without entries":             good + `{"schema":"olm.channel","package":"p","name":"d"}`,
		"no head":                             replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1","replaces":"p.v2"}`),
		"several heads":                       replaced(t, `"replaces":"p.v1"`, `"replaces":"p.v0"`),
		"cycle of one":                        replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1","replaces":"p.v1"}`),
		"cycle of two":                        replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1","replaces":"p.v3"},{"name":"p.v3","replaces":"p.v1"}`) + bundle("p.v3", "3.0.0"),
		"stranded":                            replaced(t, `,"replaces":"p.v1"},{"name":"p.v1"}`, `},{"name":"p.v1","replaces":"p.v1"}`),
		"empty skips":                         replaced(t, `"replaces":"p.v1"`, `"replaces":"p.v1","skips":["x","",""]`),
		"no image":                            replaced(t, `"image":"r.example/p:2",`, ``),
		"objects instead of an image":         replaced(t, `"image":"r.example/p:2","properties":[`, `"properties":[{"type":"olm.bundle.object","value":{"data":"e30="}},`),
		"equal versions":                      replaced(t, `"2.0.0"`, `"1.0.0"`),
		"versions that differ by build":       replaced(t, `"2.0.0"`, `"1.0.0+b"`),
		"deprecation without a package":       good + `{"schema":"olm.deprecations"}`,
		"deprecation of an unknown package":   good + `{"schema":"olm.deprecations","package":"q"}`,
		"deprecations twice":                  good + `{"schema":"olm.deprecations","package":"p"}{"schema":"olm.deprecations","package":"p"}`,
		"deprecation of an unknown bundle":    good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"x"},"message":"m"}]}`,
		"deprecation of an unknown channel":   good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.channel","name":"x"},"message":"m"}]}`,
		"deprecation of a named package":      good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package","name":"p"},"message":"m"}]}`,
		"deprecations without messages":       good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"}},{"reference":{"schema":"olm.channel","name":"c"}},{"reference":{"schema":"olm.bundle","name":"p.v1"}}]}`,
		"unknown schemas":                     good + `{"schema":"x","a":[1]}`,
		"keys in any case":                    strings.NewReplacer(`"schema"`, `"SCHEMA"`, `"entries"`, `"Entries"`).Replace(good),
		"keys that differ by case":            good + `{"schema":"x","Name":"a","name":"b"}`,
		"equal keys":                          strings.ReplaceAll(good, `"name":"c"`, `"name":"d","name":"c"`),
		"YAML":                                "schema: olm.package\nname: p\n---\n# comment\nschema: olm.channel\npackage: p\nname: c\n",
		"empty":                               "",
	} {
		t.Run(name, func(t *testing.T) {
			checktest.SameIn(t, "(-theirs +ours)", leaves(theirs(text)), leaves(ours(t, text)))
		})
	}
}

// TestDifferences lists where the two differ, with the words of both. Texts are
// compared up to the length of what is written here.
func TestDifferences(t *testing.T) {
	tests := []struct{ name, reason, text, theirs, ours string }{
		{
			name: "property of the wrong type", reason: "the error names the Go type that the value is decoded into",
			text:   replaced(t, `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}`, `"properties":[{"type":"olm.gvk","value":1}`),
			theirs: `parse properties for bundle "p.v2": parse property[0] of type "olm.gvk": json: cannot unmarshal number into Go value of type property.GVK`,
			ours:   `parse properties for bundle "p.v2": parse property[0] of type "olm.gvk": json: cannot unmarshal number into Go value of type olm.wireGVK`,
		},
		{
			name: "object that is not base64", reason: "the tools decode objects before anything else",
			text:   replaced(t, `"image":"r.example/p:2","properties":[`, `"properties":[{"type":"olm.bundle.object","value":{"data":"*"}},`),
			theirs: `read bundle objects: package "p", bundle "p.v2": parse property at index 0 as bundle object: illegal base64 data at input byte 0`,
			ours:   `parse properties for bundle "p.v2": parse property[0] of type "olm.bundle.object": illegal base64 data at input byte 0`,
		},
		{
			name: "skip range", reason: "this version of the tools does not look at it",
			text: replaced(t, `"replaces":"p.v1"`, `"replaces":"p.v1","skipRange":"v1"`),
			ours: "invalid index:\n└── invalid package \"p\":\n    └── invalid channel \"c\":\n        └── invalid bundle \"p.v2\":\n            └── invalid skipRange \"v1\": ",
		},
		{
			name: "image", reason: "this version of the tools does not look at it",
			text: replaced(t, `r.example/p:2`, `r.example/P:2`),
			ours: `package "p" bundle "p.v2" image: invalid image pull spec "r.example/P:2": repository name must be lowercase`,
		},
		{
			name: "release", reason: "this version of the tools does not know it",
			text: replaced(t, `"version":"2.0.0"`, `"version":"2.0.0","release":"1"`),
			ours: "invalid index:\n└── invalid package \"p\":\n    └── invalid channel \"c\":\n        └── invalid bundle \"p.v2\":\n            └── name \"p.v2\" does not match normalized name \"p-v2.0.0-1\"",
		},
		{
			name: "a skipped entry in the chain", reason: "this version of the tools walks through it",
			text: replaced(t, `"replaces":"p.v1"},{"name":"p.v1"}`, `"replaces":"p.v1","skips":["p.v1"]},{"name":"p.v1","replaces":"p.v0"},{"name":"p.v0"}`) + bundle("p.v0", "0.1.0"),
			ours: "invalid index:\n└── invalid package \"p\":\n    └── invalid channel \"c\":\n        └── channel contains one or more stranded bundles: p.v0",
		},
		{
			name: "entries without bundles in an earlier channel", reason: "the tools look at the last channel of a package only",
			text:   replaced(t, `{"schema":"olm.channel","package":"p","name":"c"`, `{"schema":"olm.channel","package":"p","name":"b","entries":[{"name":"x"}]}`+"\n"+`{"schema":"olm.channel","package":"p","name":"c"`),
			theirs: "invalid index:\n└── invalid package \"p\":\n    ",
			ours:   `no olm.bundle blobs found in package "p" for olm.channel entries [x]`,
		},
		{
			name: "entry without a name", reason: "the tools miss its bundle blob",
			text:   replaced(t, `{"name":"p.v1"}`, `{"name":"p.v1"},{}`),
			theirs: `no olm.bundle blobs found in package "p" for olm.channel entries []`,
			ours:   `invalid package "p", channel "c": entry [2]: name must be set`,
		},
		{
			name: "comment as a document", reason: "it is no object",
			text:   "# comment\n---\n" + "schema: x\n",
			theirs: "object '' is missing root schema field",
		},
		{
			name: "no schema", reason: "the tools encode the object again, with an end of line",
			text:   `{"name": "x"}`,
			theirs: "object '{\"name\":\"x\"}\n' is missing root schema field",
			ours:   `object '{"name": "x"}' is missing root schema field`,
		},
		{
			name: "schema is no text", reason: "the tools print the type with the wrong verb",
			text:   `{"schema":5}`,
			theirs: `expected value for key "schema" to be a string, got %!t(float64=5): 5`,
			ours:   `expected value for key "schema" to be a string, got 5`,
		},
		{
			name: "deprecation entry without a schema", reason: "the tools print the entry and the package in each other's place",
			text:   good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"name":"x"},"message":"m"}]}`,
			theirs: `schema must be set for deprecation entry [p] for package '\x00'`,
			ours:   `schema must be set for deprecation entry [0] for package "p"`,
		},
		{
			name: "deprecation of an unknown schema", reason: "the tools print a Go value",
			text:   good + `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"x","name":"y"},"message":"m"}]}`,
			theirs: `cannot deprecate object declcfg.PackageScopedReference{Schema:"x", Name:"y"} referenced by entry 0 for package "p": object schema unknown`,
			ours:   `cannot deprecate object x "y" referenced by entry 0 for package "p": object schema unknown`,
		},
		{
			name: "broken JSON", reason: "other words, and a place in the file",
			text:   `{"schema":"olm.package" "name":"x"}`,
			theirs: `json: offset 25: invalid character '"' after object key:value pair`,
			ours:   `invalid character '"' after object key:value pair (column 25)`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check := func(who, got, want string) {
				if want == "" && got != "" || !strings.HasPrefix(got, want) {
					t.Errorf("%s: %s\nwant %s", who, got, want)
				}
			}
			check("theirs", theirs(test.text), test.theirs)
			check("ours", ours(t, test.text), test.ours)
		})
	}
}
