package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/israce"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// The figures are those of the tests of packages manifest and runlevel/preview.

func TestRealInspect(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t)
	for _, tt := range []struct{ args, want string }{
		{"payload-4.17.30", "900 manifests of 4.17.30: 794 included, 106 excluded: Annotations 9, FeatureSet 59, Profile 38\n"},
		{"payload-4.18.15", "930 manifests of 4.18.15: 806 included, 124 excluded: Annotations 9, FeatureSet 77, Profile 38\n"},
		{"payload-4.18.15 -feature-set TechPreviewNoUpgrade", "930 manifests of 4.18.15: 827 included, 103 excluded: Annotations 9, FeatureSet 56, Profile 38\n"},
		{"payload-4.18.15 -baseline vCurrent", ": 806 included, "},
		{"payload-4.18.15 -baseline v4.17", ": 798 included, 132 excluded: Annotations 9, FeatureSet 77, Profile 38, Capability 8\n"},
		{"payload-4.18.15 -baseline v4.11", ": 467 included, "},
		{"payload-4.18.15 -baseline None", ": 359 included, "},
		{"payload-4.18.15 -dump clusters/4.14.1-degraded", ": 806 included, "}, // its ClusterVersion asks for all capabilities
	} {
		args := strings.Fields("inspect " + tt.args)
		args[1] = filepath.Join(dir, args[1])
		recorded := args[2:]
		if i := slices.Index(args, "-dump"); i > 0 {
			args[i+1] = filepath.Join(dir, args[i+1])
		}
		code, out, errs := programtest.Run(t, command(), args...)
		if code != 0 || !strings.Contains(out, tt.want) || slices.Contains(recorded, "-dump") != strings.Contains(errs, "the FeatureGate was not collected") {
			t.Errorf("%s: exit %d, %s%s", tt.args, code, errs, out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])
		}
	}
}

func TestRealDiff(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t)
	code, out, errs := programtest.Run(t, command(), "diff", filepath.Join(dir, "payload-4.17.30"), filepath.Join(dir, "payload-4.18.15"))
	const want = `4.17.30 -> 4.18.15
objects: 16 added, 10 newly included, 1 removed (1 orphaned), 0 newly excluded, 163 changed, 0 moved, 598 unchanged
deletions: 0 added, 13 removed
images: 2 added, 3 removed, 152 changed
`
	if code != 1 || !strings.HasPrefix(out, want) || errs != "" {
		t.Errorf("exit %d, %s%.300s", code, errs, out)
	}
}

func TestRealLint(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]int{
		"payload-4.17.30": {"crd-missing": 15, "crd-order": 15, "image": 5, "namespace-missing": 8, "namespace-order": 14},
		"payload-4.18.15": {"crd-missing": 9, "crd-order": 22, "image": 5, "namespace-missing": 8, "namespace-order": 14},
	} {
		code, out, errs := programtest.Run(t, command(), "lint", "-o", "json", filepath.Join(testdata.Dir(t), name))
		var findings []manifest.Finding
		if err := json.Unmarshal([]byte(out), &findings); err != nil || code != 1 || errs != "" {
			t.Fatalf("exit %d, %v, %s", code, err, errs)
		}
		got := make(map[string]int)
		for _, f := range findings {
			got[f.Rule]++
		}
		checktest.SameIn(t, name, want, got)
	}
}

// Dumps of real clusters tell little: of an operator that they do not have, that it
// is created; without any operators, nothing.
func TestRealDumps(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t)
	for _, tt := range []struct {
		name, want string
		code       int
	}{
		{"4.14.1-degraded", "1 to create, 0 to update, 772 not known, 33 unchanged, 34 excluded\n", 1},
		{"4.15.0-ec2-early", "1 to create, 0 to update, 772 not known, 33 unchanged, 34 excluded\n", 1},
		{"recommend", "0 to create, 0 to update, 806 not known, 34 excluded\n", 3},
	} {
		if israce.Enabled && tt.code == 1 {
			continue // it takes long
		}
		code, out, errs := programtest.Run(t, command(), "preview", "-dump", filepath.Join(dir, "clusters", tt.name), filepath.Join(dir, "payload-4.18.15"))
		if want := "Update to 4.18.15: " + tt.want; code != tt.code || !strings.HasPrefix(out, want) || !strings.Contains(out, "\nTo know more: oc adm inspect\n") {
			t.Errorf("%s: exit %d, %s%.300s", tt.name, code, errs, out)
		}
	}
}

// A recording of a cluster that has 4.17.30, which knows the release's image.
func TestRealPreview(t *testing.T) {
	t.Parallel()
	if israce.Enabled {
		t.Skip("it takes long, and TestBuiltIn takes the same ways")
	}
	const image = "example.com/release@sha256:abc"
	old, target := filepath.Join(testdata.Dir(t), "payload-4.17.30"), filepath.Join(testdata.Dir(t), "payload-4.18.15")
	var manifests []*manifest.Manifest
	cluster := memory.New(memory.Options{Lenient: true})
	for _, dir := range []string{old, target} {
		p := checktest.Get(manifest.Load(t.Context(), os.DirFS(dir),
			manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter()}))(t)
		manifests = append(manifests, p.Manifests...)
		if dir == old {
			checktest.OK(t, checktest.Err(
				runlevel.Run(t.Context(), p.Tasks(),
					runlevel.Options{API: cluster, SkipChecks: true, Backoff: &runlevel.Backoff{Steps: 1}, Owner: &metav1.OwnerReference{Name: "version", UID: "uid"}})))
		}
	}
	version := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version", "uid": "uid"}, "spec": map[string]any{"clusterID": "uid"},
		"status": map[string]any{"desired": map[string]any{"version": "4.17.30", "image": image}},
	}}
	checktest.OK(t, cluster.Load(version))
	kinds := make(map[schema.GroupVersionKind]bool)
	for _, m := range manifests {
		kinds[m.GVK()] = true
	}
	kinds[version.GroupVersionKind()] = true
	recording := filepath.Join(t.TempDir(), "recording")
	checktest.OK(t,
		dump.Record(t.Context(), cluster, recording, dump.RecordOptions{Kinds: slices.Collect(maps.Keys(kinds))}))
	code, out, errs := programtest.Run(t, command(), "preview", "-o", "json", "-dump", recording, "-running", old, target)
	var p preview.Preview
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != 1 {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	got := make(map[preview.Action]int)
	for _, c := range p.Changes {
		got[c.Action]++
	}
	t.Log(got, errs)
	want := map[preview.Action]int{"Create": 26, "Update": 129, "Keep": 565 + 33, "Skip": 34, "Absent": 19, "Excluded": 34}
	checktest.Same(t, want, got)
	if len(p.Left) != 1 || len(p.Images) != 157 {
		t.Errorf("%d left, %d images", len(p.Left), len(p.Images))
	}
	if code, out, errs := programtest.Run(t, command(), "preview", "-dump", recording, "-running", old, old); code != 0 || !strings.HasPrefix(out, "Update from 4.17.30 to 4.17.30: 0 to create, 0 to update, ") {
		t.Errorf("what runs: exit %d, %s%.1000s", code, errs, out)
	}
}
