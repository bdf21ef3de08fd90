// Command paths answers questions about update graphs: what a release can be
// updated to, by which way it gets to another, and why (not).
//
//	paths -graph stable-4.8_amd64.json -from 4.7.0
//	paths -graph stable-4.8_amd64.json -from 4.7.0 -to 4.8.54
//	paths -graph https://api.openshift.com/api/upgrades_info/v1/graph -channel stable-4.17,eus-4.18 -from 4.16.3 -to 4.18.1
//	paths -graph graphs/ -channel stable-4.8 -from 4.7.0 -to 4.8.54 -picture dot
//
// -graph is a file, a folder of files, or the address of an update service.
// -channel names the channels, which are searched as one; a file that is named
// <channel>_<arch>.json names its own. Lists may be repeated or have commas.
//
// With -to it explains the update and prints the best paths, with -from alone the
// updates and how far they get, and without both what the graphs hold.
//
// -facts holds what is known about the cluster: PromQL queries and their values.
//
// The exit code is 0 with an answer, 1 without a path, a graph or a release, 2
// when the command line is wrong.
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

	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

func main() { program.Main(command()) }

type options struct {
	graphs, channels     program.List
	arch, present, facts string
	from, to             program.Version
	picture              string
	best, nodes          int
	json, safest, eus    bool
	policy               path.Policy
}

func command() program.Command {
	var o options
	var edges string
	return program.Command{
		Name:  "paths",
		About: "Paths answers questions about update graphs: what a release can be updated to, by which way, and why not.",
		Codes: "0: an answer; 1: no path, graph or release",
		Flags: func(f *flag.FlagSet) {
			f.Var(&o.graphs, "graph", "`file`, folder or address of update graphs; may be repeated")
			f.Var(&o.channels, "channel", "`names` of channels; may be repeated")
			f.StringVar(&o.arch, "arch", "", "architecture: amd64, arm64, ppc64le, s390x or multi (default: the file's, else amd64)")
			f.Var(&o.from, "from", "`version` to start from")
			f.Var(&o.to, "to", "`version` to get to")
			f.StringVar(&o.present, "in", "", "`channel` that the cluster is in, if that matters")
			f.StringVar(&edges, "policy", "Recommended", "edges to use: Recommended, AcceptRisks, AvoidRisks or Any")
			f.Var((*program.List)(&o.policy.Risks), "risk", "`names` of risks for AcceptRisks and AvoidRisks; may be repeated")
			f.BoolVar(&o.policy.NoPreReleases, "no-pre-releases", false, "leave out pre-releases")
			f.StringVar(&o.facts, "facts", "", "JSON `file` of PromQL queries and their values, 0 or 1")
			f.IntVar(&o.best, "best", 1, "how many paths to show")
			f.BoolVar(&o.safest, "safest", false, "fewest risks first instead of fewest hops")
			f.BoolVar(&o.eus, "control-plane-only", false, "plan an update over an odd minor with paused pools")
			f.StringVar(&o.picture, "picture", "", "draw: dot, mermaid or json")
			f.IntVar(&o.nodes, "nodes", 40, "how many releases to draw")
			f.BoolVar(&o.json, "json", false, "print JSON")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			if err := o.check(edges); err != nil {
				return err
			}
			return answer(ctx, o, stdout, stderr)
		},
	}
}

// check reports flags that are wrong or do not go together.
func (o *options) check(edges string) error {
	switch {
	case len(o.graphs) == 0:
		return program.Usagef("-graph is missing")
	case o.to != "" && o.from == "":
		return program.Usagef("-to needs -from")
	case o.eus && o.to == "":
		return program.Usagef("-control-plane-only needs -from and -to")
	case !slices.Contains([]string{"", "dot", "mermaid", "json"}, o.picture):
		return program.Usagef("-picture %q is none of dot, mermaid, json", o.picture)
	case !slices.Contains([]string{"Recommended", "AcceptRisks", "AvoidRisks", "Any"}, edges):
		return program.Usagef("-policy %q is none of Recommended, AcceptRisks, AvoidRisks, Any", edges)
	case o.best < 1:
		return program.Usagef("-best %d is below 1", o.best)
	case o.nodes < 1:
		return program.Usagef("-nodes %d is below 1", o.nodes)
	}
	o.policy.Edges = path.Edges(strings.TrimPrefix(edges, "Recommended")) // empty stands for it
	return nil
}

// answer loads the graphs and answers what was asked, for each architecture.
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
	load := path.LoadOptions{Channels: o.channels, Arch: o.arch, Client: &graph.Client{UserAgent: "clusterupdate-paths"}}
	graphs, err := path.Load(ctx, o.graphs, load)
	if err != nil {
		return err
	}
	networks, err := path.ByArchitecture(ctx, path.NetworkOptions{Matcher: matcher, Present: o.present}, graphs...)
	if err != nil {
		return err
	}
	var answered error
	text := program.TerminalOf(stdout).Wrap(stdout)
	for i, n := range networks {
		for _, note := range n.Notes() {
			fmt.Fprintln(stderr, "paths:", note)
		}
		found, missing, err := o.find(ctx, n, networks, matcher)
		if err != nil {
			if channels := load.ChannelsWith(ctx, o.graphs, missing); len(channels) > 0 {
				err = fmt.Errorf("%w; %s is in %s", err, missing, strings.Join(channels, ", "))
			}
			return err
		}
		switch picture, drawn := found.(*path.Picture); {
		case drawn && o.picture == "dot":
			fmt.Fprint(stdout, picture.DOT())
		case drawn && o.picture == "mermaid":
			fmt.Fprint(stdout, picture.Mermaid())
		case drawn || o.json:
			if err := program.JSON(stdout, found); err != nil {
				return err
			}
		default:
			if i > 0 {
				fmt.Fprintln(text)
			}
			fmt.Fprint(text, found)
		}
		if a, ok := found.(*path.Answer); ok && len(a.Paths) == 0 {
			answered = program.ErrNo // and it explains why
		}
	}
	return answered
}

// find returns the answer, which prints as text and as JSON, or a picture; or an
// error, and the version that is in no graph if that is why.
func (o *options) find(ctx context.Context, n *path.Network, all []*path.Network, m graph.RiskMatcher) (found any, missing string, err error) {
	from, to := string(o.from), string(o.to)
	switch {
	case from == "" && o.picture == "":
		return n.Summary(), "", nil
	case to == "" && o.picture == "":
		found, err = n.Updates(ctx, from, m, time.Now(), o.policy)
		return found, from, err
	case o.picture == "" && !o.eus:
		order := path.Shortest
		if o.safest {
			order = path.Safest
		}
		others := slices.DeleteFunc(slices.Clone(all), func(other *path.Network) bool { return other == n })
		a, err := n.Answer(path.ExplainQuery{From: from, To: to, Policy: o.policy, Channel: o.present, Others: others}, o.best, order)
		if err == nil && a.Missing != "" && a.Block != "NotInChannel" {
			return nil, a.Missing, errors.New(a.Explanation.String())
		}
		return a, "", err
	case o.eus:
		found, err = n.ControlPlaneOnly(from, to, path.ControlPlaneOnlyOptions{Policy: o.policy})
		return found, "", err
	}
	p := path.PictureOptions{From: from, To: to, Policy: o.policy, AllEdges: o.policy.Edges == path.Recommended && from == "", MaxNodes: o.nodes}
	if to != "" {
		p.Path, err = n.ShortestPath(from, to, o.policy)
		if err != nil {
			return nil, "", err
		}
	}
	found, err = n.Picture(p)
	return found, "", err
}
