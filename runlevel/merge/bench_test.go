package merge_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/runlevel/merge"
)

// BenchmarkMerge merges the largest Deployment, CustomResourceDefinition and custom
// resource of a real release over what a server has made of them.
func BenchmarkMerge(b *testing.B) {
	largest := make(map[string]*unstructured.Unstructured)
	size := make(map[string]int)
	for _, m := range loadReal(b, "payload-4.18.15").Manifests {
		if kind := m.Object().GetKind(); len(m.Raw) > size[kind] {
			largest[kind], size[kind] = m.Object(), len(m.Raw)
		}
	}
	for _, kind := range []string{"Deployment", "CustomResourceDefinition", "PrometheusRule", "ConfigMap"} {
		required := largest[kind]
		existing := required.DeepCopy()
		asServed(existing)
		other := existing.DeepCopy()
		other.SetLabels(map[string]string{"a": "b"})
		changed := required.DeepCopy()
		changed.SetLabels(map[string]string{"a": "c"})
		if kind == "PrometheusRule" {
			_ = unstructured.SetNestedField(other.Object, "x", "spec", "x")
		}
		run := func(name string, existing, required *unstructured.Unstructured, want bool) {
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size[kind]))
				for b.Loop() {
					if _, changed, err := merge.Merge(existing, required); err != nil || changed != want {
						b.Fatal(changed, err)
					}
				}
			})
		}
		run("unchanged", existing, required, false)
		run("changed", other, changed, true)
	}
}
