package simulation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

func BenchmarkNew(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := simulation.New(simulation.Options{Release: simulation.Release{Version: "4.20.3"},
					Pools: []simulation.Pool{{Nodes: nodes}}})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApplied(b *testing.B) {
	want := operatorDeployment("dns", "4.20.3")
	stored := want.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if !simulation.Applied(stored, want) {
			b.Fatal("not applied")
		}
	}
}

func BenchmarkBudgetStatus(b *testing.B) {
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}}
	for _, n := range []int{10, 100, 1000} {
		pods := make([]corev1.Pod, n)
		for i := range pods {
			pods[i].Name = fmt.Sprintf("web-%d", i)
			pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s, _ := simulation.BudgetStatus(budget, pods, int32(n), metav1.Now().Time); s.DisruptionsAllowed != 1 {
					b.Fatal(s)
				}
			}
		})
	}
}
