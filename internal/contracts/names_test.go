package contracts_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var names = flag.Bool("names", false, "print how many names each package exports")

// keptNames are exported names that nobody outside their package uses, with the
// reason why they stay.
var keptNames = map[string]string{
	// A program gives it to the options of a package, or calls it alone.
	"clusterapi/dump/OpenArchive":        "a program has a stream in place of a file",
	"preconditions/preflight/Action":     "a program gives it to the options of a package",
	"graph/SourceFunc":                   "a program gives it to the options of a package",
	"graph/risk/Prometheus":              "a program gives it to the options of a package",
	"preconditions/AllowUnlisted":        "a program gives it to the options of a package",
	"preconditions/rules/VSphereSamples": "a program gives it to the options of a package",
	"manifest/image/registry/NewStore":   "a program gives it to the options of a package",
	"manifest/image/registry/OpenSource": "a program gives it to the options of a package",

	// An optional ability, found by type assertion.
	"clusterapi/reconcile/Lister": "an optional ability, found by type assertion",
	"graph/risk/Targeter":         "an optional ability, found by type assertion",

	// An error that programs switch on.
	"olm/install/Refusal":                  "an error that programs switch on",
	"signature/sigstore/Refusal":           "an error that programs switch on",
	"clusterapi/simulation/FromSimulation": "an error that programs switch on",

	// A reason of a RefusedError.
	"clusterapi/clusterversion/RefusedByTag":          "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedChannel":        "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedHosted":         "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedMode":           "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedNoVersion":      "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedNotRecommended": "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedRequested":      "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedRollback":       "a reason of a RefusedError",
	"clusterapi/clusterversion/RefusedUsage":          "a reason of a RefusedError",

	// A request of oc adm upgrade.
	"clusterapi/clusterversion/AcceptRequest":    "a request of oc adm upgrade",
	"clusterapi/clusterversion/ChannelRequest":   "a request of oc adm upgrade",
	"clusterapi/clusterversion/UpstreamRequest":  "a request of oc adm upgrade",
	"clusterapi/clusterversion/PreflightRequest": "a request of oc adm upgrade",
	"clusterapi/clusterversion/ClearPreflight":   "a request of oc adm upgrade",
	"preconditions/preflight/Submit":             "a request of oc adm upgrade",

	// Metrics that a program serves.
	"clusterapi/clusterversion/ReadMetrics": "metrics that a program serves",
	"clusterapi/clusterversion/Metrics":     "metrics that a program serves",
	"graph/risk/promqlsnapshot/Metrics":     "metrics that a program serves",
	"upgradeconfig/upgrade/Metrics":         "metrics that a program serves",
	"mcp/Alerts":                            "metrics that a program serves",

	// Who stops using the library removes its marks with it.
	"mcp/plan/Uninstall":              "who stops using the library removes its marks with it",
	"mcp/rollout/Uninstall":           "who stops using the library removes its marks with it",
	"mcp/hosts/Uninstall":             "who stops using the library removes its marks with it",
	"upgradeconfig/upgrade/Uninstall": "who stops using the library removes its marks with it",

	// A backend or a client of somebody else is made or proven with it.
	"clusterapi/NewTransport":                                "a backend or a client of somebody else is made or proven with it",
	"clusterapi/memory/Definition":                           "a backend or a client of somebody else is made or proven with it",
	"clusterapi/simulation/Applied":                          "a backend or a client of somebody else is made or proven with it",
	"clusterapi/dump/Kinds":                                  "a backend or a client of somebody else is made or proven with it",
	"clusterapi/dump/Redacted":                               "a backend or a client of somebody else is made or proven with it",
	"clusterapi/kubernetes/runtimeclient/controllers/Record": "a backend or a client of somebody else is made or proven with it",

	// The decision without the loop around it.
	"mcp/Candidates":                        "the decision without the loop around it",
	"olm/install/Decide":                    "the decision without the loop around it",
	"olm/install/ReadSnapshot":              "the decision without the loop around it",
	"olm/install/ReadSnapshots":             "the decision without the loop around it",
	"olm/install/ReadCompatibility":         "the decision without the loop around it",
	"olm/Prevented":                         "the decision without the loop around it",
	"olm/ReadGeneration":                    "the decision without the loop around it",
	"upgradeconfig/Select":                  "the decision without the loop around it",
	"upgradeconfig/upgrade/NewNotification": "the decision without the loop around it",

	// Programs keep a plan as data.
	"mcp/plan/Decode":             "programs keep a plan as data",
	"mcp/plan/Encode":             "programs keep a plan as data",
	"mcp/plan/List":               "programs keep a plan as data",
	"mcp/plan/Load":               "programs keep a plan as data",
	"mcp/plan/WriteProgress":      "programs keep a plan as data",
	"mcp/BootloaderMachineConfig": "programs keep a plan as data",

	// Programs read it from files or a cluster.
	"manifest/Parse":                        "programs read it from files or a cluster",
	"graph/graphdata/DecodeRaw":             "programs read it from files or a cluster",
	"graph/graphdata/List":                  "programs read it from files or a cluster",
	"graph/graphdata/Subset":                "programs read it from files or a cluster",
	"clusterapi/view/WriteColumns":          "programs read it from files or a cluster",
	"signature/cluster/ClusterVersionStore": "programs read it from files or a cluster",
	"signature/cluster/ReadConfig":          "programs read it from files or a cluster",
	"signature/sigstore/OpenFS":             "programs read it from files or a cluster",
	"signature/sigstore/ReadPolicies":       "programs read it from files or a cluster",
	"signature/SystemOpenPGP":               "programs read it from files or a cluster",

	// What mends a finding.
	"preconditions/remedy/ControlPlaneArm64": "what mends a finding",
	"preconditions/remedy/Credentials":       "what mends a finding",
	"preconditions/remedy/MultiArch":         "what mends a finding",
	"preconditions/remedy/Preflight":         "what mends a finding",

	// An action of hosts that a person carries out.
	"mcp/hosts/Confirm": "an action of hosts that a person carries out",
}

// TestNamesAreUsed: a top level name is exported if another package, a nested
// module, a program or an Example uses it, or if a program needs it to use one
// that is: the types of exported functions, fields and methods, the constants of
// these types, and the errors, reasons, conditions and types of events that
// programs switch on.
func TestNamesAreUsed(t *testing.T) {
	tree := packages(t)
	used := usedNames(tree)
	reached := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(tree)) {
		p := tree[dir]
		if !p.isPublic() {
			continue
		}
		exported := exportedNames(p)
		if *names {
			fmt.Printf("%-50s %4d\n", path.Join(".", dir), len(exported))
		}
		needed := neededTypes(p)
		for _, n := range exported {
			full := path.Join(dir, n.name)
			if used[full] {
				continue
			}
			if n.kind == token.TYPE && (needed[n.name] || strings.HasSuffix(n.name, "Error")) {
				continue
			}
			if n.kind == token.CONST && (needed[n.typ] || used[path.Join(dir, n.typ)] || isSwitchedOn(n.name)) {
				continue
			}
			if n.kind == token.VAR && strings.HasPrefix(n.name, "Err") {
				continue
			}
			if _, ok := keptNames[full]; ok {
				reached[full] = true
				continue
			}
			t.Errorf("%s: nobody outside its package uses %s", p.fset.Position(n.pos), full)
		}
	}
	for name := range keptNames {
		checktest.FailIf(t, !reached[name], "keptNames has %s, which is used, or not exported", name)
	}
}

// isSwitchedOn reports whether a constant is one that programs find in objects,
// metrics and events, and compare with.
func isSwitchedOn(name string) bool {
	for _, prefix := range []string{"Event", "Reason", "Condition", "Metric", "Annotation", "Label"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

type exportedName struct {
	name string
	kind token.Token
	typ  string // of a constant, if it is one of the package
	pos  token.Pos
}

// exportedNames returns the exported top level names of a package.
func exportedNames(p *goPackage) []exportedName {
	var out []exportedName
	for _, file := range p.files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					out = append(out, exportedName{d.Name.Name, token.FUNC, "", d.Pos()})
				}
			case *ast.GenDecl:
				typ := ""
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							out = append(out, exportedName{s.Name.Name, token.TYPE, "", s.Pos()})
						}
					case *ast.ValueSpec:
						if id, ok := s.Type.(*ast.Ident); ok {
							typ = id.Name
						} else if s.Type != nil || len(s.Values) > 0 {
							typ = ""
						}
						for _, name := range s.Names {
							if name.IsExported() {
								out = append(out, exportedName{name.Name, d.Tok, typ, name.Pos()})
							}
						}
					}
				}
			}
		}
	}
	return out
}

// neededTypes returns the types that occur in exported functions, methods, fields
// and variables of a package.
func neededTypes(p *goPackage) map[string]bool {
	needed := map[string]bool{}
	var walk func(ast.Expr)
	walk = func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				needed[n.Name] = true
			case *ast.Field:
				for _, name := range n.Names {
					if name.IsExported() {
						return true
					}
				}
				return len(n.Names) == 0
			case *ast.SelectorExpr:
				return false
			case *ast.FuncType:
				for _, list := range []*ast.FieldList{n.Params, n.Results} {
					if list == nil {
						continue
					}
					for _, f := range list.List {
						walk(f.Type)
					}
				}
				return false
			}
			return true
		})
	}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					walk(d.Type)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						if !s.Name.IsExported() {
							continue
						}
						walk(s.Type)
					case *ast.ValueSpec:
						if d.Tok == token.VAR && s.Names[0].IsExported() && s.Type != nil {
							walk(s.Type)
						}
					}
				}
			}
		}
	}
	return needed
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// usedNames returns the names that other packages, and the Examples of their own,
// select from an imported package. Tests count only of packages that are for tests
// and of contracts, whose programs stand in README.md.
func usedNames(tree map[string]*goPackage) map[string]bool {
	used := map[string]bool{}
	for dir, p := range tree {
		for _, file := range p.files {
			note(used, dir, file, file)
		}
		for _, file := range p.tests {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if dir == "internal/contracts" || ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example") {
					note(used, "", file, decl)
				}
			}
			if p.isForTests() {
				note(used, dir, file, file)
			}
			noteTestKits(used, file)
		}
	}
	return used
}

// noteTestKits adds the names of packages for tests that a test uses.
func noteTestKits(used map[string]bool, file *ast.File) {
	of := map[string]bool{}
	note(of, "", file, file)
	for name := range of {
		dir := path.Dir(name)
		if strings.HasSuffix(dir, "test") || strings.HasSuffix(parent(dir), "test") {
			used[name] = true
		}
	}
}

// isForTests reports whether a folder has nothing but tests, as those that prove a
// backend right have.
func (p *goPackage) isForTests() bool { return len(p.files) == 0 }

// note adds the names of this module that a part of a file selects from packages
// other than the one in dir.
func note(used map[string]bool, dir string, file *ast.File, part ast.Node) {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		from, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		below, ours := strings.CutPrefix(from, module)
		if !ours {
			continue
		}
		name := path.Base(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = strings.TrimPrefix(below, "/")
	}
	ast.Inspect(part, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		if of, ok := imported[id.Name]; ok && (of != dir || dir == "") {
			used[path.Join(of, selector.Sel.Name)] = true
		}
		return true
	})
}
