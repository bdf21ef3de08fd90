// Command forecast reports what an update would do to a cluster: by which way it
// gets there, what blocks it and what to do about that, what it changes, and how
// long it takes.
//
// With -dump it judges a recording, at its time: a must-gather, the folder of an oc
// adm inspect, any heap of manifests, or a .tar or .tar.gz of one. Several -dump are a
// fleet, which gets a table and the releases that a mirror must hold:
//
//	go run ./examples/forecast -dump must-gather.tar.gz -to 4.19.1 -running 4.18.20/ -payload 4.19.1/ -rehearse 10
//	go run ./examples/forecast -dump a.tar.gz -dump b.tar.gz -to 4.19.1 -graph stable-4.19_amd64.json -o markdown
//
// -payload is the directory of the release to update to, -running the directory of the
// one that the cluster runs: with them it reports what changes. -rehearse plays the
// update that many times, and -o svg draws a picture of the first run. -max-unavailable
// and -nodes change a pool for the rehearsal. What is not recorded is not known, and
// never passes. -allow NAME=WHY sets a check aside.
//
// Without -dump it judges a simulated cluster and a release that are built in.
//
// The exit code is 0 when the cluster is ready, 1 when something blocks or, with
// -strict, when there are warnings, 2 when the command line is wrong, 3 when it could
// not be decided, or something could not be read.
package main

import (
	"context"
	"io"

	"github.com/clusterupdate/clusterupdate/clusterapi/forecast"
	"github.com/clusterupdate/clusterupdate/clusterapi/timeline"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

func command() program.Command {
	var o options
	return program.Command{
		Name:  "forecast",
		About: "Forecast says what an update would do to a cluster, or to each of a fleet.",
		Codes: "0: ready; 1: something blocks; 3: it could not be decided or read; with -strict 1: warnings",
		Flags: o.declare,
		Needs: needs(),
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			clusters, err := o.read(ctx, stderr)
			if err != nil {
				return err
			}
			r, err := predict(ctx, clusters, o.forecast)
			if err != nil {
				return err
			}
			if err := print(stdout, r, o.format); err != nil {
				return err
			}
			return exit(r.Verdict(), o.strict)
		},
	}
}

// report is a forecast of a cluster or of a fleet.
type report interface {
	Verdict() forecast.Verdict
	WriteText(w io.Writer, o forecast.TextOptions) error
	WriteMarkdown(w io.Writer) error
}

func predict(ctx context.Context, clusters []forecast.Cluster, o forecast.Options) (report, error) {
	if len(clusters) > 1 {
		return forecast.Fleet(ctx, clusters, o)
	}
	return forecast.Update(ctx, clusters[0].Reader, o)
}

func print(w io.Writer, r report, format string) error {
	switch format {
	case "json":
		return program.JSON(w, r)
	case "markdown":
		return r.WriteMarkdown(w)
	case "svg":
		return r.(*forecast.Forecast).WriteSVG(w, timeline.SVGOptions{})
	}
	return r.WriteText(w, forecast.TextOptions{Width: program.TerminalOf(w).Width})
}

func exit(v forecast.Verdict, strict bool) error {
	switch {
	case v == forecast.Blocked, v == forecast.Warnings && strict:
		return program.ErrNo
	case v == forecast.Unknown:
		return program.ErrUnknown
	}
	return nil
}
