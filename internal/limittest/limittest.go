// Package limittest proves docs/limits.md: each row of a package's table has a test that
// feeds an input just above the limit, and what that may cost is counted in bytes and
// steps.
//
// The table of a package is under a heading with its path below the module, in
// backquotes:
//
//	## `graph/risk`
//
//	| limit | default | field | past it |
//	| --- | --- | --- | --- |
//	| size of an answer | 32 MiB | Limits.Body | error |
package limittest

import (
	"fmt"
	"os"
	"path/filepath"
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

// Walk runs the case of each row of the table of the package in the current folder. A
// row without a case, a case without a row and two different defaults are failures.
func Walk(t *testing.T, cases []Case) {
	t.Helper()
	page, dir := find(t)
	rows := checktest.Get(Parse(string(checktest.Get(os.ReadFile(page))(t)), dir))(t)
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
			t.Errorf("no case proves %q", row.Limit)
			continue
		}
		delete(byName, row.Limit)
		checktest.FailIf(t, c.Default != row.Default,
			"docs/limits.md has %[2]d as the default of %[1]q, it is %[3]d", row.Limit, row.Default, c.Default)
		t.Run(strings.ReplaceAll(row.Limit, " ", "-"), func(t *testing.T) { measure(t, c) })
	}
	for name := range byName {
		t.Errorf("docs/limits.md does not mention %q", name)
	}
}

// find returns docs/limits.md and the path of the current folder below the module that
// has it, or "clusterupdate" for the module's own.
func find(t *testing.T) (page, dir string) {
	t.Helper()
	wd := checktest.Get(os.Getwd())(t)
	for root := wd; ; root = filepath.Dir(root) {
		page = filepath.Join(root, "docs", "limits.md")
		if _, err := os.Stat(page); err == nil {
			dir = filepath.ToSlash(checktest.Get(filepath.Rel(root, wd))(t))
			if dir == "." {
				dir = "clusterupdate"
			}
			return page, dir
		}
		checktest.FatalIf(t, root == filepath.Dir(root), "no docs/limits.md above %s", wd)
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
	checktest.FailIf(t, steps > c.Steps, "took %d steps, at most %d are allowed", steps, c.Steps)
}

// Row is a row of a table of limits.
type Row struct {
	Limit   string
	Default int64
	Field   string
	Past    string
}

// Parse returns the rows of a package's table in the source of docs/limits.md.
func Parse(source, dir string) ([]Row, error) {
	_, section, ok := strings.Cut(source, "\n## `"+dir+"`\n")
	if !ok {
		return nil, fmt.Errorf("no heading ## `%s`", dir)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []Row
	for line := range strings.Lines(section) {
		text, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !isRow {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(text, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 4 {
			return nil, fmt.Errorf("%d columns, want 4 (limit, default, field, past it): %s", len(cells), text)
		}
		if cells[0] == "limit" && cells[1] == "default" || cells[0] == "---" {
			continue
		}
		size, err := number(cells[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cells[0], err)
		}
		rows = append(rows, Row{Limit: cells[0], Default: size, Field: cells[2], Past: cells[3]})
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no table below ## `%s`", dir)
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
