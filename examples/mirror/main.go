// Command mirror plans what a disconnected site has to mirror: the releases on the
// ways of all its clusters, their images and signatures, and the graph data.
//
//	go run ./examples/mirror -graph graphs/ -channel eus-4.16,eus-4.18 -image-sets out/ shop:4.16.3:4.18.1 lab:4.16.9:
//	go run ./examples/mirror -graph https://api.openshift.com/api/upgrades_info/v1/graph -channel stable-4.21 new::4.21.4
//
// An argument is cluster:from:to or cluster:from:to:arch. Without a version to start
// from it is an installation, without one to get to it is the highest. -image-sets
// writes the plan as files for oc-mirror, to be run with one workspace.
//
// The exit code is 0 with a plan, 1 when a cluster has no way, 2 when the command line
// is wrong, 3 when a graph cannot be read or a file not be written.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterupdate/clusterupdate/examples/internal/graphs"
	"github.com/clusterupdate/clusterupdate/graph/path"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

type options struct {
	graphs    graphs.Flags
	imageSets string
	format    string
	every     bool
}

func command() program.Command {
	o := options{graphs: graphs.Flags{Name: "mirror"}}
	return program.Command{
		Name:     "mirror",
		Args:     "CLUSTER:FROM:TO...",
		About:    "Mirror plans what a disconnected site has to mirror for the updates of its clusters.",
		Codes:    "0: a plan; 1: a cluster has no way; 3: a graph cannot be read, or a file not be written",
		Min:      1,
		Max:      -1,
		Required: [][]string{{"graph"}},
		Needs:    map[string][]string{"risk": graphs.RiskNeeds()},
		Flags: func(f *flag.FlagSet) {
			o.graphs.Declare(f)
			f.BoolVar(&o.every, "every", false, "mirror all releases on any way, not those of the shortest alone")
			f.StringVar(&o.imageSets, "image-sets", "", "write files for oc-mirror into this `folder`")
			program.Format(f, &o.format, "json")
		},
		Run: o.plan,
	}
}

// wants reads the arguments.
func (o *options) wants(args []string) (wants []path.Want, err error) {
	for _, text := range args {
		parts := strings.Split(text, ":")
		if len(parts) != 3 && len(parts) != 4 {
			return nil, program.Usagef("%q is not cluster:from:to or cluster:from:to:arch", text)
		}
		want := path.Want{Cluster: parts[0], From: parts[1], To: parts[2], Every: o.every, Policy: o.graphs.Policy()}
		for _, version := range []string{want.From, want.To} {
			if version == "" {
				continue
			}
			if err := new(program.Version).Set(version); err != nil {
				return nil, program.Usagef("%q: %s: %w", text, version, err)
			}
		}
		if len(parts) == 4 {
			want.Arch = parts[3]
		}
		wants = append(wants, want)
	}
	return wants, nil
}

// plan plans the mirror, prints the plan and writes the files for oc-mirror.
func (o *options) plan(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	wants, err := o.wants(args)
	if err != nil {
		return err
	}
	networks, err := o.graphs.Networks(ctx, path.NetworkOptions{}, stderr)
	if err != nil {
		return err
	}
	plan, err := path.Mirror(ctx, networks, wants)
	if err != nil {
		return program.No(err)
	}
	if o.imageSets != "" {
		if err := write(o.imageSets, plan.ImageSetConfigurations()); err != nil {
			return err
		}
	}
	return program.Report(stdout, o.format, true, plan, program.Text(plan.String()))
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
