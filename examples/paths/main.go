// Command paths answers questions about update graphs: what a release can be
// updated to, by which way it gets to another, and why (not).
//
//	go run ./examples/paths -graph stable-4.8_amd64.json -from 4.7.0
//	go run ./examples/paths -graph stable-4.8_amd64.json -from 4.7.0 -to 4.8.54
//	go run ./examples/paths -graph https://api.openshift.com/api/upgrades_info/v1/graph -channel stable-4.17,eus-4.18 -from 4.16.3 -to 4.18.1
//	go run ./examples/paths -graph graphs/ -channel stable-4.8 -from 4.7.0 -to 4.8.54 -o dot
//
// -graph is a file, a folder of files, or the address of an update service.
// -channel names the channels, which are searched as one; a file that is named
// <channel>_<arch>.json names its own. Lists may be repeated or have commas.
//
// With -to it explains the update and prints the best paths, with -from alone the
// updates and how far they get, and without both what the graphs hold.
//
// -facts holds what is known about the cluster: PromQL queries and their values. -o
// dot and mermaid draw the graphs, or what is around the path; picture is that drawing
// as JSON.
//
// The exit code is 0 with an answer, 1 when there is no path or the graphs do not have
// the release, 2 when the command line is wrong, 3 when a file or a graph cannot be read.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/examples/internal/graphs"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

type options struct {
	graphs          graphs.Flags
	present, facts  string
	from, to        program.Version
	format          string
	best, nodes     program.Count
	safest, control bool
}

// drawing holds with a format that draws.
const drawing = "o dot|mermaid|picture"

func command() program.Command {
	o := options{graphs: graphs.Flags{Name: "paths"}, best: 1, nodes: 40}
	return program.Command{
		Name:     "paths",
		About:    "Paths answers questions about update graphs: what a release can be updated to, by which way, and why not.",
		Codes:    "0: an answer; 1: no path, or no such release; 3: a file or a graph cannot be read",
		Required: [][]string{{"graph"}},
		Needs: map[string][]string{
			"to": {"from"}, "in": {"from"}, "facts": {"from"}, "best": {"to"}, "safest": {"to"}, "control-plane-only": {"to"},
			"policy": {"from", drawing}, "no-pre-releases": {"from", drawing}, "risk": graphs.RiskNeeds(), "max-nodes": {drawing},
		},
		Excludes: map[string][]string{
			"control-plane-only": {"best", "safest", drawing}, "best": {drawing}, "safest": {drawing},
		},
		Flags: func(f *flag.FlagSet) {
			o.graphs.Declare(f)
			f.Var(&o.from, "from", "`version` to start from")
			f.Var(&o.to, "to", "`version` to update to")
			f.StringVar(&o.present, "in", "", "`channel` that the cluster is in, if that matters")
			f.StringVar(&o.facts, "facts", "", "JSON `file` of PromQL queries and their values, 0 or 1")
			f.Var(&o.best, "best", "`number` of paths to show")
			f.BoolVar(&o.safest, "safest", false, "fewest risks first instead of fewest hops")
			f.BoolVar(&o.control, "control-plane-only", false, "plan an update to the next minor with extended support, with paused pools")
			program.Format(f, &o.format, "json", "dot", "mermaid", "picture")
			f.Var(&o.nodes, "max-nodes", "largest `number` of nodes to draw")
		},
		Run: o.answer,
	}
}

// draws reports whether the output is a drawing.
func (o *options) draws() bool { return o.format != "text" && o.format != "json" }

// matcher has the facts about the cluster; nil if there are none.
func (o *options) matcher() (graph.RiskMatcher, error) {
	if o.facts == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.facts)
	if err != nil {
		return nil, fmt.Errorf("-facts: %w", err)
	}
	var facts graph.Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		return nil, fmt.Errorf("-facts: %s: %w", o.facts, err)
	}
	return facts, nil
}

// answer loads the graphs and answers the question, for each architecture.
func (o *options) answer(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
	matcher, err := o.matcher()
	if err != nil {
		return err
	}
	networks, err := o.graphs.Networks(ctx, path.NetworkOptions{Matcher: matcher, Present: o.present}, stderr)
	if err != nil {
		return err
	}
	var answered error
	text := program.TerminalOf(stdout).Wrap(stdout)
	for i, n := range networks {
		found, missing, err := o.find(ctx, n, networks, matcher)
		if err != nil {
			if channels := o.graphs.Elsewhere(ctx, missing); len(channels) > 0 {
				err = fmt.Errorf("%w; %s is in %s", err, missing, strings.Join(channels, ", "))
			}
			return program.No(err)
		}
		if i > 0 && o.format == "text" {
			fmt.Fprintln(text)
		}
		if err := o.print(found, stdout, text); err != nil {
			return err
		}
		if a, ok := found.(*path.Answer); ok && len(a.Paths) == 0 {
			answered = program.ErrNo // and it explains why
		}
	}
	return answered
}

// print prints an answer, or a picture, in the format of the output.
func (o *options) print(found any, stdout, text io.Writer) (err error) {
	switch o.format {
	case "dot":
		_, err = io.WriteString(stdout, found.(*path.Picture).DOT())
	case "mermaid":
		_, err = io.WriteString(stdout, found.(*path.Picture).Mermaid())
	case "text":
		_, err = fmt.Fprint(text, found)
	default:
		err = program.JSON(stdout, found)
	}
	return err
}

// find returns the answer, which prints as text and as JSON, or a picture; or an
// error, and the version if the error is that no graph has it.
func (o *options) find(
	ctx context.Context, n *path.Network, all []*path.Network, m graph.RiskMatcher,
) (found any, missing string, err error) {
	from, to, policy := string(o.from), string(o.to), o.graphs.Policy()
	switch {
	case o.draws():
		found, err = o.picture(n, from, to, policy)
		return found, "", err
	case from == "":
		return n.Summary(), "", nil
	case to == "":
		found, err = n.Updates(ctx, from, m, time.Now(), policy)
		return found, from, err
	case o.control:
		found, err = n.ControlPlaneOnly(from, to, path.ControlPlaneOnlyOptions{Policy: policy})
		return found, "", err
	}
	order := path.Shortest
	if o.safest {
		order = path.Safest
	}
	others := slices.DeleteFunc(slices.Clone(all), func(other *path.Network) bool { return other == n })
	query := path.ExplainQuery{From: from, To: to, Policy: policy, Channel: o.present, Others: others}
	a, err := n.Answer(query, int(o.best), order)
	if err == nil && a.Missing != "" && a.Block != "NotInChannel" {
		return nil, a.Missing, errors.New(a.Explanation.String())
	}
	return a, "", err
}

// picture draws the graphs, or what is around the path to a version.
func (o *options) picture(n *path.Network, from, to string, policy path.Policy) (*path.Picture, error) {
	p := path.PictureOptions{From: from, To: to, Policy: policy, MaxNodes: int(o.nodes)}
	p.AllEdges = policy.Edges == path.Recommended && from == ""
	if to != "" {
		shortest, err := n.ShortestPath(from, to, policy)
		if err != nil {
			return nil, err
		}
		p.Path = shortest
	}
	return n.Picture(p)
}
