// Package graphs has the flags of the example programs that read update graphs.
package graphs

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

// Flags are where graphs are, and which of their updates count.
type Flags struct {
	Name             string // the program's
	Places, Channels program.List
	Arch             string // empty: see [path.LoadOptions]

	edges  string
	policy path.Policy
}

// Declare declares all flags.
func (f *Flags) Declare(set *flag.FlagSet) {
	f.DeclarePlaces(set)
	set.StringVar(&f.Arch, "arch", "", "`architecture` of the graphs (default: the file's, else amd64)")
	program.Choice(set, &f.edges, "policy", "updates to use", "Recommended", "AcceptRisks", "AvoidRisks", "Any")
	set.Var((*program.List)(&f.policy.Risks), "risk", "`names` of risks; may be repeated")
	set.BoolVar(&f.policy.NoPreReleases, "no-pre-releases", false, "leave out pre-releases")
}

// DeclarePlaces declares the flags that say where graphs are.
func (f *Flags) DeclarePlaces(set *flag.FlagSet) {
	set.Var(&f.Places, "graph", "`file`, folder or address of update graphs; may be repeated")
	set.Var(&f.Channels, "channel", "`names` of channels; may be repeated")
}

// RiskNeeds are the conditions of flag -risk: see [program.Command].
func RiskNeeds() []string { return []string{"policy AcceptRisks|AvoidRisks"} }

// Policy returns which updates a path may use.
func (f *Flags) Policy() path.Policy {
	p := f.policy
	p.Edges = path.Edges(f.edges)
	return p
}

// Networks loads the graphs, and connects those of each architecture. It prints notes
// about them to problems. Errors are those of [path.Load] and [path.ByArchitecture], and
// name the flag -graph.
func (f *Flags) Networks(ctx context.Context, o path.NetworkOptions, problems io.Writer) ([]*path.Network, error) {
	graphs, err := path.Load(ctx, f.Places, f.load())
	if err != nil {
		return nil, fmt.Errorf("-graph: %w", err)
	}
	networks, err := path.ByArchitecture(ctx, o, graphs...)
	for _, n := range networks {
		for _, note := range n.Notes() {
			fmt.Fprintf(problems, "%s: %s\n", f.Name, note)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("-graph: %w", err)
	}
	return networks, nil
}

// Elsewhere names the channels of the places that have a version.
func (f *Flags) Elsewhere(ctx context.Context, version string) []string {
	return f.load().ChannelsWith(ctx, f.Places, version)
}

func (f *Flags) load() path.LoadOptions {
	client := &graph.Client{UserAgent: "clusterupdate-" + f.Name}
	return path.LoadOptions{Channels: f.Channels, Arch: f.Arch, Client: client}
}
