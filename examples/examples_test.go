// Package examples_test holds what all examples have in common.
package examples_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const maxLines = 200

// The doc comment and the usage of each example say its exit codes, it ends on
// signals as all do, and it is short.
func TestExamples(t *testing.T) {
	mains := checktest.Get(filepath.Glob("*/main.go"))(t)
	if len(mains) < 5 {
		t.Fatalf("%d examples", len(mains))
	}
	for _, main := range mains {
		lines := 0
		files := checktest.Get(filepath.Glob(filepath.Join(filepath.Dir(main), "*.go")))(t)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text := checktest.Get(os.ReadFile(file))(t)
			lines += bytes.Count(text, []byte("\n"))
		}
		if lines > maxLines {
			t.Errorf("%s: %d lines, more than %d", filepath.Dir(main), lines, maxLines)
		}
		text := checktest.Get(os.ReadFile(main))(t)
		parsed := checktest.Get(parser.ParseFile(token.NewFileSet(), main, text, parser.ParseComments))(t)
		doc := strings.Join(strings.Fields(parsed.Doc.Text()), " ")
		if !regexp.MustCompile(`The exit code is 0 .+, 1 .+, 2 when the command line is wrong(, 3 .+)?\.`).MatchString(doc) {
			t.Errorf("%s: the doc comment does not say the exit codes", main)
		}
		if !bytes.Contains(text, []byte("func main() { program.Main(command()) }\n")) || !regexp.MustCompile(`Codes: +"0: .+; 1: `).Match(text) {
			t.Errorf("%s: not made by internal/program, or the usage does not say the exit codes", main)
		}
	}
}
