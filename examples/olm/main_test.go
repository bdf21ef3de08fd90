package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

// executed runs the program.
func executed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

// check runs the program and looks for parts of its output.
func check(t *testing.T, args []string, code int, stdout []string, stderr string) {
	t.Helper()
	got, out, errText := executed(t, args...)
	if got != code {
		t.Errorf("exit code %d, want %d; it says %s%s", got, code, out, errText)
	}
	for _, want := range stdout {
		checktest.Has(t, out, want)
	}
	if !strings.Contains(errText, stderr) || stderr == "" && errText != "" {
		t.Errorf("error output %q, want %q", errText, stderr)
	}
}

func TestBuiltIn(t *testing.T) {
	for name, tc := range map[string]struct {
		args   string
		code   int
		stdout []string
		stderr string
	}{
		"list":               {"list", 0, []string{"gateway  stable           gateway.v1, gateway.v2  1\n", "mesh     stable           mesh.v1                 2\n"}, ""},
		"package":            {"list storage", 0, []string{"Channel stable (default)\n  storage.v1.2 1.2.0; provides Bucket (storage.example.com/v1)\n", "storage.v1.0 1.0.0; provides Bucket (storage.example.com/v1); deprecated: storage.v1.0 is no longer supported, use 1.2\n"}, ""},
		"package with limit": {"list tracing", 0, []string{"tracing.v1 1.0.0; provides Tracer (trace.example.com/v1alpha1); up to OpenShift 4.18\n"}, ""},
		"disorder":           {"list gateway", 0, []string{"cannot be installed from: a unique replacement chain"}, ""},
		"no package":         {"list x", 1, nil, `olm: the catalog has no package "x"`},
		"validate":           {"validate", 1, []string{`catalog.yaml:141: document 19: invalid package "gateway": invalid channel "stable": multiple channel heads found in graph: gateway.v1, gateway.v2` + "\n", "Packages: 5, channels: 6, problems: 1, warnings: 0\n"}, ""},
		"dependency":         {"resolve -subscribe backup", 0, []string{"  backup.v1 is installed for backup\n  storage.v1.2 is installed for backup.v1, which requires an operator with package: storage and with version in range: >=1.1.0; new Subscription storage-stable-catalog-catalogs\n"}, ""},
		"both at once":       {"resolve -subscribe mesh=mesh.v1 -subscribe tracing=tracing.v1", 0, []string{"Generation 1:\n  mesh.v2 replaces mesh.v1\n  tracing.v2 replaces tracing.v1\n"}, ""},
		"held back":          {"resolve -subscribe mesh=mesh.v1@stable,tracing=tracing.v1", 1, []string{"Nothing changes:\n", "held back: subscription tracing: not taken tracing.v2; instead tracing.v1\n"}, ""},
		"freestanding":       {"resolve -subscribe tracing=tracing.v1 -installed mesh.v1", 1, []string{"held back: subscription tracing"}, ""},
		"leads nowhere":      {"resolve -subscribe x", 1, []string{"nothing is installed for x\n", "held back: subscription x: no operators found in package x"}, ""},
		"all or nothing":     {"resolve -all-or-nothing -subscribe x", 1, nil, "olm: constraints not satisfiable: no operators found in package x"},
		"cluster update":     {"resolve -openshift 4.19 -subscribe mesh=mesh.v1,tracing=tracing.v1", 0, []string{"is 4.18: goes on to tracing.v2 after 1 generation\n  possible after generation 1\n"}, ""},
		"in the way":         {"resolve -openshift 4.21 -subscribe tracing=tracing.v1", 1, []string{"its catalog has no update that supports the target\n  on the way: maximum supported OCP version for operators/tracing.v2 is 4.20\n  operators stay in the way\n"}, ""},
		"nothing in the way": {"resolve -openshift 4.21 -subscribe storage=storage.v1.2", 0, []string{"no operator is in the way\n"}, ""},
		"explain":            {"explain -subscribe mesh=mesh.v1@stable,tracing=tracing.v1", 1, []string{"tracing.v2 not taken\n", "mesh.v1 requires Tracer (trace.example.com/v1alpha1), which only tracing.v1 provides\n", "way out: switch subscription mesh to channel next\n"}, ""},
		"explain one":        {"explain storage -subscribe backup", 0, []string{"added storage.v1.2"}, ""},
		"explain a failure":  {"explain -all-or-nothing -subscribe x", 1, []string{"no operators found in package x in the catalog referenced by subscription x\n"}, ""},
		"explain nobody":     {"explain nobody -subscribe backup", 1, nil, "nobody"},
		"path":               {"path mesh -from mesh.v1 -channel next", 0, []string{"1. mesh.v1 -> mesh.v2 by replaces in channel next\n"}, ""},
		"path to":            {"path storage -from storage.v1.0 -to storage.v1.2", 0, []string{"1. storage.v1.0 -> storage.v1.1 by replaces in channel stable\n2. storage.v1.1 -> storage.v1.2 by replaces in channel stable\n"}, ""},
		"no path":            {"path storage -from storage.v1.2 -to storage.v1.0", 1, nil, "olm: package storage: no update path from storage.v1.2 to storage.v1.0 in channels [stable]: nothing there replaces it"},
		"at the head":        {"path storage -from storage.v1.2", 0, []string{"Nothing replaces storage.v1.2.\n"}, ""},
		"skipped":            {"path storage -from storage.v1.1-broken", 0, []string{"1. storage.v1.1-broken -> storage.v1.2 by skips in channel stable\n"}, ""},
		"path without begin": {"path storage", 0, []string{"Channel stable (default)\n  storage.v1.2"}, ""},
		"dot":                {"path storage -from storage.v1.1 -picture dot", 0, []string{"digraph \"storage\" {\n", `"storage.v1.1" -> "storage.v1.2" [label="stable", penwidth=2];`}, ""},
		"mermaid":            {"path mesh -picture mermaid -channel next -all", 0, []string{"flowchart LR\n", `n1 -->|"next"| n0`}, ""},
		"no command":         {"", 2, nil, "a command is missing"},
		"unknown command":    {"delete", 2, nil, `there is no command "delete"`},
		"unknown flag":       {"list -subscribe a", 2, nil, "flag provided but not defined"},
		"argument":           {"validate mesh", 2, nil, `unexpected argument "mesh"`},
		"no subscription":    {"resolve", 2, nil, "-subscribe is missing"},
		"twice":              {"resolve -subscribe a,a", 2, nil, "-subscribe a is there twice"},
		"no name":            {"resolve -subscribe =x", 2, nil, `-subscribe "=x" names no package`},
		"no version":         {"resolve -subscribe a -openshift next", 2, nil, "next"},
		"to without from":    {"path mesh -to mesh.v2", 2, nil, "-to needs -from"},
		"no picture":         {"path mesh -picture svg", 2, nil, `-picture "svg" is neither dot nor mermaid`},
		"no package to go":   {"path", 2, nil, "PACKAGE is missing"},
		"no cluster":         {"plan", 2, nil, "plan needs -cluster and -source"},
		"help":               {"-h", 0, []string{"usage: olm COMMAND [flags] [ARGUMENT]\n", "  resolve   install and update until nothing changes\n", "exit codes: 0: an answer;"}, ""},
		"help of a command":  {"path -h", 0, []string{"usage: olm path [flags] PACKAGE\n", "-picture string", "exit codes: 0: an answer;"}, ""},
		"no file":            {"list -catalog none.json", 1, nil, "olm: none.json: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, strings.Fields(tc.args), tc.code, tc.stdout, tc.stderr)
		})
	}
}

const dump = `apiVersion: v1
kind: List
items:
- apiVersion: operators.coreos.com/v1
  kind: OperatorGroup
  metadata: {namespace: ops, name: og}
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {namespace: ops, name: tracing}
  spec: {source: c, sourceNamespace: openshift-marketplace, name: tracing, channel: stable}
  status: {installedCSV: tracing.v1, currentCSV: tracing.v1}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  namespace: ops
  name: tracing.v1
  annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"4.18"}]}'}
spec: {version: 1.0.0}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: ops, name: tracing}
`

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cluster.yaml": dump, "notes.txt": "{"} {
		checktest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check(t, []string{"plan", "-cluster", dir, "-source", "openshift-marketplace/c=catalog.yaml", "-openshift", "4.19"}, 0,
		[]string{"Namespace ops:\n  1: tracing.v1 -> tracing.v2 (channel stable of openshift-marketplace/c)\n", "possible after generation 1\n"}, "")
	check(t, []string{"plan", "-cluster", dir, "-source", "openshift-marketplace/other=catalog.yaml"}, 1,
		[]string{"  nothing changes\n", "held back: subscription tracing: no operators found from catalog c in namespace openshift-marketplace referenced by subscription tracing; instead tracing.v1\n"}, "")
	check(t, []string{"plan", "-cluster", dir, "-source", "catalog.yaml"}, 2, nil, "is not NAMESPACE/NAME=FILE")
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("a: [\n"), 0o600))
	check(t, []string{"plan", "-cluster", dir, "-source", "openshift-marketplace/c=catalog.yaml"}, 1, nil, "bad.yaml")
}

// The real catalog, from a file and from a folder.
func TestRealCatalog(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "catalogs")
	check(t, []string{"validate", "-catalog", dir}, 1, []string{"Packages: 332, channels: 653, problems: "}, "")
	check(t, []string{"list", "-catalog", filepath.Join(dir, "community.jsonl"), "etcd"}, 0, []string{"Package etcd\n"}, "")
}
