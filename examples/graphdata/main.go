// Command graphdata is for those who maintain a tree of cincinnati-graph-data: a
// checkout, or an archive.
//
//	go run ./examples/graphdata lint -accepted accepted.txt cincinnati-graph-data
//	go run ./examples/graphdata diff main-checkout branch-checkout
//	go run ./examples/graphdata why cincinnati-graph-data 4.20.3 4.21.1
//	go run ./examples/graphdata extend cincinnati-graph-data 4.21.9
//
// Lint finds what is wrong in the tree. Without -accepted, errors make it fail; with
// it, all that the file does not list. -o accepted prints the lines of such a file.
//
// -releases names places of releases, as of the example policyengine. Without it diff
// and why make them up by the tree's build suggestions.
//
// The exit code is 0 when all is well, 1 when lint finds something, two trees differ, an
// update is not served or a tree is refused, 2 when the command line is wrong, 3 when a
// file cannot be read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/graph/graphdata/maintain"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

type options struct {
	source.Options
	accepted, format string
}

func command() program.Command {
	var o options
	releases := func(f *flag.FlagSet, formats ...string) {
		o.DeclareReleases(f)
		program.Format(f, &o.format, formats...)
	}
	asJSON := func(f *flag.FlagSet) { releases(f, "json") }
	return program.Command{
		Name:  "graphdata",
		About: "Graphdata looks after a tree of cincinnati-graph-data.",
		Codes: "0: all is well; 1: lint finds something, two trees differ, an update is not served, or a tree is refused; 3: a file cannot be read",
		Commands: []program.Command{
			{Name: "lint", Args: "TREE", About: "find what is wrong in a tree", Min: 1, Max: 1, Flags: func(f *flag.FlagSet) {
				releases(f, "json", "accepted")
				f.StringVar(&o.accepted, "accepted", "", "`file` of findings to pass over, as -o accepted prints them; all others make lint fail")
			}, Run: o.lint,
				Needs:    map[string][]string{"arch": {"releases"}},
				Excludes: map[string][]string{"accepted": {"o accepted"}}},
			{Name: "diff", Args: "OLD NEW", About: "show what makes clusters see another graph", Min: 2, Max: 2, Flags: asJSON, Run: o.diff},
			{Name: "why", Args: "TREE FROM TO", About: "show why an update is served or not", Min: 3, Max: 3, Flags: asJSON, Run: o.why},
			{Name: "extend", Args: "TREE VERSION", About: "print the blocked edges that a new release needs", Min: 2, Max: 2, Run: o.extend},
		},
	}
}

// load reads a tree. Of a broken one, lint looks at what is left.
func (o *options) load(ctx context.Context, place string, broken bool) (*graphdata.Tree, source.Options, error) {
	from := o.Options
	from.Tree = place
	fsys, err := from.OpenTree()
	if err != nil {
		return nil, from, err
	}
	tree, err := graphdata.Load(ctx, fsys, graphdata.LoadOptions{InternalChannels: true})
	var refused *graphdata.LoadError
	if broken && errors.As(err, &refused) && refused.Tree != nil {
		return refused.Tree, from, nil
	}
	return tree, from, source.Refused(err)
}

// build builds the graph of a tree.
func (o *options) build(ctx context.Context, place string) (*graphdata.Snapshot, error) {
	tree, from, err := o.load(ctx, place, false)
	if err != nil {
		return nil, err
	}
	snapshot, _, _, err := from.Build(ctx, nil, tree)
	return snapshot, err
}

func (o *options) lint(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	tree, from, err := o.load(ctx, args[0], true)
	if err != nil {
		return err
	}
	var snapshot *graphdata.Snapshot
	var rules maintain.LintOptions
	if len(o.Releases) > 0 {
		snapshot, rules.Releases, _, err = from.Build(ctx, nil, tree)
		if err != nil {
			return err
		}
	}
	found := maintain.Lint(tree, snapshot, rules)
	if o.format == "accepted" {
		for _, p := range found {
			fmt.Fprintln(stdout, maintain.AcceptedLine(p))
		}
		return nil
	}
	fails := func(p graphdata.Problem) bool { return !p.Warning }
	if o.accepted != "" {
		file, err := os.Open(o.accepted)
		if err != nil {
			return fmt.Errorf("-accepted: %w", err)
		}
		defer file.Close()
		accepted, err := maintain.ReadAccepted(file)
		if err != nil {
			return fmt.Errorf("-accepted: %s: %w", o.accepted, err)
		}
		var stale []string
		found, stale = accepted.Rest(found)
		for _, line := range stale {
			fmt.Fprintln(stderr, "graphdata: nothing is found any more of:", line)
		}
		fails = func(graphdata.Problem) bool { return true }
	}
	well := true
	var text strings.Builder
	for _, p := range found {
		kind := map[bool]string{false: "error", true: "warning"}[p.Warning]
		fmt.Fprintf(&text, "%s: %v [%s]\n", kind, p, p.Rule)
		well = well && !fails(p)
	}
	return program.Report(stdout, o.format, well, found, program.Text(text.String()))
}

func (o *options) diff(ctx context.Context, args []string, stdout, _ io.Writer) error {
	old, err := o.build(ctx, args[0])
	if err != nil {
		return err
	}
	now, err := o.build(ctx, args[1])
	if err != nil {
		return err
	}
	changes := maintain.Diff(old, now)
	return program.Report(stdout, o.format, changes.Empty(), changes, program.Text(changes.String()))
}

func (o *options) why(ctx context.Context, args []string, stdout, _ io.Writer) error {
	for _, version := range args[1:] {
		if err := new(program.Version).Set(version); err != nil {
			return program.Usagef("%s: %w", version, err)
		}
	}
	snapshot, err := o.build(ctx, args[0])
	if err != nil {
		return err
	}
	causes := snapshot.Why(args[1], args[2], o.Arch)
	served := len(causes) > 0
	var text strings.Builder
	for _, c := range causes {
		fmt.Fprintln(&text, c)
		served = served && c.Effect != "Removed"
	}
	if len(causes) == 0 {
		fmt.Fprintf(&text, "no release declares an update from %s to %s\n", args[1], args[2])
	}
	return program.Report(stdout, o.format, served, causes, program.Text(text.String()))
}

func (o *options) extend(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if _, err := graph.ParseVersion(args[1]); err != nil {
		return program.Usagef("%s: %v", args[1], err)
	}
	tree, _, err := o.load(ctx, args[0], false)
	if err != nil {
		return err
	}
	for _, b := range maintain.Extend(tree, args[1]) {
		text, err := b.Encode()
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "# %s\n%s---\n", b.File, text)
	}
	return nil
}
