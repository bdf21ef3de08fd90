package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestBuiltIn(t *testing.T) {
	programtest.Test(t, command, []programtest.Case{
		{Args: "list", Stdout: []string{"gateway  stable           gateway.v1, gateway.v2  1\n", "mesh     stable           mesh.v1                 2\n"}},
		{Args: "list storage", Stdout: []string{"Channel stable (default)\n  storage.v1.2 1.2.0; provides Bucket (storage.example.com/v1)\n", "storage.v1.0 1.0.0; provides Bucket (storage.example.com/v1); deprecated: storage.v1.0 is no longer supported, use 1.2\n"}},
		{Args: "list tracing", Stdout: []string{"tracing.v1 1.0.0; provides Tracer (trace.example.com/v1alpha1); up to OpenShift 4.18\n"}},
		{Args: "list gateway", Stdout: []string{"cannot be installed from: a unique replacement chain"}},
		{Args: "validate", Code: 1, Stdout: []string{`catalog.yaml:141: document 19: invalid package "gateway": invalid channel "stable": multiple channel heads found in graph: gateway.v1, gateway.v2` + "\n", "Packages: 5, channels: 6, problems: 1, warnings: 0\n"}},
		{Args: "resolve -subscribe backup", Stdout: []string{"  1: added backup.v1 (channel stable, catalog catalogs/catalog) for subscription backup\n  1: added storage.v1.2 (channel stable, catalog catalogs/catalog): backup.v1 requires an operator with package: storage and with version in range: >=1.1.0\n"}},
		{Args: "resolve -subscribe mesh=mesh.v1 -subscribe tracing=tracing.v1", Stdout: []string{"  1: updated mesh.v1 to mesh.v2 (channel next, catalog catalogs/catalog) for subscription mesh\n  1: updated tracing.v1 to tracing.v2 "}},
		{Args: "resolve -subscribe mesh=mesh.v1@stable,tracing=tracing.v1", Code: 1, Stdout: []string{"  nothing changes\n", "held back: subscription tracing: not taken tracing.v2; instead tracing.v1\n"}},
		{Args: "resolve -subscribe tracing=tracing.v1 -installed mesh.v1", Code: 1, Stdout: []string{"held back: subscription tracing"}},
		{Args: "resolve -subscribe x", Code: 1, Stdout: []string{"  nothing changes\n", "held back: subscription x: no operators found in package x"}},
		{Args: "resolve -openshift 4.19 -subscribe mesh=mesh.v1,tracing=tracing.v1", Stdout: []string{"is 4.18: goes on to tracing.v2 after 1 generation\n  possible after generation 1\n"}},
		{Args: "resolve -openshift 4.21 -subscribe tracing=tracing.v1", Code: 1, Stdout: []string{"its catalog has no update that supports the target\n  on the way: maximum supported OCP version for operators/tracing.v2 is 4.20\n  operators stay in the way\n"}},
		{Args: "resolve -openshift 4.21 -subscribe storage=storage.v1.2", Stdout: []string{"no operator is in the way\n"}},
		{Args: "explain -subscribe mesh=mesh.v1@stable,tracing=tracing.v1", Code: 1, Stdout: []string{"tracing.v2 not taken\n", "mesh.v1 requires Tracer (trace.example.com/v1alpha1), which only tracing.v1 provides\n", "way out: switch subscription mesh to channel next\n"}},
		{Args: "explain storage -subscribe backup", Stdout: []string{"added storage.v1.2"}},
		{Args: "explain -all-or-nothing -subscribe x", Code: 1, Stdout: []string{"no operators found in package x in the catalog referenced by subscription x\n"}},
		{Args: "path mesh -from mesh.v1 -channel next", Stdout: []string{"1. mesh.v1 -> mesh.v2 by replaces in channel next\n"}},
		{Args: "path storage -from storage.v1.0 -to storage.v1.2", Stdout: []string{"1. storage.v1.0 -> storage.v1.1 by replaces in channel stable\n2. storage.v1.1 -> storage.v1.2 by replaces in channel stable\n"}},
		{Args: "path storage -from storage.v1.2", Stdout: []string{"Nothing replaces storage.v1.2.\n"}},
		{Args: "path storage -from storage.v9", Code: 1, Stderr: "package \"storage\" has no operator \"storage.v9\", and nothing that replaces it"},
		{Args: "path storage -from storage.v1.1-broken", Stdout: []string{"1. storage.v1.1-broken -> storage.v1.2 by skips in channel stable\n"}},
		{Args: "path storage", Stdout: []string{"Channel stable (default)\n  storage.v1.2"}},
		{Args: "path storage -from storage.v1.1 -o dot", Stdout: []string{"digraph \"storage\" {\n", `"storage.v1.1" -> "storage.v1.2" [label="stable", penwidth=2];`}},
		{Args: "path mesh -o mermaid -channel next -all-edges", Stdout: []string{"flowchart LR\n", `n1 -->|"next"| n0`}},
	})
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
	programtest.Test(t, command, []programtest.Case{
		{Args: "plan -dump " + dir + " -source openshift-marketplace/c=catalog.yaml -openshift 4.19", Stdout: []string{
			"Namespace ops:\n  1: updated tracing.v1 to tracing.v2 (channel stable, catalog openshift-marketplace/c) for subscription tracing\n", "possible after generation 1\n"}},
		{Args: "plan -dump " + dir + " -source openshift-marketplace/other=catalog.yaml", Code: 1, Stdout: []string{
			"  nothing changes\n", "held back: subscription tracing: no operators found from catalog c in namespace openshift-marketplace referenced by subscription tracing; instead tracing.v1\n"}},
	})
	checktest.OK(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("a: [\n"), 0o600))
	programtest.Test(t, command, []programtest.Case{
		{Args: "plan -dump " + dir + " -source openshift-marketplace/c=catalog.yaml", Code: 3, Stderr: "bad.yaml"},
	})
}

func TestCatalogWithoutPackages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	checktest.OK(t, os.WriteFile(file, []byte("hello\n"), 0o600))
	problem := file + ":1: document 1: expected an object, found a text\n"
	programtest.Test(t, command, []programtest.Case{
		{Args: "validate -catalog " + file, Code: 1, Stdout: []string{problem, "problems: 1"}},
		{Args: "list -catalog " + file, Code: 3, Stderr: "olm: -catalog: no package can be read: " + problem},
		{Args: "plan -dump . -source ns/c=" + file, Code: 3, Stderr: "olm: -source: no package can be read: " + problem},
	})
}

// The real catalog, from a file and from a folder.
func TestRealCatalog(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "catalogs")
	programtest.Test(t, command, []programtest.Case{
		{Args: "validate -catalog " + dir, Code: 1, Stdout: []string{"Packages: 332, channels: 653, problems: "}},
		{Args: "list -catalog " + filepath.Join(dir, "community.jsonl") + " etcd", Stdout: []string{"Package etcd\n"}},
	})
}
