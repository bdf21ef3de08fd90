package olm_test

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/blang/semver/v4"
	"github.com/clusterupdate/clusterupdate/olm"
	"github.com/google/go-cmp/cmp"
)

func FuzzRead(f *testing.F) {
	f.Add(goodCatalog)
	f.Add(yamlCatalog)
	f.Add(searchCatalog)
	f.Add("{\"schema\":\"x\"}\n---\nschema: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		o := olm.LoadOptions{MaxDocumentBytes: 1 << 20}
		c, err := olm.Read(t.Context(), strings.NewReader(text), "f", o)
		if err != nil {
			return // a limit
		}
		for _, p := range c.Problems() {
			if p.Message == "" || p.Rule == "" || !strings.HasPrefix(p.Error(), "f:") {
				t.Errorf("problem %+v", p)
			}
			if p.Line < 1 || p.Line > 1+strings.Count(text, "\n") || p.Offset > int64(len(text)) {
				t.Errorf("place of %v", &p)
			}
		}
		if (c.Validate() == nil) != (len(c.Problems()) == 0) {
			t.Errorf("error %v with %d problems", c.Validate(), len(c.Problems()))
		} else if err := c.Validate(); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
		for i, e := range c.Entries() {
			if e.Rank() != i || e.Bundle == nil || e.Channel.Err != nil || e.Channel.Entry(e.Name) != e {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		o.Strict = true
		if _, err := olm.Read(t.Context(), strings.NewReader(text), "f", o); (err == nil) != (len(c.Problems()) == 0) {
			t.Errorf("strict: %v, problems %v", err, c.Problems())
		}
		o.Strict = false
		again, err := olm.Read(t.Context(), iotest.HalfReader(strings.NewReader(text)), "f", o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Problems(), again.Problems()); diff != "" {
			t.Errorf("problems depend on how the text comes:\n%s", diff)
		}
		if diff := cmp.Diff(places(c.Entries()), places(again.Entries())); diff != "" {
			t.Errorf("entries depend on how the text comes:\n%s", diff)
		}
	})
}

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
	b, err := olm.NewBundle("p", "p.v1", "1.0.0", []olm.Property{property("custom", `1`)})
	if err != nil {
		f.Fatal(err)
	}
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
		negated := olm.Constraint{Kind: olm.ConstraintNot, Parts: []olm.Constraint{c}}
		if not, err := negated.Matches(b, typeRule{}); err != nil || not == ok {
			t.Errorf("the constraint is %v, its negation too: %v", ok, err)
		}
	})
}
