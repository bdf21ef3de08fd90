package olm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func TestNewBundle(t *testing.T) {
	b := checktest.Get(olm.NewBundle("p", "p.v1", "v1.2", []olm.Property{
		property("olm.gvk", `{"group":"g","version":"v1","kind":"A"}`),
		property("olm.gvk", `{"kind":"A","version":"v1","group":"g"}`),
		property("olm.gvk", `{"GROUP":"g","version":"v1","kind":"B","more":true}`),
		property("olm.gvk", `{"group":7}`),
		property("olm.gvk", `{"group":"g","version":"v1","kind":"caf\u00e9"}`),
		property("olm.label", `{"label":"x"}`),
		property("olm.label", `{"label":"x"}`),
		property("olm.label", `"y"`),
		property(olm.PropertyPackage, `{"packageName":"p","version":"1.2.0","release":"3"}`),
		property(olm.PropertyPackage, `[]`),
		property("olm.deprecated", `{}`),
		property(olm.PropertyMaxOpenShift, `"4.15"`),
		property(olm.PropertyMaxOpenShift, `4.10`),
		property(olm.PropertyLabelRequired, `{"label":"l"}`),
		property(olm.PropertyGVKRequired, `{"group":"g","version":"v1","kind":"C"}`),
		property(olm.PropertyPackageRequired, `{"packageName":"q","versionRange":"1.x"}`),
	}))(t)
	gvk := func(kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "g", Version: "v1", Kind: kind}
	}
	checktest.SameIn(t, "provides", []schema.GroupVersionKind{gvk("A"), gvk("B"), gvk("café")}, b.Provides)
	checktest.SameIn(t, "labels", []string{"x"}, b.Labels)
	if len(b.Identities) != 1 || b.Identities[0].Package != "p" || b.Identities[0].Version.String() != "1.2.0" || b.Identities[0].Release != "3" {
		t.Errorf("identities %v", b.Identities)
	}
	checktest.SameIn(t, "max OpenShift", []json.RawMessage{json.RawMessage(`"4.15"`), json.RawMessage(`4.10`)}, b.MaxOpenShift)
	var requires []string
	for _, r := range b.Requires {
		requires = append(requires, r.String())
	}
	want := []string{"with label: l", "providing an API with group: g, version: v1, kind: C", "with package: q and with version in range: 1.x"}
	checktest.SameIn(t, "requires", want, requires)
	if !b.Deprecated || b.Version.String() != "1.2.0" || b.RawVersion != "v1.2" {
		t.Errorf("deprecated %v, version %v of %q", b.Deprecated, b.Version, b.RawVersion)
	}
}

// A bundle of a package says so by a property, whose version is strict.
func TestNewBundleIdentity(t *testing.T) {
	own := property(olm.PropertyPackage, `{"packageName":"q","version":"2.0.0"}`)
	tests := []struct {
		name, pkg, version string
		properties         []olm.Property
		want               []string
		strict             string
	}{
		{"none", "p", "1.0.0", nil, []string{`{"packageName":"p","version":"1.0.0"}`}, "1.0.0"},
		{"none, and a tolerant version", "p", "v1", nil, []string{`{"packageName":"p","version":"v1"}`}, ""},
		{"its own", "p", "1.0.0", []olm.Property{own}, []string{string(own.Value)}, "2.0.0"},
		{"no package", "", "1.0.0", nil, nil, ""},
	}
	for _, test := range tests {
		b := checktest.Get(olm.NewBundle(test.pkg, "b", test.version, test.properties))(t)
		var got []string
		for _, p := range b.Properties {
			got = append(got, string(p.Value))
		}
		checktest.SameIn(t, test.name+": properties", test.want, got)
		var strict string
		if len(b.Identities) > 0 && b.Identities[0].Version != nil {
			strict = b.Identities[0].Version.String()
		}
		if strict != test.strict {
			t.Errorf("%s: version %q", test.name, strict)
		}
	}
}

func TestNewBundleVersion(t *testing.T) {
	tests := []struct{ text, want string }{
		{"1.2.3", "1.2.3"}, {"v1.2", "1.2.0"}, {" 4", "4.0.0"}, {"01.02.03", "1.2.3"}, {"1.2.3-rc.1+b", "1.2.3-rc.1+b"},
		{"", ""}, {"latest", ""}, {"1.2-rc", ""},
	}
	for _, test := range tests {
		b := checktest.Get(olm.NewBundle("", "b", test.text, nil))(t)
		var got string
		if b.Version != nil {
			got = b.Version.String()
		}
		if got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestMalformedRequirement(t *testing.T) {
	tests := []struct{ kind, value, want string }{
		{olm.PropertyGVKRequired, `{"group":1}`, "json: cannot unmarshal number"},
		{olm.PropertyPackageRequired, `{"packageName":"p"}`, "version range is empty"},
		{olm.PropertyPackageRequired, `{"packageName":"p","versionRange":"1.0"}`, "Could not"},
		{olm.PropertyPackageRequired, `x`, "invalid character"},
		{olm.PropertyLabelRequired, `[]`, "json: cannot unmarshal array"},
		{olm.PropertyConstraint, `{}`, "convert olm.constraint to resolver predicate: constraint is empty"},
	}
	for _, test := range tests {
		b, err := olm.NewBundle("p", "p.v1", "1.0.0", []olm.Property{
			property("olm.gvk", `{"group":"g","version":"v","kind":"K"}`),
			property(test.kind, test.value),
			property(olm.PropertyLabelRequired, `{"label":"fine"}`),
		})
		if err == nil || b.Err == nil || err.Error() != b.Err.Error() {
			t.Fatalf("%s: %v, %v", test.value, err, b.Err)
		}
		if want := "bundle p.v1: property of type " + test.kind + ": " + test.want; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", test.value, err, want)
		}
		if len(b.Provides) != 1 || len(b.Requires) != 1 {
			t.Errorf("%s: the other properties are lost: %v", test.value, b)
		}
	}
}
