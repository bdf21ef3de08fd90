package nodes

import (
	"context"
	"slices"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// window is when the first group of a canary plan may begin: until then its pools are
// made.
const window = 10 * time.Minute

// planCanary plans groups of so many nodes of pool worker, the canary first. The
// pools get their new configuration when all groups but the first are paused.
func (r *Rehearsal) planCanary(ctx context.Context, sizes []int, roles []string) error {
	cluster, err := plan.ReadCluster(ctx, r.Cluster)
	if err != nil {
		return err
	}
	starts := slices.Repeat([]time.Time{r.driver.Now().Add(window)}, len(sizes))
	p, warnings, err := plan.PlanCanary(cluster, plan.CanaryOptions{ID: "canary", Sizes: sizes, Starts: starts})
	if err != nil {
		return err
	}
	r.Plan, r.Assumed = &p, warnings
	configured := false
	r.runner, err = plan.New(plan.Options{Plan: p, Holder: "rehearsal", Observe: func(e plan.Event) {
		if e.Step == "window-1" && !configured {
			configured = true
			if err := r.configure(ctx, roles); err != nil {
				r.events.failed = err.Error()
			}
		}
		r.events.step(e)
	}})
	return err
}

// step takes an event of a plan: each of its steps has a lane.
func (x *events) step(e plan.Event) {
	lane, place := timeline.Lane{Group: "plan " + e.Plan, Name: e.Step}, "plan "+e.Plan+" > "+e.Step
	switch e.Type {
	case plan.EventStepStarted:
		x.moved, x.on[place] = e.Time, string(e.Kind)
		x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: string(e.Kind)})
	case plan.EventStepDone:
		x.moved = e.Time
		delete(x.on, place)
		delete(x.blocked, place)
		x.End(lane, e.Time)
	case plan.EventStepSkipped:
		x.Add(timeline.Entry{Lane: lane, Start: e.Time, End: e.Time, Phase: "Skipped", Text: e.Text})
	case plan.EventStepFailed:
		x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: e.Text, Trouble: true})
		x.blocked[place] = e.Text
	case plan.EventWaiting:
		x.blocked[place] = e.Text
	case plan.EventError:
		x.failed = e.Text
	}
}
