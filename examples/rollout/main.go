// Command rollout rehearses an update of a simulated cluster: which node goes when,
// what holds it up, and how long all of it takes.
//
//	go run ./examples/rollout -nodes worker=6 -max-unavailable worker=2 -o svg > rollout.svg
//
// It is played in virtual time, at once and the same each time. Everything that decides
// is the library's; operators, kubelets, machine-config daemons and workloads are played.
// Without -nodes the pool worker has six nodes. For a recorded cluster see
// examples/forecast.
//
// The exit code is 0 when the update completed, 1 when it was refused, is stuck or was
// interrupted, 2 when the command line is wrong, 3 when the update cannot be played.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

func main() { program.Main(command()) }

type options struct {
	nodes    nodes.Flags
	broken   map[string]simulation.Fault
	canary   []int
	block    bool
	fraction float64
	seed     uint64
	until    program.Span
	format   string
}

func command() program.Command {
	o := options{broken: map[string]simulation.Fault{}, until: program.Span(2 * time.Hour)}
	return program.Command{
		Name:  "rollout",
		About: "Rollout rehearses an update of a simulated cluster.",
		Codes: "0: the update completed; 1: it was refused, is stuck or was interrupted; 3: it cannot be played",
		Flags: func(f *flag.FlagSet) {
			o.nodes.Declare(f)
			nodes.DeclareFaults(f, o.broken)
			nodes.DeclareSizes(f, &o.canary)
			f.BoolVar(&o.block, "block", false, "run a pod that may not be evicted")
			f.Float64Var(&o.fraction, "faults", 0, "`fraction` of the API calls that fail, from 0 to 0.5")
			f.Uint64Var(&o.seed, "seed", 1, "`number` from which everything random follows")
			f.Var(&o.until, "until", "`duration` without progress after which the update counts as stuck")
			program.Format(f, &o.format, "json", "svg")
		},
		Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			r, err := o.rehearse(ctx)
			if err != nil {
				return err
			}
			if err := o.print(r, stdout); err != nil {
				return err
			}
			if r.Outcome != forecast.Completed {
				return program.ErrNo
			}
			return nil
		},
	}
}

// rehearse makes the cluster that the flags describe, and plays its update.
func (o *options) rehearse(ctx context.Context) (*forecast.Rehearsal, error) {
	if !(o.fraction >= 0 && o.fraction <= 0.5) {
		return nil, program.Usagef("-faults %v: not from 0 to 0.5", o.fraction)
	}
	images, err := rehearsal.Open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c, err := o.cluster()
	if err != nil {
		return nil, err
	}
	c.Release = payload.Release(images[0].Payload)
	cluster, err := simulation.New(c)
	if err != nil {
		return nil, program.Usagef("-nodes: %w", err)
	}
	canary, err := o.plan(ctx, cluster, images[1])
	if err != nil {
		return nil, program.Usagef("-canary: %w", err)
	}
	r, err := forecast.Rehearse(ctx, forecast.RehearseOptions{
		Reader: cluster, From: images[0], To: images[1],
		Seed: o.seed, Until: time.Duration(o.until), Faults: o.broken, Plan: canary,
		Calls: reconcile.Faults{Before: o.fraction / 2, After: o.fraction / 2, Processes: []string{"rollout", "plan canary"}},
	})
	if err != nil && len(o.broken) > 0 && ctx.Err() == nil {
		return nil, program.Usagef("-break: %w", err)
	}
	return r, err
}

// cluster is the simulated cluster that the flags describe.
func (o *options) cluster() (c simulation.Options, err error) {
	const worker = "worker"
	if _, named := o.nodes.Nodes[worker]; !named {
		o.nodes.Nodes[worker] = 6
	}
	for name := range o.nodes.Limits {
		if _, known := o.nodes.Nodes[name]; !known {
			return c, program.Usagef("-max-unavailable %s: -nodes has no such pool", name)
		}
	}
	c.Clock = reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.ClusterVersion.Channel = "rehearsal"
	for _, name := range slices.Sorted(maps.Keys(o.nodes.Nodes)) {
		pool := simulation.Pool{Name: name, Nodes: o.nodes.Nodes[name], MaxUnavailable: o.nodes.Limits[name]}
		c.Pools = append(c.Pools, pool)
	}
	// A web shop must keep two of its three replicas, and its database the one.
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	c.Workloads = []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}}
	if o.block {
		c.Workloads = append(c.Workloads, simulation.Workload{Namespace: "shop", Name: "db", Replicas: 1, MinAvailable: &one})
	}
	return c, nil
}

// plan is the canary plan that the flags describe, nil without one.
func (o *options) plan(ctx context.Context, cluster *simulation.Cluster, to *payload.Image) (*plan.Plan, error) {
	if o.canary == nil {
		return nil, nil
	}
	c, err := plan.ReadCluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	p, _, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "canary", Sizes: o.canary, Version: to.Version(), Image: to.PullSpec})
	return &p, err
}

// print shows a rehearsal.
func (o *options) print(r *forecast.Rehearsal, stdout io.Writer) error {
	switch o.format {
	case "svg":
		return r.Timeline.WriteSVG(stdout, timeline.SVGOptions{})
	case "json":
		return program.JSON(stdout, r)
	}
	terminal := program.TerminalOf(stdout)
	out := terminal.Wrap(stdout)
	if err := r.Timeline.WriteText(out, timeline.TextOptions{Width: terminal.Width}); err != nil {
		return err
	}
	for _, cause := range r.Why {
		fmt.Fprintf(out, "why: %s\n", cause)
	}
	for _, assumed := range r.Assumed {
		fmt.Fprintf(out, "assumed: %s\n", assumed)
	}
	_, err := fmt.Fprintf(out, "%s after %s\n", strings.ToLower(string(r.Outcome)), r.Timeline.End.Sub(r.Start))
	return err
}
