// Command payload looks into releases: which manifests of one a cluster applies and
// why not the rest, how two differ, what is wrong with one, and what an update to one
// would change in a cluster.
//
//	go run ./examples/payload inspect -baseline None -capability Console -o mermaid release/
//	go run ./examples/payload diff -component dns -platform arm64 old/ mirror.tar@sha256:…
//	go run ./examples/payload preview -dump must-gather.tar.gz -running old/ new/
//
// A release is a directory laid out as a release image, one that oc adm release extract
// has written, or, as PLACE@DIGEST, an image in an OCI layout (a directory or a tar file)
// or in a mirror that oc adm release mirror or oc-mirror has left on disk. Without one, it
// is the built-in one. Registries are read by a module of its own, manifest/image/registry.
//
// Flags describe the cluster, or -dump names a recorded one: a must-gather, the folder of
// an oc adm inspect, any heap of manifests, or a .tar or .tar.gz of one. Without it,
// preview simulates one.
//
// The exit code is 0 when nothing differs, is wrong or would change, 1 when something
// does, 2 when the command line is wrong, 3 when a release or a recording cannot
// be read, or does not have what decides.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/clusterupdate/clusterupdate/examples/internal/releases"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

func main() { program.Main(command()) }

type options struct {
	releases.Flags
	format, component, kind, running      string
	excluded, schemas, images, all, merge bool
}

func command() program.Command {
	var o options
	show := func(f *flag.FlagSet, formats ...string) {
		f.StringVar(&o.component, "component", "", "show this `component` only")
		f.StringVar(&o.kind, "kind", "", "show this `kind` only")
		program.Format(f, &o.format, formats...)
	}
	text := []string{"o text"}
	needs := map[string][]string{
		"component": text, "kind": text, "excluded": text, "schemas": text, "images": text,
		"allow-unknown": {"capability"},
	}
	previewNeeds := map[string][]string{
		"component": {"o text|diff"}, "kind": {"o text|diff"}, "all": text, "running": {"dump"},
	}
	return program.Command{
		Name:    "payload",
		About:   "Payload looks into releases, and reports what an update to one would change.",
		Codes:   "0: nothing differs, is wrong or would change; 1: something does; 3: a release or a recording cannot be read, or does not have what decides",
		Default: "inspect",
		Commands: []program.Command{
			{Name: "inspect", Args: "[RELEASE]", About: "report what a cluster applies, and why not the rest", Max: 1, Run: o.inspect, Flags: func(f *flag.FlagSet) {
				o.Declare(f)
				show(f, "json", "dot", "mermaid")
				f.BoolVar(&o.excluded, "excluded", false, "show only what is excluded")
			}, Needs: needs, Excludes: releases.Excludes()},
			{Name: "diff", Args: "[OLD NEW]", About: "report what differs between two; exit with 1 if something does", Max: 2, Run: o.diff, Flags: func(f *flag.FlagSet) {
				o.Declare(f)
				show(f, "json")
				f.BoolVar(&o.schemas, "schemas", false, "list what differs in schemas of definitions")
				f.BoolVar(&o.images, "images", false, "list the component images that differ")
			}, Needs: needs, Excludes: releases.Excludes()},
			{Name: "lint", Args: "[RELEASE]", About: "report what is wrong with one; exit with 1 if there are errors", Max: 1, Run: o.lint, Flags: func(f *flag.FlagSet) {
				o.Declare(f)
				program.Format(f, &o.format, "json")
			}, Needs: needs, Excludes: releases.Excludes()},
			{Name: "rules", About: "list the rules of lint", Run: o.rules, Flags: func(f *flag.FlagSet) {
				program.Format(f, &o.format, "json")
			}},
			{Name: "preview", Args: "[RELEASE]", About: "report what an update would change; exit with 1 if something, 3 if that is unknown", Max: 1, Run: o.preview, Flags: func(f *flag.FlagSet) {
				o.DeclareRecorded(f)
				show(f, "json", "diff")
				f.StringVar(&o.running, "running", "", "`release` that the cluster runs; it shows who has changed an object")
				f.BoolVar(&o.all, "all", false, "show what stays as it is, too")
				f.BoolVar(&o.merge, "merge", false, "merge manifests into objects, as the cluster-version operator does")
			}, Needs: previewNeeds},
		},
	}
}

func (o *options) inspect(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p, filter, err := o.Release(ctx, args, stderr)
	if err != nil {
		return err
	}
	if err := o.shown(p); err != nil {
		return err
	}
	included, _ := p.Included(filter)
	order, in := manifest.UpdateGraph(manifest.NewTasks(included)), p.Inclusion(filter)
	return program.Report(stdout, o.format, true, in, func(w io.Writer) error {
		switch o.format {
		case "dot":
			_, err = fmt.Fprintln(w, order.DOT())
		case "mermaid":
			_, err = fmt.Fprint(w, order.Mermaid())
		default:
			err = in.WriteText(w, manifest.InclusionTextOptions{Component: o.component, Kind: o.kind, Excluded: o.excluded})
		}
		return err
	})
}

func (o *options) diff(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 1 {
		return program.Usagef("NEW is missing")
	}
	from, to, filter, err := o.Releases(ctx, args, stderr)
	if err != nil {
		return err
	}
	if err := o.shown(from, to); err != nil {
		return err
	}
	d := manifest.Diff(from, to, manifest.DiffOptions{Filter: filter})
	return program.Report(stdout, o.format, d.Empty(), d, func(w io.Writer) error {
		return d.WriteText(w, manifest.DiffTextOptions{Component: o.component, Kind: o.kind, Schemas: o.schemas, Images: o.images})
	})
}

func (o *options) lint(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p, filter, err := o.Release(ctx, args, stderr)
	if err != nil {
		return err
	}
	findings := append([]manifest.Finding{}, manifest.Lint(p, filter)...)
	isError := func(f manifest.Finding) bool { return f.Severity == "Error" }
	return program.Report(stdout, o.format, !slices.ContainsFunc(findings, isError), findings, func(w io.Writer) error {
		for _, f := range findings {
			fmt.Fprintln(w, f)
		}
		_, err := fmt.Fprintf(w, "%s: %d findings\n", p.Release.Version, len(findings))
		return err
	})
}

func (o *options) rules(_ context.Context, _ []string, stdout, _ io.Writer) error {
	return program.Report(stdout, o.format, true, manifest.LintRules(), func(w io.Writer) error {
		for _, r := range manifest.LintRules() {
			fmt.Fprintln(program.TerminalOf(w).Wrap(w), r)
		}
		return nil
	})
}

func (o *options) preview(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if o.Dump != "" && len(args) == 0 {
		return program.Usagef("-dump needs the RELEASE to update to")
	}
	cluster, running, target, err := o.Update(ctx, o.running, args, stderr)
	if err != nil {
		return err
	}
	if err := o.shown(target); err != nil {
		return err
	}
	p, err := preview.Run(ctx, target.Tasks(), preview.Options{
		Reader: cluster, Payload: target, Running: running, Filter: cluster.Filter(running, target), Owner: cluster.Owner(),
		Mode: map[bool]runlevel.Mode{true: runlevel.ApplyMerge}[o.merge],
	})
	if err != nil {
		return err
	}
	changes := p.Count(preview.Create) + p.Count(preview.Update) + p.Count(preview.Delete) + p.Count(preview.Fail)
	show := preview.TextOptions{Component: o.component, Kind: o.kind, Unchanged: o.all}
	err = program.Report(stdout, o.format, changes == 0, p, func(w io.Writer) error {
		if o.format == "diff" {
			return p.Diff(w, show)
		}
		return p.Text(w, show)
	})
	if err == nil && p.Count(preview.Unknown) > 0 {
		return program.ErrUnknown
	}
	return err
}
