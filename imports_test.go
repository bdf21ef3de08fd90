package clusterupdate_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/clusterupdate/clusterupdate"

// ranks orders the packages of the core: one may import those of lower rank
// alone, and parts of itself. A folder that is not listed has no place yet.
var ranks = map[string]int{
	"":              5,
	"runlevel":      4,
	"preconditions": 4,
	"upgradeconfig": 4,
	"graph":         3,
	"manifest":      3,
	"signature":     3,
	"mcp":           3,
	"olm":           3,
	"clusterapi":    2,
	"internal":      1,
}

// leaves are the packages below clusterapi that do not know one another.
var leaves = []string{"clusterapi/reconcile", "clusterapi/memory", "clusterapi/dump"}

// runtimes are what the core must stay free of.
var runtimes = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

func TestImportsRunDownward(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if d.IsDir() {
			if nested, _ := filepath.Glob(filepath.Join(file, "go.mod")); file != "." && len(nested) > 0 || strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" && !strings.HasPrefix(file, "internal/") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		from := path.Dir(file)
		if from == "." {
			from = ""
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if fault := importFault(from, imported); fault != "" {
				t.Errorf("%s imports %s: %s", file, imported, fault)
			}
		}
		seen[top(from)] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", "runlevel", "preconditions", "graph", "manifest", "signature", "mcp", "olm", "upgradeconfig", "clusterapi", "internal"} {
		if !seen[want] {
			t.Errorf("no package %q was looked at", want)
		}
	}
}

// importFault says what is wrong with an import of a package of the core.
func importFault(from, imported string) string {
	for _, r := range runtimes {
		if imported == r || strings.HasPrefix(imported, r+"/") {
			return "the core does not depend on it"
		}
	}
	if strings.HasPrefix(imported, "github.com/openshift/") && !strings.HasPrefix(imported, "github.com/openshift/api/") {
		return "the core does not depend on an operator's repository"
	}
	to, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	to = strings.TrimPrefix(to, "/")
	switch {
	case top(to) == "examples" || to == "clusterapi/simulation" && top(from) != "examples" && from != to || to == "internal/simtest":
		return "nobody but examples and tests does"
	case slices.Contains(leaves, from) && slices.Contains(leaves, to) && from != to:
		return "each stands on clusterapi alone"
	case top(from) == "examples" || top(from) == top(to):
		return ""
	case from == "clusterapi/simulation": // decisions of others, but no driver
		if ranks[top(to)] >= ranks["runlevel"] {
			return "the simulation drives nothing"
		}
		return ""
	}
	fromRank, known := ranks[top(from)]
	if !known {
		return "the folder has no place in the order of packages"
	}
	if ranks[top(to)] >= fromRank {
		return "imports run downward"
	}
	return ""
}

// top is the first element of a path, "" for the module's root.
func top(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

func TestImportFault(t *testing.T) {
	for _, tt := range []struct {
		from, imported string
		ok             bool
	}{
		{"", module + "/runlevel", true},
		{"runlevel", module + "/manifest", true},
		{"manifest", module + "/internal/release", true},
		{"clusterapi/memory", module + "/clusterapi", true},
		{"examples/update", module, true},
		{"clusterapi/simulation", module + "/mcp", true},
		{"clusterapi/reconcile", module + "/clusterapi", true},
		{"clusterapi/reconcile", module + "/internal/panics", true},
		{"mcp", module + "/clusterapi/reconcile", true},
		{"olm", module + "/clusterapi/reconcile", true},
		{"upgradeconfig", module + "/clusterapi/reconcile", true},
		{"runlevel", module + "/clusterapi/reconcile", true},
		{"", module + "/clusterapi/reconcile", true},
		{"clusterapi/simulation", module + "/clusterapi/reconcile", true},
		{"clusterapi/simulation", module + "/clusterapi/memory", true},
		{"manifest", "k8s.io/api/core/v1", true},
		{"graph", "github.com/openshift/api/config/v1", true},
		{"graph", module + "/manifest", false},
		{"manifest", module + "/runlevel", false},
		{"runlevel", module + "/preconditions", false},
		{"runlevel", module, false},
		{"clusterapi", module + "/mcp", false},
		{"mcp", module + "/clusterapi/simulation", false},
		{"clusterapi/simulation", module + "/runlevel", false},
		{"clusterapi/reconcile", module + "/clusterapi/memory", false},
		{"clusterapi/memory", module + "/clusterapi/reconcile", false},
		{"clusterapi/reconcile", module + "/mcp", false},
		{"mcp", module + "/internal/simtest", false},
		{"internal/disruption", module + "/clusterapi", false},
		{"newcomer", module + "/internal/release", false},
		{"graph", "k8s.io/client-go/rest", false},
		{"graph", "github.com/openshift/library-go/pkg/verify", false},
	} {
		if fault := importFault(tt.from, tt.imported); (fault == "") != tt.ok {
			t.Errorf("%q imports %q: fault %q, want ok=%v", tt.from, tt.imported, fault, tt.ok)
		}
	}
}
