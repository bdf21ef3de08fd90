package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

const yamlCatalog = `# a comment
schema: olm.package
name: p
defaultChannel: c
---
---  # the next
# only a comment
---
schema: olm.channel
package: p
name: c
entries:
- name: p.v2
  replaces: p.v1
- name: p.v1
---
  {"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "r.example/p:1",
  "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]}
---
schema: olm.bundle
package: p
name: p.v2
image: r.example/p:2
properties:
- {type: olm.package, value: {packageName: p, version: 2.0.0}}
- type: olm.gvk
  value: &api
    group: g
    version: v1
    kind: K
- type: olm.gvk.required
  value: *api
`

func TestStreams(t *testing.T) {
	pretty := strings.NewReplacer(`{"`, "{\n  \"", `,"`, ",\n  \"").Replace(goodCatalog)
	tests := []struct{ name, text string }{
		{"JSON lines", goodCatalog},
		{"JSON without blanks", strings.ReplaceAll(goodCatalog, "\n", "")},
		{"indented JSON", pretty},
		{"JSON with Windows line ends", strings.ReplaceAll(pretty, "\n", "\r\n")},
		{"a byte order mark", "\ufeff" + goodCatalog},
		{"a byte order mark before a blank line", "\ufeff\n" + goodCatalog},
		{"many blank lines", strings.Repeat(" \n", 10_000) + goodCatalog + strings.Repeat("\n ", 10_000)},
		{"blank lines", "\n\n  \n" + strings.ReplaceAll(goodCatalog, "\n", "\n\n\t\n")},
		{"JSON between separators", "---\n" + strings.ReplaceAll(goodCatalog, "\n", "\n---\n")},
		{"YAML", yamlCatalog},
		{"YAML after JSON", `{"schema":"x"}` + "\n---\n" + yamlCatalog},
		{"YAML with Windows line ends", strings.ReplaceAll(yamlCatalog, "\n", "\r\n")},
		{"flow mappings that look like JSON", strings.Replace(goodCatalog, `{"schema":"olm.package","name":"p","defaultChannel":"c"}`, `{schema: olm.package, name: p, defaultChannel: c}`, 1)},
		{"keys in any case", strings.NewReplacer(`"schema"`, `"Schema"`, `"entries"`, `"ENTRIES"`, `"packageName"`, `"packagename"`).Replace(goodCatalog)},
		{"unknown fields", strings.ReplaceAll(goodCatalog, `{"schema"`, `{"unknown":[{"x":null}],"schema"`)},
		{"escapes", strings.ReplaceAll(goodCatalog, `"p"`, `"\u0070"`)},
		{"equal keys: the last counts", strings.ReplaceAll(goodCatalog, `"schema":"olm.package"`, `"schema":"x","schema":"olm.package"`)},
	}
	for _, test := range tests {
		for _, slow := range []bool{false, true} {
			var r io.Reader = strings.NewReader(test.text)
			if slow {
				r = iotest.OneByteReader(r)
			}
			c, err := catalog.Read(t.Context(), r, "f", catalog.Options{MaxDocumentBytes: 10_000})
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if len(c.Problems()) > 0 {
				t.Errorf("%s: %v", test.name, problemTexts(c.Problems()))
			}
			checktest.SameIn(t, test.name, []string{"p.v2", "p.v1"}, entryNames(entries(c)))
		}
	}
	b := readCatalog(t, yamlCatalog).Package("p").Bundle("p.v2")
	if len(b.Provides) != 1 || len(b.Requires) != 1 || b.Requires[0].Constraint.GVK != b.Provides[0] {
		t.Errorf("the alias is lost: %v, %v", b.Provides, b.Requires)
	}
	for _, empty := range []string{"", " \n", "---\n", "# nothing\n", "\ufeff"} {
		if c := readCatalog(t, empty); len(c.Packages()) > 0 || len(c.Problems()) > 0 {
			t.Errorf("%q: %v", empty, c.Problems())
		}
	}
}

func TestDecodingProblems(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // line, document, rule, message
	}{
		{"no schema", "\n{\"name\":\"x\"}", []string{`2 1 Schema object '{"name":"x"}' is missing root schema field`}},
		{"empty schema", `{"schema":""}`, []string{`1 1 Schema object '{"schema":""}' is missing root schema field`}},
		{"empty object", `{}{"schema":"x"}{}`, []string{`1 1 Schema object '{}' is missing root schema field`, `1 3 Schema object '{}' is missing root schema field`}},
		{"keys by case", `{"schema":"x","Name":"a","name":"b"}`, []string{`1 1 Keys duplicate keys for key "name": [Name name]`}},
		{"several keys by case", `{"schema":"x","SCHEMA":"y","fOO":1,"foo":2,"FOO":3}`, []string{`1 1 Keys [duplicate keys for key "foo": [FOO fOO foo], duplicate keys for key "schema": [SCHEMA schema]]`}},
		{"schema is no text", `{"schema":5}`, []string{`1 1 Syntax expected value for key "schema" to be a string, got 5`}},
		{"name is null", `{"schema":"x","Name":null}`, []string{`1 1 Syntax expected value for key "Name" to be a string, got null`}},
		{
			"syntax, with its line", "{\"schema\":\"x\"}\n{\n  \"schema\": \"olm.package\",\n  \"name\" \"p\"\n}\n{\"schema\":\"x\"}",
			[]string{`4 2 Syntax invalid character '"' after object key (column 10)`},
		},
		{"type, with its line", "{\"schema\": \"olm.channel\",\n \"entries\": {}}", []string{`2 1 Syntax parse channel: json: cannot unmarshal object into Go struct field ChannelBlob.entries of type []catalog.ChannelEntry (column 13)`}},
		{"type in a package", `{"schema":"olm.package","icon":{"base64data":"%"}}`, []string{`1 1 Syntax parse package: illegal base64 data at input byte 0`}},
		{"type in a bundle", `{"schema":"olm.bundle","image":1}`, []string{`1 1 Syntax parse bundle: json: cannot unmarshal number into Go struct field BundleBlob.image of type string (column 32)`}},
		{"type in a deprecation", `{"schema":"olm.deprecations","entries":1}`, []string{`1 1 Syntax parse deprecation: json: cannot unmarshal number into Go struct field DeprecationsBlob.entries of type []catalog.DeprecationEntry (column 40)`}},
		{"no end, and a second chance", "{\"schema\":\"x\"\n\n{\"schema\":\"\"}", []string{
			`1 1 Syntax unexpected end of JSON input: the object has no end`, `3 2 Schema object '{"schema":""}' is missing root schema field`,
		}},
		{"a text without an end", "{\"schema\":\"x\"}\n{\"schema\":\n\"x\n}\n{\"schema\":\"\"}", []string{
			`3 2 Syntax invalid character '\n' in string literal`, `5 3 Schema object '{"schema":""}' is missing root schema field`,
		}},
		{"a brace too many", "{\"schema\":\"x\"}}\n{\"schema\":\"\"}\n---\nschema: ''\n", []string{
			`1 2 Syntax invalid character '}' after top-level value`, `2 3 Schema object '{"schema":""}' is missing root schema field`, `4 4 Schema object '{"schema":""}' is missing root schema field`,
		}},
		{"a number", "5", []string{`1 1 Syntax expected an object, found a number`}},
		{"YAML syntax, with its line", "schema: x\n---\nschema: x\nname: a: b\n", []string{`4 2 Syntax yaml: mapping values are not allowed in this context`}},
		{"a scalar", "hello\n", []string{`1 1 Syntax expected an object, found a text`}},
		{"a list", "- schema: x\n", []string{`1 1 Syntax expected an object, found a list`}},
		{"YAML without a schema", "schema: x\n---\n\nname: x\n", []string{`4 2 Schema object '{"name":"x"}' is missing root schema field`}},
		{"separator with text", "schema: x\n--- schema: y\nschema: z\n", []string{`2 2 Syntax invalid Yaml document separator: schema: y`}},
		{"a long object", `{"name":"` + strings.Repeat("x", 1000) + `"}`, []string{`1 1 Schema object '{"name":"` + strings.Repeat("x", 503) + `...' is missing root schema field`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := readCatalog(t, test.text)
			var got []string
			for _, p := range c.Problems() {
				checktest.Equal(t, "catalog", p.File, "file")
				got = append(got, fmt.Sprintf("%d %d %s %s", p.Line, p.Document, p.Rule, p.Message))
			}
			checktest.SameIn(t, "problems", test.want, got)
		})
	}
}

func TestBrokenFileIsGivenUp(t *testing.T) {
	c := readCatalog(t, strings.Repeat("{\n", 1000)+goodCatalog)
	checktest.Same(t, 21, len(c.Problems()))
	last := c.Problems()[len(c.Problems())-1]
	if !strings.HasSuffix(last.Message, "; the rest of the file is not read") || last.Line != 21 {
		t.Errorf("last problem %v", &last)
	}
}

func TestPositions(t *testing.T) {
	text := "\n\n" + `{"schema":"olm.package","name":"a"}` + "\n" + `  {"schema":"olm.package","name":"a"}` + "\n---\nschema: olm.package\nname: a\n"
	c := readCatalog(t, text)
	var got []string
	for _, p := range c.Problems() {
		if p.Rule == "PackageName" {
			got = append(got, fmt.Sprintf("%s:%d document %d at %d", p.File, p.Line, p.Document, p.Offset))
		}
	}
	want := []string{"catalog:4 document 2 at 40", "catalog:6 document 3 at 80"}
	checktest.Same(t, want, got)
}

func TestUnknownSchemasAreKept(t *testing.T) {
	c := readCatalog(t, `{"schema":"custom.v1","Package":"p","NAME":"n","data":[1]}`+"\n---\nschema: other\n")
	others := c.Others()
	if len(others) != 2 || len(c.Problems()) > 0 {
		t.Fatalf("others %v, problems %v", others, c.Problems())
	}
	want := catalog.Meta{Schema: "custom.v1", Package: "p", Name: "n", Blob: []byte(`{"schema":"custom.v1","Package":"p","NAME":"n","data":[1]}`)}
	checktest.Same(t, want, *others[0])
	if others[1].Schema != "other" || string(others[1].Blob) != `{"schema":"other"}` {
		t.Errorf("%+v", others[1])
	}
}

func TestPackageDetails(t *testing.T) {
	c := readCatalog(t, `{"schema":"olm.package","name":"p","defaultChannel":"c","description":"does it","icon":{"base64data":"aGk=","mediatype":"image/png"},"properties":[{"type":"x","value":1}]}
{"schema":"olm.channel","package":"p","name":"c","properties":[{"type":"y","value":2}],"entries":[{"name":"b"}]}
{"schema":"olm.bundle","package":"p","name":"b","image":"r/b","relatedImages":[{"name":"n","image":"r/n"}],"properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}`)
	p := c.Package("p")
	if p.Description != "does it" || string(p.Icon.Data) != "hi" || p.Icon.MediaType != "image/png" || p.Properties[0].Type != "x" {
		t.Errorf("%+v", p)
	}
	if ch := p.Channel("c"); !ch.Default || ch.Properties[0].Type != "y" {
		t.Errorf("%+v", ch)
	}
	checktest.Same(t, []olm.RelatedImage{{Name: "n", Image: "r/n"}}, p.Bundle("b").RelatedImages)
}

// billions is a YAML document whose aliases expand to 9 to the power of levels.
func billions(levels int) string {
	var s strings.Builder
	s.WriteString("schema: x\na0: &a0 x\n")
	for n := range levels {
		fmt.Fprintf(&s, "a%d: &a%d [%s]\n", n+1, n+1, strings.Repeat(fmt.Sprintf("*a%d,", n), 9))
	}
	return s.String()
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name, limit string
		options     catalog.Options
		text        string
	}{
		{"bytes of the file", "MaxFileBytes", catalog.Options{MaxFileBytes: 100}, goodCatalog},
		{"objects", "MaxDocuments", catalog.Options{MaxDocuments: 3}, goodCatalog},
		{"JSON nesting", "MaxDepth", catalog.Options{MaxDepth: 5}, `{"schema":"x","a":[[[[[1]]]]]}`},
		{"nesting by default", "MaxDepth", catalog.Options{}, `{"schema":"x","a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`},
		{"nesting in a property", "MaxDepth", catalog.Options{MaxDepth: 5}, `{"schema":"olm.bundle","properties":[{"type":"x","value":[[[[]]]]}]}`},
		{"YAML nesting", "MaxDepth", catalog.Options{MaxDepth: 5}, "schema: x\na: [[[[[1]]]]]\n"},
		{"aliases", "MaxAliases", catalog.Options{MaxAliases: 2}, "schema: x\na: &a 1\nb: [*a, *a, *a]\n"},
		{"expansion", "MaxDocumentBytes", catalog.Options{MaxDocumentBytes: 10_000}, "schema: x\na: &a [" + strings.Repeat("x,", 100) + "]\nb: &b [" + strings.Repeat("*a,", 9) + "]\nc: [" + strings.Repeat("*b,", 9) + "]\n"},
		{"expansion beyond all numbers", "MaxDocumentBytes", catalog.Options{MaxDocumentBytes: 1 << 16}, billions(30)},
		{"expansion beyond the memory of an object", "", catalog.Options{}, billions(30)},
		{"one large object, read at once", "MaxDocumentBytes", catalog.Options{MaxDocumentBytes: 100}, `{"schema":"` + strings.Repeat("x", 100) + `"}`},
		{"one large object", "MaxDocumentBytes", catalog.Options{MaxDocumentBytes: 1 << 18}, `{"schema":"` + strings.Repeat("x", 1<<19) + `"}`},
		{"one large YAML document", "MaxDocumentBytes", catalog.Options{MaxDocumentBytes: 1 << 18}, "schema: " + strings.Repeat("x", 1<<19)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := catalog.Read(t.Context(), strings.NewReader(test.text), "big", test.options)
			limit := (*catalog.LimitError)(nil)
			if !errors.As(err, &limit) || limit.Limit != test.limit {
				t.Fatalf("error %v", err)
			}
			if limit.Limit != "MaxDocuments" && !strings.HasPrefix(limit.Where, "big") {
				t.Errorf("file %q", limit.Where)
			}
			if test.limit != "" && !strings.Contains(err.Error(), "(limit "+test.limit+")") {
				t.Errorf("text %q", err)
			}
		})
	}
	files := fstest.MapFS{"a": {}, "b": {}, "c/d": {}}
	limit := (*catalog.LimitError)(nil)
	if _, err := catalog.Load(t.Context(), files, catalog.Options{MaxFiles: 2}); !errors.As(err, &limit) || limit.Limit != "MaxFiles" {
		t.Errorf("files: %v", err)
	}
}

func TestLoadTree(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(goodCatalog), "\n")
	files := fstest.MapFS{
		"p/package.yaml":    {Data: []byte("schema: olm.package\nname: p\ndefaultChannel: c\n")},
		"p/channels/c.json": {Data: []byte(lines[1])},
		"p/bundles/1":       {Data: []byte(lines[2])},
		"p/bundles/2.txt":   {Data: []byte(lines[3])},
		"p/README.md":       {Data: []byte("# Not a catalog\n\nbut read\n")},
		"p/ignored.json":    {Data: []byte("{")},
		".indexignore":      {Data: []byte("ignored.json\n")},
		"p/.indexignore":    {Data: []byte("# empty\n")},
	}
	c, err := catalog.Load(t.Context(), files, catalog.Options{})
	checktest.OK(t, err)
	checktest.SameIn(t, "entries", []string{"p.v2", "p.v1"}, entryNames(entries(c)))
	if len(c.Problems()) != 1 || c.Problems()[0].File != "p/README.md" {
		t.Errorf("problems %v", problemTexts(c.Problems()))
	}
	_, err = catalog.Load(t.Context(), files, catalog.Options{Strict: true})
	if problem := (*catalog.Problem)(nil); !errors.As(err, &problem) || problem.File != "p/README.md" {
		t.Errorf("strict: %v", err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.MkdirAll(filepath.Join(dir, "catalog"), 0o755))
	target := filepath.Join(dir, "elsewhere")
	checktest.OK(t, os.WriteFile(target, []byte(goodCatalog), 0o644))
	for link, to := range map[string]string{"file": target, "directory": dir} {
		if err := os.Symlink(to, filepath.Join(dir, "catalog", link)); err != nil {
			t.Skipf("needs a file system with symbolic links: %v", err)
		}
	}
	c := checktest.Get(catalog.Load(t.Context(), os.DirFS(filepath.Join(dir, "catalog")), catalog.Options{Strict: true}))(t)
	checktest.SameIn(t, "a link to a file is read, one to a directory is not walked", []string{"p.v2", "p.v1"}, entryNames(entries(c)))
	checktest.OK(t, os.Remove(target))
	if _, err := catalog.Load(t.Context(), os.DirFS(filepath.Join(dir, "catalog")), catalog.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
}

func TestNothingToRead(t *testing.T) {
	if _, err := catalog.Load(t.Context(), nil, catalog.Options{}); err == nil {
		t.Error("no file system is no error")
	}
	if _, err := catalog.Read(t.Context(), nil, "f", catalog.Options{}); err == nil {
		t.Error("no reader is no error")
	}
}

type brokenFS struct{ fstest.MapFS }

func (b brokenFS) Open(name string) (fs.File, error) {
	if name == "b" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Open(name)
}

func TestUnreadableFile(t *testing.T) {
	files := brokenFS{fstest.MapFS{"a": {Data: []byte(goodCatalog)}, "b": {}}}
	if _, err := catalog.Load(t.Context(), files, catalog.Options{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	_, err := catalog.Read(t.Context(), iotest.ErrReader(io.ErrClosedPipe), "pipe", catalog.Options{})
	if !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := catalog.Load(ctx, fstest.MapFS{"a": {Data: []byte(goodCatalog)}}, catalog.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	if _, err := catalog.Read(ctx, strings.NewReader(goodCatalog), "a", catalog.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
}

func TestDropContent(t *testing.T) {
	text := strings.ReplaceAll(goodCatalog, `"image":"r.example/p:2","properties":[`,
		`"properties":[{"type":"olm.bundle.object","value":{"data":"e30="}},{"type":"olm.csv.metadata","value":{"annotations":{"a":"b"}}},{"type":"custom","value":{"x":1}},{"type":"olm.label.required","value":{"label":"l"}},{"type":"olm.maxOpenShiftVersion","value":"4.20"},`)
	c := checktest.Get(catalog.Read(t.Context(), strings.NewReader(text), "a", catalog.Options{DropContent: true}))(t)
	if len(c.Problems()) > 0 {
		t.Error(problemTexts(c.Problems()))
	}
	b := c.Package("p").Bundle("p.v2")
	var got []string
	for _, p := range b.Properties {
		got = append(got, p.Type+" "+string(p.Value))
	}
	want := []string{
		"olm.bundle.object null", "olm.csv.metadata null", `custom {"x":1}`, `olm.label.required {"label":"l"}`, `olm.maxOpenShiftVersion "4.20"`,
		`olm.package {"packageName":"p","version":"2.0.0"}`,
	}
	checktest.Same(t, want, got)
	if string(b.MaxOpenShift[0]) != `"4.20"` || string(b.Requires[0].Property.Value) != `{"label":"l"}` {
		t.Errorf("%s, %s", b.MaxOpenShift[0], b.Requires[0].Property.Value)
	}
}

func TestNewContents(t *testing.T) {
	c := catalog.New(catalog.Blobs{
		Packages: []catalog.PackageBlob{{Name: "p", DefaultChannel: "c"}},
		Channels: []catalog.ChannelBlob{{Package: "p", Name: "c", Entries: []catalog.ChannelEntry{{Name: "p.v1"}, {Name: "p.v2", Replaces: "p.v1"}}}},
		Bundles: []catalog.BundleBlob{
			{Package: "p", Name: "p.v1", Image: "r/p", Properties: []olm.Property{property(olm.PropertyPackage, `{"packageName":"p","version":"1.0.0"}`)}},
			{Package: "p", Name: "p.v2", Image: "r/p", Properties: []olm.Property{property(olm.PropertyPackage, `{"packageName":"p","version":"2.0.0"}`)}},
		},
		Deprecations: []catalog.DeprecationsBlob{{Package: "p", Entries: []catalog.DeprecationEntry{{Reference: catalog.Reference{Schema: "olm.package"}, Message: "old"}}}},
		Others:       []catalog.Meta{{Schema: "x"}},
	})
	if len(c.Problems()) > 0 || c.Package("p").Deprecation != "old" || len(c.Others()) != 1 {
		t.Errorf("problems %v", c.Problems())
	}
	checktest.Same(t, []string{"p.v2", "p.v1"}, entryNames(entries(c)))
}
