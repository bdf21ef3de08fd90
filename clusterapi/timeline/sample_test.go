package timeline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		checktest.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := checktest.Get(os.ReadFile(file))(t)
	checktest.SameIn(t, file, string(want), got)
}

var epoch = time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)

// at is a time of so many seconds.
func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// recorder fails the test where the options cannot work.
func recorder(t testing.TB, o timeline.Options) *timeline.Recorder {
	t.Helper()
	return checktest.Get(timeline.NewRecorder(o))(t)
}

// recorded is the timeline of a recorder that was not given too much.
func recorded(t testing.TB, r *timeline.Recorder) *timeline.Timeline {
	t.Helper()
	return checktest.Get(r.Timeline())(t)
}

// phase is a phase of a node, and how long it takes.
type phase struct {
	name    string
	seconds int
}

var phases = []phase{{"Targeted", 5}, {"Cordoning", 5}, {"Draining", 70}, {"Applying", 60}, {"Rebooting", 180}, {"Uncordoning", 15}}

// rollout updates so many nodes of each pool, two at a time. The drain of every
// stuck-th node is blocked for twice as long as everything else takes; that of
// the last one never ends.
func rollout(t testing.TB, nodes, stuck int, pools ...string) *timeline.Timeline {
	r := recorder(t, timeline.Options{Title: "Rollout of two pools", Start: epoch, MaxEntries: 1 << 20})
	for _, pool := range pools {
		free := [2]int{10, 10}
		for i := range nodes {
			lane := timeline.Lane{Group: pool, Name: fmt.Sprint(pool, "-", i)}
			slot := i % 2
			for _, p := range phases {
				r.Start(timeline.Entry{Lane: lane, Start: at(free[slot]), Phase: p.name})
				free[slot] += p.seconds
				if blocked := (i+1)%stuck == 0; blocked && p.name == "Draining" {
					r.Add(timeline.Entry{Lane: lane, Start: at(free[slot] - 30), End: at(free[slot] - 30), Phase: "Retry"})
					r.Start(timeline.Entry{Lane: lane, Start: at(free[slot]), Phase: p.name, Trouble: true,
						Text: "Cannot evict pod as it would violate the pod's disruption budget."})
					if free[slot] += 700; i == nodes-1 {
						break
					}
				}
			}
			if (i+1)%stuck != 0 || i != nodes-1 {
				r.End(lane, at(free[slot]))
			}
		}
	}
	return recorded(t, r)
}
