package contracts_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// TestReference: docs/reference.md lists the names of all checks, events, reasons and
// steps, as the packages document them.
func TestReference(t *testing.T) {
	page := filepath.Join(root, "docs", "reference.md")
	want := reference(t)
	if *update {
		checktest.OK(t, os.WriteFile(page, []byte(want), 0o644))
	}
	got := checktest.Get(os.ReadFile(page))(t)
	checktest.Same(t, want, string(got))
}

func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Reference of names\n\nWhat programs switch on and people search for. This page is generated: " +
		"`go test ./internal/contracts -run TestReference -update`.\n")
	b.WriteString("\n## Checks\n\n`preconditions` runs them; reports and policies name them.\n\n" +
		"| check | updates | worst finding | source |\n| --- | --- | --- | --- |\n")
	checks := rules.Default(rules.Options{})
	slices.SortFunc(checks, func(a, b preconditions.Check) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, c := range checks {
		r := c.(preconditions.Described).Rule()
		source := r.Source
		if r.Link != "" {
			source = fmt.Sprintf("[%s](%s)", cmp.Or(source, r.Link), r.Link)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %v | %s |\n", c.Name(), concerns(r), r.Severities[len(r.Severities)-1], source)
	}
	all := packages(t)
	for _, kind := range []struct{ title, about, column string }{
		{"Events", "Values of `Event.Type`, by package.", "event"},
		{"Reasons", "Values that errors, conditions and results carry, by package.", "reason"},
		{"Steps", "Values of `plan.Step.Kind`.", "step"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", kind.title, kind.about)
		for _, dir := range slices.Sorted(maps.Keys(all)) {
			p := all[dir]
			if !p.isPublic() {
				continue
			}
			names := namedConstants(p, kind.column)
			if len(names) == 0 {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n| %s | meaning |\n| --- | --- |\n", cmp.Or(dir, "clusterupdate"), kind.column)
			for _, n := range names {
				writeRow(&b, n.value, n.about)
			}
		}
	}
	return b.String()
}

// concerns describes the updates that a check looks at.
func concerns(r preconditions.Rule) string {
	var parts []string
	for _, k := range r.Kinds {
		parts = append(parts, string(k))
	}
	text := cmp.Or(strings.Join(parts, ", "), "all")
	if r.Crossing != "" {
		text += " to " + r.Crossing + " or beyond"
	}
	if r.ArchitectureChange {
		text += ", from one architecture to several or back"
	}
	return text
}

// writeRow writes a row of a table: a name, and the first sentence about it.
func writeRow(b *strings.Builder, name, about string) {
	about = strings.Join(strings.Fields(about), " ")
	about = strings.NewReplacer("|", "\\|", "<", "&lt;", "[", "", "]", "").Replace(about)
	fmt.Fprintf(b, "| `%s` | %s |\n", name, about)
}

// constant is an exported constant of text.
type constant struct{ value, about string }

// namedConstants are the exported constants of a package that name an event, a reason
// or a step, in the order of the source.
func namedConstants(p *goPackage, column string) (list []constant) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if !name.IsExported() || i >= len(spec.Values) || columnOf(name.Name, spec.Type) != column {
						continue
					}
					lit, ok := spec.Values[i].(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						continue
					}
					value, err := strconv.Unquote(lit.Value)
					if err != nil || value == "" {
						continue
					}
					list = append(list, constant{value, aboutConstant(name.Name, spec)})
				}
			}
		}
	}
	return list
}

// columnOf returns what a constant names, by its type or its name.
func columnOf(name string, typ ast.Expr) string {
	typeName := ""
	switch x := typ.(type) {
	case *ast.Ident:
		typeName = x.Name
	case *ast.SelectorExpr:
		typeName = x.Sel.Name
	}
	switch {
	case typeName == "EventType" || typeName == "" && strings.HasPrefix(name, "Event"):
		return "event"
	case strings.HasSuffix(typeName, "Reason") || typeName == "" && strings.HasPrefix(name, "Reason"):
		return "reason"
	case typeName == "StepKind":
		return "step"
	}
	return ""
}

// aboutConstant is the first sentence of the comment at a constant, without its name.
func aboutConstant(name string, spec *ast.ValueSpec) string {
	text := cmp.Or(spec.Doc.Text(), spec.Comment.Text())
	text = new(doc.Package).Synopsis(text)
	text, _ = strings.CutPrefix(text, name)
	return strings.TrimLeft(text, ": ")
}
