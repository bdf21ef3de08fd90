package contracts_test

import (
	"go/ast"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

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

// rooms are the packages of each tree with the packages of the same tree that
// they may import. Internal packages of a tree are free to all of it, and so is
// everything to packages whose name ends in test.
var rooms = map[string][]string{
	"graph":                         nil,
	"graph/graphdata":               {"graph"},
	"graph/graphdata/maintain":      {"graph", "graph/graphdata"},
	"graph/policyengine":            {"graph", "graph/graphdata"},
	"graph/risk":                    {"graph"},
	"graph/path":                    {"graph", "graph/risk"},
	"manifest":                      nil,
	"manifest/image":                {"manifest"},
	"signature":                     nil,
	"signature/cluster":             {"signature"},
	"signature/sigstore":            {"signature"},
	"mcp":                           nil,
	"mcp/rollout":                   {"mcp"},
	"mcp/plan":                      {"mcp", "mcp/rollout"},
	"olm":                           {"olm/api"},
	"olm/api":                       nil,
	"olm/catalog":                   {"olm"},
	"olm/install":                   {"olm", "olm/api", "olm/catalog"},
	"olm/install/installtest":       {"olm/api"},
	"runlevel":                      {"runlevel/merge"},
	"runlevel/merge":                nil,
	"runlevel/preview":              {"runlevel", "runlevel/merge"},
	"preconditions":                 nil,
	"preconditions/rules":           {"preconditions"},
	"preconditions/preflight":       {"preconditions", "preconditions/rules"},
	"preconditions/remedy":          {"preconditions", "preconditions/rules"},
	"upgradeconfig":                 nil,
	"upgradeconfig/upgrade":         {"upgradeconfig"},
	"upgradeconfig/ocm":             {"upgradeconfig"},
	"clusterapi":                    nil,
	"clusterapi/clusterversion":     {"clusterapi"},
	"clusterapi/reconcile":          {"clusterapi"},
	"clusterapi/memory":             {"clusterapi"},
	"clusterapi/dump":               {"clusterapi"},
	"clusterapi/view":               {"clusterapi", "clusterapi/clusterversion", "clusterapi/reconcile"},
	"clusterapi/timeline":           nil,
	"clusterapi/fieldchange":        {"clusterapi"},
	"clusterapi/forecast":           nil, // all of them: see topFloor
	"clusterapi/simulation":         {"clusterapi", "clusterapi/memory", "clusterapi/reconcile"},
	"clusterapi/simulation/sample":  {"clusterapi", "clusterapi/memory", "clusterapi/reconcile", "clusterapi/simulation"},
	"clusterapi/simulation/payload": {"clusterapi", "clusterapi/memory", "clusterapi/reconcile", "clusterapi/simulation"},

	"clusterapi/clusterapitest/differential": {"clusterapi"},
}

// runtimes are what the core must stay free of.
var runtimes = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "golang.org/x/crypto/ssh", "github.com/vmware/govmomi"}

func TestImportsRunDownward(t *testing.T) {
	seen := map[string]bool{}
	for from, p := range packages(t) {
		if p.module != "" {
			continue
		}
		for _, file := range p.files {
			for _, spec := range file.Imports {
				imported := checktest.Get(strconv.Unquote(spec.Path.Value))(t)
				checktest.Equal(t, "", importFault(from, imported), "%s imports %s", p.fset.Position(spec.Pos()),
					imported)
			}
			seen[top(from)] = true
		}
	}
	for _, want := range []string{"", "runlevel", "preconditions", "graph", "manifest", "signature", "mcp", "olm", "upgradeconfig", "clusterapi", "internal"} {
		checktest.FailIf(t, !seen[want], "no package %q was looked at", want)
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
	case from == "internal/updatetest": // a whole cluster, for tests
		return ""
	case top(from) == "examples" && to != "internal/simtest", to == "internal/checktest" && servesTests(from):
		return ""
	case from == topFloor && top(to) != "examples" && !isForTests(to) && !servesTests(to):
		return ""
	case top(to) == "examples" || to == topFloor || isSimulation(to) && !isSimulation(from) || to == "internal/simtest" || isForTests(to):
		return "nobody but examples and tests does"
	case top(from) == top(to):
		return roomFault(from, to)
	case from == "clusterapi/clusterversion" && to == "graph": // what its updates come from
		return ""
	case isSimulation(from): // the decisions of others, but no driver
		if !slices.Contains(simulationImports[from], to) && top(to) != "internal" {
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

// simulationImports are the packages of other trees that the simulation may import.
var simulationImports = map[string][]string{
	"clusterapi/dump":               {"clusterapi"},
	"clusterapi/view":               {"clusterapi"},
	"clusterapi/simulation":         {"mcp"},
	"clusterapi/simulation/payload": {"manifest"},
}

// topFloor is the package that composes all others: what an update would do.
const topFloor = "clusterapi/forecast"

// isForTests reports whether an internal package serves tests alone.
func isForTests(p string) bool {
	return top(p) == "internal" && strings.HasSuffix(p, "test") && p != "internal/simtest"
}

// servesTests reports whether a package, internal or public, is for tests.
func servesTests(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(name string) bool { return strings.HasSuffix(name, "test") })
}

func isSimulation(p string) bool {
	return p == "clusterapi/simulation" || strings.HasPrefix(p, "clusterapi/simulation/")
}

// roomFault says what is wrong with an import within one tree.
func roomFault(from, to string) string {
	if from == to || top(to) == "internal" || strings.Contains(to, "/internal/") || strings.Contains(from, "/internal/") || strings.HasSuffix(from, "test") {
		return ""
	}
	may, known := rooms[from]
	if !known {
		return "the package has no place among the packages of its tree"
	}
	if !slices.Contains(may, to) {
		return "the packages of a tree import in one direction"
	}
	return ""
}

// top is the first element of a path, "" for the module's root.
func top(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

// TestVerifyingLinksNoKubernetes: a program that verifies a file links neither
// Kubernetes nor OpenShift's types, and none of the curves of go-crypto.
func TestVerifyingLinksNoKubernetes(t *testing.T) {
	out := checktest.Get(exec.Command("go", "list", "-deps", module+"/signature").Output())(t)
	deps := strings.Fields(string(out))
	checktest.FatalIf(t, !slices.Contains(deps, module+"/signature"),
		"go list printed %d packages, and not the one asked for", len(deps))
	for _, dep := range deps {
		for _, refused := range []string{"k8s.io/api/", "k8s.io/apimachinery/", "github.com/openshift/", "github.com/cloudflare/circl", "github.com/ProtonMail/go-crypto/openpgp/internal/ecc", module + "/clusterapi"} {
			checktest.FailIf(t, strings.HasPrefix(dep, refused), "signature links %s", dep)
		}
	}
}

func TestImportFault(t *testing.T) {
	for _, tt := range []struct {
		from, imported string
		ok             bool
	}{
		{"", module + "/runlevel", true},
		{"runlevel", module + "/manifest", true},
		{"manifest", module + "/internal/openshift", true},
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
		{"manifest", module + "/clusterapi/fieldchange", true},
		{"clusterapi/fieldchange", module + "/clusterapi", true},
		{"internal/redact", module + "/clusterapi", false},
		{"clusterapi", module + "/clusterapi/fieldchange", false},
		{"graph", module + "/manifest", false},
		{"manifest", module + "/runlevel", false},
		{"runlevel", module + "/preconditions", false},
		{"runlevel", module, false},
		{"clusterapi", module + "/mcp", false},
		{"mcp", module + "/clusterapi/simulation", false},
		{"clusterapi/simulation", module + "/runlevel", false},
		{"clusterapi/reconcile", module + "/clusterapi/memory", false},
		{"clusterapi/clusterversion", module + "/clusterapi", true},
		{"clusterapi/clusterversion", module + "/clusterapi/view", false},
		{"clusterapi/clusterversion", module + "/graph", true},
		{"clusterapi/clusterversion", module + "/graph/risk", false},
		{"internal/cvtest", module + "/clusterapi/memory", false},
		{"runlevel", module + "/internal/cvtest", false},
		{"clusterapi/memory", module + "/clusterapi/reconcile", false},
		{"clusterapi/reconcile", module + "/mcp", false},
		{"mcp", module + "/internal/simtest", false},
		{"internal/disruption", module + "/clusterapi", false},
		{"graph/path", module + "/graph/risk", true},
		{"graph/risk", module + "/graph/path", false},
		{"graph", module + "/graph/risk", false},
		{"graph/newcomer", module + "/graph", false},
		{"olm/install", module + "/olm/internal/sat", true},
		{"olm/catalog", module + "/olm/install", false},
		{"upgradeconfig/ocm", module + "/upgradeconfig/upgrade", false},
		{"upgradeconfig/ocm", module + "/upgradeconfig/ocm/ocmtest", false},
		{"upgradeconfig/ocm/ocmtest", module + "/upgradeconfig/ocm", true},
		{"signature/signaturetest", module + "/signature", true},
		{"clusterapi/memory", module + "/clusterapi/simulation", false},
		{"clusterapi/simulation/payload", module + "/manifest", true},
		{"clusterapi/simulation", module + "/manifest", false},
		{"clusterapi/simulation", module + "/mcp/rollout", false},
		{"clusterapi/simulation/sample", module + "/manifest", false},
		{"examples/update", module + "/clusterapi/simulation/sample", true},
		{"clusterapi/forecast", module, true},
		{"clusterapi/forecast", module + "/clusterapi/simulation", true},
		{"clusterapi/forecast", module + "/internal/cvtest", false},
		{"clusterapi/view", module + "/clusterapi/forecast", false},
		{"", module + "/clusterapi/forecast", false},
		{"newcomer", module + "/internal/openshift", false},
		{"graph", "k8s.io/client-go/rest", false},
		{"graph", "github.com/openshift/library-go/pkg/verify", false},
	} {
		if fault := importFault(tt.from, tt.imported); (fault == "") != tt.ok {
			t.Errorf("%q imports %q: fault %q, want ok=%v", tt.from, tt.imported, fault, tt.ok)
		}
	}
}

// TestOneWriterOfRequests: spec.desiredUpdate is written by package clusterversion
// alone, which leaves nothing of an earlier request.
func TestOneWriterOfRequests(t *testing.T) {
	writers := map[string]bool{
		"clusterapi/clusterversion/request.go":  true,
		"clusterapi/clusterversion/validate.go": true, // of a copy that is not written
		"internal/cvtest/cvtest.go":             true,
	}
	seen := 0
	for _, p := range packages(t) {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				assign, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				for _, to := range assign.Lhs {
					if !setsRequest(to) {
						continue
					}
					seen++
					at := p.fset.Position(to.Pos())
					checktest.FailIf(t, !writers[at.Filename], "%s sets DesiredUpdate", at)
				}
				return true
			})
		}
	}
	checktest.FailIf(t, seen == 0, "nobody sets DesiredUpdate")
}

// setsRequest reports whether an assignment to expr changes DesiredUpdate or a
// field of it.
func setsRequest(expr ast.Expr) bool {
	for {
		selector, ok := expr.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if selector.Sel.Name == "DesiredUpdate" {
			return true
		}
		expr = selector.X
	}
}
