package rollout_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

func TestLimits(t *testing.T) {
	limittest.Walk(t, []limittest.Case{
		{Limit: "text of an event", Default: 32 << 10, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, rollout.Options{API: smallCluster(t, memory.Options{}), Mode: rollout.Drive,
					NodeUpdater: fragileUpdater{func() { panic(strings.Repeat("x", 32<<10+1)) }}})
				time.Sleep(time.Minute)
				r.stop()
				cut := 0
				for _, text := range r.texts(func(e told) bool { return e.Type == rollout.EventNodeFailed }) {
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
