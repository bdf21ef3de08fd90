package nodeaction_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

// BenchmarkRun acts on all nodes of a cluster, one by one, in virtual time.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("w%04d", i))
			}
			objs := workers(names...)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				w := actiontest.New("x", objs...)
				a := newPatch(nodeaction.Cordon)
				b.StartTimer()
				w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: a, Selector: labels.Everything()})
				if err := w.Play(30 * 24 * time.Hour); err != nil || !w.Done || len(a.done) != n {
					b.Fatal(err, w.Done, len(a.done))
				}
				w.Close()
			}
		})
	}
}

// BenchmarkRecordOf reads the record of a node.
func BenchmarkRecordOf(b *testing.B) {
	n := actiontest.Node("w0", "worker")
	n.Annotations[nodeaction.Annotation("x")] = `{"version":1,"action":"patch","phase":"Acting","since":"2026-01-01T00:00:00Z","attempt":1}`
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := nodeaction.RecordOf(n, "x"); err != nil {
			b.Fatal(err)
		}
	}
}
