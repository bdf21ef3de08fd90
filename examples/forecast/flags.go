package main

import (
	"context"
	"flag"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// options are the flags of the program, and the options of the forecast that follow from
// them.
type options struct {
	format string
	strict bool

	dumps, places, channels, allow, limits, nodes program.List
	to, planTo                                    program.Version
	payload, running, plan                        string
	runs                                          int
	forecast                                      forecast.Options
}

// read opens the clusters that the flags name, and what to judge them by. Errors are those
// of usage and of reading.
func (o *options) read(ctx context.Context, problems io.Writer) ([]forecast.Cluster, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	clusters, err := o.clusters(ctx, problems)
	if err != nil {
		return nil, err
	}
	return clusters, o.graphs(ctx, clusters)
}

// declare declares the flags.
func (o *options) declare(f *flag.FlagSet) {
	f.Var(&o.dumps, "dump",
		"recording of a cluster: a `directory or archive`; several are a fleet (default: a simulated cluster)")
	f.Var(&o.to, "to", "`version` to update to (default: that of -payload)")
	f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to")
	f.StringVar(&o.running, "running", "", "`directory` of the release that the cluster runs")
	f.Var(&o.places, "graph", "`file`, folder or address of update graphs; may be repeated")
	f.Var(&o.channels, "channel", "`names` of channels of -graph (default: those of the clusters)")
	f.IntVar(&o.runs, "rehearse", 0, "play the update so many `times`")
	f.Var(&o.limits, "max-unavailable", "rehearse with another limit of a pool: `POOL=N`; may be repeated")
	f.Var(&o.nodes, "nodes", "rehearse with so many nodes in a pool: `POOL=N`; may be repeated")
	f.StringVar(&o.forecast.Preflight.Input.TargetKernel, "kernel", "", "kernel `version` of the release to update to")
	f.StringVar(&o.plan, "plan", "full", "how the pools follow: full, canary, control-plane-only")
	f.Var(&o.planTo, "plan-to", "`version` at which the plan ends, if that is more steps away than -to")
	f.Var(&o.allow, "allow", "set a check aside: `NAME=WHY`, may be repeated")
	f.StringVar(&o.format, "o", "text", "`format`: text, json, markdown or svg")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings")
}

// check reads the flags into the options of the forecast.
func (o *options) check() error {
	plan := preconditions.Plan(slices.Index([]string{"full", "canary", "control-plane-only"}, o.plan))
	change := len(o.limits) > 0 || len(o.nodes) > 0
	switch {
	case len(o.dumps) > 0 && o.to == "" && o.payload == "":
		return program.Usagef("-dump needs -to or -payload, the release to update to")
	case len(o.dumps) == 0 && (o.payload != "" || o.running != ""):
		return program.Usagef("-payload and -running go with -dump")
	case !slices.Contains([]string{"text", "json", "markdown", "svg"}, o.format):
		return program.Usagef("-o %s: not text, json, markdown or svg", o.format)
	case o.format == "svg" && o.runs == 0:
		return program.Usagef("-o svg draws a rehearsal: it needs -rehearse")
	case o.format == "svg" && len(o.dumps) > 1:
		return program.Usagef("-o svg draws the rehearsal of one cluster, not of %d", len(o.dumps))
	case len(o.channels) > 0 && len(o.places) == 0:
		return program.Usagef("-channel goes with -graph")
	case o.runs < 0:
		return program.Usagef("-rehearse %d: below 0", o.runs)
	case change && o.runs == 0:
		return program.Usagef("-max-unavailable and -nodes change a rehearsal: they need -rehearse")
	case plan < 0:
		return program.Usagef("-plan %s: not full, canary or control-plane-only", o.plan)
	}
	o.forecast.To, o.forecast.Preflight.Plan = string(o.to), plan
	if err := o.checkLists(); err != nil || o.planTo == "" {
		return err
	}
	end, err := semver.StrictNewVersion(string(o.planTo))
	if err != nil {
		return program.Usagef("-plan-to %s: %v", o.planTo, err)
	}
	o.forecast.Preflight.PlanTarget = end
	return nil
}

// checkLists reads the flags that are pairs.
func (o *options) checkLists() error {
	for _, allow := range o.allow {
		name, why, _ := strings.Cut(allow, "=")
		isNamed := func(c preconditions.Check) bool { return c.Name() == name }
		known := slices.ContainsFunc(rules.Default(rules.Options{}), isNamed)
		if name == "" || why == "" {
			return program.Usagef("-allow %s: not the name of a check, =, and why", allow)
		}
		if !known {
			return program.Usagef("-allow %s: no check has the name %s", allow, name)
		}
		policy := &o.forecast.Preflight.Policy
		policy.Bypasses = append(policy.Bypasses, preconditions.Bypass{Check: name, By: "-allow", Why: why})
	}
	if o.runs == 0 {
		return nil
	}
	r := &forecast.RehearseOptions{Runs: o.runs, Pools: map[string]forecast.PoolChange{}, Nodes: map[string]int{}}
	o.forecast.Rehearse = r
	for _, limit := range o.limits {
		pool, text, _ := strings.Cut(limit, "=")
		value, err := nodes.ParseLimit(text)
		if err != nil || value == nil || pool == "" {
			return program.Usagef("-max-unavailable %s: not a pool, =, and a number above 0 or a percentage", limit)
		}
		r.Pools[pool] = forecast.PoolChange{MaxUnavailable: value}
	}
	pools, err := nodes.ParsePools(o.nodes, nil)
	if err != nil {
		return program.Usagef("-nodes %w", err)
	}
	for _, pool := range pools {
		r.Nodes[pool.Name] = pool.Nodes
	}
	return nil
}

// releases opens the releases that have a directory.
func (o *options) releases(ctx context.Context) error {
	for _, dir := range []string{o.running, o.payload} {
		if dir == "" {
			continue
		}
		image, err := payload.Open(ctx, dir, os.DirFS(dir))
		if err != nil {
			return err
		}
		o.forecast.Releases = append(o.forecast.Releases, image)
		if dir == o.payload && o.forecast.To == "" {
			o.forecast.To = image.Version()
		}
	}
	return nil
}

// clusters are the recordings, or a simulated cluster that is at rest.
func (o *options) clusters(ctx context.Context, problems io.Writer) ([]forecast.Cluster, error) {
	if len(o.dumps) == 0 {
		cluster, images, err := rehearsal.AtRest(ctx)
		if err != nil {
			return nil, err
		}
		o.forecast.Releases = images
		o.forecast.To = images[1].Version()
		return []forecast.Cluster{{Name: "simulated", Reader: cluster.Cluster}}, nil
	}
	if err := o.releases(ctx); err != nil {
		return nil, err
	}
	var clusters []forecast.Cluster
	for _, place := range o.dumps {
		recording, err := program.OpenRecording(ctx, place, problems, "")
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, forecast.Cluster{Name: place, Reader: recording})
	}
	return clusters, nil
}

// graphs loads the update graphs: the channels that are named, else those of the
// clusters. A file has a channel of its own.
func (o *options) graphs(ctx context.Context, clusters []forecast.Cluster) error {
	if len(o.places) == 0 {
		return nil
	}
	if len(o.channels) == 0 && slices.ContainsFunc(o.places, func(place string) bool { return !isFile(place) }) {
		o.channels = channelsOf(ctx, clusters)
	}
	load := path.LoadOptions{Channels: o.channels, Client: &graph.Client{UserAgent: "clusterupdate-forecast"}}
	graphs, err := path.Load(ctx, o.places, load)
	if err != nil {
		return err
	}
	o.forecast.Networks, err = path.ByArchitecture(ctx, path.NetworkOptions{}, graphs...)
	return err
}

func isFile(place string) bool {
	info, err := os.Stat(place)
	return err == nil && info.Mode().IsRegular()
}

// channelsOf are the channels that clusters are in, each once.
func channelsOf(ctx context.Context, clusters []forecast.Cluster) []string {
	var channels []string
	for _, c := range clusters {
		cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, c.Reader, clusterapi.Key("", "version"))
		if err == nil && cv.Spec.Channel != "" && !slices.Contains(channels, cv.Spec.Channel) {
			channels = append(channels, cv.Spec.Channel)
		}
	}
	return channels
}
