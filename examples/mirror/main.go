// Command mirror plans what a disconnected site has to mirror: the releases on the
// ways of all its clusters, their images and signatures, and the graph data.
//
//	mirror -graph graphs/ -channel eus-4.16,eus-4.18 -image-sets out/ shop:4.16.3:4.18.1 lab:4.16.9:
//	mirror -graph https://api.openshift.com/api/upgrades_info/v1/graph -channel stable-4.21 new::4.21.4
//
// An argument is cluster:from:to or cluster:from:to:arch. Without a version to start
// from it is an installation, without one to get to it is the highest. -image-sets
// writes the plan as files for oc-mirror, to be run with one workspace.
//
// The exit code is 0 with a plan, 1 if a cluster has no way, 2 when the command line
// is wrong, 3 if a graph cannot be read.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/path"
)

func main() { program.Main(command()) }

type options struct {
	graphs, channels program.List
	arch, imageSets  string
	edges            string
	every, json      bool
	policy           path.Policy
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "mirror",
		Args:  "CLUSTER:FROM:TO...",
		About: "Mirror plans what a disconnected site has to mirror for the updates of its clusters.",
		Codes: "0: a plan; 1: a cluster has no way; 3: a graph cannot be read",
		Min:   1,
		Max:   -1,
		Flags: func(f *flag.FlagSet) {
			f.Var(&o.graphs, "graph", "`file`, folder or address of update graphs; may be repeated")
			f.Var(&o.channels, "channel", "`names` of channels; may be repeated")
			f.StringVar(&o.arch, "arch", "", "architecture of the graphs (default: the file's, else amd64)")
			f.StringVar(&o.edges, "policy", "Recommended", "edges to use: Recommended, AvoidRisks or Any")
			f.Var((*program.List)(&o.policy.Risks), "risk", "`names` of risks for AvoidRisks; may be repeated")
			f.BoolVar(&o.policy.NoPreReleases, "no-pre-releases", false, "leave out pre-releases")
			f.BoolVar(&o.every, "every", false, "mirror all releases on any way, not those of the shortest alone")
			f.StringVar(&o.imageSets, "image-sets", "", "`folder` to write files for oc-mirror to")
			f.BoolVar(&o.json, "json", false, "print JSON")
		},
		Run: func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
			return plan(ctx, o, args, stdout, stderr)
		},
	}
}

// wants reads the arguments.
func (o *options) wants(args []string) (wants []path.Want, err error) {
	for _, text := range args {
		parts := strings.Split(text, ":")
		if len(parts) != 3 && len(parts) != 4 {
			return nil, program.Usagef("%q is not cluster:from:to or cluster:from:to:arch", text)
		}
		want := path.Want{Cluster: parts[0], From: parts[1], To: parts[2], Every: o.every, Policy: o.policy}
		if len(parts) == 4 {
			want.Arch = parts[3]
		}
		wants = append(wants, want)
	}
	return wants, nil
}

// plan plans the mirror, prints the plan and writes the files for oc-mirror.
func plan(ctx context.Context, o options, args []string, stdout, stderr io.Writer) error {
	if len(o.graphs) == 0 {
		return program.Usagef("-graph is missing")
	}
	if !slices.Contains([]string{"Recommended", "AvoidRisks", "Any"}, o.edges) {
		return program.Usagef("-policy %q is none of Recommended, AvoidRisks, Any", o.edges)
	}
	o.policy.Edges = path.Edges(strings.TrimPrefix(o.edges, "Recommended")) // empty stands for it
	wants, err := o.wants(args)
	if err != nil {
		return err
	}
	load := path.LoadOptions{Channels: o.channels, Arch: o.arch, Client: &graph.Client{UserAgent: "clusterupdate-mirror"}}
	graphs, err := path.Load(ctx, o.graphs, load)
	if err != nil {
		return program.Unread(err)
	}
	networks, err := path.ByArchitecture(ctx, path.NetworkOptions{}, graphs...)
	if err != nil {
		return program.Unread(err)
	}
	for _, n := range networks {
		for _, note := range n.Notes() {
			fmt.Fprintln(stderr, "mirror:", note)
		}
	}
	plan, err := path.Mirror(ctx, networks, wants)
	if err != nil {
		return err
	}
	if o.imageSets != "" {
		if err := write(o.imageSets, plan.ImageSetConfigurations()); err != nil {
			return err
		}
	}
	if o.json {
		return program.JSON(stdout, plan)
	}
	return program.Answer(stdout, plan.String(), true)
}

// write writes files into a folder.
func write(folder string, files map[string]string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(name)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
