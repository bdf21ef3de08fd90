package cel_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"

	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/clusterupdate/clusterupdate/olm/cel"
)

func newEvaluator(t testing.TB, o cel.Options) *cel.Evaluator {
	t.Helper()
	e := checktest.Get(cel.New(o))(t)
	return e
}

func TestRules(t *testing.T) {
	e := newEvaluator(t, cel.Options{})
	properties := []olm.Property{
		{Type: "certified", Value: []byte(`true`)},
		{Type: "olm.package", Value: []byte(`{"packageName":"p","version":"1.2.3"}`)},
		{Type: "number", Value: []byte(`4.10`)},
		{Type: "list", Value: []byte(`["a","b"]`)},
		{Type: "null", Value: []byte(`null`)},
		{Type: "malformed", Value: []byte(`{`)},
	}
	tests := []struct {
		rule string
		want bool
	}{
		{`true`, true},
		{`false`, false},
		{`properties.exists(p, p.type == "certified")`, true},
		{`properties.exists(p, p.type == "absent")`, false},
		{`properties.exists(p, p.type == "certified" && p.value == true)`, true},
		{`properties.exists(p, p.type == "olm.package" && p.value.packageName == "p")`, true},
		{`properties.exists_one(p, p.type == "list" && "b" in p.value)`, true},
		{`properties.all(p, p.type != "olm.deprecated")`, true},
		{`properties.filter(p, p.type == "null").size() == 1`, true},
		{`properties.exists(p, p.type == "null" && p.value == null)`, true},
		{`properties.exists(p, p.type == "number" && p.value == 4.1)`, true},
		{`properties.exists(p, p.type == "malformed")`, false},
		{`properties.exists(p, p.type.startsWith("cert"))`, true},
		{`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.0.0") > 0)`, true},
		{`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.2.3") == 0)`, true},
		{`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "2.0.0-rc.1") == -1)`, true},
		{`semver_compare("v1.2", "1.2.0") == 0`, true},
		{`semver_compare(" 01.2.3", "1.2.3") == 0`, true},
		{`semver_compare("1.0.0-rc.1", "1.0.0") < 0`, true},
		{`semver_compare(1.2, "1.2.0") == 0`, true},
		{`semver_compare(4, "4.0.0") == 0`, true},
		{`properties.exists(p, p.type == "number" && semver_compare(p.value, "4.1.0") == 0)`, true},
		// failures while they run
		{`semver_compare("latest", "1.0.0") == 0`, false},
		{`semver_compare("1.0.0", "latest") != 0`, false},
		{`properties[0].absent == 1`, false},
		{`properties[99].type == "x"`, false},
		{`properties.exists(p, p.value.packageName == "absent")`, false},
		{`properties[1].value.version.matches("[")`, false},
		{`1 / 0 == 1`, false},
	}
	for _, test := range tests {
		for range 2 { // compiled, then remembered
			matches, err := e.Compile(test.rule)
			if err != nil {
				t.Errorf("%s: %v", test.rule, err)
				continue
			}
			if got := matches(properties); got != test.want {
				t.Errorf("%s: %v", test.rule, got)
			}
		}
	}
}

func TestBadRules(t *testing.T) {
	e := newEvaluator(t, cel.Options{})
	tests := []struct{ rule, want string }{
		{`1 + 1`, "cel expressions must have type Bool"},
		{`properties`, "cel expressions must have type Bool"},
		{`properties[0].value`, "cel expressions must have type Bool"},
		{``, "Syntax error"},
		{`properties.exists(`, "Syntax error"},
		{`unknown == 1`, "undeclared reference to 'unknown'"},
		{`semver_compare("1.0.0") == 0`, "no matching overload"},
		{`semver_compare("1.0.0", "1.0.0") == "x"`, "no matching overload"},
	}
	for _, test := range tests {
		for range 2 {
			if _, err := e.Compile(test.rule); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q: %v, want %s", test.rule, err, test.want)
			}
		}
	}
}

func TestCostLimit(t *testing.T) {
	rule := `properties.all(a, properties.all(b, properties.all(c, a.type == b.type || b.type == c.type || true)))`
	properties := make([]olm.Property, 30)
	for i := range properties {
		properties[i] = olm.Property{Type: "x", Value: []byte("1")}
	}
	for _, test := range []struct {
		limit uint64
		want  bool
	}{{0, true}, {1000, false}} {
		matches := checktest.Get(newEvaluator(t, cel.Options{CostLimit: test.limit}).Compile(rule))(t)
		if got := matches(properties); got != test.want {
			t.Errorf("limit %d: %v", test.limit, got)
		}
	}
	_, err := cel.New(cel.Options{MaxRules: -1})
	checktest.ErrorHas(t, "cel.Options: MaxRules is negative: -1", err)
}

func TestConcurrentUse(t *testing.T) {
	e := newEvaluator(t, cel.Options{MaxRules: 1})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, rule := range []string{`true`, `properties.size() == 0`, `1 == 1`} {
				matches, err := e.Compile(rule)
				if err != nil {
					t.Error(err)
				} else if !matches(nil) {
					t.Errorf("%s does not match", rule)
				}
			}
		})
	}
	group.Wait()
}

// TestResolverUse takes the way of the resolver: a requirement of one bundle,
// the entries of a catalog.
func TestResolverUse(t *testing.T) {
	e := newEvaluator(t, cel.Options{})
	contents, err := catalog.Read(t.Context(), strings.NewReader(`
{"schema":"olm.package","name":"p","defaultChannel":"c"}
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v2","replaces":"p.v1"},{"name":"p.v1"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"certified","value":true}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"r/p","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
`), "catalog", catalog.Options{Strict: true})
	checktest.OK(t, err)
	b := checktest.Get(olm.NewBundle("q", "q.v1", "1.0.0", []olm.Property{
		{Type: olm.PropertyConstraint, Value: []byte(`{"failureMessage":"certified p","all":{"constraints":[{"package":{"packageName":"p","versionRange":">=1.0.0"}},{"cel":{"rule":"properties.exists(p, p.type == \"certified\")"}}]}}`)},
		{Type: olm.PropertyConstraint, Value: []byte(`{"cel":{"rule":"1"}}`)},
	}))(t)
	for _, candidate := range contents.Package("p").Bundles {
		ok, err := b.Requires[0].Matches(candidate, e)
		if err != nil || ok != (candidate.Name == "p.v1") {
			t.Errorf("%s matches: %v, %v", candidate.Name, ok, err)
		}
	}
	fault := (*olm.CELError)(nil)
	if err := b.Requires[1].Check(e); !errors.As(err, &fault) || fault.Bundle != "q.v1" || fault.Rule != "1" {
		t.Errorf("error %v", err)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`properties.exists(p, p.type == "certified")`, `{"a":[1,null]}`)
	f.Add(`semver_compare(properties[0].value, "1.0.0") < 0`, `"v1"`)
	f.Fuzz(func(t *testing.T, rule, value string) {
		if len(rule) > 1000 {
			return
		}
		e := newEvaluator(t, cel.Options{CostLimit: 10_000})
		matches, err := e.Compile(rule)
		if err != nil {
			return
		}
		properties := []olm.Property{{Type: "x", Value: []byte(value)}}
		if first := matches(properties); first != matches(properties) {
			t.Error("the result changes")
		}
	})
}

func BenchmarkRule(b *testing.B) {
	e := newEvaluator(b, cel.Options{})
	properties := []olm.Property{{Type: "certified", Value: []byte(`true`)}, {Type: "olm.package", Value: []byte(`{"packageName":"p","version":"1.2.3"}`)}}
	b.ReportAllocs()
	for b.Loop() {
		matches, err := e.Compile(`properties.exists(p, p.type == "olm.package" && semver_compare(p.value.version, "1.0.0") > 0)`)
		if err != nil || !matches(properties) {
			b.Fatal(err)
		}
	}
}
