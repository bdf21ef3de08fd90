package forecast

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

// RehearseOptions are the options of [Rehearse]. Reader, From and To are required.
type RehearseOptions struct {
	// Reader is the cluster. A recording's own time is when the rehearsal starts,
	// else it is the present.
	Reader clusterapi.Reader
	// From is the release that the cluster has last completed an update to, To the one
	// to update to. If they are the same, the nodes that are left are updated.
	From, To *payload.Image
	// Desired is the release that the cluster is being updated to, if that is not To; nil
	// otherwise. Without it such an update is Refused.
	Desired *payload.Image
	// Timing describes how long things take; a zero field means the one in
	// DefaultTiming.
	Timing Timing
	// Runs is how many times to play the update, each with its own times from Timing;
	// zero means 1. More than 10,000 are refused.
	Runs int
	// Seed decides all that is drawn at random: the same seed, the same rehearsal. Zero
	// is a seed too.
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
	// Faults breaks operators and nodes, operator/etcd or node/worker-0, as the update
	// starts.
	Faults map[string]simulation.Fault
	// Calls makes calls of the API fail at random.
	Calls reconcile.Faults
	// Plan is carried out in place of a plain update; nil means none.
	Plan *plan.Plan
	// Observe gets the events of the updater, the node rollout and the plan of the
	// first run; nil is not called.
	Observe func(clusterapi.Event)
}

// PoolChange changes a machine config pool before the rehearsal starts. A nil field
// leaves it as it is.
type PoolChange struct {
	MaxUnavailable *intstr.IntOrString
	Paused         *bool
}

// apply changes a pool.
func (c PoolChange) apply(p *mcfgv1.MachineConfigPool) {
	if c.MaxUnavailable != nil {
		p.Spec.MaxUnavailable = c.MaxUnavailable
	}
	if c.Paused != nil {
		p.Spec.Paused = *c.Paused
	}
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

// Rehearsal is the result of a rehearsal. It describes the first run that did not
// complete, or else the first one.
type Rehearsal struct {
	Outcome Outcome `json:"outcome"`
	// Why has the causes unless the outcome is Completed, the earliest first.
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

// Rehearse plays an update of a cluster to its end. The error is from reading the
// cluster or for an option that cannot work; an update that fails is an outcome.
func Rehearse(ctx context.Context, o RehearseOptions) (*Rehearsal, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	s, err := newScene(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	if s.refused != nil {
		nothing := &timeline.Timeline{Start: s.now}
		return &Rehearsal{Outcome: Refused, Start: s.now, Why: []Cause{*s.refused}, Timeline: nothing}, nil
	}
	runs := make([]*result, max(o.Runs, 1))
	err = reconcile.Each(ctx, runtime.GOMAXPROCS(0), len(runs), func(ctx context.Context, i int) error {
		observe := o.Observe
		if i > 0 {
			observe = nil
		}
		r, err := newRun(ctx, s, o.Seed+uint64(i), observe)
		if err != nil {
			return err
		}
		runs[i], err = r.play(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return s.summary(runs), nil
}

const maxRuns = 10_000

// check returns what is wrong with the options.
func (o *RehearseOptions) check() error {
	if o.Reader == nil || o.From == nil || o.To == nil {
		return errors.New("RehearseOptions need Reader, From and To")
	}
	if err := options.NonNegative(*o); err != nil {
		return err
	}
	if o.Runs > maxRuns {
		return fmt.Errorf("RehearseOptions.Runs is %d, more than %d", o.Runs, maxRuns)
	}
	for part, f := range o.Faults {
		if kind, name, _ := strings.Cut(part, "/"); f.Kind == "" || name == "" || kind != "node" && kind != "operator" {
			return fmt.Errorf("RehearseOptions.Faults[%s] names neither a node nor an operator, or no kind of fault", part)
		}
	}
	for part, after := range o.Heal {
		kind, name, _ := strings.Cut(part, "/")
		if name == "" || after < 0 || !slices.Contains([]string{"node", "operator", "pod"}, kind) {
			return fmt.Errorf(
				"RehearseOptions.Heal[%s] names neither an operator, a node nor a pod, or has a negative time", part,
			)
		}
	}
	return nil
}

// summary puts the runs together.
func (s *scene) summary(runs []*result) *Rehearsal {
	shown := runs[0]
	out := &Rehearsal{Quantiles: Quantiles{Runs: len(runs)}}
	var control, total []time.Duration
	for _, r := range runs {
		s.assumed.add(r.assumed...)
		if r.outcome != Completed {
			if shown.outcome == Completed {
				shown = r
			}
			continue
		}
		control = append(control, r.control)
		total = append(total, r.total)
	}
	out.Outcome = shown.outcome
	out.Why = shown.why
	out.Start = shown.start
	out.ControlPlane = shown.control
	out.Total = shown.total
	out.Timeline = shown.timeline
	out.Assumed = s.assumed.list()
	out.Quantiles.Completed = len(total)
	out.Quantiles.ControlPlane = quantile(control)
	out.Quantiles.Total = quantile(total)
	return out
}

// quantile returns the quantiles of durations, zero without any.
func quantile(all []time.Duration) Quantile {
	if len(all) == 0 {
		return Quantile{}
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return Quantile{P50: at(50), P90: at(90), Max: at(100)}
}
