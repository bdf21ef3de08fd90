package catalog_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

const goodCatalog = `{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"r.example/p:1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"r.example/p:2","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
`

func TestGoodCatalog(t *testing.T) {
	c := readCatalog(t, goodCatalog)
	if len(c.Problems()) > 0 || c.Validate() != nil {
		t.Errorf("problems %v, error %v", c.Problems(), c.Validate())
	}
	if _, err := catalog.Read(t.Context(), strings.NewReader(goodCatalog), "", catalog.Options{Strict: true}); err != nil {
		t.Error(err)
	}
}

// TestValidation reads the cases of testdata/validation.txt: "replace" and "by" change
// the good catalog, "release" gives p.v2 one, in its name too, and "add" adds objects.
// Each "want" is a problem.
func TestValidation(t *testing.T) {
	cases := checktest.Get(os.ReadFile("testdata/validation.txt"))(t)
	_, all, _ := strings.Cut(strings.TrimRight(string(cases), "\n"), "\n\n")
	for _, lines := range strings.Split(all, "\n\n") {
		name, lines, _ := strings.Cut(lines, "\n")
		t.Run(strings.TrimPrefix(name, "# "), func(t *testing.T) {
			is := map[string][]string{"replace": {""}, "by": {""}, "release": {""}}
			for line := range strings.Lines(lines) {
				key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
				if key == "add" || key == "want" {
					is[key] = append(is[key], value)
				} else {
					is[key] = []string{value}
				}
			}
			text := goodCatalog
			if old := is["replace"][0]; old != "" {
				if text = strings.ReplaceAll(goodCatalog, old, is["by"][0]); text == goodCatalog {
					t.Fatal("nothing is replaced")
				}
			}
			if release := is["release"][0]; release != "" {
				text = strings.NewReplacer(`"p.v2"`, `"p-v2.0.0-`+release+`"`, `"version":"2.0.0"`, `"version":"2.0.0","release":"`+release+`"`).Replace(text)
			}
			text += strings.Join(is["add"], "\n")
			want := is["want"]
			c := readCatalog(t, text)
			checktest.SameIn(t, "problems", want, problemTexts(c.Problems()))
			_, err := catalog.Read(t.Context(), strings.NewReader(text), "catalog", catalog.Options{Strict: true})
			if len(want) == 0 {
				if err != nil || c.Validate() != nil {
					t.Errorf("errors %v, %v", err, c.Validate())
				}
				return
			}
			first := (*catalog.Problem)(nil)
			if !errors.As(err, &first) || !strings.HasSuffix(want[0], ": "+first.Message) {
				t.Errorf("strict: %v", err)
			}
			if c.Validate() == nil {
				t.Error("validation finds nothing")
			}
			if c.Package("p") == nil && c.Package("P.p") == nil {
				t.Error("the fault hides the package")
			}
		})
	}
}

func TestDeprecations(t *testing.T) {
	c := readCatalog(t, goodCatalog+`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"a"},{"reference":{"schema":"olm.channel","name":"c"},"message":"b"},{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"d"}]}`)
	p := c.Package("p")
	got := []string{p.Deprecation, p.Channel("c").Deprecation, p.Bundle("p.v1").Deprecation, p.Bundle("p.v2").Deprecation}
	checktest.Same(t, []string{"a", "b", "d", ""}, got)
	if p.Bundle("p.v1").Deprecated {
		t.Error("the blob makes the bundle unavailable")
	}
	bad := readCatalog(t, goodCatalog+`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package","name":"p"},"message":"a"}]}`)
	checktest.SameIn(t, "a faulty reference deprecates the package", "", bad.Package("p").Deprecation)
	checktest.SameIn(t, "entries", []string{"p.v2", "p.v1"}, entryNames(entries(c)))
}

func TestValidateStopsAtASkippedEntry(t *testing.T) {
	// The resolver walks d, (c), b, a. The check stops at c, so b and a are stranded.
	c := readCatalog(t, channelCatalog("d>c!c", "c>b", "b>a", "a"))
	want := []string{"Stranded: channel contains one or more stranded bundles: a, b"}
	checktest.SameIn(t, "problems", want, problemTexts(c.Problems()))
	checktest.SameIn(t, "order", []string{"d", "b", "a"}, entryNames(c.Package("p").Channel("c").Ordered))
	// A circle behind a skipped entry is not found here, but it is by the resolver.
	c = readCatalog(t, channelCatalog("d>c!c", "c>b!b!a", "b>a", "a>b"))
	if len(c.Problems()) > 0 {
		t.Errorf("problems %v", c.Problems())
	}
	if c.Package("p").Channel("c").Err == nil {
		t.Error("the circle is ordered")
	}
	c = readCatalog(t, channelCatalog("d>c", "c>b", "b>a", "a>c"))
	want = []string{"Cycle: detected cycle in replaces chain of upgrade graph: c -> b -> a -> c"}
	checktest.SameIn(t, "problems", want, problemTexts(c.Problems()))
}

func TestIndexError(t *testing.T) {
	c := readCatalog(t, `{"schema":"olm.package","name":"p"}
{"schema":"olm.package","name":"o","defaultChannel":"m"}
{"schema":"olm.channel","package":"o","name":"z","entries":[{"name":"b","skips":[""],"skipRange":"xx"},{"name":"a"}]}
{"schema":"olm.bundle","package":"o","name":"a","image":"r/o","properties":[{"type":"olm.package","value":{"packageName":"o","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"o","name":"b","properties":[{"type":"olm.package","value":{"packageName":"o","version":"1.0.0"}}]}
`)
	err := c.Validate()
	tree := (*catalog.IndexError)(nil)
	if !errors.As(err, &tree) {
		t.Fatalf("error %v", err)
	}
	want := `invalid index:
├── invalid package "o":
│   ├── invalid channel "m":
│   │   └── channel must contain at least one bundle
│   ├── invalid channel "z":
│   │   ├── multiple channel heads found in graph: a, b
│   │   └── invalid bundle "b":
│   │       ├── skip[0] is empty
│   │       ├── invalid skipRange "xx": Could not get version from string: "xx"
│   │       └── bundle image must be set
│   └── duplicate versions found in bundles: [{1.0.0: [a, b]}]
└── invalid package "p":
    ├── default channel must be set
    └── package must contain at least one channel`
	checktest.Same(t, want, err.Error())
	var texts []string
	for _, p := range c.Problems() {
		texts = append(texts, p.Error())
	}
	if want := `catalog:3: document 3: invalid package "o": invalid channel "z": invalid bundle "b": skip[0] is empty`; !slices.Contains(texts, want) {
		t.Errorf("no problem %s in\n%s", want, strings.Join(texts, "\n"))
	}
}

func TestOneFaultHidesNothingElse(t *testing.T) {
	c := readCatalog(t, goodCatalog+`
{"schema":"olm.package","name":"bad","defaultChannel":"c"}
{"schema":"olm.channel","package":"bad","name":"c","entries":[{"name":"x"},{"name":"y"}]}
{"schema":"olm.channel","package":"bad","name":"d","entries":[{"name":"x"}]}
{"schema":"olm.bundle","package":"bad","name":"x","image":"r/x","properties":[{"type":"olm.package","value":{"packageName":"bad","version":"nonsense"}},{"type":"olm.gvk","value":[]}]}
{"schema":"olm.bundle","package":"bad","name":"y","image":"r/y","properties":[{"type":"olm.package","value":{"packageName":"bad","version":"1.0.0"}}]}
{"broken
{"schema":"olm.package","name":"last","defaultChannel":"c"}
{"schema":"olm.channel","package":"last","name":"c","entries":[{"name":"l"}]}
{"schema":"olm.bundle","package":"last","name":"l","image":"r/l","properties":[{"type":"olm.package","value":{"packageName":"last","version":"1.0.0"}}]}
`)
	checktest.SameIn(t, "entries", []string{"l", "p.v2", "p.v1", "x"}, entryNames(entries(c)))
	var rules []string
	for _, p := range c.Problems() {
		rules = append(rules, p.Rule)
	}
	checktest.SameIn(t, "rules", []string{"Syntax", "Properties", "Version", "Heads"}, rules)
	if ch := c.Package("bad").Channel("c"); ch.Err == nil {
		t.Error("the bad channel has an order")
	}
}

func TestBundleWithoutIdentityGetsOne(t *testing.T) {
	c := readCatalog(t, strings.ReplaceAll(goodCatalog, `{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}`, `{"type":"x","value":1}`))
	b := c.Package("p").Bundle("p.v2")
	if len(b.Identities) != 1 || b.Identities[0].Package != "p" || b.Version != nil {
		t.Errorf("identities %v, version %v", b.Identities, b.Version)
	}
	if n := len(b.Properties); n != 2 || b.Properties[1].Type != olm.PropertyPackage {
		t.Errorf("properties %v", b.Properties)
	}
}

func TestWarnings(t *testing.T) {
	c := readCatalog(t, strings.Replace(goodCatalog, `"version":"2.0.0"}}`, `"version":"2.0.0"}},
		{"type":"olm.constraint","value":{"all":{"constraints":[{"gvk":{"group":"g","version":"v","kind":"K"},"any":{},"cel":{"rule":"x"}}]}}},
		{"type":"olm.package.required","value":{"packageName":"q","versionRange":"^1.0.0"}},
		{"type":"olm.maxOpenShiftVersion","value":4.10},
		{"type":"olm.maxOpenShiftVersion","value":"4.10"}`, 1))
	want := []string{
		"Requirement: bundle p.v2: property of type olm.package.required: Could not parse Range \"^1.0.0\": Could not parse comparator \"^\" in \"^1.0.0\"",
		`IgnoredKeys: bundle p.v2: property of type olm.constraint: beside gvk, any, cel does not count`,
		`Number: bundle p.v2: property of type olm.maxOpenShiftVersion: 4.10 is a number; write "4.10"`,
	}
	checktest.Same(t, want, problemTexts(c.Warnings()))
	for _, w := range c.Warnings() {
		if w.Package != "p" || w.Bundle != "p.v2" || w.Line != 4 {
			t.Errorf("place of %v", &w)
		}
	}
	if len(c.Problems()) > 0 || c.Validate() != nil {
		t.Errorf("warnings are problems: %v", problemTexts(c.Problems()))
	}
}
