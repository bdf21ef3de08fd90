package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

var update = flag.Bool("update", false, "write the golden files")

// run runs the program.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command().Execute(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

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
		{"order.dot", "inspect -dot", 0},
		{"order.mmd", "inspect -o mermaid", 0},
		{"diff.txt", "diff", 1},
		{"lint.txt", "lint", 0},
		{"preview.txt", "preview", 1},
		{"preview.diff", "preview -diff", 1},
		{"preview-component.txt", "preview -component machine-config -all", 1},
	} {
		code, out, errs := run(t, strings.Fields(tt.args)...)
		if code != tt.code || errs != "" {
			t.Errorf("%s: exit %d, want %d; %s", tt.args, code, tt.code, errs)
		}
		file := filepath.Join("testdata", tt.file)
		if *update {
			checktest.OK(t, os.WriteFile(file, []byte(out), 0o644))
		}
		want := checktest.Get(os.ReadFile(file))(t)
		checktest.SameIn(t, fmt.Sprintf("%s (go test ./examples/payload -update writes %s)", tt.args, file),
			string(want), out)
	}
}

// Data is that of the library.
func TestJSON(t *testing.T) {
	read := func(into any, code int, args ...string) {
		t.Helper()
		got, out, errs := run(t, args...)
		if err := json.Unmarshal([]byte(out), into); err != nil || got != code || errs != "" {
			t.Errorf("%q: exit %d, %v, %s", args, got, err, errs)
		}
	}
	var in manifest.Inclusion
	read(&in, 0, "inspect", "-json")
	if n, rules := in.Count(); n != 102 || rules["Profile"] != 1 {
		t.Errorf("%d manifests, %v", n, rules)
	}
	var d manifest.PayloadDiff
	read(&d, 1, "diff", "-o", "json")
	if d.Old != sample.FromVersion || d.New != sample.ToVersion || len(d.Added) != 2 {
		t.Errorf("%s %s, %d added", d.Old, d.New, len(d.Added))
	}
	var findings []manifest.Finding
	read(&findings, 0, "lint", "-json")
	if len(findings) != 2 || findings[0].Rule != "namespace-order" {
		t.Errorf("%v", findings)
	}
	var rules []manifest.LintRule
	read(&rules, 0, "lint", "-rules", "-json")
	checktest.Same(t, manifest.LintRules(), rules)
	var p preview.Preview
	read(&p, 1, "preview", "-json")
	if p.Release.Version != sample.ToVersion || p.Running.Version != sample.FromVersion || p.Count(preview.Delete) != 1 {
		t.Errorf("%v %v", p.Release, p.Running)
	}
	if code, out, _ := run(t, "lint", "-rules"); code != 0 || strings.Count(out, "\n") != len(rules) {
		t.Errorf("exit %d, %s", code, out)
	}
}

// A directory of a release; what is not there, and what is none.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, sample.To()))
	for _, tt := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{args: []string{"inspect", dir}, out: "104 manifests of 4.21.1: 102 included, 2 excluded"},
		{args: []string{"diff", dir, dir}, out: "101 unchanged\n"},
		{args: []string{"inspect", "absent"}, code: 3, errs: "absent"},
		{args: []string{"diff", dir, "absent"}, code: 3, errs: "absent"},
		{args: []string{"lint", t.TempDir()}, code: 3, errs: "holds no images: neither oci-layout"},
		{args: []string{"inspect", "main.go"}, code: 3, errs: "main.go"},
		{args: []string{"inspect", dir + "@sha256:abc"}, code: 3, errs: "holds no images: neither oci-layout"},
		{args: []string{"inspect", "-dump", "absent"}, code: 3, errs: "absent"},
		{args: []string{"preview", "-dump", t.TempDir(), dir}, code: 3, errs: "no object could be read"},
		{args: []string{"preview", "absent"}, code: 3, errs: "absent"},
	} {
		code, out, errs := run(t, tt.args...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(strings.ToLower(errs), tt.errs) || (tt.errs == "") != (errs == "") {
			t.Errorf("%q: exit %d, %s%s", tt.args, code, out, errs)
		}
	}
	broken := filepath.Join(dir, "release-manifests", "0000_50_x_broken.yaml")
	checktest.OK(t, os.WriteFile(broken, []byte("{"), 0o600))
	for _, args := range [][]string{{"inspect", dir}, {"diff", dir, dir}, {"lint", dir}, {"preview", dir}} {
		if code, out, errs := run(t, args...); code != 3 || out != "" || !strings.Contains(errs, "0000_50_x_broken.yaml") {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errs)
		}
	}
	const crd = `{"apiVersion":"example.com/v1","kind":"Nameless","metadata":{"name":"a","annotations":{"include.release.openshift.io/self-managed-high-availability":"true"}}}`
	checktest.OK(t, os.WriteFile(broken, []byte(crd), 0o600))
	if code, out, _ := run(t, "lint", dir); code != 1 || !strings.Contains(out, "Error: 0000_50_x_broken.yaml, document 1: Nameless a: ") {
		t.Errorf("an error: exit %d, %s", code, out)
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"explain":                            `there is no command "explain"`,
		"-json":                              "flag provided but not defined: -json",
		"inspect a b":                        `unexpected argument "b"`,
		"diff a":                             "NEW is missing",
		"diff a b c":                         `unexpected argument "c"`,
		"diff -o dot":                        `invalid value "dot" for flag -o: no such format`,
		"inspect -feature-set Some":          "-feature-set Some: none of Default, TechPreviewNoUpgrade",
		"inspect -baseline v4":               "-baseline v4: no set of capabilities",
		"inspect -capability Coffee":         "-capability Coffee: not known; -allow-unknown lets it pass",
		"inspect -override etcd":             "-override etcd: not KIND[.GROUP]/[NAMESPACE/]NAME",
		"inspect -major four":                `invalid value "four" for flag -major`,
		"inspect -platform a/b/c/d":          "is not os/architecture",
		"inspect -dump x -gate A":            "-dump tells feature set, gates, capabilities and overrides",
		"preview -feature-set Default":       "flag provided but not defined: -feature-set",
		"preview -dump x":                    "-dump needs the RELEASE to update to",
		"preview -running x":                 "-running goes with -dump",
		"lint -picture":                      "flag provided but not defined: -picture",
		"inspect -dump x -feature-set OKD y": "-dump tells feature set",
	} {
		if code, out, errs := run(t, strings.Fields(args)...); code != 2 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
	if code, out, _ := run(t, "-h"); code != 0 || !regexp.MustCompile(`(?s)usage: payload COMMAND .*  inspect .*  diff .*  lint .*  preview .*exit codes: 0: `).MatchString(out) {
		t.Errorf("exit %d, %s", code, out)
	}
}
