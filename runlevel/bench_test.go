package runlevel_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
)

// oneEach makes n manifests, one for each component, in levels of a hundred
// components.
func oneEach(b *testing.B, n int) []*manifest.Manifest {
	b.Helper()
	ms := make([]*manifest.Manifest, n)
	for i := range ms {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprintf("c%d", i), "namespace": "ns", "annotations": map[string]any{}},
		}}
		m, err := manifest.New(fmt.Sprintf("0000_%04d_c%05d_x.yaml", i/100, i), obj)
		if err != nil {
			b.Fatal(err)
		}
		ms[i] = m
	}
	return ms
}

var sizes = []int{1_000, 10_000, 50_000}

func noop(context.Context, *manifest.Task, runlevel.State) error { return nil }

// BenchmarkRun makes the graph and runs it with 16 workers that do nothing.
func BenchmarkRun(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := manifest.NewTasks(oneEach(b, n))
			b.ReportAllocs()
			for b.Loop() {
				res, err := runlevel.Run(b.Context(), tasks, runlevel.Options{Applier: runlevel.ApplierFunc(noop)})
				if err != nil || res.Done != n {
					b.Fatal(res, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
		})
	}
}

// BenchmarkRunObserved adds an observer.
func BenchmarkRunObserved(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := manifest.NewTasks(oneEach(b, n))
			b.ReportAllocs()
			for b.Loop() {
				events := 0
				_, err := runlevel.Run(b.Context(), tasks, runlevel.Options{Applier: runlevel.ApplierFunc(noop), Observe: func(runlevel.Event) { events++ }})
				if err != nil || events < 4*n {
					b.Fatal(events, err)
				}
			}
		})
	}
}

// BenchmarkSchedule runs the pure scheduler alone.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := runlevel.GraphFor(runlevel.Updating, manifest.NewTasks(oneEach(b, n)), 0)
			b.ReportAllocs()
			for b.Loop() {
				s := runlevel.NewSchedule(g)
				for node, ok := s.Next(); ok; node, ok = s.Next() {
					s.Done(node)
				}
				if n, _ := s.Incomplete(); n != 0 {
					b.Fatal("incomplete")
				}
			}
		})
	}
}
