package manifest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// kind is an object of any kind, in one line, with more fields.
func kind(version, kind, name, namespace, annotations, more string) string {
	if annotations != "" {
		annotations = ", " + annotations
	}
	if namespace != "" {
		namespace = ", namespace: " + namespace
	}
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s%s, annotations: {%s%s}}%s}\n", version, kind, name, namespace, included, annotations, more)
}

func configMap1(name, annotations, more string) string {
	return kind("v1", "ConfigMap", name, "", annotations, more)
}

var widgets = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com", "", "",
	"spec: {group: example.com, names: {kind: Widget}, versions: [{name: v1, served: true}, {name: v2, served: false}]}")

func widget(version string) string { return kind("example.com/"+version, "Widget", "w", "", "", "") }

// TestLint: each rule finds what it is for, and not what comes near to it. A
// short name of a file stands for 0000_50_NAME.yaml in release-manifests.
func TestLint(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	container := func(rest string) string {
		return kind("apps/v1", "Deployment", "d", "default", "", "spec: {template: {spec: {containers: [{name: c, "+rest+"}]}}}")
	}
	namespace := kind("v1", "Namespace", "ns", "", "", "")
	inNamespace := func(name string) string { return kind("v1", "Service", "s", name, "", "") }
	tests := []struct {
		rule  string
		files map[string]string
		want  []string // file: message
		near  map[string]string
	}{
		{
			rule:  "annotations",
			files: map[string]string{"a_x": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: 1}}}"},
			want:  []string{"0000_50_a_x.yaml: an annotation is not a string, so all its annotations count as absent"},
			near:  map[string]string{"a_x": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: '1', b: null}}}", "a_y": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
		}, {
			rule:  "capability",
			files: map[string]string{"a_x": configMap1("a", "capability.openshift.io/name: Console+console", ""), "a_y": "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {capability.openshift.io/name: ' Console'}}}"},
			want:  []string{`0000_50_a_x.yaml: capability "console" is not known`, `0000_50_a_y.yaml: capability " Console" is not known`},
			near:  map[string]string{"a_x": configMap1("a", "capability.openshift.io/name: Console+ClusterAPI", ""), "a_y": configMap1("b", "capability.openshift.io/name: ''", "")},
		}, {
			rule: "component-split",
			files: map[string]string{
				"manifests/0000_50_a_x.yaml": configMap1("a", "", ""), "manifests/0000_50_b_x.yaml": configMap1("b", "", ""), "release-manifests/0000_50_a_x.yaml": configMap1("c", "", ""),
			},
			want: []string{"0000_50_a_x.yaml: component a comes back in runlevel 50: no order after 0000_50_a_x.yaml"},
			near: map[string]string{
				"manifests/0000_50_a_x.yaml": configMap1("a", "", ""), "manifests/0000_60_b_x.yaml": configMap1("b", "", ""), "release-manifests/0000_50_a_x.yaml": configMap1("c", "", ""),
			},
		}, {
			rule: "crd-missing",
			files: map[string]string{
				"a_x": widget("v1"), "a_y": kind("example.com/v1", "Widget", "z", "", "", ""), "b_x": kind("config.openshift.io/v1", "Gadget", "g", "", "", ""),
				"b_y": kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gadgets.config.openshift.io", "", "release.openshift.io/feature-gate: G", "spec: {group: config.openshift.io, names: {kind: Gadget}}"),
			},
			want: []string{
				"0000_50_a_x.yaml: nothing defines Widget.example.com (2 objects)",
				"0000_50_b_x.yaml: nothing defines Gadget.config.openshift.io (1 object), the definition is excluded: feature gate G is required but not enabled",
			},
			near: map[string]string{
				"a_x": widgets, "a_y": widget("v1"), "b_x": kind("route.openshift.io/v1", "Route", "r", "default", "", ""),
				"b_y": kind("example.com/v1", "Old", "o", "", `release.openshift.io/delete: "true"`, ""),
			},
		}, {
			rule:  "crd-order",
			files: map[string]string{"a_x": widget("v1"), "b_x": widgets},
			want:  []string{"0000_50_a_x.yaml: may be applied before 0000_50_b_x.yaml, with which it has no order"},
			near:  map[string]string{"a_x": widgets, "a_y": widget("v1")},
		}, {
			rule:  "crd-order",
			files: map[string]string{"a_x": widget("v1"), "a_y": widgets},
			want:  []string{"0000_50_a_x.yaml: is applied before 0000_50_a_y.yaml"},
			near:  map[string]string{"release-manifests/0000_49_z_x.yaml": widgets, "a_y": widget("v1"), "b_x": configMap1("b", "", "")},
		}, {
			rule:  "crd-version",
			files: map[string]string{"a_x": widgets, "a_y": widget("v2"), "a_z": kind("example.com/v3", "Widget", "z", "", "", "")},
			want:  []string{`0000_50_a_y.yaml: 0000_50_a_x.yaml of the same release does not serve version "v2"`, `0000_50_a_z.yaml: 0000_50_a_x.yaml of the same release does not serve version "v3"`},
			near:  map[string]string{"a_x": widgets, "a_y": widget("v1")},
		}, {
			rule:  "delete-conflict",
			files: map[string]string{"a_x": configMap1("a", "", ""), "a_y": configMap1("a", `release.openshift.io/delete: "true"`, "")},
			want:  []string{"0000_50_a_y.yaml: deletes what 0000_50_a_x.yaml applies"},
			near: map[string]string{
				"a_x": configMap1("a", "", ""), "a_y": configMap1("a", `release.openshift.io/feature-gate: G, release.openshift.io/delete: "true"`, ""), "a_z": configMap1("b", `release.openshift.io/delete: "true"`, ""),
			},
		}, {
			rule:  "delete-value",
			files: map[string]string{"a_x": configMap1("a", `release.openshift.io/delete: "yes"`, "")},
			want:  []string{`0000_50_a_x.yaml: release.openshift.io/delete is "yes", not true`},
			near:  map[string]string{"a_x": configMap1("a", `release.openshift.io/delete: "true"`, "")},
		}, {
			rule:  "duplicate",
			files: map[string]string{"a_x": configMap1("a", "", ""), "a_y": configMap1("a", "", "data: {x: y}")},
			want:  []string{"0000_50_a_y.yaml: the same object is in 0000_50_a_x.yaml, document 1"},
			near:  map[string]string{"a_x": configMap1("a", "", ""), "a_y": configMap1("a", "release.openshift.io/feature-set: TechPreviewNoUpgrade", "")},
		}, {
			rule:  "file-name",
			files: map[string]string{"release-manifests/dns.yaml": configMap1("a", "", "") + "---\n" + configMap1("b", "", "")},
			want:  []string{"dns.yaml: the name has no runlevel and component, as in 0000_50_dns_namespace.yaml"},
			near:  map[string]string{"release-manifests/0000_5_d-n-s_.yaml": configMap1("a", "", "")},
		}, {
			rule: "image",
			files: map[string]string{"a_x": container("image: 'other:latest', args: ['--x=example.com/x" + digest + ",y'], env: [{name: A, value: 'example.com/a/b:latest'}]"),
				"a_y": configMap1("a", "", `data: {x: '{"y": "example.com/y`+digest+`"}'}`)},
			want: []string{
				"0000_50_a_x.yaml: the image example.com/a/b:latest is not among those of the release", "0000_50_a_x.yaml: the image example.com/x" + digest + " is not among those of the release",
				"0000_50_a_x.yaml: the image other:latest is not among those of the release", "0000_50_a_y.yaml: the image example.com/y" + digest + " is not among those of the release",
			},
			near: map[string]string{
				"a_x":                        container("image: 'example.com/cli@sha256:1', env: [{name: A, value: 'https://example.com/a:1'}, {name: B, value: 'example.com:8443'}, {name: C, value: 'a/b:c'}]"),
				"manifests/0000_50_b_x.yaml": configMap1("b", "", "image: '{{.ReleaseImage}}'"), "a_y": configMap1("a", "", "image: https://example.com/logo.png, icons: {image: {name: x}}, value: 'example.com/a:latest'"),
				"a_z": strings.Replace(widgets, "spec:", "x: {image: example}, spec:", 1), "c_x": kind("apps/v1", "Deployment", "gone", "", `release.openshift.io/delete: "true"`, "image: gone"),
			},
		}, {
			rule:  "level-width",
			files: map[string]string{"a_x": configMap1("a", "", ""), "b_x": configMap1("b", "", ""), "release-manifests/0000_100_c_x.yaml": configMap1("c", "", "")},
			want:  []string{"0000_100_c_x.yaml: runlevel 100 has 3 digits, most have 2"},
			near:  map[string]string{"a_x": configMap1("a", "", ""), "release-manifests/0000_00_c_x.yaml": configMap1("c", "", ""), "release-manifests/100.yaml": configMap1("d", "", "")},
		}, {
			// Where no width is the most frequent, it is the shortest.
			rule:  "level-width",
			files: map[string]string{"a_x": configMap1("a", "", ""), "release-manifests/0000_100_c_x.yaml": configMap1("c", "", "")},
			want:  []string{"0000_100_c_x.yaml: runlevel 100 has 3 digits, most have 2"},
			near:  map[string]string{"release-manifests/0000_100_c_x.yaml": configMap1("c", "", "")},
		}, {
			rule:  "namespace-order",
			files: map[string]string{"a_x": inNamespace("ns"), "a_y": namespace, "b_x": kind("v1", "ConfigMap", "c", "ns", "", "")},
			want:  []string{"0000_50_a_x.yaml: is applied before 0000_50_a_y.yaml", "0000_50_b_x.yaml: may be applied before 0000_50_a_y.yaml, with which it has no order"},
			near:  map[string]string{"a_x": namespace, "a_y": inNamespace("ns"), "release-manifests/0000_60_b_x.yaml": kind("v1", "ConfigMap", "c", "ns", "", "")},
		}, {
			// A Job is a barrier within a runlevel too.
			rule:  "namespace-order",
			files: map[string]string{"a_x": kind("batch/v1", "Job", "j", "ns", "", ""), "b_x": namespace},
			want:  []string{"0000_50_a_x.yaml: is applied before 0000_50_b_x.yaml"},
			near:  map[string]string{"a_x": namespace, "b_x": kind("batch/v1", "Job", "j", "default", "", ""), "c_x": inNamespace("ns")},
		}, {
			rule:  "no-value",
			files: map[string]string{"manifests/0000_50_a_x.yaml": configMap1("a", "", "data: {x: '{{.Images.none}}'}") + "---\n" + configMap1("b", "", "data: {x: y}") + "# {{.Images.none}}\n", "manifests/0000_50_b_x.yaml": "# {{.Images.none}}\n"},
			want: []string{
				"0000_50_a_x.yaml: the template refers to an image that the payload does not have: it stands as <no value>",
				"manifests/0000_50_b_x.yaml: the template refers to an image that the payload does not have: it stands as <no value>",
			},
			near: map[string]string{"manifests/0000_50_a_x.yaml": configMap1("a", "", "data: {x: '<no value> {{.Images.cli}}'}"), "b_x": configMap1("b", "", "data: {x: <no value>}")},
		}, {
			rule: "image-missing",
			files: map[string]string{
				"manifests/0000_50_a_x.yaml": configMap1("a", "", `data: {x: '{{index .Images "none"}}', y: '{{index $.Images "none" | printf "%s"}}', z: '{{printf "%s" (index .Images "nor-this")}}', k: '{{index .Images "cli"}}'}`),
				"manifests/0000_50_b_x.yaml": `{{if .ReleaseImage}}{{else}}# {{index .Images "otherwise"}}{{end}}` + "\n",
			},
			want: []string{
				"manifests/0000_50_a_x.yaml: the template looks up images that the payload does not have, which stand as nothing: none, nor-this",
				"manifests/0000_50_b_x.yaml: the template looks up images that the payload does not have, which stand as nothing: otherwise",
			},
			near: map[string]string{"manifests/0000_50_a_x.yaml": configMap1("a", "", `data: {x: '{{index .Images "a-b"}}{{if index .Images "none"}}{{index .Images "none"}}{{end}}{{with index .Images "nor"}}{{.}}{{else}}none{{end}}'}`)},
		}, {
			rule:  "operator-versions",
			files: map[string]string{"a_x": kind("config.openshift.io/v1", "ClusterOperator", "a", "", "", "status: {versions: []}"), "a_y": kind("config.openshift.io/v1", "ClusterOperator", "b", "", `release.openshift.io/delete: "true"`, "")},
			want:  []string{"0000_50_a_x.yaml: status.versions has no version", "0000_50_a_y.yaml: status.versions has no version"}, // nobody deletes an operator
			near:  map[string]string{"a_x": kind("config.openshift.io/v1", "ClusterOperator", "a", "", "", "status: {versions: [{name: operator, version: 4.20.1}]}"), "a_y": kind("example.com/v1", "ClusterOperator", "a", "", "", "")},
		}, {
			rule:  "template",
			files: map[string]string{"manifests/0000_50_a_x.yaml": "{{.VersionID}}"},
			want:  []string{`manifests/0000_50_a_x.yaml: skipped, not a template that this version understands: template: 0000_50_a_x.yaml:1:2: executing "0000_50_a_x.yaml" at <.VersionID>: can't evaluate field VersionID in type manifest.templateData`},
			near:  map[string]string{"a_x": configMap1("a", "", "data: {x: '{{.VersionID}}'}")},
		},
	}
	tested := sets.New[string]()
	for _, tt := range tests {
		tested.Insert(tt.rule)
		t.Run(tt.rule, func(t *testing.T) {
			found := func(files map[string]string) (out []string) {
				all := map[string]string{}
				for name, data := range files {
					if !strings.Contains(name, "/") {
						name = "release-manifests/0000_50_" + name + ".yaml"
					}
					all[name] = data
				}
				p := checktest.Get(load(t, payload(all)))(t)
				for _, f := range manifest.Lint(p, manifest.Filter{}) {
					if f.Rule == tt.rule {
						out = append(out, f.File+": "+f.Message)
					}
				}
				return out
			}
			checktest.Same(t, tt.want, found(tt.files))
			if got := found(tt.near); got != nil {
				t.Errorf("near miss: %q", got)
			}
		})
	}
	var rules []string
	for _, r := range manifest.LintRules() {
		rules = append(rules, r.Name)
		if r.Doc == "" || r.Severity == "" || r.String() != r.Name+" ("+string(r.Severity)+"): "+r.Doc {
			t.Errorf("%+v", r)
		}
	}
	checktest.SameIn(t, "rules, and those that are tested", rules, sets.List(tested))
}

// TestLintFinding: a finding says where it is, in data and in text.
func TestLintFinding(t *testing.T) {
	p, err := load(t, payload(map[string]string{"release-manifests/x.yaml": configMap1("z", "", "") + "---\n" + kind("v1", "Service", "s", "ns", `release.openshift.io/delete: "\n"`, "")}))
	checktest.OK(t, err)
	want := []manifest.Finding{
		{Rule: "file-name", Severity: "Warning", File: "x.yaml", Message: "the name has no runlevel and component, as in 0000_50_dns_namespace.yaml"},
		{Rule: "delete-value", Severity: "Error", File: "x.yaml", Document: 2, Identity: manifest.Identity{Kind: "Service", Namespace: "ns", Name: "s"},
			Message: `release.openshift.io/delete is "\n", not true`},
	}
	got := manifest.Lint(p, manifest.Filter{})
	checktest.Same(t, want, got)
	texts := []string{
		"Warning: x.yaml: the name has no runlevel and component, as in 0000_50_dns_namespace.yaml (file-name)",
		`Error: x.yaml, document 2: Service ns/s: release.openshift.io/delete is "\n", not true (delete-value)`,
	}
	for i, f := range got {
		checktest.Equal(t, texts[i], f.String(), "%s\nwant %s", f, texts[i])
	}
	data, err := json.Marshal(got[0])
	if err != nil || strings.Contains(string(data), "dentity") || strings.Contains(string(data), "document") {
		t.Errorf("%s, %v", data, err)
	}
	if got := manifest.Lint(nil, manifest.Filter{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// TestLintFilter: what a pass excludes is not applied, and capabilities that a
// cluster knows are known.
func TestLintFilter(t *testing.T) {
	p := checktest.Get(load(t, payload(map[string]string{
		"release-manifests/0000_50_a_x.yaml": configMap1("a", "", ""),
		"release-manifests/0000_50_a_y.yaml": configMap1("a", "capability.openshift.io/name: Flying", ""),
	})))(t)
	rules := func(f manifest.Filter) (out []string) {
		for _, f := range manifest.Lint(p, f) {
			out = append(out, f.Rule)
		}
		return out
	}
	checktest.Same(t, []string{"capability", "duplicate"}, rules(manifest.Filter{}))
	flying := &manifest.Capabilities{Known: sets.New("Flying"), Enabled: sets.New[string]()}
	if got := rules(manifest.Filter{Capabilities: flying}); got != nil {
		t.Errorf("with a filter: %q", got)
	}
}

// TestLintOrderAgreesWithGraph: an object may come before what it needs exactly
// if no way leads from that to it in the graph of an update.
func TestLintOrderAgreesWithGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"0000_10_a_%d.yaml", "0000_10_b_%d.yaml", "0000_20_a_%d.yaml", "%d.yaml"})
		p := &manifest.Payload{}
		names := map[string]bool{}
		for i := range rapid.IntRange(2, 8).Draw(t, "manifests") {
			version, kind, name, namespace := "v1", "ConfigMap", fmt.Sprint("c", i), "n"
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				version, kind = "batch/v1", "Job"
			case 1:
				kind, name, namespace = "Namespace", "n", ""
			}
			m := newManifest(t, fmt.Sprintf(part.Draw(t, "file"), i), version, kind, name, namespace)
			names[m.Filename] = kind == "Namespace"
			p.Manifests = append(p.Manifests, m)
		}
		slices.SortFunc(p.Manifests, func(a, b *manifest.Manifest) int { return strings.Compare(a.Filename, b.Filename) })
		g := manifest.UpdateGraph(p.Tasks())
		node := map[string]int{}
		for i, n := range g.Nodes {
			for _, task := range n.Tasks {
				node[task.Manifest.Filename] = i
			}
		}
		var reaches func(i, j int) bool
		reaches = func(i, j int) bool {
			return slices.ContainsFunc(g.Nodes[i].Out, func(k int) bool { return k == j || reaches(k, j) })
		}
		want := map[string]bool{}
		for i, m := range p.Manifests {
			if m.Identity().Namespace == "" || !slices.Contains(slices.Collect(maps.Values(names)), true) {
				continue
			}
			late := true
			for j, n := range p.Manifests {
				from, to := node[n.Filename], node[m.Filename]
				if names[n.Filename] && (from == to && j < i || from != to && reaches(from, to)) {
					late = false
				}
			}
			if late {
				want[m.Filename] = true
			}
		}
		got := map[string]bool{}
		for _, f := range manifest.Lint(p, manifest.Filter{}) {
			if f.Rule == "namespace-order" {
				got[f.File] = true
			}
		}
		checktest.Same(t, want, got)
	})
}

func newManifest(t *rapid.T, file, version, kind, name, namespace string) *manifest.Manifest {
	metadata := map[string]any{"name": name, "annotations": map[string]any{}}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	m := checktest.Get(manifest.New(file,
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata}}))(t)
	return m
}

// TestLintOfRealPayloads holds how often each rule finds something in real
// payloads, and why.
func TestLintOfRealPayloads(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dir, featureSet string
		want            map[string]int
	}{
		{"payload-4.17.30", "", map[string]int{
			// The definitions that openshift/api adds to a release image, and the
			// operators' repositories do not have: ClusterOperator, OperatorHub, and
			// 13 of the operators' own configurations and of the console.
			"crd-missing": 15,
			// ServiceMonitors and PrometheusRules of ten components in runlevel 50, where
			// the monitoring operator brings the definitions, and one of runlevel 10.
			"crd-order": 15,
			// Placeholders that the sources have in place of images: four of the cloud
			// credential operator, one of the CSI snapshot controller's.
			"image": 5,
			// Two ConfigMaps of the version operator before the namespaces of runlevel
			// 10; five objects of control-plane-machine-set-operator beside machine-api's
			// namespace; four of the network operator in 50, its namespace in 70; three
			// beside the namespace of monitoring.
			"namespace-order": 14,
		}},
		{"payload-4.18.15", "", map[string]int{
			// Of those of 4.17.30, the definitions of eight operators' configurations
			// are there now; that of ServiceCA went, and the new OLM's never came.
			"crd-missing": 9,
			// As in 4.17.30, with one more PrometheusRule, and six of those eight, whose
			// definitions stand beside them as components of their own.
			"crd-order":       22,
			"image":           5,
			"namespace-order": 14,
		}},
		{"payload-4.18.15", "TechPreviewNoUpgrade", map[string]int{
			"crd-missing": 9,
			"crd-order":   22,
			// The namespace openshift-insights, of which the privileged variant is a
			// preview, and the other one does not exclude itself then.
			"duplicate":       1,
			"image":           5,
			"namespace-order": 14,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.dir+tt.featureSet, func(t *testing.T) {
			f := manifest.DefaultFilter()
			f.FeatureSet = &tt.featureSet
			p := checktest.Get(manifest.Load(t.Context(), os.DirFS(filepath.Join(testdata.Dir(t), tt.dir)),
				manifest.LoadOptions{Image: "example.com/release@sha256:abc", Filter: f}))(t)
			got := map[string]int{}
			findings := manifest.Lint(p, manifest.Filter{})
			for _, f := range findings {
				got[f.Rule]++
				t.Log(f)
			}
			checktest.Same(t, tt.want, got)
			checktest.SameIn(t, "the second time", findings, manifest.Lint(p, manifest.Filter{}))
		})
	}
}

// BenchmarkLint checks a real payload, whose objects are decoded already.
func BenchmarkLint(b *testing.B) {
	p := realPayload(b, "payload-4.18.15")
	b.ReportAllocs()
	for b.Loop() {
		if len(manifest.Lint(p, manifest.Filter{})) != 50 {
			b.Fatal("other findings")
		}
	}
}
