package timeline_test

import (
	"log"
	"os"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
)

// What happens to two nodes, one after the other, as text.
func Example() {
	start := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	r, err := timeline.NewRecorder(timeline.Options{Title: "Rollout of pool worker", Start: start})
	if err != nil {
		log.Fatal(err)
	}
	now := start
	for _, node := range []string{"worker-0", "worker-1"} {
		lane := timeline.Lane{Group: "worker", Name: node}
		for _, phase := range []string{"Draining", "Applying", "Rebooting"} {
			r.Start(timeline.Entry{Lane: lane, Start: now, Phase: phase})
			now = now.Add(2 * time.Minute)
		}
		r.End(lane, now)
	}
	t, err := r.Timeline()
	if err != nil {
		log.Fatal(err)
	}
	if err := t.WriteText(os.Stdout, timeline.TextOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Rollout of pool worker
	// 2026-01-01T08:00:00Z, 12m: 2 lanes, 6 entries
	// START  FOR  LANE             WHAT
	// +0s    2m   worker/worker-0  Draining
	// +2m    2m   worker/worker-0  Applying
	// +4m    2m   worker/worker-0  Rebooting
	// +6m    2m   worker/worker-1  Draining
	// +8m    2m   worker/worker-1  Applying
	// +10m   2m   worker/worker-1  Rebooting
}
