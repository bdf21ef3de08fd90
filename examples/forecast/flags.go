package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/examples/internal/graphs"
	"github.com/clusterupdate/clusterupdate/examples/internal/nodes"
	"github.com/clusterupdate/clusterupdate/examples/internal/recording"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

// options are the flags of the program, and the options of the forecast that follow from
// them.
type options struct {
	format string
	strict bool

	dumps, allow           program.List
	to, planTo             program.Version
	payload, running, plan string
	runs                   program.Count
	graphs                 graphs.Flags
	nodes                  nodes.Flags
	forecast               forecast.Options
}

// needs are the conditions of the flags: see [program.Command].
func needs() map[string][]string {
	return map[string][]string{
		"dump": {"to", "payload"}, "to": {"dump"}, "payload": {"dump"}, "running": {"dump"}, "channel": {"graph"},
		"max-unavailable": {"rehearse"}, "nodes": {"rehearse"}, "o svg": {"rehearse"},
		"plan-to": {"plan control-plane-only"},
	}
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
	if err := o.match(ctx, clusters); err != nil {
		return nil, err
	}
	return clusters, o.networks(ctx, clusters, problems)
}

// declare declares the flags.
func (o *options) declare(f *flag.FlagSet) {
	o.graphs.Name = "forecast"
	o.graphs.DeclarePlaces(f)
	o.nodes.Declare(f)
	f.Var(&o.dumps, "dump",
		"recording of a cluster: a `directory or archive`; may be repeated for a fleet (default: a simulated cluster)")
	f.Var(&o.to, "to", "`version` to update to (default: that of -payload)")
	f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to")
	f.StringVar(&o.running, "running", "", "`directory` of the release that the cluster runs")
	f.Var(&o.runs, "rehearse", "`number` of times to play the update")
	f.StringVar(&o.forecast.Preflight.Input.TargetKernel, "kernel", "", "kernel `version` of the release to update to")
	program.Choice(f, &o.plan, "plan", "how the pools follow", plans...)
	f.Var(&o.planTo, "plan-to", "`version` at which the plan ends, if that is more steps away than -to")
	f.Var(&o.allow, "allow", "set a check aside: `NAME=WHY`; may be repeated")
	program.Format(f, &o.format, "json", "markdown", "svg")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings too")
}

// plans are the names of [preconditions.Plan].
var plans = []string{"full", "canary", "control-plane-only"}

// check reads the flags into the options of the forecast.
func (o *options) check() error {
	if o.format == "svg" && len(o.dumps) > 1 {
		return program.Usagef("-o svg draws the rehearsal of one cluster: it does not go with several -dump")
	}
	o.forecast.To = string(o.to)
	o.forecast.Preflight.Plan = preconditions.Plan(slices.Index(plans, o.plan))
	if o.planTo != "" {
		end, err := semver.StrictNewVersion(string(o.planTo))
		if err != nil {
			return program.Usagef("-plan-to %s: %v", o.planTo, err)
		}
		o.forecast.Preflight.PlanTarget = end
	}
	if o.runs > 0 {
		r := &forecast.RehearseOptions{Runs: int(o.runs), Pools: map[string]forecast.PoolChange{}, Nodes: o.nodes.Nodes}
		for pool, limit := range o.nodes.Limits {
			r.Pools[pool] = forecast.PoolChange{MaxUnavailable: limit}
		}
		o.forecast.Rehearse = r
	}
	return o.checkAllowed()
}

// checkAllowed reads the checks to set aside.
func (o *options) checkAllowed() error {
	for _, allow := range o.allow {
		name, why, _ := strings.Cut(allow, "=")
		isNamed := func(c preconditions.Check) bool { return c.Name() == name }
		known := slices.ContainsFunc(rules.Default(rules.Options{}), isNamed)
		if name == "" || why == "" {
			return program.Usagef("-allow %s: not NAME=WHY", allow)
		}
		if !known {
			return program.Usagef("-allow %s: no check has the name %s", allow, name)
		}
		policy := &o.forecast.Preflight.Policy
		policy.Bypasses = append(policy.Bypasses, preconditions.Bypass{Check: name, By: "-allow", Why: why})
	}
	return nil
}

// releases opens the releases that have a directory.
func (o *options) releases(ctx context.Context) error {
	options := [2]string{"-running", "-payload"}
	for i, dir := range []string{o.running, o.payload} {
		if dir == "" {
			continue
		}
		image, err := payload.Open(ctx, dir, os.DirFS(dir))
		if err != nil {
			return fmt.Errorf("%s: %w", options[i], err)
		}
		o.forecast.Releases = append(o.forecast.Releases, image)
		if options[i] != "-payload" {
			continue
		}
		if o.forecast.To == "" {
			o.forecast.To = image.Version()
		}
		if o.forecast.To != image.Version() {
			return program.Usagef("-to %s: the release of -payload is %s", o.forecast.To, image.Version())
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
		recorded, err := recording.Open(ctx, place, problems, "")
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, forecast.Cluster{Name: place, Reader: recorded})
	}
	return clusters, nil
}

// match returns a usage error for a release or a pool that none of the clusters has, and
// for a plan that ends before the update does.
func (o *options) match(ctx context.Context, clusters []forecast.Cluster) error {
	end := o.forecast.Preflight.PlanTarget
	if to, err := semver.StrictNewVersion(o.forecast.To); err == nil && end != nil && end.LessThan(to) {
		return program.Usagef("-plan-to %s: it is lower than %s, the version to update to", end, to)
	}
	versions, pools := map[string]bool{}, map[string]bool{}
	for _, c := range clusters {
		cv, err := clusterapi.Read[configv1.ClusterVersion](ctx, c.Reader, clusterapi.Key("", "version"))
		if err != nil {
			return nil // the forecast reports it
		}
		versions[cv.Status.Desired.Version] = true
		for _, h := range cv.Status.History {
			versions[h.Version] = true
		}
		known, _ := clusterapi.List[mcfgv1.MachineConfigPool](ctx, c.Reader, clusterapi.ListOptions{})
		for _, pool := range known {
			pools[pool.Name] = true
		}
	}
	list := func(names map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(names)), ", ") }
	if o.running != "" && !versions[o.forecast.Releases[0].Version()] {
		return program.Usagef("-running %s: no cluster runs %s, but %s", o.running, o.forecast.Releases[0].Version(), list(versions))
	}
	for option, given := range map[string][]string{
		"-nodes":           slices.Sorted(maps.Keys(o.nodes.Nodes)),
		"-max-unavailable": slices.Sorted(maps.Keys(o.nodes.Limits)),
	} {
		for _, name := range given {
			if len(pools) > 0 && !pools[name] {
				return program.Usagef("%s %s: the pools are %s", option, name, list(pools))
			}
		}
	}
	return nil
}

// networks loads the update graphs: the channels that are named, else those of the
// clusters. A file has a channel of its own.
func (o *options) networks(ctx context.Context, clusters []forecast.Cluster, problems io.Writer) (err error) {
	if len(o.graphs.Places) == 0 {
		return nil
	}
	isFolder := func(place string) bool { return !isFile(place) }
	if len(o.graphs.Channels) == 0 && slices.ContainsFunc(o.graphs.Places, isFolder) {
		o.graphs.Channels = channelsOf(ctx, clusters)
	}
	o.forecast.Networks, err = o.graphs.Networks(ctx, path.NetworkOptions{}, problems)
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
