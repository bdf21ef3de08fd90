package olm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

// typeRule evaluates rules that are the type of a property which must be there.
// A rule "bad" does not compile.
type typeRule struct{}

func (typeRule) Compile(rule string) (func([]olm.Property) bool, error) {
	if rule == "bad" {
		return nil, errors.New("cel expressions must have type Bool")
	}
	return func(properties []olm.Property) bool {
		for _, p := range properties {
			if p.Type == rule {
				return true
			}
		}
		return false
	}, nil
}

func requirement(t testing.TB, kind, value string) *olm.Requirement {
	t.Helper()
	b := checktest.Get(olm.NewBundle("", "owner.v1", "", []olm.Property{property(kind, value)}))(t)
	return &b.Requires[0]
}

func TestRequirementMatches(t *testing.T) {
	etcd := checktest.Get(olm.NewBundle("etcd", "etcd.v1.2.3", "1.2.3", []olm.Property{
		property(olm.PropertyPackage, `{"packageName":"etcd","version":"1.2.3"}`),
		property("olm.gvk", `{"group":"etcd.io","version":"v1","kind":"Cluster"}`),
		property("olm.label", `{"label":"certified"}`),
		property("custom", `{"x":1}`),
	}))(t)
	const (
		gvk   = `{"gvk":{"group":"etcd.io","version":"v1","kind":"Cluster"}}`
		other = `{"gvk":{"group":"etcd.io","version":"v2","kind":"Cluster"}}`
		pkg   = `{"package":{"packageName":"etcd","versionRange":">=1.0.0"}}`
	)
	list := func(kind string, parts ...string) string {
		return fmt.Sprintf(`{%q:{"constraints":[%s]}}`, kind, strings.Join(parts, ","))
	}
	tests := []struct {
		kind, value string
		want        bool
		text        string
	}{
		{olm.PropertyGVKRequired, `{"group":"etcd.io","version":"v1","kind":"Cluster"}`, true, "providing an API with group: etcd.io, version: v1, kind: Cluster"},
		{olm.PropertyGVKRequired, `{"group":"etcd.io","version":"v2","kind":"Cluster"}`, false, "providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyPackageRequired, `{"packageName":"etcd","versionRange":">=1.0.0 <2.0.0"}`, true, "with package: etcd and with version in range: >=1.0.0 <2.0.0"},
		{olm.PropertyPackageRequired, `{"packageName":"etcd","versionRange":">=2.0.0"}`, false, "with package: etcd and with version in range: >=2.0.0"},
		{olm.PropertyPackageRequired, `{"packageName":"other","versionRange":">=1.0.0"}`, false, "with package: other and with version in range: >=1.0.0"},
		{olm.PropertyLabelRequired, `{"label":"certified"}`, true, "with label: certified"},
		{olm.PropertyLabelRequired, `{"label":"x"}`, false, "with label: x"},
		{olm.PropertyConstraint, gvk, true, "providing an API with group: etcd.io, version: v1, kind: Cluster"},
		{olm.PropertyConstraint, pkg, true, "with package: etcd and with version in range: >=1.0.0"},
		{olm.PropertyConstraint, list("all", gvk, pkg), true, "providing an API with group: etcd.io, version: v1, kind: Cluster and with package: etcd and with version in range: >=1.0.0"},
		{olm.PropertyConstraint, list("all", gvk, other), false, "providing an API with group: etcd.io, version: v1, kind: Cluster and providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("any", gvk, other), true, "providing an API with group: etcd.io, version: v1, kind: Cluster or providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("any", other, other), false, "providing an API with group: etcd.io, version: v2, kind: Cluster or providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("not", gvk, other), false, "providing an API with group: etcd.io, version: v1, kind: Cluster and not providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("not", other, other), true, "providing an API with group: etcd.io, version: v2, kind: Cluster and not providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("all", pkg, list("not", other)), true, "with package: etcd and with version in range: >=1.0.0 and providing an API with group: etcd.io, version: v2, kind: Cluster"},
		{olm.PropertyConstraint, list("all"), true, ""},
		{olm.PropertyConstraint, list("any"), false, ""},
		{olm.PropertyConstraint, list("not"), true, ""},
		{olm.PropertyConstraint, `{"all":{}}`, true, ""},
		{olm.PropertyConstraint, `{"failureMessage":"need it","cel":{"rule":"custom"}}`, true, `with constraint: "custom" and message: "need it"`},
		{olm.PropertyConstraint, `{"cel":{"rule":"absent"}}`, false, `with constraint: "absent" and message: ""`},
		{olm.PropertyConstraint, `{"failureMessage":"need it","package":{"packageName":"etcd","versionRange":">=1.0.0"}}`, true, `with package: etcd and with version in range: >=1.0.0 and message: "need it"`},
		{olm.PropertyConstraint, `{"failureMessage":"never","any":{"constraints":[]}}`, false, `with message: "never"`},
		{olm.PropertyConstraint, `{"gvk":null,"package":{"packageName":"etcd","versionRange":"1.2.3"}}`, true, "with package: etcd and with version in range: 1.2.3"},
		{olm.PropertyConstraint, gvk + " and what follows is passed over", true, "providing an API with group: etcd.io, version: v1, kind: Cluster"},
		{olm.PropertyConstraint, `{"GVK":{"Group":"etcd.io","version":"v1","kind":"Cluster"}}`, true, "providing an API with group: etcd.io, version: v1, kind: Cluster"},
	}
	for _, test := range tests {
		r := requirement(t, test.kind, test.value)
		got, err := r.Matches(etcd, typeRule{})
		if err != nil || got != test.want {
			t.Errorf("%s: %v, %v, want %v", test.value, got, err, test.want)
		}
		checktest.SameIn(t, fmt.Sprintf("%s: text", test.value), test.text, r.String())
		if r.Owner != "owner.v1" {
			t.Errorf("%s: owner %q", test.value, r.Owner)
		}
	}
}

func TestPackageAndRangeMayMatchInDifferentPlaces(t *testing.T) {
	in := requirement(t, olm.PropertyPackageRequired, `{"packageName":"p","versionRange":"<2.0.0"}`)
	tests := []struct {
		name, pkg, version string
		properties         []olm.Property
		want               bool
	}{
		{"the property alone", "", "", []olm.Property{property(olm.PropertyPackage, `{"packageName":"p","version":"1.0.0"}`)}, true},
		{"package and version of the bundle", "p", "1.0.0", nil, true},
		{"package of the bundle, version of the property", "p", "", []olm.Property{property(olm.PropertyPackage, `{"packageName":"q","version":"1.0.0"}`)}, true},
		{"package of the property, version of the bundle", "q", "1.0.0", []olm.Property{property(olm.PropertyPackage, `{"packageName":"p","version":"3.0.0"}`)}, true},
		{"the bundle's version is read tolerantly", "p", "v1", nil, true},
		{"the property's is not", "p", "", []olm.Property{property(olm.PropertyPackage, `{"packageName":"p","version":"v1.0.0"}`)}, false},
		{"a malformed property is absent", "", "", []olm.Property{property(olm.PropertyPackage, `{"packageName":1}`)}, false},
		{"no version at all", "p", "", nil, false},
		{"another package", "q", "1.0.0", nil, false},
	}
	for _, test := range tests {
		b := checktest.Get(olm.NewBundle(test.pkg, "b", test.version, test.properties))(t)
		if got, err := in.Matches(b, nil); err != nil || got != test.want {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
}

func TestConstraintIgnoresLaterKeys(t *testing.T) {
	c, err := olm.ParseConstraint([]byte(`{"cel":{"rule":"r"},"not":{"constraints":[]},"any":{"constraints":[]},"all":{"constraints":[]},"package":{"packageName":"p","versionRange":"1.0.0"},"gvk":{"group":"g","version":"v","kind":"K"}}`))
	checktest.OK(t, err)
	if want := (schema.GroupVersionKind{Group: "g", Version: "v", Kind: "K"}); c.Kind != "gvk" || c.GVK != want {
		t.Errorf("%s %s", c.Kind, c.GVK)
	}
	checktest.SameIn(t, "ignored", []string{"package", "all", "any", "not", "cel"}, c.Ignored)
}

func TestConstraintErrors(t *testing.T) {
	tests := []struct{ value, want string }{
		{`{}`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`null`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`{"gvk":null}`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`{"failureMessage":"m"}`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`{"all":{"constraints":[{}]}}`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`{"any":{"constraints":[null]}}`, "convert olm.constraint to resolver predicate: constraint is empty"},
		{`{"none":{"constraints":[]}}`, `parse olm.constraint: json: unknown field "none"`},
		{`{"gvk":{"group":"g","resource":"r"}}`, `parse olm.constraint: json: unknown field "resource"`},
		{`{"label":{"label":"l"}}`, `parse olm.constraint: json: unknown field "label"`},
		{``, "parse olm.constraint: unexpected EOF"},
		{`{"package":{"packageName":"p"}}`, "convert olm.constraint to resolver predicate: version range is empty"},
		{`{"package":{"packageName":"p","versionRange":"^1.0.0"}}`, "convert olm.constraint to resolver predicate: "},
		{`[]`, "parse olm.constraint: json: cannot unmarshal array"},
		{`{"cel":"x"}`, "parse olm.constraint: json: cannot unmarshal string"},
		{`"` + strings.Repeat("x", 131071) + `"`, "parse olm.constraint: olm.constraint value is greater than max constraint size 131072 bytes"},
	}
	for _, test := range tests {
		_, err := olm.ParseConstraint([]byte(test.value))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%.60s: %v, want %s", test.value, err, test.want)
		}
	}
	largest := `{"gvk":{"group":"` + strings.Repeat("g", 131072-len(`{"gvk":{"group":""}}`)) + `"}}`
	if _, err := olm.ParseConstraint([]byte(largest)); err != nil {
		t.Errorf("%d bytes: %.80v", len(largest), err)
	}
}

func TestCELErrors(t *testing.T) {
	b, err := olm.NewBundle("p", "b", "1.0.0", []olm.Property{property("olm.gvk", `{"group":"g","version":"v","kind":"K"}`)})
	checktest.OK(t, err)
	r := requirement(t, olm.PropertyConstraint, `{"all":{"constraints":[{"gvk":{"group":"g","version":"v","kind":"K"}},{"cel":{"rule":"bad"}}]}}`)
	_, err = r.Matches(b, nil)
	fault := (*olm.CELError)(nil)
	if !errors.As(err, &fault) || fault.Bundle != "owner.v1" || fault.Rule != "bad" || !errors.Is(err, olm.ErrNoCELEvaluator) {
		t.Errorf("without an evaluator: %v", err)
	}
	_, err = r.Matches(b, typeRule{})
	if want := `bundle owner.v1: convert olm.constraint to resolver predicate: cel rule "bad": cel expressions must have type Bool`; err == nil || err.Error() != want {
		t.Errorf("bad rule: %v", err)
	}
	// Matches stops at the first part that fails, Check does not.
	r = requirement(t, olm.PropertyConstraint, `{"all":{"constraints":[{"gvk":{"group":"x","version":"v","kind":"K"}},{"cel":{"rule":"bad"}}]}}`)
	if ok, err := r.Matches(b, nil); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if err := r.Check(typeRule{}); !errors.As(err, &fault) || fault.Bundle != "owner.v1" {
		t.Errorf("check: %v", err)
	}
	checktest.Good(t, requirement(t, olm.PropertyConstraint, `{"cel":{"rule":"custom"}}`).Check(typeRule{}))
}
