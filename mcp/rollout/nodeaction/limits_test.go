package nodeaction_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/internal/actiontest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout/nodeaction"
)

func TestLimits(t *testing.T) {
	play := func(t *testing.T, step nodeaction.Step, err error) *actiontest.World {
		w := actiontest.New("x", workers("w0")...)
		a := newPatch(nodeaction.None)
		a.step = func(string, string) (nodeaction.Step, error) { return step, err }
		w.Start(0, reconcile.Faults{}, nodeaction.Options{Action: a, Nodes: []string{"w0"}})
		if err := w.Play(time.Hour); err != nil {
			t.Fatal(err)
		}
		return w
	}
	limittest.Walk(t, []limittest.Case{
		{Limit: "text of an event", Default: 32 << 10, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			w := play(t, nodeaction.Step{}, nodeaction.Permanent(errors.New(strings.Repeat("x", 32<<10+1))))
			cut := 0
			for _, l := range w.Lines {
				if strings.HasSuffix(l, " more bytes)") {
					cut++
				}
			}
			record, _, err := nodeaction.RecordOf(w.NodeOf("w0"), "x")
			if cut != 1 || err != nil || len(record.Failed) > 2000 {
				t.Errorf("%d events are cut, %d bytes are recorded, %v", cut, len(record.Failed), err)
			}
			return 0
		}},
		{Limit: "progress of an action", Default: 4096, Bytes: 64 << 20, Run: func(t *testing.T) int64 {
			w := play(t, nodeaction.Step{Progress: strings.Repeat("x", 4096+1)}, nil)
			if w.Last == nil {
				t.Error("the run goes on")
			}
			return 0
		}},
	})
}
