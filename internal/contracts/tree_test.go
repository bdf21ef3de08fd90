package contracts_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const (
	module = "github.com/clusterupdate/clusterupdate"
	root   = "../.."
)

// goPackage is what one folder of the tree has.
type goPackage struct {
	fset   *token.FileSet
	dir    string // slash separated, below the root; "" is the root
	name   string
	module string      // folder of its go.mod; "" is the core module
	files  []*ast.File // without tests
	tests  []*ast.File
}

// isPublic reports whether programs outside this repository can import p.
func (p *goPackage) isPublic() bool {
	if len(p.files) == 0 || p.name == "main" {
		return false
	}
	for _, element := range strings.Split(p.dir, "/") {
		if element == "internal" || element == "examples" {
			return false
		}
	}
	return true
}

// packages returns the parsed tree by folder. It is shared and must not be
// changed.
func packages(t *testing.T) map[string]*goPackage {
	t.Helper()
	return checktest.Get(parseTree())(t)
}

var parseTree = sync.OnceValues(func() (map[string]*goPackage, error) {
	fset := token.NewFileSet()
	all := map[string]*goPackage{}
	modules := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if d.IsDir() {
			if below != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		dir := path.Dir(below)
		if dir == "." {
			dir = ""
		}
		if d.Name() == "go.mod" {
			modules[dir] = true
		}
		if !strings.HasSuffix(below, ".go") {
			return nil
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fset, below, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p := all[dir]
		if p == nil {
			p = &goPackage{fset: fset, dir: dir}
			all[dir] = p
		}
		if strings.HasSuffix(below, "_test.go") {
			p.tests = append(p.tests, parsed)
			return nil
		}
		p.name = parsed.Name.Name
		p.files = append(p.files, parsed)
		return nil
	})
	for dir, p := range all {
		for m := dir; m != ""; m = parent(m) {
			if modules[m] {
				p.module = m
				break
			}
		}
	}
	return all, err
})

// parent is the folder that holds dir; "" is the root.
func parent(dir string) string {
	if p := path.Dir(dir); p != "." {
		return p
	}
	return ""
}
