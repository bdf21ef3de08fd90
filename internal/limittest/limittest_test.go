package limittest_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

const doc = `// Package thing reads things.
//
// # Limits
//
// What comes from outside is bounded:
//
//	limit            default  field        past it
//	things           20,000   Limits.Many  error
//	size of a thing  4 MiB    Limits.Size  cut
//	waiting          30 s     -            error
//
// # Other
//
//	something  else
package thing
`

func TestParse(t *testing.T) {
	got := checktest.Get(limittest.Parse(doc))(t)
	want := []limittest.Row{
		{Limit: "things", Default: 20000, Field: "Limits.Many", Past: "error"},
		{Limit: "size of a thing", Default: 4 << 20, Field: "Limits.Size", Past: "cut"},
		{Limit: "waiting", Default: 30e9, Field: "-", Past: "error"},
	}
	checktest.Same(t, want, got)
}

func TestParseFaults(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"no heading":    {"// Package thing reads things.\npackage thing\n", "no heading"},
		"no table":      {"// Package thing.\n//\n// # Limits\n//\n// None.\npackage thing\n", "no table"},
		"three columns": {strings.Replace(doc, "  cut", "", 1), "3 columns"},
		"no number":     {strings.Replace(doc, "4 MiB", "large", 1), `"large" is not a number`},
		"no unit":       {strings.Replace(doc, "4 MiB", "4 MB", 1), `"4 MB" is not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.ErrorHas(t, tc.want, checktest.Err(limittest.Parse(tc.source)))
		})
	}
}
