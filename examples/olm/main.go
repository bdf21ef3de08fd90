// Command olm answers questions about operator catalogs: what they hold, what
// breaks the rules of their format, what a set of Subscriptions comes to, what
// holds an operator back, and how it gets from one version to another.
//
//	go run ./examples/olm list mesh
//	go run ./examples/olm resolve -subscribe mesh=mesh.v1@next,tracing=tracing.v1 -openshift 4.19
//	go run ./examples/olm explain -subscribe mesh=mesh.v1@stable -subscribe tracing=tracing.v1
//	go run ./examples/olm plan -dump must-gather -source openshift-marketplace/community-operators=community.jsonl -openshift 4.19
//	go run ./examples/olm path storage -from storage.v1.0 -to storage.v1.2 -o dot | dot -Tsvg > path.svg
//
// -catalog names a file or a folder of file-based catalogs, as "opm render" or an index
// image has them; without it a small one is used that is built in.
//
// A Subscription is written PACKAGE[=INSTALLED][@CHANNEL]: without INSTALLED nothing is
// installed yet, without CHANNEL any will do. plan looks at a cluster: -dump
// is a recording with all of its OLM objects, such as a must-gather, and -source maps a
// CatalogSource to the catalog that it stands for.
//
// The exit code is 0 with an answer, 1 when there is none, something is held back, or
// the catalog has problems, 2 when the command line is wrong, 3 when a catalog or a
// recording cannot be read.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/examples/internal/recording"
	"github.com/clusterupdate/clusterupdate/examples/olm/trial"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/catalog"
	"github.com/clusterupdate/clusterupdate/olm/install"
)

//go:embed catalog.yaml
var builtIn []byte

// content leaves out what operators install.
var content = catalog.Options{DropContent: true}

// olmKinds are taken to be all there in a recording.
var olmKinds = []string{"catalogsources", "clusterserviceversions", "installplans", "operatorgroups", "subscriptions"}

func main() { program.Main(command()) }

type options struct {
	catalog, openshift, dump      string
	subscribe, installed, sources program.List
	from, to, channel, format     string
	how                           olm.Options
	allEdges                      bool
	nodes                         program.Count
}

// drawing holds with a format that draws.
const drawing = "o dot|mermaid"

func command() program.Command {
	o := options{nodes: 40}
	openshift := func(f *flag.FlagSet) {
		f.Func("openshift", "also report what is in the way of this `version` of OpenShift", func(value string) error {
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
		Codes: "0: an answer; 1: none, something is held back, or the catalog has problems; 3: a catalog or a recording cannot be read",
		Commands: []program.Command{
			{Name: "list", Args: "[PACKAGE]", About: "list packages, or one package's channels and operators", Max: 1, Flags: place, Run: o.on(trial.Open, o.list)},
			{Name: "validate", About: "list what breaks the rules of the format", Flags: place, Run: o.on(catalog.Open, validate)},
			{Name: "resolve", About: "install and update until nothing changes", Required: [][]string{{"subscribe"}}, Run: o.tried(o.resolve),
				Flags: func(f *flag.FlagSet) { subscriptions(f); openshift(f) }},
			{Name: "explain", Args: "[NAME...]", About: "report why operators are as they are, or why there is no answer", Max: -1,
				Required: [][]string{{"subscribe"}}, Flags: subscriptions, Run: o.tried(o.explain)},
			{Name: "plan", About: "report what becomes of the operators of a cluster", Required: [][]string{{"dump"}, {"source"}}, Run: o.plan,
				Flags: func(f *flag.FlagSet) {
					f.StringVar(&o.dump, "dump", "", "recording of a cluster: a `directory or archive`")
					f.Var(&o.sources, "source", "`NAMESPACE/NAME=FILE` of a catalog; may be repeated")
					openshift(f)
				}},
			{Name: "path", Args: "PACKAGE", About: "show the updates of a package", Min: 1, Max: 1, Run: o.on(trial.Open, o.path),
				Needs: map[string][]string{"to": {"from"}, "channel": {"from", drawing}, "all-edges": {drawing}, "max-nodes": {drawing}},
				Flags: func(f *flag.FlagSet) {
					place(f)
					f.StringVar(&o.from, "from", "", "`name` of the installed operator")
					f.StringVar(&o.to, "to", "", "`name` of the operator to update to (default: as far as updates go)")
					f.StringVar(&o.channel, "channel", "", "`name` of the channel (default: all, the default channel first)")
					program.Format(f, &o.format, "dot", "mermaid")
					f.BoolVar(&o.allEdges, "all-edges", false, "draw every possible update, not only the one that is taken")
					f.Var(&o.nodes, "max-nodes", "largest `number` of nodes to draw")
				}},
		},
	}
}

// on opens the catalog, or the one that is built in, before a task.
func (o *options) on(open opener, do task) program.Func {
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		c, err := catalog.Read(ctx, bytes.NewReader(builtIn), "catalog.yaml", content)
		if o.catalog != "" {
			c, err = open(ctx, o.catalog, content)
		}
		if err != nil {
			return fmt.Errorf("-catalog: %w", err)
		}
		return do(ctx, c, args, stdout)
	}
}

func validate(_ context.Context, c *catalog.Catalog, _ []string, stdout io.Writer) error {
	return program.Answer(stdout, trial.Report(c), len(c.Problems()) == 0)
}

// tried makes a namespace with the Subscriptions and operators of the command
// line before a task.
func (o *options) tried(do func(ctx context.Context, s *olm.Snapshot, args []string, stdout io.Writer) error) program.Func {
	return o.on(trial.Open, func(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error {
		s, err := trial.Namespace(c, o.subscribe, o.installed)
		if err != nil {
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
	failed := plan.Namespaces[0].Err
	return errors.Join(program.Answer(stdout, plan.String(), failed != nil || plan.Complete()), program.No(failed))
}

func (o *options) explain(ctx context.Context, s *olm.Snapshot, names []string, stdout io.Writer) error {
	text, held, err := trial.Why(ctx, s, o.how, names...)
	if err != nil {
		return program.No(err)
	}
	return program.Answer(stdout, text, !held)
}

func (o *options) plan(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
	catalogs, err := trial.Sources(ctx, o.sources, content)
	if err != nil {
		return err
	}
	cluster, err := recording.Open(ctx, o.dump, stderr, olmapi.Group, olmKinds...)
	if err != nil {
		return err
	}
	plan, err := install.PlanCluster(ctx, cluster, catalogs, o.openshift)
	if err != nil {
		return err
	}
	return program.Answer(stdout, plan.String(), plan.Complete())
}

func (o *options) list(ctx context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return program.Answer(stdout, trial.Table(c), true)
	}
	return o.path(ctx, c, args, stdout)
}

func (o *options) path(_ context.Context, c *catalog.Catalog, args []string, stdout io.Writer) error {
	way, err := trial.FindWay(c, args[0], o.channel, o.from, o.to)
	if err != nil {
		return program.No(err)
	}
	if o.format == "text" || o.format == "" { // list has no formats
		return program.Answer(stdout, way.Text(), true)
	}
	text, err := way.Draw(o.format, catalog.PictureOptions{AllEdges: o.allEdges, MaxNodes: int(o.nodes)})
	fmt.Fprint(stdout, text)
	return program.No(err)
}
