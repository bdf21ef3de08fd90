package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/mcp/internal/mcptest"

	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestLimits(t *testing.T) {
	degraded := func(nodes, size int) mcp.Snapshot {
		in := mcptest.Snapshot(mcptest.Pools(mcptest.Pool("worker", "N")))
		for i := range nodes {
			in.Nodes = append(in.Nodes, mcptest.Worker(fmt.Sprintf("n%04d", i), mcptest.State("Degraded"), mcptest.Reason(strings.Repeat("x", size))))
		}
		return in
	}
	// message makes the status of the pool and returns what it says.
	message := func(in mcp.Snapshot) string {
		return mcptest.ConditionOf(mcp.PoolStatus(in, "worker"), "NodeDegraded").Message
	}
	many, long := degraded(2000, 2000), degraded(1, 8<<10+1)
	limittest.Walk(t, []limittest.Case{
		{Limit: "message of a pool condition", Default: 32 << 10, Bytes: 8 << 20, Run: func(t *testing.T) int64 {
			if got := message(many); len(got) > 32<<10 || !strings.HasSuffix(got, " and 1984 more") {
				t.Errorf("%d bytes, %q", len(got), got[max(0, len(got)-40):])
			}
			return 0
		}},
		{Limit: "what a node says in it", Default: 8 << 10, Bytes: 256 << 10, Run: func(t *testing.T) int64 {
			if got := message(long); len(got) > 8<<10+40 || !strings.HasSuffix(got, ` more bytes)"`) {
				t.Errorf("%d bytes, %q", len(got), got[max(0, len(got)-40):])
			}
			return 0
		}},
	})
}
