package preconditions_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

// BenchmarkDisruptionBudgets predicts the drains of n nodes with 30 pods each, of
// which a third have a budget and a half an emptyDir volume. The objects are decoded before.
func BenchmarkDisruptionBudgets(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cv := clusterVersion("4.18.5")
			objects := []any{cv, infrastructure(), poolOf("master"), poolOf("worker", atMost("10%"))}
			for i := range n {
				objects = append(objects, node(fmt.Sprintf("w%04d", i), "worker", has("16", "64Gi")))
				for j := range 10 {
					app := fmt.Sprintf("app%04d-%d", i, j)
					for k := range 3 {
						p := replica(fmt.Sprint(app, "-", k), fmt.Sprintf("w%04d", (i+k)%n), app)
						p.Namespace = fmt.Sprint("ns", i%100)
						if j%2 == 0 {
							p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
						}
						objects = append(objects, p)
					}
					if j%3 == 0 {
						budget := budgetFor(app, app, 3, 2, 3)
						budget.Namespace = fmt.Sprint("ns", i%100)
						objects = append(objects, budget)
					}
				}
			}
			c := memory.NewOpenShift(memory.Options{})
			for _, o := range objects {
				u, err := clusterapi.ToUnstructured(o)
				if err == nil {
					err = c.Load(u)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			checks := []preconditions.Check{checkNamed(b, "DisruptionBudgets")}
			judge := func() {
				report, err := preconditions.Run(context.Background(), checks, input(c, cv, "4.18.6"), preconditions.Options{})
				if err != nil || report.Results[0].State != preconditions.Passed {
					b.Fatal(err, report.Results[0].State)
				}
			}
			judge()
			b.ReportAllocs()
			for b.Loop() {
				judge()
			}
		})
	}
}
