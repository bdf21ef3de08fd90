// Package limittest proves the table of limits in a package's doc.go: each row
// has a test that feeds an input just above the limit, and what that may cost
// is counted in bytes and steps.
//
// The table stands under the heading "# Limits", indented, one limit a line,
// its columns two or more spaces apart:
//
//	limit                      default  field               past it
//	conditional update edges   20000    Limits.Conditional  error
//	size of an answer          32 MiB   Limits.Body         error
package limittest

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
)

// Case proves one row of the table.
type Case struct {
	Limit   string // first column of the row
	Default int64  // second column; sizes are in bytes, durations in nanoseconds
	Bytes   uint64 // the most that one Run may allocate
	Steps   int64  // the most that Run may return

	// Run feeds an input just above the limit and fails the test where the
	// package does not act as the row's last column says. It returns how many
	// steps that took (reads, requests, comparisons), or 0 where only
	// allocations count. It is run once to warm up and once to measure: what
	// it makes itself counts too, so inputs are better made before.
	Run func(t *testing.T) (steps int64)
}

// Walk reads doc.go in the current folder, which is the tested package's, and
// runs the case of each row of its table. A row without a case, a case without
// a row and two different defaults are failures.
func Walk(t *testing.T, cases []Case) {
	t.Helper()
	doc := checktest.Get(os.ReadFile("doc.go"))(t)
	rows := checktest.Get(Parse(string(doc)))(t)
	byName := map[string]Case{}
	for _, c := range cases {
		if _, twice := byName[c.Limit]; twice {
			t.Errorf("two cases for %q", c.Limit)
		}
		byName[c.Limit] = c
	}
	for _, row := range rows {
		c, ok := byName[row.Limit]
		if !ok {
			t.Errorf("doc.go: no case proves %q", row.Limit)
			continue
		}
		delete(byName, row.Limit)
		if c.Default != row.Default {
			t.Errorf("doc.go says that the default of %q is %d, it is %d", row.Limit, row.Default, c.Default)
		}
		t.Run(strings.ReplaceAll(row.Limit, " ", "-"), func(t *testing.T) { measure(t, c) })
	}
	for name := range byName {
		t.Errorf("doc.go does not mention %q", name)
	}
}

func measure(t *testing.T, c Case) {
	if !israce.Enabled { // which makes what is allocated mean nothing
		c.Run(t)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	steps := c.Run(t)
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; !israce.Enabled && spent > c.Bytes {
		t.Errorf("allocated %d bytes, at most %d are allowed", spent, c.Bytes)
	}
	if steps > c.Steps {
		t.Errorf("took %d steps, at most %d are allowed", steps, c.Steps)
	}
}

// Row is a row of a table of limits.
type Row struct {
	Limit   string
	Default int64
	Field   string
	Past    string
}

var columns = regexp.MustCompile(`\s{2,}|\t+`)

// Parse returns the rows of the table in the source of a doc.go.
func Parse(source string) ([]Row, error) {
	_, section, ok := strings.Cut(source, "\n// # Limits\n")
	if !ok {
		return nil, fmt.Errorf(`no heading "# Limits"`)
	}
	var rows []Row
	for line := range strings.Lines(section) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "//") || strings.HasPrefix(line, "// # ") {
			break
		}
		text, indented := strings.CutPrefix(line, "//\t")
		if !indented {
			continue
		}
		cells := columns.Split(strings.TrimSpace(text), -1)
		if len(cells) != 4 {
			return nil, fmt.Errorf("%d columns, want 4 (limit, default, field, past it): %s", len(cells), text)
		}
		if cells[0] == "limit" && cells[1] == "default" {
			continue
		}
		size, err := number(cells[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cells[0], err)
		}
		rows = append(rows, Row{Limit: cells[0], Default: size, Field: cells[2], Past: cells[3]})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf(`no table below "# Limits"`)
	}
	return rows, nil
}

var units = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}

// number reads "20000", "20,000", "4 MiB" or "30 s".
func number(text string) (int64, error) {
	digits, unit, _ := strings.Cut(strings.ReplaceAll(text, ",", ""), " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	factor, known := units[unit]
	if err != nil || !known {
		return 0, fmt.Errorf("%q is not a number with a unit (B, KiB, MiB, GiB, ms, s, min, h)", text)
	}
	return n * factor, nil
}
