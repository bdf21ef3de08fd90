package limittest_test

import (
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

const page = "# Limits\n\n## `thing`\n\n" + `| limit | default | field | past it |
| --- | --- | --- | --- |
| things | 20,000 | Limits.Many | error |
| size of a thing | 4 MiB | Limits.Size | cut |
| waiting | 30 s | - | error |
` + "\n## `other`\n\nNone.\n"

func TestParse(t *testing.T) {
	got := checktest.Get(limittest.Parse(page, "thing"))(t)
	want := []limittest.Row{
		{Limit: "things", Default: 20000, Field: "Limits.Many", Past: "error"},
		{Limit: "size of a thing", Default: 4 << 20, Field: "Limits.Size", Past: "cut"},
		{Limit: "waiting", Default: 30e9, Field: "-", Past: "error"},
	}
	checktest.Same(t, want, got)
}

func TestParseFaults(t *testing.T) {
	for name, tc := range map[string]struct{ source, dir, want string }{
		"no heading":    {page, "thin", "no heading"},
		"no table":      {page, "other", "no table"},
		"three columns": {strings.Replace(page, " | cut", "", 1), "thing", "3 columns"},
		"no number":     {strings.Replace(page, "4 MiB", "large", 1), "thing", `"large" is not a number`},
		"no unit":       {strings.Replace(page, "4 MiB", "4 MB", 1), "thing", `"4 MB" is not a number`},
	} {
		t.Run(name, func(t *testing.T) {
			checktest.ErrorHas(t, tc.want, checktest.Err(limittest.Parse(tc.source, tc.dir)))
		})
	}
}
