package risk_test

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
)

// A loop that keeps the updates of a cluster, with a clock of its own.
func ExampleRetrieval() {
	var r risk.Retrieval
	wanted := risk.Wanted{Channel: "stable-4.2", Architecture: "amd64"}
	interval := risk.CheckInterval(0.5)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pass := func(source func() (*graph.Updates, error)) {
		plan := r.Plan(wanted, interval, now)
		if plan.Fetch {
			u, err := source()
			r.Fetched(wanted, plan, u, err, now)
		}
		if plan.Fetch || plan.Reevaluate {
			r.Evaluate(context.Background(), risk.Evaluator{}, nil, now)
		}
		available, _, _ := r.Published(wanted, true)
		fmt.Printf("fetched: %t, available: %d, RetrievedUpdates=%s %q\n", plan.Fetch, len(available), r.Condition.Status, r.Condition.Reason)
	}
	pass(func() (*graph.Updates, error) {
		return &graph.Updates{Available: []configv1.Release{{Version: "4.2.1", Image: "b"}}}, nil
	})
	now = now.Add(time.Minute)
	pass(nil)
	now = now.Add(time.Hour)
	pass(func() (*graph.Updates, error) {
		return nil, &graph.Error{Reason: "RemoteFailed", Message: "connection refused"}
	})
	// Output:
	// fetched: true, available: 1, RetrievedUpdates=True ""
	// fetched: false, available: 1, RetrievedUpdates=True ""
	// fetched: true, available: 1, RetrievedUpdates=False "RemoteFailed"
}
