package contracts_test

import (
	"go/ast"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// pages returns the text of each page by its place in the tree.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		for _, file := range checktest.Get(filepath.Glob(filepath.Join(root, pattern)))(t) {
			name := filepath.ToSlash(checktest.Get(filepath.Rel(root, file))(t))
			texts[name] = string(checktest.Get(os.ReadFile(file))(t))
		}
	}
	return texts
}

var (
	pageLink = regexp.MustCompile(`\]\(([^):#]*)(#[^)]*)?\)`)
	fenced   = regexp.MustCompile("(?s)```.*?```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor = regexp.MustCompile(`[^\w -]`)
)

// TestPageLinks: the files and headings that a page links to exist.
func TestPageLinks(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		for _, m := range pageLink.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
			if m[2] != "" && !slices.Contains(anchors(all[target]), m[2]) {
				t.Errorf("%s: %s has no heading %s", page, target, m[2])
			}
		}
	}
}

// anchors returns the links to the headings of a page.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, "#"+strings.ReplaceAll(name, " ", "-"))
	}
	return list
}

// TestReadmeIsOnePage: README.md is read in a minute.
func TestReadmeIsOnePage(t *testing.T) {
	if n := len(pages(t)["README.md"]); n > 5000 {
		t.Errorf("README.md has %d bytes, more than 5,000", n)
	}
}

var packageRow = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// TestPackagesPage: docs/packages.md has a row for each package, in nested modules at
// least for the folder above it, and none for another.
func TestPackagesPage(t *testing.T) {
	rows := map[string]bool{}
	for _, m := range packageRow.FindAllStringSubmatch(pages(t)["docs/packages.md"], -1) {
		rows[strings.TrimPrefix(m[1], "clusterupdate")] = true
	}
	for dir, p := range packages(t) {
		if p.isPublic() && !rows[dir] && (p.module == "" || !rows[parent(dir)]) {
			t.Errorf("docs/packages.md does not have %s", dir)
		}
	}
	for dir := range rows {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Error(err)
		}
	}
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	goName     = regexp.MustCompile(`(?:^|[^\w./])([a-z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	memberName = regexp.MustCompile(`(?:^|[^\w./])([A-Z]\w*\.[A-Z]\w*)`)
	movedNames = regexp.MustCompile("(?m)^- `[^`]+` → `([^`]+)`[^:\n]*:((?:.|\n  )*)")
)

// TestPagesNameWhatIs: a Go name in the text of a page is one that its package
// exports. In CHANGELOG.md those are the names behind an arrow.
func TestPagesNameWhatIs(t *testing.T) {
	names, byBase, members := map[string]map[string]bool{}, map[string][]string{}, map[string]bool{}
	for dir, p := range packages(t) {
		if p.isPublic() {
			names[dir] = selectable(p)
			byBase[p.name] = append(byBase[p.name], dir)
			maps.Copy(members, names[dir])
		}
	}
	for page, text := range pages(t) {
		if page == "CHANGELOG.md" {
			for _, m := range movedNames.FindAllStringSubmatch(text, -1) {
				for _, name := range inlineCode.FindAllString(m[2], -1) {
					if name = strings.Trim(name, "`"); ast.IsExported(name) && !names[m[1]][name] {
						t.Errorf("%s: %s does not export %s", page, m[1], name)
					}
				}
			}
			text = newNames(text)
		}
		for _, code := range inlineCode.FindAllString(text, -1) {
			for _, m := range memberName.FindAllStringSubmatch(strings.Trim(code, "`"), -1) {
				if !members[m[1]] {
					t.Errorf("%s: no package has %s", page, m[1])
				}
			}
			for _, m := range goName.FindAllStringSubmatch(strings.Trim(code, "`"), -1) {
				dirs := byBase[m[1]]
				found := len(dirs) == 0 // a package of somebody else
				for _, dir := range dirs {
					found = found || names[dir][m[2]]
				}
				if !found {
					t.Errorf("%s: %s.%s is not exported by %v", page, m[1], m[2], dirs)
				}
			}
		}
	}
}

// newNames returns what stands behind the arrows of the changelog, and all of lines
// without an arrow.
func newNames(text string) string {
	var b strings.Builder
	for _, entry := range strings.Split(text, "\n- ") {
		for _, part := range strings.Split(entry, ";") {
			if _, after, ok := strings.Cut(part, "→"); ok {
				part = after
			}
			b.WriteString(part + "\n")
		}
	}
	return b.String()
}

// selectable returns the names that a program can select from a package: those at
// its top, and fields and methods as Type.Name.
func selectable(p *goPackage) map[string]bool {
	out := map[string]bool{}
	for _, n := range exportedNames(p) {
		out[n.name] = true
	}
	fields := func(typ string, list *ast.FieldList) {
		for _, f := range list.List {
			for _, name := range f.Names {
				out[typ+"."+name.Name] = true
			}
		}
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil {
					out[receiver(n)+"."+n.Name.Name] = true
				}
			case *ast.TypeSpec:
				switch typ := n.Type.(type) {
				case *ast.StructType:
					fields(n.Name.Name, typ.Fields)
				case *ast.InterfaceType:
					fields(n.Name.Name, typ.Methods)
				}
			}
			return true
		})
	}
	return out
}

var (
	runsExample = regexp.MustCompile(`(?:cd (\S+) && )?go run \./(examples/\w+)([^\n|]*)`)
	runsTests   = regexp.MustCompile("go test [^\n|]*?-(?:run|fuzz) '?\\^?(\\w+)")
	flagName    = regexp.MustCompile(` --?([a-z][\w-]*)`)
)

// TestPagesRunWhatIs: the flags of examples and the tests that pages name exist.
func TestPagesRunWhatIs(t *testing.T) {
	tree := packages(t)
	var tests []string
	for _, p := range tree {
		for _, file := range p.tests {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					tests = append(tests, f.Name.Name)
				}
			}
		}
	}
	for page, text := range pages(t) {
		for _, m := range runsExample.FindAllStringSubmatch(text, -1) {
			dir := path.Join(m[1], m[2])
			for _, name := range flagName.FindAllStringSubmatch(m[3], -1) {
				if !hasFlag(tree, dir, name[1]) {
					t.Errorf("%s: %s has no flag -%s", page, dir, name[1])
				}
			}
		}
		for _, m := range runsTests.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(tests, func(name string) bool { return strings.Contains(name, m[1]) }) {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
	}
}

// hasFlag reports whether a program, or what the examples share, has the name of a flag
// as a literal.
func hasFlag(tree map[string]*goPackage, program, name string) bool {
	found := name == "h"
	for dir, p := range tree {
		if dir != program && !strings.HasPrefix(dir, "examples/internal/") {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				found = found || ok && literal.Value == strconv.Quote(name)
				return !found
			})
		}
	}
	return found
}

var turns = regexp.MustCompile(`(?i)\b(says that|(is|are|was) told|tells of|another one|anew|for ever|g(oes|one) on|thereof|hitherto)\b`)

// TestPagesArePlain: pages have none of the turns of phrase that hide who does what.
func TestPagesArePlain(t *testing.T) {
	for page, text := range pages(t) {
		if found := turns.FindAllString(fenced.ReplaceAllString(text, ""), -1); len(found) > 0 {
			t.Errorf("%s: %q", page, found)
		}
	}
}
