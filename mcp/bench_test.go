package mcp_test

import (
	"fmt"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/clusterupdate/clusterupdate/mcp"
)

// bigPool has n workers in three zones, of which a tenth is updated and a few
// are on their way.
func bigPool(n int) mcp.Objects {
	objs := mcp.Objects{Pools: mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("worker", "N", mcptest.AtMost(n/50+2)), mcptest.Pool("infra", "N"))}
	for i := range n {
		w := mcptest.Worker(fmt.Sprintf("worker-%06d", i), mcptest.Zone(fmt.Sprint("z", i%3)), mcptest.Age(i%1000), mcptest.Label("kubernetes.io/hostname", fmt.Sprint("worker-", i)))
		switch {
		case i%10 == 0:
			w = mcptest.Updated(w)
		case i%100 == 1:
			mcptest.Desired("N")(&w)
			mcptest.State(mcp.StateWorking)(&w)
		}
		objs.Nodes = append(objs.Nodes, w)
	}
	return objs
}

var sizes = []int{100, 1_000, 10_000, 100_000}

func BenchmarkCandidates(b *testing.B) {
	for _, n := range sizes {
		objs := bigPool(n)
		s := mcp.NewState(objs, mcp.Options{})
		b.Run(fmt.Sprint("incremental/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sel := s.Candidates("worker"); len(sel.Nodes) == 0 {
					b.Fatal(sel)
				}
			}
		})
		if n > 10_000 {
			continue
		}
		b.Run(fmt.Sprint("once/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if sel := mcp.Candidates(mcp.Snapshot{Objects: objs}, "worker"); len(sel.Nodes) == 0 {
					b.Fatal(sel)
				}
			}
		})
	}
}

// A node is targeted and done, again and again, and each time the next
// candidates are asked for.
func BenchmarkStateApply(b *testing.B) {
	for _, n := range sizes {
		objs := bigPool(n)
		s := mcp.NewState(objs, mcp.Options{})
		variants := make([][2]corev1.Node, 100)
		for i := range variants {
			w := objs.Nodes[i*n/100]
			targeted := *w.DeepCopy()
			mcptest.Desired("N2")(&targeted)
			variants[i] = [2]corev1.Node{w, targeted}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.Apply(mcp.Change{Object: &variants[i%100][(i/100+1)%2]})
				s.Candidates("infra")
				i++
			}
		})
	}
}

func BenchmarkMembership(b *testing.B) {
	for _, n := range []int{3, 30, 300} {
		ps := mcptest.Pools(mcptest.Pool("master", "N"), mcptest.Pool("worker", "N"))
		for i := range n {
			ps = append(ps, mcptest.Pool(fmt.Sprint("custom", i), "N"))
		}
		m, _ := mcp.NewMembership(ps)
		labels := roles("worker", "custom1")
		labels["kubernetes.io/hostname"] = "w"
		b.Run(fmt.Sprint("known/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Of(labels)
			}
		})
		b.Run(fmt.Sprint("new/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fresh, _ := mcp.NewMembership(ps)
				fresh.Of(labels)
			}
		})
	}
}

func BenchmarkStatus(b *testing.B) {
	for _, n := range sizes {
		s := mcp.NewState(bigPool(n), mcp.Options{})
		prev := s.Status("worker", s.Pool("worker").Status, mcptest.Epoch)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				prev = s.Status("worker", prev, mcptest.Epoch)
			}
		})
	}
}

// drainObjects are n nodes with 30 pods each: ten applications of three replicas,
// each with a budget, on three neighbours.
func drainObjects(n int) mcp.DrainObjects {
	var o mcp.DrainObjects
	for i := range n {
		w := mcptest.Worker(fmt.Sprintf("w%04d", i))
		w.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("250")}
		o.Nodes = append(o.Nodes, &w)
		for j := range 10 {
			app := fmt.Sprintf("app%04d-%d", i, j)
			namespace := fmt.Sprint("ns", i%100)
			b := drainBudget(app, app, 3, 2, 3)
			b.Namespace = namespace
			o.Budgets = append(o.Budgets, b)
			for k := range 3 {
				p := drainedPod(fmt.Sprint(app, "-", k), fmt.Sprintf("w%04d", (i+k)%n), app, asks("100m"), scratch)
				p.Namespace = namespace
				o.Pods = append(o.Pods, p)
			}
		}
	}
	return o
}

// All nodes are drained in turn; view is the index alone.
func BenchmarkDrainPlan(b *testing.B) {
	for _, n := range []int{10, 100, 1_000} {
		o := drainObjects(n)
		b.Run(fmt.Sprint("view/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mcp.NewDrainView(o)
			}
		})
		b.Run(fmt.Sprint("all/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v := mcp.NewDrainView(o)
				for _, node := range v.Nodes() {
					if d := mcp.DrainPlan(node, v); !d.Succeeds() {
						b.Fatal(told(d))
					}
				}
			}
		})
	}
}

// Half of the pool may go down at a time, so that many are named as holders.
func BenchmarkExplanations(b *testing.B) {
	for _, n := range sizes {
		objs := bigPool(n)
		mcptest.AtMost(n / 2)(&objs.Pools[1])
		s := mcp.NewState(objs, mcp.Options{})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, v := range s.Explanations("worker") {
					if v.Text == "" {
						b.Fatal(v)
					}
				}
			}
		})
	}
}

// The drains of all nodes are predicted, which have a pod each and a budget for every
// three of them: what a cluster of many nodes costs.
func BenchmarkDrainPrediction(b *testing.B) {
	for _, n := range sizes {
		var o mcp.DrainObjects
		for i := range n {
			app := fmt.Sprint("app", i/3)
			o.Pods = append(o.Pods, drainedPod(fmt.Sprint("p", i), fmt.Sprintf("w%06d", i), app))
			if i%3 == 0 {
				o.Budgets = append(o.Budgets, drainBudget(app, app, 3, 2, 3))
			}
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v := mcp.NewDrainView(o)
				for _, node := range v.Nodes() {
					if d := mcp.DrainPlan(node, v); !d.Succeeds() {
						b.Fatal(told(d))
					}
				}
			}
		})
	}
}
