// Command olm answers questions about operator catalogs: what they hold, what
// breaks the rules of their format, what a set of Subscriptions comes to, what
// holds an operator back, and how it gets from one version to another.
//
//	olm list mesh
//	olm resolve -subscribe mesh=mesh.v1@next,tracing=tracing.v1 -openshift 4.19
//	olm explain -subscribe mesh=mesh.v1@stable -subscribe tracing=tracing.v1
//	olm plan -cluster must-gather -source openshift-marketplace/community-operators=community.jsonl -openshift 4.19
//	olm path storage -from storage.v1.0 -to storage.v1.2 -picture dot | dot -Tsvg > path.svg
//
// -catalog names a file or a folder of file-based catalogs, as "opm render" or an
// index image has them; without it a small one is used that is built in.
//
// A Subscription is written PACKAGE[=INSTALLED][@CHANNEL]: without INSTALLED
// nothing is installed yet, without CHANNEL any will do. plan speaks of a cluster:
// -cluster is a recording with all of its OLM objects, such as a must-gather, and
// -source reports which catalog stands for which CatalogSource.
//
// The exit code is 0 with an answer, 1 if there is none, if something is held
// back, or if the catalog has problems, 2 when the command line is wrong.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/examples/olm/trial"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

//go:embed catalog.yaml
var builtIn []byte

var content = catalog.Options{DropContent: true} // what operators install is not looked at

// olmKinds are taken to be all there in a recording.
var olmKinds = []string{"catalogsources", "clusterserviceversions", "installplans", "operatorgroups", "subscriptions"}

func main() { program.Main(command()) }

type options struct {
	catalog, openshift, cluster   string
	subscribe, installed, sources program.List
	from, to, channel, picture    string
	how                           olm.Options
	view                          catalog.PictureOptions
}

func command() program.Command {
	var o options
	openshift := func(f *flag.FlagSet) {
		f.Func("openshift", "also say what is in the way of this `version` of OpenShift", func(value string) error {
			o.openshift = value
			_, err := olm.ParseOpenShiftVersion(value)
			return err
		})
	}
	place := func(f *flag.FlagSet) {
		f.StringVar(&o.catalog, "catalog", "", "`file` or folder of a catalog (default: one that is built in)")
	}
	subscriptions := func(f *flag.FlagSet) {
		place(f)
		f.Var(&o.subscribe, "subscribe", "`PACKAGE[=INSTALLED][@CHANNEL]`; may be repeated")
		f.Var(&o.installed, "installed", "`names` of operators without a Subscription; may be repeated")
		f.BoolVar(&o.how.AllOrNothing, "all-or-nothing", false, "fail if one Subscription cannot be satisfied, as OLM does")
	}
	return program.Command{
		Name:  "olm",
		About: "Olm answers questions about operator catalogs.",
		Codes: "0: an answer; 1: none, something is held back, or the catalog has problems",
		Commands: []program.Command{
			{Name: "list", Args: "[PACKAGE]", About: "list packages, or one package's channels and operators", Max: 1, Flags: place, Run: o.on(o.path)},
			{Name: "validate", About: "list what breaks the rules of the format", Flags: place, Run: o.on(validate)},
			{Name: "resolve", About: "install and update until nothing changes", Flags: func(f *flag.FlagSet) { subscriptions(f); openshift(f) }, Run: o.tried(o.resolve)},
			{Name: "explain", Args: "[NAME...]", About: "say why operators are as they are, or why there is no answer", Max: -1, Flags: subscriptions, Run: o.tried(o.explain)},
			{Name: "plan", About: "say what becomes of the operators of a cluster", Run: o.plan, Flags: func(f *flag.FlagSet) {
				f.StringVar(&o.cluster, "cluster", "", "`folder` of the cluster's objects as YAML or JSON")
				f.Var(&o.sources, "source", "`NAMESPACE/NAME=FILE` of a catalog; may be repeated")
				openshift(f)
			}},
			{Name: "path", Args: "PACKAGE", About: "show the updates of a package", Min: 1, Max: 1, Run: o.on(o.path), Flags: func(f *flag.FlagSet) {
				place(f)
				f.StringVar(&o.from, "from", "", "`name` of the installed operator")
				f.StringVar(&o.to, "to", "", "`name` of the operator to get to (default: as far as updates go)")
				f.StringVar(&o.channel, "channel", "", "`name` of the channel (default: all, the default channel first)")
				f.StringVar(&o.picture, "picture", "", "draw: dot or mermaid")
				f.BoolVar(&o.view.AllEdges, "all", false, "draw every possible update, not only the one that is taken")
				f.IntVar(&o.view.MaxNodes, "nodes", 40, "how many operators to draw")
			}},
		},
	}
}

// run is what a command does.
type run func(ctx context.Context, args []string, stdout, _ io.Writer) error

// on opens the catalog, or the one that is built in, before a task.
func (o *options) on(do func(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error) run {
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		c, err := catalog.Read(ctx, bytes.NewReader(builtIn), "catalog.yaml", content)
		if o.catalog != "" {
			c, err = catalog.Open(ctx, o.catalog, content)
		}
		if err != nil {
			return err
		}
		return do(ctx, c, args, stdout)
	}
}

func validate(_ context.Context, c *catalog.Catalog, _ []string, stdout io.Writer) error {
	return program.Answer(stdout, trial.Report(c), len(c.Problems()) == 0)
}

// tried makes a namespace with the Subscriptions and operators of the command
// line before a task.
func (o *options) tried(do func(ctx context.Context, s *olm.Snapshot, args []string, stdout io.Writer) error) run {
	return o.on(func(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error {
		s, err := trial.Namespace(c, o.subscribe, o.installed)
		switch {
		case len(o.subscribe) == 0:
			return program.Usagef("-subscribe is missing")
		case err != nil:
			return program.Usagef("-subscribe %w", err)
		}
		return do(ctx, s, args, stdout)
	})
}

func (o *options) resolve(ctx context.Context, s *olm.Snapshot, _ []string, stdout io.Writer) error {
	plan, err := olm.Plan(ctx, []*olm.Snapshot{s}, olm.PlanOptions{Resolve: o.how, Target: o.openshift})
	if err != nil {
		return err
	}
	if err := plan.Namespaces[0].Err; err != nil {
		return errors.Join(program.Answer(stdout, trial.Detail(plan), true), err)
	}
	return program.Answer(stdout, trial.Detail(plan), plan.Complete())
}

func (o *options) explain(ctx context.Context, s *olm.Snapshot, names []string, stdout io.Writer) error {
	text, held, err := trial.Why(ctx, s, o.how, names...)
	if err != nil {
		return err
	}
	return program.Answer(stdout, text, !held)
}

func (o *options) plan(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
	if o.cluster == "" || len(o.sources) == 0 {
		return program.Usagef("plan needs -cluster and -source")
	}
	catalogs, err := trial.Sources(ctx, o.sources, content)
	if errors.Is(err, trial.ErrSource) {
		return program.Usagef("-source %w", err)
	} else if err != nil {
		return err
	}
	cluster, err := program.OpenRecording(ctx, o.cluster, stderr, olmapi.Group, olmKinds...)
	if err != nil {
		return err
	}
	plan, err := install.PlanCluster(ctx, cluster, catalogs, o.openshift)
	if err != nil {
		return err
	}
	return program.Answer(stdout, trial.Plan(plan), plan.Complete())
}

func (o *options) path(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error {
	switch {
	case len(args) == 0:
		return program.Answer(stdout, trial.Table(c), true)
	case o.to != "" && o.from == "":
		return program.Usagef("-to needs -from")
	case !slices.Contains([]string{"", "dot", "mermaid"}, o.picture):
		return program.Usagef("-picture %q is neither dot nor mermaid", o.picture)
	}
	way, err := trial.FindWay(c, args[0], o.channel, o.from, o.to)
	if err != nil {
		return err
	} else if o.picture == "" {
		return program.Answer(stdout, way.Text(), true)
	}
	text, err := way.Draw(o.picture, o.view)
	fmt.Fprint(stdout, text)
	return err
}
