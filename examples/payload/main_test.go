package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

// The releases that are built in.
func TestBuiltIn(t *testing.T) {
	for _, tt := range []struct {
		file, args string
		code       int
	}{
		{"inspect.txt", "inspect", 0},
		{"inspect.txt", "", 0},
		{"inspect-capabilities.txt", "inspect -excluded -baseline None -override Deployment.apps/openshift-etcd-operator/etcd-operator", 0},
		{"inspect-component.txt", "inspect -component ingress-operator -kind Deployment -profile ibm-cloud-managed -feature-set any", 0},
		{"order.dot", "inspect -o dot", 0},
		{"order.mmd", "inspect -o mermaid", 0},
		{"diff.txt", "diff", 1},
		{"lint.txt", "lint", 0},
		{"preview.txt", "preview", 1},
		{"preview.diff", "preview -o diff", 1},
		{"preview-component.txt", "preview -component machine-config -all", 1},
	} {
		code, out, errs := programtest.Run(t, command(), strings.Fields(tt.args)...)
		if code != tt.code || errs != "" {
			t.Errorf("%s: exit %d, want %d; %s", tt.args, code, tt.code, errs)
		}
		programtest.Golden(t, tt.file, out)
	}
}

// Data is that of the library.
func TestJSON(t *testing.T) {
	read := func(into any, code int, args ...string) {
		t.Helper()
		got, out, errs := programtest.Run(t, command(), append(args, "-o", "json")...)
		if err := json.Unmarshal([]byte(out), into); err != nil || got != code || errs != "" {
			t.Errorf("%q: exit %d, %v, %s", args, got, err, errs)
		}
	}
	var in manifest.Inclusion
	read(&in, 0, "inspect")
	if n, rules := in.Count(); n != 102 || rules["Profile"] != 1 {
		t.Errorf("%d manifests, %v", n, rules)
	}
	var d manifest.PayloadDiff
	read(&d, 1, "diff")
	if d.Old != sample.FromVersion || d.New != sample.ToVersion || len(d.Added) != 2 {
		t.Errorf("%s %s, %d added", d.Old, d.New, len(d.Added))
	}
	var findings []manifest.Finding
	read(&findings, 0, "lint")
	if len(findings) != 2 || findings[0].Rule != "namespace-order" {
		t.Errorf("%v", findings)
	}
	var rules []manifest.LintRule
	read(&rules, 0, "rules")
	checktest.Same(t, manifest.LintRules(), rules)
	var p preview.Preview
	read(&p, 1, "preview")
	if p.Release.Version != sample.ToVersion || p.Running.Version != sample.FromVersion || p.Count(preview.Delete) != 1 {
		t.Errorf("%v %v", p.Release, p.Running)
	}
	if code, out, _ := programtest.Run(t, command(), "rules"); code != 0 || strings.Count(out, "\n") != len(rules) {
		t.Errorf("exit %d, %s", code, out)
	}
}

// A directory of a release; what is not there, and what is none.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, sample.To()))
	programtest.Test(t, command, []programtest.Case{
		{Args: "inspect " + dir, Stdout: []string{"104 manifests of 4.21.1: 102 included, 2 excluded"}},
		{Args: "diff " + dir + " " + dir, Stdout: []string{"101 unchanged\n"}},
		{Args: "lint " + t.TempDir(), Code: 3, Stderr: "holds no images: neither oci-layout"},
		{Args: "inspect main.go", Code: 3, Stderr: "main.go"},
		{Args: "inspect " + dir + "@sha256:abc", Code: 3, Stderr: "holds no images: neither oci-layout"},
		{Args: "inspect -component dns " + dir, Code: 2, Stderr: "-component dns: there are only authorization-openshift, "},
		{Args: "diff -kind Pod " + dir + " " + dir, Code: 2, Stderr: "-kind Pod: there are only ClusterOperator, "},
		{Args: "preview -kind Job -component etcd-operator " + dir, Code: 2, Stderr: "-kind Job: the component etcd-operator has only ClusterOperator, "},
		{Args: "preview -dump " + t.TempDir() + " " + dir, Code: 3, Stderr: "no object could be read"},
	})
	broken := filepath.Join(dir, "release-manifests", "0000_50_x_broken.yaml")
	checktest.OK(t, os.WriteFile(broken, []byte("{"), 0o600))
	programtest.Test(t, command, []programtest.Case{
		{Args: "inspect " + dir, Code: 3, Stderr: "0000_50_x_broken.yaml"},
		{Args: "diff " + dir + " " + dir, Code: 3, Stderr: "0000_50_x_broken.yaml"},
		{Args: "lint " + dir, Code: 3, Stderr: "0000_50_x_broken.yaml"},
		{Args: "preview " + dir, Code: 3, Stderr: "0000_50_x_broken.yaml"},
	})
	const crd = `{"apiVersion":"example.com/v1","kind":"Nameless","metadata":{"name":"a","annotations":{"include.release.openshift.io/self-managed-high-availability":"true"}}}`
	checktest.OK(t, os.WriteFile(broken, []byte(crd), 0o600))
	programtest.Test(t, command, []programtest.Case{
		{Args: "lint " + dir, Code: 1, Stdout: []string{"Error: 0000_50_x_broken.yaml, document 1: Nameless a: "}},
	})
}
