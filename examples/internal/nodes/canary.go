package nodes

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
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
	p, warnings, err := plan.PlanCanary(cluster, plan.CanaryOptions{ID: "canary", Sizes: sizes})
	if err != nil {
		return err
	}
	begin := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Kind == plan.WaitPools })
	opens := map[string]string{"from": r.driver.Now().Add(window).UTC().Format(time.RFC3339)}
	p.Steps = slices.Insert(p.Steps, begin, plan.Step{ID: "window-1", Kind: plan.Gate, Args: plan.Args{Action: "window", Parameters: opens}})
	r.Plan, r.Assumed = &p, warnings
	configured := false
	r.runner, err = plan.New(plan.Options{Plan: p, Holder: "rehearsal", Observe: func(e clusterapi.Event) {
		if e.Data.(*plan.EventData).Step == "window-1" && !configured {
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
func (x *events) step(e clusterapi.Event) {
	d := e.Data.(*plan.EventData)
	group := "plan " + strings.TrimPrefix(e.Subject, "plan/")
	lane, place := timeline.Lane{Group: group, Name: d.Step}, group+" > "+d.Step
	switch e.Type {
	case plan.EventStepStarted:
		x.moved, x.on[place] = e.Time, string(d.Kind)
		x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: string(d.Kind)})
	case plan.EventStepDone:
		x.moved = e.Time
		delete(x.on, place)
		delete(x.blocked, place)
		x.End(lane, e.Time)
	case plan.EventStepSkipped:
		x.Add(timeline.Entry{Lane: lane, Start: e.Time, End: e.Time, Phase: "Skipped", Text: e.Message})
	case plan.EventStepFailed:
		x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: e.Message, Trouble: true})
		x.blocked[place] = e.Message
	case plan.EventWaiting:
		x.blocked[place] = e.Message
	case plan.EventError:
		x.failed = e.Message
	}
}
