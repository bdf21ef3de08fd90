package kubernetes_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/testdata"
	"github.com/clusterupdate/clusterupdate/manifest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestScratch(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*/*/zz_generated.crd-manifests/*.yaml"))
	f := manifest.DefaultFilter()
	api := map[string]string{}
	for _, file := range files {
		data, _ := os.ReadFile(file)
		ms, err := manifest.Parse(filepath.Base(file), data, manifest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			if r := f.Excluded(m); r != "" {
				continue
			}
			n := m.Object.GetName()
			if api[n] != "" {
				fmt.Println("DOUBLE", n, api[n], filepath.Base(file))
			}
			api[n] = filepath.Base(file)
		}
	}
	for _, rel := range []string{"payload-4.17.30", "payload-4.18.15"} {
		p, err := manifest.Load(context.Background(), os.DirFS(filepath.Join(testdata.Dir(t), rel)), manifest.LoadOptions{Image: "x/y@sha256:abc", Filter: f})
		if err != nil {
			t.Fatal(err)
		}
		crds := map[string]bool{}
		fmt.Println(rel, len(p.Manifests), len(p.Operators()), p.Warnings)
		for _, m := range p.Manifests {
			if m.GVK().Kind == "CustomResourceDefinition" {
				g, _, _ := unstructured.NestedString(m.Object.Object, "spec", "group")
				k, _, _ := unstructured.NestedString(m.Object.Object, "spec", "names", "kind")
				crds[g+"/"+k] = true
				if api[m.Object.GetName()] != "" {
					fmt.Println("BOTH", m.Object.GetName(), m.Filename, api[m.Object.GetName()])
				}
			}
		}
		kinds := map[string][]string{}
		for _, m := range p.Manifests {
			gvk := m.GVK()
			if !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, "k8s.io") || crds[gvk.Group+"/"+gvk.Kind] {
				if strings.Contains(gvk.Kind, "Webhook") || strings.Contains(gvk.Kind, "Admission") || gvk.Kind == "Job" || gvk.Kind == "APIService" || gvk.Kind == "Node" || gvk.Kind == "Pod" {
					fmt.Println("  !", m, m.GVK())
				}
				continue
			}
			kinds[gvk.String()] = append(kinds[gvk.String()], m.Object.GetName())
		}
		for k, v := range kinds {
			fmt.Println("  ", k, len(v), v[:min(len(v), 4)])
		}
	}
	for n, f := range api {
		fmt.Println("API", n, f)
	}
}
