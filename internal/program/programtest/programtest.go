// Package programtest tests programs: what each of them prints and returns, and that
// all of them use the same words.
package programtest

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

var update = flag.Bool("update", false, "write the golden files, the transcript and the page of programs (with -p 1)")

// The files that have a section for each program, named by its folder.
const (
	Page       = "docs/programs.md"            // what the program is, its flags and its exit codes
	Transcript = "examples/testdata/usage.txt" // command lines, exit codes and what standard error gets
)

// Case is a command line, and what it leads to.
type Case struct {
	Args   string // separated by spaces
	Code   int
	Stdout []string // parts of standard output; after BadUsage there is none at all
	Stderr string   // a part of standard error, which is a line; empty: there is none
}

// Run runs a program.
func Run(t *testing.T, c program.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = c.Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Test runs a new program for each case.
func Test(t *testing.T, command func() program.Command, cases []Case) {
	t.Helper()
	for _, tt := range cases {
		code, stdout, stderr := Run(t, command(), strings.Fields(tt.Args)...)
		checktest.Equal(t, tt.Code, code, "%s: exit code; it printed %.1000s%s", tt.Args, stdout, stderr)
		checktest.Has(t, stdout, tt.Stdout...)
		checktest.Has(t, stderr, tt.Stderr)
		if tt.Stderr == "" {
			checktest.Equal(t, "", stderr, "%s: standard error", tt.Args)
		}
		if tt.Code == program.BadUsage {
			checktest.Equal(t, "", stdout, "%s: standard output", tt.Args)
		}
	}
}

// Golden compares a text with a file in testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	checktest.SameIn(t, file+" (-update writes it)", string(checktest.Get(os.ReadFile(file))(t)), got)
}

// Usage runs the command lines that the transcript has for the program in the working
// directory, and compares its flags with the page.
func Usage(t *testing.T, command func() program.Command) {
	t.Helper()
	root, folder := place(t)
	page := Sections(t, filepath.Join(root, Page))
	described := describe(command())
	transcript := Sections(t, filepath.Join(root, Transcript))
	var played []string
	for line := range strings.Lines(transcript.Get(folder)) {
		args, isCommand := strings.CutPrefix(line, "$ "+command().Name)
		if !isCommand {
			continue
		}
		code, _, stderr := Run(t, command(), strings.Fields(args)...)
		played = append(played, fmt.Sprintf("%sexit %d\n%s", line, code, stderr))
	}
	lines := strings.Join(played, "\n")
	if *update {
		page.set(t, folder, described)
		transcript.set(t, folder, lines)
	}
	checktest.SameIn(t, Page, page.Get(folder), described)
	checktest.SameIn(t, Transcript, transcript.Get(folder), lines)
}

// place returns the root of the repository, and the working directory below it.
func place(t *testing.T) (root, folder string) {
	t.Helper()
	dir := checktest.Get(os.Getwd())(t)
	for root = dir; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, Transcript)); err == nil {
			return root, filepath.ToSlash(checktest.Get(filepath.Rel(root, dir))(t))
		}
		if root == filepath.Dir(root) {
			t.Fatalf("no folder above %s has %s", dir, Transcript)
		}
	}
}

// describe is the section of a program in the page.
func describe(c program.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nExit codes: %s; 2: the command line is wrong.\n", c.About, c.Codes)
	for _, sub := range c.Commands {
		fmt.Fprintf(&b, "\n`%s %s`: %s.\n", c.Name, strings.TrimSpace(sub.Name+" "+sub.Args), sub.About)
		b.WriteString(table(sub))
	}
	b.WriteString(table(c))
	return b.String()
}

// table is a table of the flags of a command; empty for none.
func table(c program.Command) string {
	var b strings.Builder
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	if c.Flags != nil {
		c.Flags(flags)
	}
	flags.VisitAll(func(f *flag.Flag) {
		if b.Len() == 0 {
			b.WriteString("\n| flag | meaning |\n| --- | --- |\n")
		}
		value, usage := flag.UnquoteUsage(f)
		usage = strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(usage)
		if !slices.Contains([]string{"", "0", "0s", "false"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		usage += conditions(f.Name, "needs", c.Needs) + conditions(f.Name, "not with", c.Excludes)
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace("-"+f.Name+" "+value), usage)
	})
	return b.String()
}

// conditions describes what goes with a flag, or with some of its values.
func conditions(name, verb string, all map[string][]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		flag, value, _ := strings.Cut(key, " ")
		if flag == name {
			fmt.Fprintf(&b, "; %s `-%s`", strings.TrimSpace(value+" "+verb), strings.Join(all[key], "` or `-"))
		}
	}
	return strings.ReplaceAll(b.String(), "|", "\\|")
}
