package kubernetes_test

import (
	"flag"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

var (
	sequences = flag.Int("sequences", 300, "how many sequences TestDifferential runs")
	seed      = flag.Uint64("seed", 1, "what they are drawn from")
	failures  = flag.Int("failures", 3, "after how many that fail it stops")
)

// TestDifferential compares the cluster in memory with a real API server.
func TestDifferential(t *testing.T) {
	t.Parallel()
	s := testserver.Start(t)
	server := newAPI(t, s, kubernetes.Options{})
	clusterapitest.Differential(t, memory.New(memory.Options{CheckNamespaces: true, GracefulPods: true}), server, clusterapitest.DifferentialOptions{
		Seed: *seed, Sequences: *sequences, Failures: *failures, Meant: meant,
	})
}

// meant are the differences of memory (A) and the API server (B) that are no
// faults.
var meant = []clusterapitest.Difference{}
