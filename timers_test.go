package clusterupdate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// timely are files that may start goroutines or timers of their own, besides the
// engine, what is under it, and what only tests use.
var timely = map[string]string{
	"clusterapi/memory/definition.go": "a delay by the driver's clock",
	"clusterapi/simulation/clock.go":  "a clock",
	"internal/panics/panics.go":       "waits for its goroutine",
	"signature/composite.go":          "waits for its goroutines",
	"clusterapi/egress.go":            "bounds a read, below the engine in the order of imports",
	"write.go":                        "bounds the last write, when the driver has ended",
	"signature/cluster/persist.go":    "bounds the last write, when the driver has ended",
}

// clocked are files that may read the real time: where a caller has given no
// clock, and nothing that a reconciler decides goes by it.
var clocked = map[string]string{
	"clusterapi/simulation/clock.go": "a clock",
	"graph/risk/cache.go":            "Cache without a clock",
	"graph/client.go":                "the age of kept answers",
	"preconditions/run.go":           "a run without a clock",
}

// engines are the folders of what drives, and of what stands outside.
var engines = []string{
	"clusterapi/reconcile", "clusterapi/kubernetes", "clusterapi/clusterapitest", "internal/httpclient", "internal/outside",
	"internal/program", "internal/simtest",
	"manifest/image/registry",
	"mcp/internal/chaos", "mcp/hosts/internal/actiontest", "olm/install/sources", "signature/signaturetest", "upgradeconfig/ocm/ocmtest",
}

// TestTimersAreTheEngines: what goes on in time is driven by package reconcile.
// Nothing else starts a goroutine that outlives its call, sleeps, has a timer, or
// reads the real time.
func TestTimersAreTheEngines(t *testing.T) {
	seen, read := map[string]bool{}, map[string]bool{}
	checktest.OK(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if d.IsDir() {
			if slices.Contains(engines, file) || d.Name() == "testdata" || d.Name() == "examples" || strings.HasPrefix(d.Name(), ".") && file != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "go"
			case *ast.SelectorExpr:
				if readsTime(n) {
					if read[file] = true; clocked[file] == "" {
						t.Errorf("%s: time.%s outside of the engine", set.Position(n.Pos()), n.Sel.Name)
					}
				}
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && startsTimer(s) {
					what = s.Sel.Name
				}
			}
			if what == "" {
				return true
			}
			if seen[file] = true; timely[file] == "" {
				t.Errorf("%s: %s outside of the engine", set.Position(n.Pos()), what)
			}
			return true
		})
		return nil
	}))
	for file := range timely {
		if !seen[file] {
			t.Errorf("%s has neither a goroutine nor a timer any more", file)
		}
	}
	for file := range clocked {
		if !read[file] {
			t.Errorf("%s does not read the real time any more", file)
		}
	}
}

// readsTime reports whether s, called or not, is a function of the real time.
func readsTime(s *ast.SelectorExpr) bool {
	pkg, _ := s.X.(*ast.Ident)
	return pkg != nil && pkg.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until")
}

// startsTimer reports whether a call of s waits, or makes something that does.
func startsTimer(s *ast.SelectorExpr) bool {
	pkg, _ := s.X.(*ast.Ident)
	ofTime := pkg != nil && pkg.Name == "time"
	switch s.Sel.Name {
	case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
		return pkg != nil && pkg.Name == "context"
	case "NewTimer", "NewTicker", "AfterFunc":
		return true
	case "Sleep", "After", "Tick":
		return ofTime
	}
	return false
}
