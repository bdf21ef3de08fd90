package forecast

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// RehearseOptions are the options of [Rehearse]. Reader, From and To are required.
type RehearseOptions struct {
	// Reader is the cluster. A recording's own time is when the rehearsal begins,
	// else it is the present.
	Reader clusterapi.Reader
	// From is the release that the cluster has last completed an update to, To the one
	// to update to.
	From, To *payload.Image
	// Timing says how long things take; a zero field means that of DefaultTiming.
	Timing Timing
	// Runs is how many times to play the update, with other times drawn from Timing;
	// zero means 1.
	Runs int
	// Seed decides all that is drawn at random: the same seed, the same rehearsal. Zero
	// is a seed like any other.
	Seed uint64
	// Until is after how long without movement an update counts as stuck; zero means
	// 6 h of the cluster's time.
	Until time.Duration
	// Pools changes machine config pools by name.
	Pools map[string]PoolChange
	// Nodes is the number of nodes of pools by name: nodes are left out, or added
	// like those of the pool.
	Nodes map[string]int
	// Heal repairs what is recorded as broken, after a time from the start. Keys
	// are like those of Faults.
	Heal map[string]time.Duration
	// Faults breaks operators and nodes: operator/etcd, node/worker-0.
	Faults map[string]simulation.Fault
	// Plan is carried out in place of a plain update; nil means none.
	Plan *plan.Plan
	// Observe gets the events of the updater, the node rollout and the plan of the
	// first run; nil is not called.
	Observe func(clusterapi.Event)
}

// PoolChange changes a machine config pool before the rehearsal begins. A nil field
// leaves it as it is.
type PoolChange struct {
	MaxUnavailable *intstr.IntOrString
	Paused         *bool
}

// Outcome is how a rehearsal ends.
type Outcome string

// The outcomes.
const (
	// Completed: the update is complete, and every pool that is not paused is updated.
	Completed Outcome = "Completed"
	// Stuck: nothing moved any more, or a part of the cluster failed for good.
	Stuck Outcome = "Stuck"
	// Refused: the update did not start.
	Refused Outcome = "Refused"
)

// Rehearsal is what came of a rehearsal. It tells of the first run that did not
// complete, or else of the first one.
type Rehearsal struct {
	Outcome Outcome `json:"outcome"`
	// Why has the causes of an outcome other than Completed, the earliest first.
	Why []Cause `json:"why,omitempty"`
	// Start is when the update was requested.
	Start time.Time `json:"start"`
	// ControlPlane is how long it took from then until the cluster version was
	// complete, Total until all pools were updated; zero if not reached.
	ControlPlane time.Duration      `json:"controlPlane,omitempty"`
	Total        time.Duration      `json:"total,omitempty"`
	Timeline     *timeline.Timeline `json:"timeline"`
	Quantiles    Quantiles          `json:"quantiles"`
	// Assumed lists what the Reader does not have and the rehearsal made up.
	Assumed []string `json:"assumed,omitempty"`
}

// Quantiles are those of all runs of a rehearsal. Those that did not complete count in
// Runs alone.
type Quantiles struct {
	Runs         int      `json:"runs"`
	Completed    int      `json:"completed"`
	ControlPlane Quantile `json:"controlPlane"`
	Total        Quantile `json:"total"`
}

// Quantile is how long half, nine of ten and all of the runs took at most; zero if
// none completed.
type Quantile struct {
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	Max time.Duration `json:"max"`
}

// Rehearse plays an update of a cluster to its end. The error is that of reading the
// cluster or of an option that cannot work; an update that fails is an outcome.
func Rehearse(ctx context.Context, o RehearseOptions) (*Rehearsal, error) {
	if o.Reader == nil || o.From == nil || o.To == nil {
		return nil, errors.New("forecast: RehearseOptions need Reader, From and To")
	}
	return nil, errors.New("forecast: not here yet")
}
