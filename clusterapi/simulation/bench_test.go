package simulation_test

import (
	"fmt"
	"testing"

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
