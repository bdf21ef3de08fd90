package runlevel

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/manifest"
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
		m := checktest.Get(manifest.New(fmt.Sprintf("0000_%04d_c%05d_x.yaml", i/100, i), obj))(b)
		ms[i] = m
	}
	return ms
}

var sizes = []int{1_000, 10_000, 50_000}

func noop(context.Context, *manifest.Task, State) error { return nil }

// BenchmarkRun makes the graph and runs it with 16 workers that do nothing.
func BenchmarkRun(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tasks := manifest.NewTasks(oneEach(b, n))
			b.ReportAllocs()
			for b.Loop() {
				res, err := Run(b.Context(), tasks, Options{Wrap: by(noop)})
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
				_, err := Run(b.Context(), tasks, Options{Wrap: by(noop), Observe: func(clusterapi.Event) { events++ }})
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
			g := graphFor(Updating, manifest.NewTasks(oneEach(b, n)), 0)
			b.ReportAllocs()
			for b.Loop() {
				s := newSchedule(g)
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

// BenchmarkReconcile makes a pass over 1,000 objects that nobody has changed: by
// what watches show, and by applying them all.
func BenchmarkReconcile(b *testing.B) {
	const n = 1_000
	for _, mode := range []string{"ledger", "apply-always"} {
		b.Run(mode, func(b *testing.B) {
			w := watch(b, reconciled(b, n))
			w.settled()
			if w.always = mode == "apply-always"; w.always {
				w.tracker.Unwatched() // as where nobody watches
			}
			calls := 0
			b.ReportAllocs()
			for b.Loop() {
				calls += len(w.pass(Reconciling))
			}
			b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
	}
}

// BenchmarkTrim keeps of an object what the ledger needs: the cost of each event.
func BenchmarkTrim(b *testing.B) {
	w := watch(b, reconciled(b, 3))
	w.settled()
	for _, task := range w.tasks {
		u := checktest.Get(w.c.Get(b.Context(), task.Manifest.GVK(), clusterapi.KeyOf(task.Manifest.Object())))(b)
		b.Run(u.GetKind(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				WatchedKind{}.Trim(u)
			}
		})
	}
}

// reconciled makes the tasks of n objects: ConfigMaps, Deployments and Services.
func reconciled(b *testing.B, n int) []*manifest.Task {
	b.Helper()
	texts := []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: o%d, namespace: ns, annotations: {a: x}}, data: {a: x, b: w}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: o%d, namespace: ns, labels: {a: x}}, spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, image: i, env: [{name: A, value: x}, {name: B, value: x}]}, {name: b, image: i}]}}}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: o%d, namespace: ns}, spec: {selector: {app: d}, ports: [{name: a, port: 1, protocol: TCP}]}}`,
	}
	ms := make([]*manifest.Manifest, n)
	for i := range ms {
		ms[i] = newManifest(b, fmt.Sprintf("0000_%02d_c%02d_%04d.yaml", i/100, i%100/10, i), fmt.Sprintf(texts[i%len(texts)], i))
	}
	return manifest.NewTasks(ms)
}
