package preconditions_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/preconditions"
)

// BenchmarkRun lists n ClusterOperators once for eight checks.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cv := clusterVersion("4.18.5", available("4.18.6"))
			objects := []any{cv}
			for i := range n {
				objects = append(objects, clusterOperator(fmt.Sprintf("o%04d", i), coCond("Upgradeable", "True", "", "")))
			}
			r := reader(b, objects...)
			checks := preconditions.Operator()
			for i := range 8 {
				checks = append(checks, stub{name: fmt.Sprint("C", i), run: listCO})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := preconditions.Run(context.Background(), checks, input(r, cv, "4.18.6"), preconditions.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUpgradeable computes the condition from n ClusterOperators.
func BenchmarkUpgradeable(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			objects := []any{clusterVersion("4.18.5"), gates(nil), acks(nil)}
			for i := range n {
				objects = append(objects, clusterOperator(fmt.Sprintf("o%04d", i), coCond("Upgradeable", "False", "R", "m")))
			}
			sources := preconditions.Sources(preconditions.RiskOptions{Reader: reader(b, objects...), OwnVersion: "4.18.5"})
			b.ReportAllocs()
			for b.Loop() {
				if c, _ := preconditions.Upgradeable(context.Background(), sources, nil, ""); c == nil {
					b.Fatal("no condition")
				}
			}
		})
	}
}
