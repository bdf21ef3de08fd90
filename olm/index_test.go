package olm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func TestSearchOrder(t *testing.T) {
	c := readCatalog(t, searchCatalog)
	want := []string{"z/p.v3", "z/p.v1", "z/q.v2", "z/q.v1", "a/p.v2", "a/p.v1", "a/q.v1"}
	checktest.SameIn(t, "entries", want, places(entries(c)))
	for i, e := range entries(c) {
		if e.Rank() != i {
			t.Errorf("%s has rank %d, not %d", e.Name, e.Rank(), i)
		}
	}
	if e := c.Package("p").Channel("z").Entry("p.v2"); e.Rank() != -1 {
		t.Errorf("the skipped entry has rank %d", e.Rank())
	}
	if c.Package("none") != nil || c.Package("p").Channel("none") != nil || c.Package("p").Bundle("none") != nil || c.Package("p").Channel("a").Entry("none") != nil {
		t.Error("something that does not exist is found")
	}
	if b := c.Package("p").Bundle("p.v2"); b == nil || b.Version.String() != "2.0.0" {
		t.Errorf("bundle %v", b)
	}
}

const (
	needsK  = `{"gvk":{"group":"g","version":"v1","kind":"K"}}`
	needsP1 = `{"package":{"packageName":"p","versionRange":"<2.0.0"}}`
	needsQ  = `{"package":{"packageName":"q","versionRange":">=0.0.0"}}`
)

func TestMatching(t *testing.T) {
	c := readCatalog(t, searchCatalog)
	tests := []struct {
		kind, value string
		want        []string
		disordered  []string
	}{
		{olm.PropertyGVKRequired, `{"group":"g","version":"v1","kind":"K"}`, []string{"z/p.v1", "z/q.v2", "z/q.v1", "a/p.v2", "a/p.v1", "a/q.v1"}, []string{"a", "z"}},
		{olm.PropertyLabelRequired, `{"label":"l"}`, []string{"z/p.v3", "z/q.v2"}, []string{"a"}},
		{olm.PropertyPackageRequired, `{"packageName":"p","versionRange":"<3.0.0"}`, []string{"z/p.v1", "a/p.v2", "a/p.v1"}, nil},
		{olm.PropertyPackageRequired, `{"packageName":"bad","versionRange":">=1.0.0"}`, nil, []string{"a", "z"}},
		{olm.PropertyConstraint, `{"all":{"constraints":[` + needsK + `,` + needsP1 + `]}}`, []string{"z/p.v1", "a/p.v1"}, nil},
		{olm.PropertyConstraint, `{"any":{"constraints":[` + needsQ + `,` + needsP1 + `]}}`, []string{"z/p.v1", "z/q.v2", "z/q.v1", "a/p.v1", "a/q.v1"}, nil},
		{olm.PropertyConstraint, `{"any":{"constraints":[` + needsP1 + `,` + needsP1 + `]}}`, []string{"z/p.v1", "a/p.v1"}, nil},
		{olm.PropertyConstraint, `{"any":{"constraints":[` + needsQ + `,{"package":{"packageName":"p","versionRange":"3.0.0"}}]}}`, []string{"z/p.v3", "z/q.v2", "z/q.v1", "a/q.v1"}, nil},
		{olm.PropertyConstraint, `{"not":{"constraints":[` + needsK + `]}}`, []string{"z/p.v3"}, []string{"a"}},
		{olm.PropertyConstraint, `{"all":{"constraints":[` + needsQ + `,{"not":{"constraints":[{"package":{"packageName":"q","versionRange":"2.0.0"}}]}}]}}`, []string{"z/q.v1", "a/q.v1"}, nil},
		{olm.PropertyConstraint, `{"all":{"constraints":[]}}`, places(entries(c)), []string{"a", "z"}},
		{olm.PropertyConstraint, `{"any":{"constraints":[]}}`, nil, nil},
		{olm.PropertyConstraint, `{"cel":{"rule":"olm.label"}}`, []string{"z/p.v3", "z/q.v2"}, []string{"a"}},
	}
	for _, test := range tests {
		r := requirement(t, test.kind, test.value)
		got := checktest.Get(c.Matching(r, typeRule{}))(t)
		checktest.SameIn(t, test.value, test.want, places(got))
		bad := checktest.Get(c.Disordered(r, typeRule{}))(t)
		var channels []string
		for _, ch := range bad {
			channels = append(channels, ch.Name)
		}
		checktest.SameIn(t, fmt.Sprintf("%s: disordered", test.value), test.disordered, channels)
	}
	bad := requirement(t, olm.PropertyConstraint, `{"cel":{"rule":"bad"}}`)
	if _, err := c.Matching(bad, typeRule{}); err == nil {
		t.Error("a bad rule matches")
	}
	if _, err := c.Disordered(bad, typeRule{}); err == nil {
		t.Error("a bad rule matches in disordered channels")
	}
}

// A bundle may say by properties that it belongs to other packages too.
func TestInPackageByProperties(t *testing.T) {
	text := strings.Replace(channelCatalog("b>a", "a"), `"properties":[`, `"properties":[{"type":"olm.package","value":{"packageName":"q","version":"1.0.0"}},{"type":"olm.package","value":{"packageName":"q","version":"2.0.0"}},`, 1)
	c := readCatalog(t, text)
	for pkg, want := range map[string][]string{"q": {"c/b"}, "p": {"c/b", "c/a"}} {
		r := requirement(t, olm.PropertyPackageRequired, fmt.Sprintf(`{"packageName":%q,"versionRange":">=0.0.0"}`, pkg))
		got, err := c.Matching(r, nil)
		if diff := cmp.Diff(want, places(got)); err != nil || diff != "" {
			t.Errorf("in %s: %v (-want +got):\n%s", pkg, err, diff)
		}
	}
	r := requirement(t, olm.PropertyPackageRequired, `{"packageName":"q","versionRange":"2.0.0"}`)
	if got, err := c.Matching(r, nil); err != nil || len(got) != 1 || got[0].Name != "b" {
		t.Errorf("%v, %v", places(got), err)
	}
}

// TestMatchingAgreesWithMatches compares the index with a plain look at each
// entry, for all pairs of parts.
func TestMatchingAgreesWithMatches(t *testing.T) {
	c := readCatalog(t, searchCatalog)
	parts := []string{needsK, needsP1, needsQ, `{"cel":{"rule":"olm.label"}}`, `{"gvk":{"group":"none"}}`}
	for _, kind := range []string{"all", "any", "not"} {
		for _, a := range parts {
			for _, b := range parts {
				for _, inner := range []string{"all", "any", "not"} {
					value := fmt.Sprintf(`{%q:{"constraints":[%s,{%q:{"constraints":[%s,%s]}}]}}`, kind, a, inner, b, a)
					r := requirement(t, olm.PropertyConstraint, value)
					var want []string
					for _, e := range entries(c) {
						ok := checktest.Get(r.Matches(e.Bundle, typeRule{}))(t)
						if ok {
							want = append(want, e.Channel.Name+"/"+e.Name)
						}
					}
					got := checktest.Get(c.Matching(r, typeRule{}))(t)
					checktest.SameIn(t, value, want, places(got))
				}
			}
		}
	}
}
