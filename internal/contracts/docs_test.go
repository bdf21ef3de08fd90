package contracts_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var docsOf = flag.String("docs", "", "check the docs of these packages alone, as in ./graph/...")

// undocumented are the names that TestDocs leaves alone, each with the reason.
var undocumented = map[string]string{}

// interfaceMethods are methods whose errors are those of an interface of the
// standard library.
var interfaceMethods = regexp.MustCompile(`^(Unwrap|Error|(Unm|M)arshal(JSON|Text)|Close|Open|Read|Write|Stat|ReadDir)$`)

var (
	saysErrors      = regexp.MustCompile(`(?i)\berrors?\b|Error\b|\bErr[A-Z]|\bfails?\b|\brefuse|implements \[`) // those of what it implements
	saysConcurrency = regexp.MustCompile(`(?i)concurren|goroutine`)
	saysDefault     = regexp.MustCompile(`(?i)\bdefaults?\b|\bzero\b|\b0\b|\bDefault[A-Z]`)
	saysBytes       = regexp.MustCompile(`(?i)\bbytes?\b|\b[KMG]i?B\b`)
	namesLimit      = regexp.MustCompile(`^(Default|Max|Min)[A-Z]`)
	namesBytes      = regexp.MustCompile(`Bytes|Size$`)
)

// TestDocs holds what the docs of every exported name owe to the reader: which
// errors a function returns, whether a type is safe for concurrent use, and the
// default of every number in options.
//
// Plain data (a type without hidden fields) need not speak of goroutines one by
// one: its package's doc says it for all of them.
func TestDocs(t *testing.T) {
	for dir, p := range packages(t) {
		if !p.isPublic() || p.module != "" || !selected(dir, *docsOf) {
			continue
		}
		for _, fault := range docFaults(t, dir, p) {
			t.Error(fault)
		}
	}
}

// selected reports whether a pattern of the go command, "" for all, names dir.
func selected(dir, pattern string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return pattern == "" || dir == pattern || isTree && (dir == tree || strings.HasPrefix(dir, tree+"/"))
}

// packageDoc returns what go doc shows of a package, and the positions in it.
func packageDoc(t *testing.T, dir string, p *goPackage) (*doc.Package, *token.FileSet) {
	t.Helper()
	// NewFromFiles changes what it gets.
	fset := token.NewFileSet()
	var files []*ast.File
	for _, f := range p.files {
		name := p.fset.Position(f.Pos()).Filename
		src := checktest.Get(os.ReadFile(filepath.Join(root, name)))(t)
		file := checktest.Get(parser.ParseFile(fset, name, src, parser.ParseComments))(t)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, path.Join(module, dir))
	checktest.OK(t, err)
	return pkg, fset
}

func docFaults(t *testing.T, dir string, p *goPackage) []string {
	pkg, fset := packageDoc(t, dir, p)
	c := &docCheck{fset: fset, dir: dir, pkg: pkg}
	if pkg.Doc == "" {
		c.faults = append(c.faults, dir+": package "+pkg.Name+" has no doc")
	}
	for _, f := range pkg.Funcs {
		c.function(f.Name, f.Doc, f.Decl.Type, f.Decl.Pos())
	}
	for _, v := range append(pkg.Consts, pkg.Vars...) {
		c.values(v)
	}
	for _, typ := range pkg.Types {
		c.typ(typ)
		for _, v := range append(typ.Consts, typ.Vars...) {
			c.values(v)
		}
	}
	return c.faults
}

type docCheck struct {
	fset   *token.FileSet
	dir    string
	pkg    *doc.Package
	faults []string
}

func (c *docCheck) fault(pos token.Pos, name, what string) {
	if _, ok := undocumented[c.dir+"."+name]; ok {
		return
	}
	c.faults = append(c.faults, fmt.Sprintf("%s: %s %s", c.fset.Position(pos), name, what))
}

func (c *docCheck) function(name, doc string, typ *ast.FuncType, pos token.Pos) {
	short := name[strings.LastIndex(name, ".")+1:]
	if returnsError(typ) && !interfaceMethods.MatchString(short) && !saysErrors.MatchString(doc) {
		c.fault(pos, name, "does not say which errors it returns")
	}
}

func (c *docCheck) typ(typ *doc.Type) {
	for _, f := range typ.Funcs {
		c.function(f.Name, f.Doc, f.Decl.Type, f.Decl.Pos())
	}
	for _, m := range typ.Methods {
		c.function(typ.Name+"."+m.Name, m.Doc, m.Decl.Type, m.Decl.Pos())
	}
	for _, spec := range typ.Decl.Specs {
		spec := spec.(*ast.TypeSpec)
		if spec.Name.Name != typ.Name {
			continue
		}
		said := typ.Doc
		if !isPlainData(spec.Type) && !saysConcurrency.MatchString(said) {
			c.fault(spec.Pos(), typ.Name, "does not say whether it is safe for concurrent use")
		}
		if isPlainData(spec.Type) && !saysConcurrency.MatchString(said) && !saysConcurrency.MatchString(c.pkg.Doc) {
			c.fault(spec.Pos(), typ.Name, "and the package's doc do not say whether it is safe for concurrent use")
		}
		switch body := spec.Type.(type) {
		case *ast.InterfaceType:
			for _, m := range body.Methods.List {
				if ft, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 && m.Names[0].IsExported() {
					c.function(typ.Name+"."+m.Names[0].Name, typ.Doc+m.Doc.Text()+m.Comment.Text(), ft, m.Pos())
				}
			}
		case *ast.FuncType:
			c.function(typ.Name, typ.Doc, body, spec.Pos())
		case *ast.StructType:
			if strings.HasSuffix(typ.Name, "Options") {
				c.options(typ.Name, body)
			}
		}
	}
}

// values looks at the limits and defaults among constants.
func (c *docCheck) values(v *doc.Value) {
	for _, spec := range v.Decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		said := spec.Doc.Text() + spec.Comment.Text() + v.Doc
		for _, name := range spec.Names {
			if !namesLimit.MatchString(name.Name) {
				continue
			}
			if said == "" {
				c.fault(name.Pos(), name.Name, "has no doc")
			}
			if namesBytes.MatchString(name.Name) && !saysBytes.MatchString(said) {
				c.fault(name.Pos(), name.Name, "does not say its unit")
			}
		}
	}
}

// options looks at the numbers of an options struct. A field without a doc
// belongs to the doc above it.
func (c *docCheck) options(owner string, body *ast.StructType) {
	above := ""
	for _, f := range body.Fields.List {
		said := f.Doc.Text() + f.Comment.Text()
		if f.Doc == nil {
			said += above
		} else {
			above = f.Doc.Text()
		}
		typ, isNumber := number(f.Type)
		if !isNumber {
			continue
		}
		for _, name := range f.Names {
			if !name.IsExported() {
				continue
			}
			if !saysDefault.MatchString(said) {
				c.fault(name.Pos(), owner+"."+name.Name, "does not say its default")
			}
			if typ != "time.Duration" && namesBytes.MatchString(name.Name) && !saysBytes.MatchString(said) {
				c.fault(name.Pos(), owner+"."+name.Name, "does not say its unit")
			}
		}
	}
}

// number returns the name of a numeric type.
func number(expr ast.Expr) (string, bool) {
	switch e := expr.(type) {
	case *ast.Ident:
		switch e.Name {
		case "int", "int32", "int64", "uint", "uint32", "uint64", "float64":
			return e.Name, true
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" && e.Sel.Name == "Duration" {
			return "time.Duration", true
		}
	}
	return "", false
}

// isPlainData reports whether a type has nothing hidden: no unexported field
// and no method set of its own to implement.
func isPlainData(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.InterfaceType, *ast.FuncType:
		return false
	case *ast.StructType:
		for _, f := range e.Fields.List {
			for _, name := range f.Names {
				if !name.IsExported() {
					return false
				}
			}
		}
	}
	return true
}

func returnsError(typ *ast.FuncType) bool {
	if typ.Results == nil {
		return false
	}
	for _, r := range typ.Results.List {
		if id, ok := r.Type.(*ast.Ident); ok && id.Name == "error" {
			return true
		}
	}
	return false
}
