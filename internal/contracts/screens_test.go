package contracts_test

import (
	"go/doc"
	"regexp"
	"strings"
	"testing"
)

// What one reads of a package before its names, and the list of its names, in lines.
const (
	maxDocLines  = 50
	maxNameLines = 60
)

// TestPackagesAreOneScreen: the text of doc.go fits a screen, and so does what go doc
// -short lists.
func TestPackagesAreOneScreen(t *testing.T) {
	for dir, p := range packages(t) {
		if !p.isPublic() {
			continue
		}
		pkg, _ := packageDoc(t, dir, p)
		if n := strings.Count(pkg.Doc, "\n") + 1; n > maxDocLines {
			t.Errorf("the doc of %s has %d lines, more than %d", dir, n, maxDocLines)
		}
		if n := nameLines(pkg); n > maxNameLines {
			t.Errorf("go doc -short ./%s has %d lines, more than %d", dir, n, maxNameLines)
		}
	}
}

// nameLines counts the lines of go doc -short: a group of constants or variables is one.
func nameLines(pkg *doc.Package) int {
	n := len(pkg.Consts) + len(pkg.Vars) + len(pkg.Funcs)
	for _, typ := range pkg.Types {
		n += 1 + len(typ.Consts) + len(typ.Vars) + len(typ.Funcs)
	}
	return n
}

// TestCommentsArePlain bounds turns of phrase that hide who does what, by how often they
// stand in 10,000 words of comments.
func TestCommentsArePlain(t *testing.T) {
	var comments strings.Builder
	for _, p := range packages(t) {
		for _, file := range p.files {
			for _, c := range file.Comments {
				comments.WriteString(strings.ToLower(c.Text()))
			}
		}
	}
	text := strings.Join(strings.Fields(comments.String()), " ")
	words := strings.Count(text, " ") + 1
	for _, tt := range []struct {
		pattern string
		most    float64
	}{
		{`where (that|it|there|one|nothing|nobody)`, 1.5},
		{`says that`, 0.3},
		{`what of|of what|of these|of those|that of`, 2.9},
		{`(is|are|was) told|tells? of|takes? note`, 0.3},
		{`(is|are|was) (no|none)`, 6.7},
		{`another one`, 1},
		{`goes? on|gone on|comes? back|came|begun|begins?`, 3},
	} {
		n := len(regexp.MustCompile(`\b(`+tt.pattern+`)\b`).FindAllString(text, -1))
		if rate := float64(n) * 10000 / float64(words); rate > tt.most {
			t.Errorf("%.1f times %q in 10,000 words of comments, more than %.1f", rate, tt.pattern, tt.most)
		}
	}
}
