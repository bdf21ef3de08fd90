// Command paths answers questions about update graphs: what a release can be
// updated to, by which way it gets to another, and why (not).
//
//	paths -graph stable-4.8_amd64.json -from 4.7.0
//	paths -graph stable-4.8_amd64.json -from 4.7.0 -to 4.8.54
//	paths -graph https://api.openshift.com/api/upgrades_info/v1/graph -channel stable-4.17,eus-4.18 -from 4.16.3 -to 4.18.1
//	paths -graph graphs/ -channel stable-4.8 -from 4.7.0 -to 4.8.54 -picture dot | dot -Tsvg > path.svg
//
// -graph is a file, a folder of files for many channels, or the address of an
// update service; it may be given several times. -channel names the channels,
// separated by commas; a file named <channel>_<arch>.json or <arch>-<channel>.json
// names its own. Several channels are searched as one.
//
// Without -to it prints the updates of -from and the highest version that can
// be reached; with -to an explanation of the direct update and the best paths.
// Without -from it prints what the graphs hold. With -picture it draws instead.
//
// What is known about the cluster comes from -facts, a JSON file of PromQL
// queries and their values; without it, whether a conditional update is
// recommended is unknown. The exit code is 0 with an answer, 1 without a path or
// a graph, 2 when the flags are wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	graphs, channels, risks  program.List
	arch, from, to           string
	present, policy, facts   string
	picture                  string
	best, nodes              int
	json, safest, eus, noPre bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("paths", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Var(&o.graphs, "graph", "`file`, folder or address of update graphs; may be repeated")
	flags.Var(&o.channels, "channel", "`names` of the channels, separated by commas")
	flags.StringVar(&o.arch, "arch", "", "architecture: amd64, arm64, ppc64le, s390x or multi (default: the file's, else amd64)")
	flags.StringVar(&o.from, "from", "", "`version` to start from")
	flags.StringVar(&o.to, "to", "", "`version` to get to")
	flags.StringVar(&o.present, "in", "", "`channel` that the cluster is in, if that matters")
	flags.StringVar(&o.policy, "policy", "Recommended", "edges to use: Recommended, AcceptRisks, AvoidRisks or Any")
	flags.Var(&o.risks, "risk", "`names` of risks for AcceptRisks and AvoidRisks")
	flags.BoolVar(&o.noPre, "no-pre-releases", false, "leave out pre-releases")
	flags.StringVar(&o.facts, "facts", "", "JSON `file` of PromQL queries and their values, 0 or 1")
	flags.IntVar(&o.best, "best", 1, "how many paths to show")
	flags.BoolVar(&o.safest, "safest", false, "fewest risks first instead of fewest hops")
	flags.BoolVar(&o.eus, "control-plane-only", false, "plan an update over an odd minor with paused pools")
	flags.StringVar(&o.picture, "picture", "", "draw: dot, mermaid or json")
	flags.IntVar(&o.nodes, "nodes", 40, "how many releases to draw")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if err := o.check(flags.NArg()); err != nil {
		fmt.Fprintln(stderr, "paths:", err)
		return 2
	}
	if err := answer(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "paths:", err)
		return 1
	}
	return 0
}

func (o *options) check(args int) error {
	switch {
	case args > 0:
		return errors.New("there are no arguments, only flags")
	case len(o.graphs) == 0:
		return errors.New("-graph is missing")
	case o.to != "" && o.from == "":
		return errors.New("-to needs -from")
	case o.eus && o.to == "":
		return errors.New("-control-plane-only needs -from and -to")
	case o.picture != "" && o.picture != "dot" && o.picture != "mermaid" && o.picture != "json":
		return fmt.Errorf("-picture %q is none of dot, mermaid, json", o.picture)
	case o.best < 1:
		return errors.New("-best is below 1")
	}
	switch o.policy {
	case "Recommended", "AcceptRisks", "AvoidRisks", "Any":
		return nil
	}
	return fmt.Errorf("-policy %q is none of Recommended, AcceptRisks, AvoidRisks, Any", o.policy)
}

func (o *options) rules() path.Policy {
	p := path.Policy{Edges: path.Edges(o.policy), Risks: o.risks, NoPreReleases: o.noPre}
	if o.policy == "Recommended" {
		p.Edges = path.Recommended
	}
	return p
}

// answer loads the graphs and answers what was asked.
func answer(ctx context.Context, o options, stdout, stderr io.Writer) error {
	var matcher graph.RiskMatcher
	if o.facts != "" {
		text, err := os.ReadFile(o.facts)
		if err != nil {
			return err
		}
		var facts graph.Facts
		if err := json.Unmarshal(text, &facts); err != nil {
			return fmt.Errorf("%s: %w", o.facts, err)
		}
		matcher = facts
	}
	graphs, err := load(ctx, o)
	if err != nil {
		return err
	}
	networks, err := path.ByArchitecture(ctx, path.NetworkOptions{Matcher: matcher, Present: o.present}, graphs...)
	if err != nil {
		return err
	}
	for i, n := range networks {
		for _, note := range n.Notes() {
			fmt.Fprintln(stderr, "paths:", note)
		}
		if i > 0 && !o.json && o.picture == "" {
			fmt.Fprintln(stdout)
		}
		p := printer{w: stdout, o: o, n: n, others: networks, graphs: graphs, matcher: matcher}
		if err := p.print(ctx); err != nil {
			return err
		}
	}
	return nil
}
