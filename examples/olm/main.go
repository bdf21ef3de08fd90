// Command olm answers questions about operator catalogs: what they hold, what
// breaks the rules of their format, what a set of Subscriptions comes to, what
// holds an operator back, and how it gets from one version to another.
//
//	olm list
//	olm list mesh
//	olm validate
//	olm resolve -subscribe backup
//	olm resolve -subscribe mesh=mesh.v1 -subscribe tracing=tracing.v1
//	olm resolve -subscribe mesh=mesh.v1@next -subscribe tracing=tracing.v1 -openshift 4.19
//	olm explain -subscribe mesh=mesh.v1@stable -subscribe tracing=tracing.v1
//	olm plan -cluster must-gather -source openshift-marketplace/community-operators=community.jsonl -openshift 4.19
//	olm path mesh -from mesh.v1 -channel next
//	olm path storage -from storage.v1.0 -to storage.v1.2 -picture dot | dot -Tsvg > path.svg
//
// Without -catalog it speaks of a small catalog that is built in. -catalog names
// a file or a folder of file-based catalogs, as "opm render" or an index image
// has them.
//
// A Subscription is written PACKAGE[=INSTALLED][@CHANNEL]: without INSTALLED
// nothing is installed yet, without CHANNEL any will do. -installed names
// operators without a Subscription. Installed operators have the properties that
// the catalog gives them; one that it does not know provides and needs nothing.
//
// plan speaks of a cluster: -cluster is a folder of its objects as YAML or JSON,
// such as a must-gather, and -source says which catalog stands for which
// CatalogSource.
//
// The exit code is 0 with an answer, 1 if there is none, if something is held
// back, or if the catalog has problems, and 2 when the command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/olm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	catalog           string
	subscribe         program.List
	installed         program.List
	allOrNothing      bool
	greedy            bool
	openshift         string
	cluster           string
	sources           program.List
	from, to, channel string
	picture           string
	all               bool
	nodes             int
	args              []string
	stdout            io.Writer
	command           string
}

// commands and the number of their arguments.
var commands = map[string]struct {
	about      string
	most       int
	argument   bool
	resolution bool
}{
	"list":     {about: "list packages, or one package's channels and operators", most: 1},
	"validate": {about: "list what breaks the rules of the format"},
	"resolve":  {about: "install and update until nothing changes", resolution: true},
	"explain":  {about: "say why operators are as they are, or why there is no answer", most: 100, resolution: true},
	"plan":     {about: "say what becomes of the operators of a cluster"},
	"path":     {about: "show the updates of a package", most: 1, argument: true},
}

// errUsage marks faults of the command line.
var errUsage = errors.New("wrong command line")

// errNoAnswer is returned when all has been said already.
var errNoAnswer = errors.New("no answer")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := dispatch(ctx, args, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errNoAnswer):
		return 1
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "olm:", err)
		return 2
	}
	fmt.Fprintln(stderr, "olm:", err)
	return 1
}

func dispatch(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		usage(stderr)
		if len(args) == 0 {
			return fmt.Errorf("%w: a command is missing", errUsage)
		}
		return nil
	}
	command, ok := commands[args[0]]
	if !ok {
		usage(stderr)
		return fmt.Errorf("%w: there is no command %q", errUsage, args[0])
	}
	o := options{command: args[0], stdout: stdout}
	flags := flag.NewFlagSet("olm "+o.command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	if o.command != "plan" {
		flags.StringVar(&o.catalog, "catalog", "", "`file` or folder of a catalog (default: one that is built in)")
	}
	switch {
	case command.resolution:
		flags.Var(&o.subscribe, "subscribe", "`PACKAGE[=INSTALLED][@CHANNEL]`, may be repeated")
		flags.Var(&o.installed, "installed", "`names` of operators without a Subscription")
		flags.BoolVar(&o.allOrNothing, "all-or-nothing", false, "fail if one Subscription cannot be satisfied, as OLM does")
		flags.BoolVar(&o.greedy, "greedy", false, "take the first in order and never reconsider")
		if o.command == "resolve" {
			flags.StringVar(&o.openshift, "openshift", "", "also say what is in the way of this `version` of OpenShift")
		}
	case o.command == "plan":
		flags.StringVar(&o.cluster, "cluster", "", "`folder` of the cluster's objects as YAML or JSON")
		flags.Var(&o.sources, "source", "`NAMESPACE/NAME=FILE` of a catalog, may be repeated")
		flags.StringVar(&o.openshift, "openshift", "", "also say what is in the way of this `version` of OpenShift")
	case o.command == "path":
		flags.StringVar(&o.from, "from", "", "`name` of the installed operator")
		flags.StringVar(&o.to, "to", "", "`name` of the operator to get to (default: as far as updates go)")
		flags.StringVar(&o.channel, "channel", "", "`name` of the channel (default: all, the default channel first)")
		flags.StringVar(&o.picture, "picture", "", "draw: dot or mermaid")
		flags.BoolVar(&o.all, "all", false, "draw every possible update, not only the one that is taken")
		flags.IntVar(&o.nodes, "nodes", 40, "how many operators to draw")
	}
	words, err := parse(flags, args[1:])
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	o.args = words
	if err := o.check(command.most, command.argument, command.resolution); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.command == "plan" {
		return plan(ctx, o)
	}
	c, err := load(ctx, o.catalog)
	if err != nil {
		return err
	}
	switch o.command {
	case "list":
		return listCatalog(c, o)
	case "validate":
		return validate(c, o)
	case "path":
		return path(c, o)
	}
	snapshot, err := newSnapshot(c, o)
	if err != nil {
		return err
	}
	if o.command == "explain" {
		return explain(ctx, snapshot, o)
	}
	return resolve(ctx, snapshot, o)
}

// parse lets flags stand before and after arguments.
func parse(flags *flag.FlagSet, args []string) (words []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return words, nil
		}
		words = append(words, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: olm COMMAND [-catalog FILE] [FLAGS]")
	names := make([]string, 0, len(commands))
	for name := range commands {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "  %-9s %s\n", name, commands[name].about)
	}
	fmt.Fprintln(w, "olm COMMAND -h shows its flags")
}

func (o *options) check(most int, needsArgument, resolution bool) error {
	switch {
	case len(o.args) > most:
		return fmt.Errorf("%s takes no argument %q", o.command, o.args[most])
	case needsArgument && len(o.args) == 0:
		return fmt.Errorf("%s needs the name of a package", o.command)
	case resolution && len(o.subscribe) == 0:
		return errors.New("-subscribe is missing")
	case o.allOrNothing && o.greedy:
		return errors.New("-all-or-nothing and -greedy exclude each other")
	case o.command == "plan" && (o.cluster == "" || len(o.sources) == 0):
		return errors.New("plan needs -cluster and -source")
	case o.to != "" && o.from == "":
		return errors.New("-to needs -from")
	case o.picture != "" && o.picture != "dot" && o.picture != "mermaid":
		return fmt.Errorf("-picture %q is neither dot nor mermaid", o.picture)
	}
	if o.openshift != "" {
		if _, err := olm.ParseOpenShiftVersion(o.openshift); err != nil {
			return err
		}
	}
	return nil
}
