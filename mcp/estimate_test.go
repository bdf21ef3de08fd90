package mcp_test

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

// The documented examples: 6 compute nodes one at a time, and two at a time.
func TestEstimateDocumented(t *testing.T) {
	const minute = time.Minute
	in := func(compute int) mcp.EstimateInput {
		return mcp.EstimateInput{Node: 5 * minute, ClusterVersion: 60 * minute, Pools: []mcp.EstimatePool{{3, 1}, {6, compute}}}
	}
	for maxUnavailable, want := range map[int]time.Duration{1: 90 * minute, 2: 75 * minute, 4: 75 * minute, 6: 75 * minute, 0: 90 * minute} {
		given := in(maxUnavailable)
		checktest.Equal(t, want, mcp.EstimateDocumented(given), "%d at a time", maxUnavailable)
		given.ClusterVersion, given.Node = 0, 0
		checktest.Equal(t, want, mcp.EstimateDocumented(given), "%d at a time, by default", maxUnavailable)
	}
	done := in(1)
	done.ClusterVersionDone = true
	checktest.Equal(t, 30*minute, mcp.EstimateDocumented(done), "nodes alone")
	checktest.Equal(t, 60*minute, mcp.EstimateDocumented(mcp.EstimateInput{}), "no nodes")
}
