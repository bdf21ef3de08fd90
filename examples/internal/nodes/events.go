package nodes

import (
	"errors"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/mcp"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
)

// phases are those of nodes and pools, in the order of their colours.
var phases = []string{
	"Updating", string(mcp.PhasePreparing), string(mcp.PhaseDraining), string(mcp.PhaseApplying), string(mcp.PhaseRebooting),
	string(mcp.PhaseUncordoning), string(mcp.PhaseTargeted), string(mcp.PhaseCordoning),
}

// events makes a timeline of what a rollout tells: a lane for each node, its phases
// one after the other, and one for each pool.
type events struct {
	*timeline.Recorder
	moved   time.Time
	on      map[string]string // pool > node → what goes on there
	failed  string            // the last error
	pools   map[string]bool   // that are being updated
	blocked map[string]string // pool > node → why it does not go on
}

// node takes an event of a rollout.
func (x *events) node(e clusterapi.Event) {
	d := e.Data.(*rollout.EventData)
	lane, pool := timeline.Lane{Group: d.Pool, Name: d.Node}, timeline.Lane{Group: d.Pool}
	place := d.Pool
	if d.Node != "" {
		place += " > " + d.Node
	}
	switch e.Type {
	case rollout.EventNodePhase:
		x.moved = e.Time
		if d.Phase != mcp.PhaseFailed { // then its reason stays
			delete(x.blocked, place)
		}
		x.on[place] = d.Phase.In(d.Stuck)
		switch d.Phase {
		case mcp.PhaseDone, mcp.PhaseJoining:
			delete(x.on, place)
			x.End(lane, e.Time)
		case mcp.PhaseFailed:
			x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: d.Phase.In(d.Stuck), Text: x.blocked[place], Trouble: true})
		default:
			x.begin(pool, e.Time)
			x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: string(d.Phase)})
		}
	case rollout.EventNodeFailed:
		x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: d.Phase.In(d.Stuck), Text: e.Message, Trouble: true})
		x.blocked[place] = e.Message
	case rollout.EventNodeTargeted:
		x.moved = e.Time
		x.begin(pool, e.Time)
	case rollout.EventDrainBlocked, rollout.EventDrainRetry:
		var drain *rollout.DrainError
		text := e.Message
		if errors.As(e.Err, &drain) && drain.Pod != "" {
			text = strings.Join([]string{drain.Pod, drain.Err.Error()}, ": ")
		}
		x.blocked[place] = text
		if e.Type == rollout.EventDrainRetry { // to wait has not helped
			x.Start(timeline.Entry{Lane: lane, Start: e.Time, Phase: string(mcp.PhaseDraining), Text: text, Trouble: true})
		}
	case rollout.EventPoolBlocked:
		x.blocked[place] = e.Message
		x.Add(timeline.Entry{Lane: pool, Start: e.Time, End: e.Time, Phase: "Blocked", Text: e.Message, Trouble: d.Reason != string(mcp.BlockPaused)})
	case rollout.EventError:
		x.failed = e.Message
	case rollout.EventPoolDone:
		x.moved = e.Time
		delete(x.pools, d.Pool)
		delete(x.blocked, place)
		x.End(pool, e.Time)
	}
}

// begin begins the bar of a pool, unless it has begun.
func (x *events) begin(pool timeline.Lane, at time.Time) {
	if !x.pools[pool.Group] {
		x.pools[pool.Group] = true
		x.Start(timeline.Entry{Lane: pool, Start: at, Phase: "Updating"})
	}
}

// done ends the bars of pools that have ended without a word: nodes only came to
// them.
func (x *events) done() {
	for pool := range x.pools {
		x.End(timeline.Lane{Group: pool}, x.moved)
	}
}
