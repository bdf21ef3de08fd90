package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/google/go-cmp/cmp"
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

func TestValidation(t *testing.T) {
	bundle := func(name, rest string) string {
		return fmt.Sprintf(`{"schema":"olm.bundle","package":"p","name":%q,%s}`, name, rest)
	}
	withVersion := func(version string) string {
		return fmt.Sprintf(`"image":"r/p","properties":[{"type":"olm.package","value":%s}]`, version)
	}
	tests := []struct {
		name     string
		old, new string // replaced in the good catalog
		add      string
		release  string // of p.v2, in its name too
		want     []string
	}{
		{
			name: "package without a name", add: `{"schema":"olm.package"}`,
			want: []string{`PackageName: config contains package with no name`},
		},
		{
			name: "package twice", add: `{"schema":"olm.package","name":"p","defaultChannel":"other"}`,
			want: []string{`PackageName: duplicate package "p"`},
		},
		{
			name: "no DNS label", old: `"p"`, new: `"P.p"`,
			want: []string{`PackageName: invalid package name "P.p": [a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')]`},
		},
		{
			name: "channel of an unknown package", add: `{"schema":"olm.channel","package":"q","name":"c"}`,
			want: []string{`ChannelName: unknown package "q" for channel "c"`},
		},
		{
			name: "channel without a name", add: `{"schema":"olm.channel","package":"p"}`,
			want: []string{`ChannelName: package "p" contains channel with no name`},
		},
		{
			name: "channel twice", add: `{"schema":"olm.channel","package":"p","name":"c"}`,
			want: []string{`ChannelName: package "p" has duplicate channel "c"`},
		},
		{
			name: "entry twice", old: `{"name":"p.v1"}`, new: `{"name":"p.v1"},{"name":"p.v1"}`,
			want: []string{`EntryName: invalid package "p", channel "c": duplicate entry "p.v1"`},
		},
		{
			name: "entry without a name", old: `{"name":"p.v1"}`, new: `{"name":"p.v1"},{}`,
			want: []string{`EntryName: invalid package "p", channel "c": entry [2]: name must be set`},
		},
		{
			name: "bundle of no package", add: `{"schema":"olm.bundle","name":"x"}`,
			want: []string{`BundleName: package name must be set for bundle "x"`},
		},
		{
			name: "bundle of an unknown package", add: `{"schema":"olm.bundle","package":"q","name":"x"}`,
			want: []string{`BundleName: unknown package "q" for bundle "x"`},
		},
		{
			name: "bundle twice", add: bundle("p.v1", withVersion(`{"packageName":"p","version":"3.0.0"}`)),
			want: []string{`BundleName: package "p" has duplicate bundle "p.v1"`},
		},
		{
			name: "malformed property", old: `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			new:  `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.gvk","value":{"group":1}}]`,
			want: []string{`Properties: parse properties for bundle "p.v2": parse property[1] of type "olm.gvk": json: cannot unmarshal number into Go struct field wireGVK.group of type string`},
		},
		{
			name: "property without a value", old: `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			new:  `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"x"}]`,
			want: []string{`Properties: parse properties for bundle "p.v2": parse property[1] of type "x": unexpected end of JSON input`},
		},
		{
			name: "object that is not base64", old: `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			new:  `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.bundle.object","value":{"data":"*"}}]`,
			want: []string{`Properties: parse properties for bundle "p.v2": parse property[1] of type "olm.bundle.object": illegal base64 data at input byte 0`},
		},
		{
			name: "metadata of another form", old: `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			new:  `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.csv.metadata","value":[]}]`,
			want: []string{`Properties: parse properties for bundle "p.v2": parse property[1] of type "olm.csv.metadata": json: cannot unmarshal array into Go value of type olm.wireCSVMetadata`},
		},
		{
			name: "no olm.package", old: `,"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`, new: ``,
			want: []string{`Properties: package "p" bundle "p.v2" must have exactly 1 "olm.package" property, found 0`},
		},
		{
			name: "two olm.package", old: `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			new:  `"properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}},{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]`,
			want: []string{`Properties: package "p" bundle "p.v2" must have exactly 1 "olm.package" property, found 2`},
		},
		{
			name: "olm.package of another package", old: `"packageName":"p","version":"2.0.0"`, new: `"packageName":"q","version":"2.0.0"`,
			want: []string{`Properties: package "p" does not match "olm.package" property "q"`},
		},
		{
			name: "image", old: `r.example/p:2`, new: `r.example/P:2`,
			want: []string{`Image: package "p" bundle "p.v2" image: invalid image pull spec "r.example/P:2": invalid reference format`},
		},
		{
			name: "related image", old: `"image":"r.example/p:2"`, new: `"image":"r.example/p:2","relatedImages":[{"name":"a","image":""},{"name":"b","image":"not an image"}]`,
			want: []string{`Image: package "p" bundle "p.v2" relatedImages[1]: invalid image pull spec "not an image": invalid reference format`},
		},
		{
			name: "version", old: `"2.0.0"`, new: `"v2.0.0"`,
			want: []string{`Version: error parsing bundle "p.v2" version "v2.0.0": Invalid character(s) found in major number "v2"`},
		},
		{
			name: "release", old: `"version":"2.0.0"`, new: `"version":"2.0.0","release":"1..2"`,
			want: []string{
				`Version: error parsing bundle "p.v2" release version "1..2": invalid release "1..2": Prerelease is empty`,
				`Release: name "p.v2" does not match normalized name "p-v2.0.0-1..2"`,
			},
		},
		{
			name: "release too long", old: `"version":"2.0.0"`, new: `"version":"2.0.0","release":"123456789012345678901"`,
			want: []string{
				`Version: error parsing bundle "p.v2" release version "123456789012345678901": invalid release "123456789012345678901": exceeds maximum length of 20 characters`,
				`Release: name "p.v2" does not match normalized name "p-v2.0.0-123456789012345678901"`,
			},
		},
		{
			name: "bundle in no channel", add: bundle("p.v3", withVersion(`{"packageName":"p","version":"3.0.0"}`)),
			want: []string{`UnusedBundle: package "p", bundle "p.v3" not found in any channel entries`},
		},
		{
			name: "entries without bundles, in all channels", old: `{"name":"p.v1"}`, new: `{"name":"p.v1","replaces":"x.v2"},{"name":"x.v2","replaces":"x.v1"},{"name":"x.v1"}`,
			add:  `{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"x.v0"}]}`,
			want: []string{`MissingBundle: no olm.bundle blobs found in package "p" for olm.channel entries [x.v0 x.v1 x.v2]`},
		},
		{
			name: "no default channel", old: `,"defaultChannel":"c"`, new: ``,
			want: []string{`DefaultChannel: default channel must be set`},
		},
		{
			name: "unknown default channel", old: `"defaultChannel":"c"`, new: `"defaultChannel":"d"`,
			want: []string{`DefaultChannel: channel must contain at least one bundle`},
		},
		{
			name: "package without channels", add: `{"schema":"olm.package","name":"q"}`,
			want: []string{`DefaultChannel: default channel must be set`, `NoChannel: package must contain at least one channel`},
		},
		{
			name: "channel without entries", add: `{"schema":"olm.channel","package":"p","name":"d"}`,
			want: []string{`NoEntry: channel must contain at least one bundle`},
		},
		{
			name: "no head", old: `{"name":"p.v1"}`, new: `{"name":"p.v1","replaces":"p.v2"}`,
			want: []string{`Heads: no channel head found in graph`},
		},
		{
			name: "several heads", old: `"replaces":"p.v1"`, new: `"replaces":"p.v0"`,
			want: []string{`Heads: multiple channel heads found in graph: p.v1, p.v2`},
		},
		{
			name: "cycle", old: `"replaces":"p.v1"},{"name":"p.v1"}`, new: `"replaces":"p.v1"},{"name":"p.v1","replaces":"p.v1"}`,
			want: []string{`Cycle: detected cycle in replaces chain of upgrade graph: p.v1 -> p.v1`},
		},
		{
			name: "stranded", old: `{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}`, new: `{"name":"p.v2"},{"name":"p.v1","replaces":"p.v1"}`,
			want: []string{`Stranded: channel contains one or more stranded bundles: p.v1`},
		},
		{
			name: "empty skips", old: `"replaces":"p.v1"`, new: `"replaces":"p.v1","skips":["x","",""]`,
			want: []string{`Skips: skip[1] is empty`, `Skips: skip[2] is empty`},
		},
		{
			name: "skip range", old: `"replaces":"p.v1"`, new: `"replaces":"p.v1","skipRange":">=v1.0.0"`,
			want: []string{`SkipRange: invalid skipRange ">=v1.0.0": Could not parse Range ">=v1.0.0": Could not parse comparator ">=v" in ">=v1.0.0"`},
		},
		{
			name: "no image", old: `"image":"r.example/p:2",`, new: ``,
			want: []string{`NoImage: bundle image must be set`},
		},
		{
			name: "objects instead of an image", old: `"image":"r.example/p:2","properties":[`, new: `"properties":[{"type":"olm.bundle.object","value":{"data":"e30="}},`,
		},
		{
			name: "good release", release: "1.rc",
		},
		{
			name: "longest release", release: "12345678901234567890",
		},
		{
			name: "release and build metadata", old: `"version":"2.0.0"`, new: `"version":"2.0.0+b","release":"1"`,
			want: []string{
				`Release: name "p.v2" does not match normalized name "p-v2.0.0+b-1"`,
				`Release: cannot use build metadata in version with a release version`,
			},
		},
		{
			name: "equal versions", old: `"2.0.0"`, new: `"1.0.0"`,
			want: []string{`SameVersion: duplicate versions found in bundles: [{1.0.0: [p.v1, p.v2]}]`},
		},
		{
			name: "equal versions, in order", old: `{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}`,
			new: `{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1","replaces":"p.v3"},{"name":"p.v3","replaces":"p-v9.0.0-1"},{"name":"p-v9.0.0-1","replaces":"q"},{"name":"q"}`,
			add: bundle("p.v3", withVersion(`{"packageName":"p","version":"2.0.0"}`)) +
				bundle("q", withVersion(`{"packageName":"p","version":"9.0.0","release":"1"}`)) +
				bundle("p-v9.0.0-1", withVersion(`{"packageName":"p","version":"9.0.0","release":"1"}`)),
			want: []string{
				`Release: name "q" does not match normalized name "p-v9.0.0-1"`,
				`SameVersion: duplicate versions found in bundles: [{2.0.0: [p.v2, p.v3]} {9.0.0-1: [p-v9.0.0-1, q]}]`,
			},
		},
		{
			name: "a release tells versions apart", old: `{"name":"p.v1"}`, new: `{"name":"p.v1","replaces":"p-v2.0.0-1"},{"name":"p-v2.0.0-1"}`,
			add: bundle("p-v2.0.0-1", withVersion(`{"packageName":"p","version":"2.0.0","release":"1"}`)),
		},
		{
			name: "build metadata tells versions apart", old: `"2.0.0"`, new: `"1.0.0+b"`,
		},
		{
			name: "deprecation without a package", add: `{"schema":"olm.deprecations"}`,
			want: []string{`Deprecation: package name must be set for deprecation item 0`},
		},
		{
			name: "deprecation of an unknown package", add: `{"schema":"olm.deprecations","package":"q"}`,
			want: []string{`Deprecation: cannot apply deprecations to an unknown package "q"`},
		},
		{
			name: "deprecations twice", add: `{"schema":"olm.deprecations","package":"p"}{"schema":"olm.deprecations","package":"p"}`,
			want: []string{`Deprecation: expected a maximum of one deprecation per package: "p"`},
		},
		{
			name: "deprecations of what is not there",
			add: `{"schema":"olm.deprecations","package":"p","entries":[
				{"reference":{"name":"x"},"message":"m"},
				{"reference":{"schema":"olm.bundle","name":"x"},"message":"m"},
				{"reference":{"schema":"olm.channel","name":"x"},"message":"m"},
				{"reference":{"schema":"olm.package","name":"p"},"message":"m"},
				{"reference":{"schema":"olm.other","name":"x"},"message":"m"},
				{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"m"},
				{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"n"}]}`,
			want: []string{
				`Deprecation: schema must be set for deprecation entry [0] for package "p"`,
				`Deprecation: cannot deprecate bundle "x" for package "p": bundle not found`,
				`Deprecation: cannot deprecate channel "x" for package "p": channel not found`,
				`Deprecation: package name must be empty for deprecated package "p" (specified "p")`,
				`Deprecation: cannot deprecate object olm.other "x" referenced by entry 4 for package "p": object schema unknown`,
				`Deprecation: duplicate deprecation entry olm.bundle "p.v1" for package "p"`,
			},
		},
		{
			name: "deprecations without a message",
			add:  `{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"}},{"reference":{"schema":"olm.channel","name":"c"}},{"reference":{"schema":"olm.bundle","name":"p.v1"}}]}`,
			want: []string{
				`DeprecationMessage: invalid deprecation: message must be set`,
				`DeprecationMessage: invalid deprecation: message must be set`,
				`DeprecationMessage: invalid deprecation: message must be set`,
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := goodCatalog
			if test.old != "" {
				if text = strings.ReplaceAll(goodCatalog, test.old, test.new); text == goodCatalog {
					t.Fatal("nothing is replaced")
				}
			}
			if test.release != "" {
				text = strings.NewReplacer(`"p.v2"`, `"p-v2.0.0-`+test.release+`"`, `"version":"2.0.0"`, `"version":"2.0.0","release":"`+test.release+`"`).Replace(text)
			}
			text += test.add
			c := readCatalog(t, text)
			if diff := cmp.Diff(test.want, problemTexts(c.Problems())); diff != "" {
				t.Fatalf("problems (-want +got):\n%s", diff)
			}
			_, err := catalog.Read(t.Context(), strings.NewReader(text), "catalog", catalog.Options{Strict: true})
			if len(test.want) == 0 {
				if err != nil || c.Validate() != nil {
					t.Errorf("errors %v, %v", err, c.Validate())
				}
				return
			}
			first := (*catalog.Problem)(nil)
			if !errors.As(err, &first) || !strings.HasSuffix(test.want[0], ": "+first.Message) {
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
	if diff := cmp.Diff([]string{"a", "b", "d", ""}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Bundle("p.v1").Deprecated {
		t.Error("the blob makes the bundle unavailable")
	}
	bad := readCatalog(t, goodCatalog+`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package","name":"p"},"message":"a"}]}`)
	if text := bad.Package("p").Deprecation; text != "" {
		t.Errorf("a faulty reference deprecates the package: %q", text)
	}
	if diff := cmp.Diff([]string{"p.v2", "p.v1"}, entryNames(c.Entries())); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestValidateStopsAtASkippedEntry(t *testing.T) {
	// The resolver walks d, (c), b, a. The check stops at c, so b and a are stranded.
	c := readCatalog(t, channelCatalog("d>c!c", "c>b", "b>a", "a"))
	want := []string{"Stranded: channel contains one or more stranded bundles: a, b"}
	if diff := cmp.Diff(want, problemTexts(c.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"d", "b", "a"}, entryNames(c.Package("p").Channel("c").Ordered)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff(want, problemTexts(c.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff([]string{"l", "p.v2", "p.v1", "x"}, entryNames(c.Entries())); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	var rules []string
	for _, p := range c.Problems() {
		rules = append(rules, p.Rule)
	}
	if diff := cmp.Diff([]string{"Syntax", "Properties", "Version", "Heads"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
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
	if diff := cmp.Diff([]string{"p.v2", "p.v1"}, entryNames(c.InPackage("p"))); diff != "" {
		t.Errorf("in the package (-want +got):\n%s", diff)
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
	if diff := cmp.Diff(want, problemTexts(c.Warnings())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, w := range c.Warnings() {
		if w.Package != "p" || w.Bundle != "p.v2" || w.Line != 4 {
			t.Errorf("place of %v", &w)
		}
	}
	if len(c.Problems()) > 0 || c.Validate() != nil {
		t.Errorf("warnings are problems: %v", problemTexts(c.Problems()))
	}
}
