// Command rollout rehearses an update of a simulated cluster: which node goes when,
// what holds it up, and how long all of it takes.
//
//	go run ./examples/rollout -nodes 6 -max-unavailable 2 -svg rollout.svg
//
// It is played in virtual time, at once and the same each time. Everything that decides
// is the library's; operators, kubelets, machine-config daemons and workloads are played.
// For a recorded cluster see examples/forecast.
//
// The exit code is 0 when the update completed, 1 when it is stuck, refused or was
// interrupted, 2 when the command line is wrong.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/mcp/plan"
)

func main() { program.Main(command()) }

type options struct {
	maxUnavailable, format, svg string
	pools, broken, canary       program.List
	nodes                       int
	block                       bool
	failing                     float64
	seed                        uint64
	until                       time.Duration
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "rollout",
		About: "Rollout rehearses an update of a simulated cluster.",
		Codes: "0: the update completed; 1: it is stuck, refused or was interrupted",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&o.nodes, "nodes", 6, "nodes of the pool worker")
			f.Var(&o.pools, "pools", "further pools and their nodes, as `infra=2`")
			f.StringVar(&o.maxUnavailable, "max-unavailable", "", "how many nodes of a pool go down at a time: a `number or percentage`")
			f.BoolVar(&o.block, "block", false, "run a pod that may not be evicted")
			f.Var(&o.broken, "break", "what is wrong with a node, as `worker-1=NodeDegraded`")
			f.Float64Var(&o.failing, "faults", 0, "`share` of the API calls that fail, from 0 to 0.5")
			f.Uint64Var(&o.seed, "seed", 1, "what is drawn at random follows from it")
			f.DurationVar(&o.until, "until", 2*time.Hour, "how long nothing moves before the update counts as stuck")
			f.Var(&o.canary, "canary", "update the pool worker by a plan, in groups of these `sizes`, as 1,2")
			f.StringVar(&o.format, "o", "text", "`format`: text or json")
			f.StringVar(&o.svg, "svg", "", "write the timeline as a picture to this `file`")
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
	c, err := o.cluster()
	if err != nil {
		return nil, program.Usagef("%w", err)
	}
	broken, err := nodes.ParseFaults(o.broken)
	if err != nil {
		return nil, program.Usagef("-break %w", err)
	}
	images, err := rehearsal.Open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c.Release = payload.Release(images[0].Payload)
	cluster, err := simulation.New(c)
	if err != nil {
		return nil, program.Usagef("%w", err)
	}
	canary, err := o.plan(ctx, cluster, images[1])
	if err != nil {
		return nil, program.Usagef("%w", err)
	}
	r, err := forecast.Rehearse(ctx, forecast.RehearseOptions{
		Reader: cluster, From: images[0], To: images[1],
		Seed: o.seed, Until: o.until, Faults: broken, Plan: canary,
		Calls: reconcile.Faults{Before: o.failing / 2, After: o.failing / 2, Processes: []string{"rollout", "plan canary"}},
	})
	if err != nil && ctx.Err() == nil {
		return nil, program.Usagef("%w", err)
	}
	return r, err
}

// cluster is the simulated cluster that the flags describe.
func (o *options) cluster() (c simulation.Options, err error) {
	switch {
	case o.format != "text" && o.format != "json":
		return c, fmt.Errorf("-o %s: not text or json", o.format)
	case o.nodes < 0:
		return c, fmt.Errorf("-nodes must not be below 0")
	case o.until <= 0:
		return c, fmt.Errorf("-until must be above 0")
	case !(o.failing >= 0 && o.failing <= 0.5):
		return c, fmt.Errorf("-faults must be from 0 to 0.5")
	}
	limit, err := nodes.ParseLimit(o.maxUnavailable)
	if err != nil {
		return c, fmt.Errorf("-max-unavailable %w", err)
	}
	c.Pools, err = nodes.ParsePools(o.pools, limit)
	if err != nil {
		return c, fmt.Errorf("-pools %w", err)
	}
	c.Clock = reconcile.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.ClusterVersion.Channel = "rehearsal"
	c.Pools = append(c.Pools, simulation.Pool{Nodes: o.nodes, MaxUnavailable: limit})
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
	sizes, err := nodes.ParseSizes(o.canary)
	if err != nil {
		return nil, fmt.Errorf("-canary %w", err)
	}
	if sizes == nil {
		return nil, nil
	}
	c, err := plan.ReadCluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	p, _, err := plan.PlanCanary(c, plan.CanaryOptions{ID: "canary", Sizes: sizes, Version: to.Version(), Image: to.PullSpec})
	return &p, err
}

// print shows a rehearsal, and writes the picture.
func (o *options) print(r *forecast.Rehearsal, stdout io.Writer) error {
	if o.svg != "" {
		var picture bytes.Buffer
		if err := r.Timeline.WriteSVG(&picture, timeline.SVGOptions{}); err != nil {
			return err
		}
		if err := os.WriteFile(o.svg, picture.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if o.format == "json" {
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
