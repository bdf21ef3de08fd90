package olm_test

import (
	"testing"

	"github.com/blang/semver/v4"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm"
)

func FuzzParseRange(f *testing.F) {
	for _, text := range []string{">=1.0.0 <2.0.0 || 3.x", "1.x.x", "!=1.2.x", "a || || b", "1.0.0 || || 2.0.0", "> = 1.0.0", "1.0.0 - 2.0.0", "<1.0.0-next.1"} {
		f.Add(text, "1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, of string) {
		r, err := olm.ParseRange(text)
		if err != nil {
			if r.String() != "" {
				t.Errorf("a range %q with an error", r)
			}
			return
		}
		want, err := semver.ParseRange(text)
		if err != nil {
			t.Fatalf("the library refuses it: %v", err)
		}
		for _, v := range []string{of, "0.0.0", "1.0.0", "1.2.3-rc.1", "99.0.0"} {
			v, err := semver.Parse(v)
			if err == nil && r.Contains(v) != want(v) {
				t.Errorf("%q and %s: %v", text, v, r.Contains(v))
			}
		}
	})
}

func FuzzParseConstraint(f *testing.F) {
	f.Add(`{"all":{"constraints":[` + needsK + `,{"not":{"constraints":[` + needsP1 + `]}}]}}`)
	f.Add(`{"failureMessage":"m","cel":{"rule":"custom"}} rest`)
	f.Add(`{"any":{"constraints":[null]}}`)
	b := checktest.Get(olm.NewBundle("p", "p.v1", "1.0.0", []olm.Property{property("custom", `1`)}))(f)
	f.Fuzz(func(t *testing.T, value string) {
		c, err := olm.ParseConstraint([]byte(value))
		if err != nil {
			return
		}
		if c.Kind == "" {
			t.Error("a constraint of no kind")
		}
		_ = c.String()
		ok, err := c.Matches(b, typeRule{})
		if err != nil {
			return
		}
		negated := olm.Constraint{Kind: "not", Parts: []olm.Constraint{c}}
		if not, err := negated.Matches(b, typeRule{}); err != nil || not == ok {
			t.Errorf("the constraint is %v, its negation too: %v", ok, err)
		}
	})
}
