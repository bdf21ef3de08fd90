package dump_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// discovery is a discovery file that begins with a group.
func discovery(name, version string, resources ...string) string {
	return "apiVersion: apidiscovery.k8s.io/v2\nkind: APIGroupDiscoveryList\nitems:\n" + group(name, version, resources...)
}

// group is a group in a discovery file. A resource is "pods Pod" or "nodes Node
// cluster".
func group(name, version string, resources ...string) string {
	out := "- metadata: {name: \"" + name + "\"}\n  versions:\n  - version: " + version + "\n    freshness: Current\n    resources:\n"
	for _, r := range resources {
		parts := strings.Fields(r)
		scope := "Namespaced"
		if len(parts) == 3 {
			scope = "Cluster"
		}
		out += "    - resource: " + parts[0] + "\n      scope: " + scope + "\n      responseKind: {group: \"" + name + "\", version: " + version + ", kind: " + parts[1] + "}\n"
	}
	return out
}

func TestConformance(t *testing.T) {
	clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		widgets := "conformance-recorded.clusterupdate.github.io"
		tr := map[string]string{
			"aggregated-discovery-api.yaml":  discovery("", "v1", "configmaps ConfigMap", "secrets Secret", "pods Pod", "nodes Node cluster", "namespaces Namespace cluster"),
			"aggregated-discovery-apis.yaml": discovery("apps", "v1", "deployments Deployment") + "\n" + group(widgets, "v1", "widgets Widget") + group("policy", "v1", "poddisruptionbudgets PodDisruptionBudget"),
		}
		var whole []schema.GroupResource
		for _, name := range []string{"configmaps", "secrets", "pods", "namespaces", "deployments.apps", "widgets." + widgets, "poddisruptionbudgets.policy"} {
			whole = append(whole, schema.ParseGroupResource(name))
		}
		for _, u := range clusterapitest.Objects() {
			data := checktest.Must(yaml.Marshal(u.Object))
			group := u.GroupVersionKind().Group
			if group == "" {
				group = "core"
			}
			folder := "cluster-scoped-resources/" + group
			if ns := u.GetNamespace(); ns != "" {
				folder = "namespaces/" + ns + "/" + group
			}
			tr[folder+"/"+strings.ToLower(u.GetKind())+"s/"+u.GetName()+".yaml"] = "---\n" + string(data)
		}
		r := mustOpen(t, asFS(tr), dump.Options{Whole: whole})
		for _, p := range r.Problems() {
			t.Error(p)
		}
		return clusterapi.ReadOnly(r), clusterapitest.Capabilities{ReadOnly: true}
	})
}

// dataFolder returns a folder of the real input, or skips the test.
func dataFolder(t testing.TB, name string) string {
	root := os.Getenv("CLUSTERUPDATE_DATA")
	if root == "" {
		root = "../../../shared/data"
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no real input: %v", err)
	}
	return dir
}

func TestRealDumpsAreHeaps(t *testing.T) {
	root := dataFolder(t, "clusters")
	entries := checktest.Must(os.ReadDir(root))
	for _, e := range entries {
		if e.Name() == "recommend" {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			r := checktest.Must(dump.Open(t.Context(), os.DirFS(filepath.Join(root, e.Name())), dump.Options{}))
			for _, p := range r.Problems() {
				if !strings.Contains(p.String(), "more than an hour later") { // their files are of several days
					t.Error(p)
				}
			}
			cv, err := clusterapi.Get[configv1.ClusterVersion](t.Context(), r, clusterapi.Key("", "version"))
			checktest.FailIf(t, err != nil || cv.Spec.ClusterID == "", "ClusterVersion: %v", err)
			operators, err := clusterapi.List[configv1.ClusterOperator](t.Context(), r, clusterapi.ListOptions{})
			checktest.FailIf(t, err != nil || len(operators) < 30, "%d ClusterOperators, %v", len(operators), err)
			if _, err := r.Get(t.Context(), gvk("v1 Node"), clusterapi.Key("", "nobody")); !apierrors.IsNotFound(err) {
				t.Errorf("a Node that is not there: %v", err)
			}
			checktest.ErrorIs(t, clusterapi.ErrNotCollected, checktest.Err(
				r.List(t.Context(), gvk("v1 Pod"), clusterapi.ListOptions{})))
			now := r.Time()
			checktest.FailIf(t, now.Year() < 2022, "time %s", now)
		})
	}
}

func asFS(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}
