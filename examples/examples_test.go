// Package examples_test tests what all examples have in common.
package examples_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
)

const maxLines = 200

// programs are the folders of all programs, below the root of the repository.
func programs(t *testing.T) (folders []string) {
	t.Helper()
	checktest.OK(t, fs.WalkDir(os.DirFS(".."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.Contains(name, "examples/") && filepath.Base(name) == "main.go" {
			folders = append(folders, filepath.ToSlash(filepath.Dir(name)))
		}
		return err
	}))
	if len(folders) < 15 {
		t.Fatalf("%d programs", len(folders))
	}
	return folders
}

// The doc comment of each program has the command to run it and its exit codes, it ends
// on signals as all do, and it is short.
func TestPrograms(t *testing.T) {
	codes := regexp.MustCompile(`The exit code is 0 .+, 1 .+, 2 when the command line is wrong, 3 .+\.`)
	for _, folder := range programs(t) {
		main := filepath.Join("..", folder, "main.go")
		text := checktest.Get(os.ReadFile(main))(t)
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines {
			t.Errorf("%s: %d lines, more than %d", main, lines, maxLines)
		}
		parsed := checktest.Get(parser.ParseFile(token.NewFileSet(), main, text, parser.ParseComments))(t)
		if doc := strings.Join(strings.Fields(parsed.Doc.Text()), " "); !codes.MatchString(doc) {
			t.Errorf("%s: the doc comment does not have the exit codes", main)
		}
		checktest.Has(t, parsed.Doc.Text(), "\tgo run ")
		checktest.Has(t, string(text), "func main() { program.Main(command()) }\n")
		tests := checktest.Get(os.ReadFile(filepath.Join("..", folder, "main_test.go")))(t)
		checktest.Has(t, string(tests), "func TestUsage(t *testing.T) { programtest.Usage(t, command) }\n")
	}
}

// TestUsage of each program proves its sections. There are no others.
func TestSections(t *testing.T) {
	for _, file := range []string{programtest.Page, programtest.Transcript} {
		checktest.Same(t, programs(t), programtest.Sections(t, filepath.Join("..", file)).Names())
	}
}

// subjects are the flags that mean what the program is about: a release of a cluster
// for one, an operator of a catalog for another.
var subjects = []string{"from", "to", "channel", "arch", "running"}

// A flag has the same value and the same words in all programs. What follows its first
// words, as the default, may differ.
func TestSameWords(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `-([a-z-]+)( [^`]*)?` \\| (.*) \\|$")
	first := regexp.MustCompile(`^[^:;(]*`)
	words := map[string]string{}
	page := programtest.Sections(t, filepath.Join("..", programtest.Page))
	for _, folder := range page.Names() {
		for _, flag := range row.FindAllStringSubmatch(page.Get(folder), -1) {
			name, text := flag[1], flag[2]+": "+strings.TrimSpace(first.FindString(flag[3]))
			if slices.Contains(subjects, name) {
				continue
			}
			if other, known := words[name]; known {
				checktest.Equal(t, other, text, "%s: -%s", folder, name)
			}
			words[name] = text
		}
	}
	if len(words) < 60 {
		t.Errorf("%d flags", len(words))
	}
}
