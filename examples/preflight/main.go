// Command preflight says whether a cluster may be updated: it runs every check that
// the version operator makes and every one that the documentation asks an
// administrator to make, and prints the checklist.
//
// With -dump it judges a recording, at its time: a must-gather, the folder of an oc
// adm inspect, an Insights archive, any heap of manifests, or a .tar or .tar.gz of one:
//
//	go run ./examples/preflight -dump must-gather.tar.gz -to 4.19.1 -payload release/
//
// Some checks look into the release to update to, the directory -payload, and that
// which the cluster runs, -from. What is not recorded is not known, never a pass.
//
// -allow NAME=WHY sets a check aside. Without -dump it judges a simulated cluster and
// a release that are built in.
//
// The exit code is 0 when nothing blocks, 1 when something does or, with -strict,
// when there are warnings, 2 when the command line is wrong, 3 when the recording or
// a release cannot be read or, with -strict, when something is not known.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/preflight"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

func main() { program.Main(command()) }

type options struct {
	dump, payload, from, kernel, plan, format string
	to, planTo                                program.Version
	allow                                     program.List
	strict                                    bool
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "preflight",
		About: "Preflight says whether a cluster may be updated.",
		Codes: "0: nothing blocks; 1: something does; 3: a recording or a release cannot be read; with -strict 1: warnings, 3: something is not known",
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.dump, "dump", "", "recording of a cluster: a `directory or archive` (default: a simulated cluster)")
			f.Var(&o.to, "to", "`version` to update to")
			f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to")
			f.StringVar(&o.from, "from", "", "`directory` of the release that the cluster runs")
			f.StringVar(&o.kernel, "kernel", "", "kernel `version` of the release to update to")
			f.StringVar(&o.plan, "plan", "full", "how the pools follow: full, canary, control-plane-only")
			f.Var(&o.planTo, "plan-to", "`version` at which the plan ends, if that is more steps away than -to")
			f.Var(&o.allow, "allow", "set a check aside: `NAME=WHY`, may be repeated")
			f.StringVar(&o.format, "o", "text", "`format`: text, json or markdown")
			f.BoolFunc("json", "short for -o json", func(string) error { o.format = "json"; return nil })
			f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings, and with 3 where something is not known")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			policy, plan, err := o.check()
			if err != nil {
				return err
			}
			report, err := o.preflight(ctx, plan, stderr)
			if err != nil {
				return program.Unread(err)
			}
			decision := report.Decide(policy)
			if err := o.print(stdout, report, decision); err != nil {
				return err
			}
			return o.exit(decision)
		},
	}
}

// check reads the flags that others do not read.
func (o *options) check() (policy preconditions.Policy, plan preconditions.Plan, err error) {
	plan = preconditions.Plan(slices.Index([]string{"full", "canary", "control-plane-only"}, o.plan))
	switch {
	case o.dump != "" && o.to == "":
		return policy, plan, program.Usagef("-dump needs -to, the version to update to")
	case o.dump == "" && (o.payload != "" || o.from != ""):
		return policy, plan, program.Usagef("-payload and -from go with -dump")
	case o.format != "text" && o.format != "json" && o.format != "markdown":
		return policy, plan, program.Usagef("-o %s: not text, json or markdown", o.format)
	case plan < 0:
		return policy, plan, program.Usagef("-plan %s: not full, canary or control-plane-only", o.plan)
	}
	for _, allow := range o.allow {
		name, why, ok := strings.Cut(allow, "=")
		known := slices.ContainsFunc(rules.Default(rules.Options{}), func(c preconditions.Check) bool { return c.Name() == name })
		if !ok || why == "" || !known {
			return policy, plan, program.Usagef("-allow %s: not the name of a check, =, and why", allow)
		}
		policy.Bypasses = append(policy.Bypasses, preconditions.Bypass{Check: name, By: "-allow", Why: why})
	}
	return policy, plan, nil
}

func (o *options) preflight(ctx context.Context, plan preconditions.Plan, stderr io.Writer) (*preconditions.Report, error) {
	options := preflight.Options{Plan: plan}
	if o.planTo != "" {
		end, err := semver.StrictNewVersion(string(o.planTo))
		if err != nil {
			return nil, program.Usagef("-plan-to %s: %v", o.planTo, err)
		}
		options.PlanTarget = end
	}
	prepare := o.simulated
	if o.dump != "" {
		prepare = o.recorded
	}
	cluster, in, err := prepare(ctx, stderr)
	if err != nil {
		return nil, err
	}
	options.Input = in
	return preflight.Run(ctx, cluster, configv1.Release{Version: string(o.to)}, options)
}

// recorded reads a recording and what is judged with it.
func (o *options) recorded(ctx context.Context, stderr io.Writer) (_ clusterapi.Reader, in preconditions.Input, err error) {
	recording, err := program.OpenRecording(ctx, o.dump, stderr, "")
	if err != nil {
		return nil, in, err
	}
	in.TargetKernel = o.kernel
	in.TargetPayload, err = load(ctx, o.payload)
	if err != nil {
		return nil, in, err
	}
	in.CurrentPayload, err = load(ctx, o.from)
	return recording, in, err
}

// load reads a release; without a directory there is none.
func load(ctx context.Context, dir string) (*manifest.Payload, error) {
	if dir == "" {
		return nil, nil
	}
	p, err := manifest.Load(ctx, os.DirFS(dir), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return p, nil
}

// simulated has a cluster that is at rest and knows of its updates.
func (o *options) simulated(ctx context.Context, _ io.Writer) (_ clusterapi.Reader, in preconditions.Input, err error) {
	cluster, images, err := rehearsal.AtRest(ctx)
	if err != nil {
		return nil, in, err
	}
	o.to = cmp.Or(o.to, program.Version(images[1].Version()))
	return cluster, preconditions.Input{CurrentPayload: images[0].Payload, TargetPayload: images[1].Payload, TargetKernel: o.kernel, Now: cluster.Clock.Now()}, nil
}

func (o *options) print(w io.Writer, report *preconditions.Report, d preconditions.Decision) error {
	step := fmt.Sprintf("Update from %s to %s", report.Transition.Current, report.Transition.Target)
	switch o.format {
	case "json":
		return program.JSON(w, report)
	case "markdown":
		fmt.Fprintf(w, "# %s\n\n", step)
		return d.WriteMarkdown(w)
	}
	fmt.Fprintln(w, step)
	return d.WriteText(w)
}

func (o *options) exit(d preconditions.Decision) error {
	switch {
	case d.Blocked:
		return program.ErrNo
	case o.strict && d.Incomplete():
		return program.ErrUnknown
	case o.strict && d.Warned():
		return program.ErrNo
	}
	return nil
}
