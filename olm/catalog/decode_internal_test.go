package catalog

import (
	"encoding/json"
	"testing"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/google/go-cmp/cmp"
)

// view is what fast and slow decoding must agree on, as JSON.
func (o *object) view() any {
	switch {
	case o.bundle != nil:
		b := o.bundle
		return []any{"bundle", b.Package, b.Name, b.Image, b.RawVersion, b.Release, b.Properties, b.RelatedImages, b.Provides, b.Labels, b.Identities, len(b.Requires), b.Malformed != nil}
	case o.channel != nil:
		return []any{"channel", o.channel}
	case o.pkg != nil:
		return []any{"package", o.pkg}
	case o.deprecations != nil:
		return []any{"deprecations", o.deprecations}
	}
	return []any{"other", o.other}
}

// FuzzFastDecode: what is decoded fast is what encoding/json makes of it.
func FuzzFastDecode(f *testing.F) {
	for _, text := range []string{
		`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","replaces":"b","skips":["c","d"],"skipRange":"<1.0.0"},{"name":"b"}],"properties":[{"type":"x","value":[1,{"a":null}]}]}`,
		`{"schema":"olm.bundle","package":"p","name":"a","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.2.3"}},{"type":"olm.gvk","value":{"group":"g","kind":"K","version":"v"}},{"type":"t","value":-1.5e+3}],"relatedImages":[{"name":"n","image":"i"}]}`,
		`{ "schema" : "olm.bundle" , "properties" : [ { "value" : "\u00e9\n" , "type" : "olm.label" } ] } `,
		`{"schema":"olm.bundle","schema":"olm.channel"}`,
		`{"schema":"olm.channel","entries":null}`,
		`{"schema":"olm.bundle","name":"é"}`,
		"{\"schema\":\"olm.bundle\",\"name\":\"\xff\"}",
		`{"schema":"olm.bundle","properties":[{"type":"x","value":01}]}`,
		`{"schema":"olm.bundle","properties":[{"type":"x","value":"\x"}]}`,
		`{"schema":"olm.bundle","properties":[{"type":"olm.gvk","value":{"group":"a","group":"b"}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || text[0] != '{' {
			return // never comes out of the splitter
		}
		o, _ := Options{}.withDefaults()
		d := &decoder{options: o, properties: new(olm.BundleReader), texts: map[string]string{}}
		fast, ok := d.fast(text)
		if !ok {
			return
		}
		slow, err := d.slow(text)
		if err != nil {
			t.Fatalf("only the fast way reads it: %v", err)
		}
		want, err := json.Marshal(slow.view())
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(fast.view())
		if err != nil {
			t.Fatal(err)
		}
		// An empty list and none are the same here.
		if diff := cmp.Diff(normalized(t, want), normalized(t, got)); diff != "" {
			t.Errorf("(-slow +fast):\n%s", diff)
		}
	})
}

func normalized(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(v)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withoutEmpty(v[key])
		}
	}
	return v
}
