// Command rollout rehearses a rollout to the nodes of a cluster: which node goes
// when, what holds it up, and how long all of it takes.
//
// Without -dump it makes a simulated cluster, gives its pools a new configuration,
// and plays the rollout in virtual time, at once and the same each time:
//
//	go run ./examples/rollout -nodes 6 -max-unavailable 2 -svg rollout.svg
//
// With -dump it begins as a recording, a must-gather or any heap of manifests, does:
// what is pending there is rolled out, and what the recording lacks is assumed and
// listed:
//
//	go run ./examples/rollout -dump must-gather.tar.gz -explain
//
// Everything that decides is the library's; kubelets, machine-config daemons and
// workloads are played.
//
// The exit code is 0 when the rollout completed, 1 when it is stuck or was interrupted,
// 2 when the command line is wrong, 3 when the recording lacks nodes or pools.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
)

func main() { program.Main(command()) }

type options struct {
	dump, maxUnavailable, format, svg string
	pools, broken, canary             program.List
	groups                            []int // of canary
	nodes                             int
	block, explain, estimate          bool
	faults                            float64
	seed                              uint64
	until                             time.Duration
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "rollout",
		About: "Rollout rehearses a rollout to the nodes of a cluster.",
		Codes: "0: the rollout completed; 1: it is stuck or was interrupted; 3: the recording lacks nodes or pools",
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.dump, "dump", "", "recording of a cluster: a `directory or archive` (default: a simulated cluster)")
			f.IntVar(&o.nodes, "nodes", 6, "nodes of the simulated pool worker")
			f.Var(&o.pools, "pools", "further simulated pools and their nodes, as `infra=2`")
			f.StringVar(&o.maxUnavailable, "max-unavailable", "", "how many nodes of a simulated pool go down at a time: a `number or percentage`")
			f.BoolVar(&o.block, "block", false, "run a simulated pod that may not be evicted")
			f.Var(&o.broken, "break", "what is wrong with a simulated node, as `worker-1=NodeDegraded`")
			f.Float64Var(&o.faults, "faults", 0, "`share` of the API calls that fail in the first hour, from 0 to 0.5")
			f.Uint64Var(&o.seed, "seed", 1, "what is drawn at random follows from it")
			f.DurationVar(&o.until, "until", 2*time.Hour, "how long nothing moves before the rollout counts as stuck")
			f.Var(&o.canary, "canary", "update the simulated pool worker by a plan, in groups of these `sizes`, as 1,2")
			f.BoolVar(&o.estimate, "estimate", false, "show how long it is to take by the books")
			f.BoolVar(&o.explain, "explain", false, "show of each node why it is next, or not")
			f.StringVar(&o.format, "o", "text", "`format`: text or json")
			f.StringVar(&o.svg, "svg", "", "write the timeline as a picture to this `file`")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			cluster, err := o.cluster()
			if err != nil {
				return program.Usagef("%w", err)
			}
			return o.rehearse(ctx, cluster, stdout, stderr)
		},
	}
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
	case !(o.faults >= 0 && o.faults <= 0.5):
		return c, fmt.Errorf("-faults must be from 0 to 0.5")
	case o.canary != nil && (o.explain || o.estimate):
		return c, fmt.Errorf("-explain and -estimate are about what is pending: with -canary nothing is, when it begins")
	case o.dump != "" && (o.block || o.broken != nil || o.pools != nil || o.canary != nil || o.maxUnavailable != ""):
		return c, fmt.Errorf("-block, -break, -canary, -pools and -max-unavailable are for the simulated cluster: they do not go with -dump")
	}
	limit, err := nodes.ParseLimit(o.maxUnavailable)
	if err != nil {
		return c, fmt.Errorf("-max-unavailable %w", err)
	}
	c.Pools, err = nodes.ParsePools(o.pools, limit)
	if err != nil {
		return c, fmt.Errorf("-pools %w", err)
	}
	o.groups, err = nodes.ParseSizes(o.canary)
	if err != nil {
		return c, fmt.Errorf("-canary %w", err)
	}
	c.NodeFaults, err = nodes.ParseFaults(o.broken)
	if err != nil {
		return c, fmt.Errorf("-break %w", err)
	}
	c.Release.Version = "4.21.1"
	c.Pools = append(c.Pools, simulation.Pool{Nodes: o.nodes, MaxUnavailable: limit})
	// A web shop must keep two of its three replicas, and its database the one.
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	c.Workloads = []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}}
	if o.block {
		c.Workloads = append(c.Workloads, simulation.Workload{Namespace: "shop", Name: "db", Replicas: 1, MinAvailable: &one})
	}
	return c, nil
}

// rehearse plays the rollout to its end.
func (o *options) rehearse(ctx context.Context, c simulation.Options, stdout, stderr io.Writer) error {
	how := nodes.Options{Title: "Rollout on a simulated cluster", Seed: o.seed, Failing: o.faults, Canary: o.groups, Explain: o.explain, Estimate: o.estimate}
	var r *nodes.Rehearsal
	if o.dump != "" {
		recording, err := program.OpenRecording(ctx, o.dump, stderr, "")
		if err != nil {
			return err
		}
		how.Title = "Rollout on " + o.dump
		r, err = nodes.Fork(ctx, how, recording)
		if err != nil {
			return err
		}
	} else {
		var err error
		r, err = nodes.Simulate(ctx, how, c)
		if err != nil {
			return program.Usagef("%w", err)
		}
	}
	defer r.Close()
	result, err := r.Play(ctx, o.until)
	if err != nil {
		return err
	}
	if err := o.print(result, stdout); err != nil {
		return err
	}
	switch result.Outcome {
	case nodes.Stuck:
		return program.ErrNo
	case nodes.Unknown:
		return program.ErrUnknown
	}
	return nil
}

// print shows a result, and writes the picture.
func (o *options) print(result *nodes.Result, stdout io.Writer) error {
	if o.svg != "" {
		var picture bytes.Buffer
		if err := result.Timeline.WriteSVG(&picture, timeline.SVGOptions{}); err != nil {
			return err
		}
		if err := os.WriteFile(o.svg, picture.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if o.format == "json" {
		return program.JSON(stdout, result)
	}
	terminal := program.TerminalOf(stdout)
	return result.WriteText(terminal.Wrap(stdout), terminal.Width)
}
