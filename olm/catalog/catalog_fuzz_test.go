package catalog_test

import (
	"strings"
	"testing"
	"testing/iotest"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
)

func FuzzRead(f *testing.F) {
	f.Add(goodCatalog)
	f.Add(yamlCatalog)
	f.Add(searchCatalog)
	f.Add("{\"schema\":\"x\"}\n---\nschema: y\n")
	f.Fuzz(func(t *testing.T, text string) {
		o := catalog.Options{MaxDocumentBytes: 1 << 20}
		c, err := catalog.Read(t.Context(), strings.NewReader(text), "f", o)
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
		for i, e := range entries(c) {
			if e.Rank() != i || e.Bundle == nil || e.Channel.Err != nil || e.Channel.Entry(e.Name) != e {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
		o.Strict = true
		if _, err := catalog.Read(t.Context(), strings.NewReader(text), "f", o); (err == nil) != (len(c.Problems()) == 0) {
			t.Errorf("strict: %v, problems %v", err, c.Problems())
		}
		o.Strict = false
		again := checktest.Get(catalog.Read(t.Context(), iotest.HalfReader(strings.NewReader(text)), "f", o))(t)
		checktest.SameIn(t, "problems depend on how the text comes", c.Problems(), again.Problems())
		checktest.SameIn(t, "entries depend on how the text comes", places(entries(c)), places(entries(again)))
	})
}
