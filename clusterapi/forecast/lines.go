package forecast

import (
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/openshift"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// phases are those of the timeline, in the order of their colours.
var phases = []string{
	"Updating", string(mcp.PhasePreparing), string(mcp.PhaseDraining), string(mcp.PhaseApplying), string(mcp.PhaseRebooting),
	string(mcp.PhaseUncordoning), string(mcp.PhaseTargeted), string(mcp.PhaseCordoning), "Degraded", "Unavailable",
}

// lines makes the timeline of a run: a lane for the cluster version, for each operator,
// for each pool and its nodes, and for each step of a plan.
type lines struct {
	recorder *timeline.Recorder
	begun    bool            // the update has been requested
	pools    map[string]bool // that are being updated
	blocked  map[timeline.Lane]string
}

func newLines(title string) (*lines, error) {
	r, err := timeline.NewRecorder(timeline.Options{Title: title, Phases: phases})
	return &lines{recorder: r, pools: make(map[string]bool), blocked: make(map[timeline.Lane]string)}, err
}

// versionLane is the lane of the cluster version.
var versionLane = timeline.Lane{Group: "cluster version"}

// version starts the bar of the cluster version.
func (l *lines) version(at time.Time, text string) {
	l.begun = true
	l.recorder.Start(timeline.Entry{Lane: versionLane, Start: at, Phase: "Updating", Text: text})
}

// operator takes a new state of a ClusterOperator.
func (l *lines) operator(at time.Time, o *clusterapi.Object) {
	co, err := clusterapi.As[configv1.ClusterOperator](o)
	if err != nil || !l.begun {
		return
	}
	lane := timeline.Lane{Group: "operators", Name: co.Name}
	entry := timeline.Entry{Lane: lane, Start: at}
	is := func(t configv1.ClusterStatusConditionType, status configv1.ConditionStatus) bool {
		c := openshift.FindCondition(co.Status.Conditions, t)
		if c == nil || c.Status != status {
			return false
		}
		entry.Text = c.Message
		return true
	}
	switch {
	case is(configv1.OperatorAvailable, configv1.ConditionFalse):
		entry.Phase = "Unavailable"
		entry.Trouble = true
	case is(configv1.OperatorDegraded, configv1.ConditionTrue):
		entry.Phase = "Degraded"
		entry.Trouble = true
	case is(configv1.OperatorProgressing, configv1.ConditionTrue):
		entry.Phase = "Updating"
		entry.Text = ""
	default:
		l.recorder.End(lane, at)
		return
	}
	l.recorder.Start(entry)
}

// node takes an event of the rollout of nodes.
func (l *lines) node(e clusterapi.Event) {
	d, ok := e.Data.(*rollout.EventData)
	if !ok {
		return
	}
	lane := timeline.Lane{Group: "pool " + d.Pool, Name: d.Node}
	switch e.Type {
	case rollout.EventNodePhase:
		l.phase(e.Time, lane, d)
	case rollout.EventNodeFailed:
		l.blocked[lane] = e.Message
		l.recorder.Start(
			timeline.Entry{Lane: lane, Start: e.Time, Phase: d.Phase.In(d.Stuck), Text: e.Message, Trouble: true},
		)
	case rollout.EventNodeTargeted:
		l.pool(e.Time, lane.Group)
	case rollout.EventDrainRetry: // to wait has not helped
		text := e.Message
		var drain *rollout.DrainError
		if errors.As(e.Err, &drain) && drain.Pod != "" {
			text = fmt.Sprintf("%s: %v", drain.Pod, drain.Err)
		}
		l.recorder.Start(
			timeline.Entry{Lane: lane, Start: e.Time, Phase: string(mcp.PhaseDraining), Text: text, Trouble: true},
		)
	case rollout.EventPoolBlocked:
		entry := timeline.Entry{Lane: timeline.Lane{Group: lane.Group}, Start: e.Time, End: e.Time, Phase: "Blocked", Text: e.Message}
		entry.Trouble = d.Reason != string(mcp.BlockPaused)
		l.recorder.Add(entry)
	case rollout.EventPoolDone:
		delete(l.pools, lane.Group)
		l.recorder.End(timeline.Lane{Group: lane.Group}, e.Time)
	}
}

// phase takes the phase that a node has reached.
func (l *lines) phase(at time.Time, lane timeline.Lane, d *rollout.EventData) {
	switch d.Phase {
	case mcp.PhaseDone, mcp.PhaseJoining:
		delete(l.blocked, lane)
		l.recorder.End(lane, at)
	case mcp.PhaseFailed:
		l.recorder.Start(
			timeline.Entry{Lane: lane, Start: at, Phase: d.Phase.In(d.Stuck), Text: l.blocked[lane], Trouble: true},
		)
	default:
		delete(l.blocked, lane)
		l.pool(at, lane.Group)
		l.recorder.Start(timeline.Entry{Lane: lane, Start: at, Phase: string(d.Phase)})
	}
}

// pool starts the bar of a pool, unless it has started.
func (l *lines) pool(at time.Time, group string) {
	if !l.pools[group] {
		l.pools[group] = true
		l.recorder.Start(timeline.Entry{Lane: timeline.Lane{Group: group}, Start: at, Phase: "Updating"})
	}
}

// step takes an event of a plan.
func (l *lines) step(e clusterapi.Event) {
	d, ok := e.Data.(*plan.EventData)
	if !ok || d.Step == "" {
		return
	}
	lane := timeline.Lane{Group: "plan", Name: d.Step}
	switch e.Type {
	case plan.EventStepStarted:
		l.recorder.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: string(d.Kind)})
	case plan.EventStepDone:
		l.recorder.End(lane, e.Time)
	case plan.EventStepSkipped:
		l.recorder.Add(timeline.Entry{Lane: lane, Start: e.Time, End: e.Time, Phase: "Skipped", Text: e.Message})
	case plan.EventStepFailed:
		l.recorder.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: "Step", Text: e.Message, Trouble: true})
	}
}

// timeline ends the bars that end with the run, unless it is stuck, and returns it.
func (l *lines) timeline(start, end time.Time, stuck bool) (*timeline.Timeline, error) {
	if !stuck {
		for group := range l.pools {
			l.recorder.End(timeline.Lane{Group: group}, end)
		}
	}
	t, err := l.recorder.Timeline()
	var tooMany *timeline.LimitError
	if errors.As(err, &tooMany) {
		err = nil // the timeline counts those that it leaves out
	}
	t.Start = start
	return t, err
}
