package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp"
)

func TestLimits(t *testing.T) {
	degraded := func(nodes, size int) mcp.Snapshot {
		in := snapshot(pools(pool("worker", "N")))
		for i := range nodes {
			in.Nodes = append(in.Nodes, worker(fmt.Sprintf("n%04d", i), state("Degraded"), reason(strings.Repeat("x", size))))
		}
		return in
	}
	// message makes the status of the pool and returns what it says.
	message := func(in mcp.Snapshot) string {
		return conditionOf(mcp.PoolStatus(in, "worker"), "NodeDegraded").Message
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
		{Limit: "text of an event", Default: 32 << 10, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var r recorder
				ended := make(chan error, 1)
				go func() {
					ended <- mcp.NewRollout(mcp.RolloutOptions{API: smallCluster(t, memory.Options{}), Mode: mcp.Drive, Observe: r.observe,
						NodeUpdater: fragileUpdater{func() { panic(strings.Repeat("x", 32<<10+1)) }}}).Run(ctx)
				}()
				time.Sleep(time.Minute)
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				cut := 0
				for _, text := range r.texts(func(e mcp.Event) bool { return e.Type == mcp.EventNodeFailed }) {
					if len(text) <= 32<<10 && strings.HasSuffix(text, " more bytes)") {
						cut++
					}
				}
				if cut == 0 {
					t.Error("no event was cut")
				}
			})
			return 0
		}},
	})
}
