package preview_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// fill adds objects to a cluster until it has n: pods on 40 nodes and
// configuration, in the namespaces of its users.
func fill(tb testing.TB, c *memory.Cluster, have, n int) {
	tb.Helper()
	load := func(o any) {
		u, err := clusterapi.ToUnstructured(o)
		if err == nil {
			err = c.Load(u)
		}
		checktest.OK(tb, err)
	}
	for i := have; i < n; i++ {
		meta := metav1.ObjectMeta{Namespace: fmt.Sprintf("project-%d", i%50), Name: fmt.Sprintf("app-%d", i), Labels: map[string]string{"app": fmt.Sprint(i % 200)}}
		if i%2 == 0 {
			load(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"config.yaml": "level: info"}})
			continue
		}
		load(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			NodeName:   fmt.Sprintf("node-%d", i%40),
			Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}},
		}})
	}
}

// BenchmarkPreview previews 4.17.30 to 4.18.15, 806 objects, over a cluster of
// 10,000 objects that runs 4.17.30.
func BenchmarkPreview(b *testing.B) {
	old, target := loadReal(b, "payload-4.17.30"), loadReal(b, "payload-4.18.15")
	c := apply(b, old)
	fill(b, c, len(old.Tasks()), 10_000)
	o := preview.Options{Reader: c, Payload: target, Running: old, Owner: owner}
	b.ReportAllocs()
	for b.Loop() {
		p := checktest.Get(preview.Run(b.Context(), target.Tasks(), o))(b)
		if p.Count(preview.Update) != 129 {
			b.Fatalf("%d updates", p.Count(preview.Update))
		}
	}
}
