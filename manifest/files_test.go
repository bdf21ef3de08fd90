package manifest_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
)

func TestLoadFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"d/a.yaml": {Data: []byte(configMap)}, "b.yaml": {Data: []byte(configMap2 + "---\n" + configMap)}, "c.yaml": {Data: []byte("- a")}, "e.txt": {Data: []byte(jsonA)},
		"f.yaml": {Data: []byte(configMap + "---\n" + configMap)},
	}
	o := manifest.FilesOptions{Open: func(path string) (io.ReadCloser, error) { return fsys.Open(path) }}
	manifests, err := manifest.LoadFiles(t.Context(), []string{"d/a.yaml", "e.txt"}, o)
	if err != nil || len(manifests) != 2 || manifests[0].Filename != "a.yaml" || manifests[1].Filename != "e.txt" {
		t.Fatal(manifests, err)
	}
	_, err = manifest.LoadFiles(t.Context(), []string{"d/a.yaml", "b.yaml", "c.yaml", "none.yaml", "f.yaml"}, o)
	var fault *manifest.Error
	if !errors.As(err, &fault) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, want := range []string{
		`error loading manifests: [File b.yaml contains: duplicate resource: (Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "a"), error parsing c.yaml: error parsing: error unmarshaling JSON: `,
		`, error opening none.yaml: open none.yaml: file does not exist, error parsing f.yaml: duplicate resource: (Group: "" Kind: "ConfigMap" Namespace: "ns" Name: "a")]`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in %s", want, err)
		}
	}
	var places []string
	for _, f := range fault.Faults {
		places = append(places, f.Position())
	}
	if diff := cmp.Diff([]string{"b.yaml, document 2", "c.yaml, document 1", "none.yaml", "f.yaml, document 2"}, places); diff != "" {
		t.Error(diff)
	}
	for name, limits := range map[string]manifest.Limits{"Files": {Files: 1}, "Documents": {Documents: 1}, "TotalSize": {TotalSize: 10}, "FileSize": {FileSize: 10}} {
		o.Limits = limits
		_, err := manifest.LoadFiles(t.Context(), []string{"d/a.yaml", "e.txt"}, o)
		var limit *manifest.LimitError
		if !errors.As(err, &limit) || limit.Limit != name {
			t.Errorf("%s: %v", name, err)
		}
	}

	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(configMap), 0o600); err != nil {
		t.Fatal(err)
	}
	if manifests, err := manifest.LoadFiles(t.Context(), []string{path}, manifest.FilesOptions{}); err != nil || len(manifests) != 1 || manifests[0].Filename != "a.yaml" {
		t.Error(manifests, err)
	}
}

func TestRender(t *testing.T) {
	policy := func(kind, group, name string) string {
		return strings.Replace(strings.Replace(object(name, included), "kind: K", "kind: "+kind, 1), "example.com", group, 1)
	}
	files := map[string]string{
		"manifests/0000_90_cluster-version-operator_00_prometheusrole.yaml":        "[",
		"manifests/0000_90_cluster-version-operator_01_prometheusrolebinding.yaml": "[",
		"manifests/0000_90_cluster-version-operator_02_servicemonitor.yaml":        "[",
		"manifests/0.yaml":         object("o", included) + "---\n" + strings.Replace(object("five", included+", release.openshift.io/major-version: '5'"), "example.com/v1\nkind: K", "apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", 1),
		"manifests/a.yaml":         object("a", included) + "x: {{.ReleaseImage}}\n---\n" + object("b", included+", capability.openshift.io/name: None, exclude.release.openshift.io/x: 'true'") + "---\n" + object("c", "a: b"),
		"manifests/b.yaml":         object("c", "a: b"),
		"release-manifests/p.yaml": policy("ImagePolicy", "config.openshift.io", "p") + "---\n" + object("c", included),
		"release-manifests/q.yaml": policy("ClusterImagePolicy", "config.openshift.io", "q"),
		"release-manifests/r.yaml": policy("ImagePolicy", "example.com", "r"),
		"bootstrap/pod.yaml":       object("pod", included) + "x: {{.ClusterProfile}}\n",
	}
	f := manifest.DefaultFilter()
	overrides := []configv1.ComponentOverride{{Group: "example.com", Kind: "K", Name: "o", Unmanaged: true}}
	out, err := manifest.Render(t.Context(), payload(files), manifest.RenderOptions{Image: "i", Filter: f, Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, file := range out {
		got[file.Path] = string(file.Data)
	}
	json := func(name, more, kind, group string) string {
		return `{"apiVersion":"` + group + `/v1","kind":"` + kind + `","metadata":{"annotations":{` + more + `"include.release.openshift.io/self-managed-high-availability":"true"},"name":"` + name + `"}}`
	}
	want := map[string]string{
		"manifests/a.yaml":   strings.TrimSuffix(json("a", "", "K", "example.com"), "}") + `,"x":"i"}` + "\n---\n" + json("b", `"capability.openshift.io/name":"None","exclude.release.openshift.io/x":"true",`, "K", "example.com"),
		"manifests/p.yaml":   json("p", "", "ImagePolicy", "config.openshift.io"),
		"manifests/q.yaml":   json("q", "", "ClusterImagePolicy", "config.openshift.io"),
		"bootstrap/pod.yaml": strings.TrimSuffix(json("pod", "", "K", "example.com"), "}") + `,"x":"self-managed-high-availability"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// bootstrap/ need not be there, manifests/ must be.
	fsys := payload(map[string]string{"manifests/a.yaml": object("a", included)})
	if out, err := manifest.Render(t.Context(), fsys, manifest.RenderOptions{}); err != nil || len(out) != 1 || out[0].Path != "manifests/a.yaml" {
		t.Error(out, err)
	}
	if _, err := manifest.Render(t.Context(), unreadable{fsys, "manifests"}, manifest.RenderOptions{}); !errors.Is(err, errNoAccess) {
		t.Error(err)
	}

	_, err = manifest.Render(t.Context(), payload(map[string]string{"manifests/a.yaml": "{{.X}}", "release-manifests/b.yaml": "- a"}), manifest.RenderOptions{})
	for _, want := range []string{
		"error rendering manifests: [error rendering manifests: render template a.yaml from manifests: ",
		", error rendering manifests: parse manifest b.yaml from release-manifests: error parsing: ",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis not in %v", want, err)
		}
	}
}

func TestBuildNames(t *testing.T) {
	var b manifest.BuildNames
	for _, tt := range []struct{ component, file, want string }{
		{"dns", "0000_70_dns_00.yaml", "0000_70_dns_00.yaml"},
		{"dns", "crd.yaml", "0000_50_dns_crd.yaml"},
		{"dns", "image-references", ""},
		{"other", "0000_70_dns_00.yaml", "0000_70_dns_00_2.yaml"},
		{"third", "0000_70_dns_00.yaml", "0000_70_dns_00_3.yaml"},
		{"dns", "crd.yaml", "0000_50_dns_crd_2.yaml"},
		{"a", "noext", "0000_50_a_noext"},
		{"a", "noext", "0000_50_a_noext_2"},
	} {
		if name, ok := b.Name(tt.component, tt.file); name != tt.want || ok != (tt.want != "") {
			t.Errorf("%s %s: %s", tt.component, tt.file, name)
		}
	}
}

func TestOperators(t *testing.T) {
	co := "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: dns, annotations: {" + included + "}}\nstatus: {versions: [{name: operator, version: 4.20.1}, {name: coredns, version: 4.20.1}]}\n"
	workload := func(api, kind, name string) string {
		return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: " + name + ", annotations: {" + included + "}}\n"
	}
	p, err := load(t, payload(map[string]string{
		"release-manifests/0000_70_dns-operator_01.yaml":  workload("apps/v1", "Deployment", "d") + "---\n" + workload("v1", "Service", "s"),
		"release-manifests/0000_70_dns-operator_02.yaml":  co,
		"release-manifests/0000_60_dns-operator_01.yaml":  workload("batch/v1", "Job", "j") + "---\n" + strings.Replace(workload("apps/v1", "DaemonSet", "gone"), "{include", "{release.openshift.io/delete: 'true', include", 1),
		"release-manifests/0000_80_dns-operator_01.yaml":  workload("apps/v1", "StatefulSet", "later"),
		"release-manifests/0000_80_other-operator_1.yaml": workload("apps/v1", "DaemonSet", "o"),
		"release-manifests/zz.yaml":                       workload("apps/v1", "DaemonSet", "z"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	operators := p.Operators()
	if len(operators) != 1 {
		t.Fatal(operators)
	}
	o := operators[0]
	var workloads []string
	for _, m := range o.Workloads {
		workloads = append(workloads, m.Identity().Name)
	}
	if o.Name != "dns" || o.Component != "dns-operator" || len(o.Versions) != 2 || o.Versions[1].Name != "coredns" || o.Versions[1].Version != "4.20.1" || strings.Join(workloads, " ") != "j d" || o.Manifest.Identity().Kind != "ClusterOperator" {
		t.Errorf("%+v %v", o, workloads)
	}
}

// openFiles returns a function for [manifest.FilesOptions].
func openFiles(files map[string]string) func(string) (io.ReadCloser, error) {
	fsys := fstest.MapFS{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return func(path string) (io.ReadCloser, error) { return fsys.Open(path) }
}
