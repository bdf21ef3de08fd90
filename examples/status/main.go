// Command status shows how the update of a cluster does: what oc adm upgrade status
// shows, what the update waits on, and both as data.
//
// With -dump it reads a recording: a must-gather, the folder of an oc adm inspect, an
// Insights archive, any heap of manifests, or a .tar or .tar.gz of one. The time is
// the recording's:
//
//	go run ./examples/status -dump must-gather.tar.gz -details all -why
//
// With -payload, the directory of the release that the cluster updates to, -why
// starts at the runlevel. What the recording lacks is reported on standard error.
//
// Without -dump it looks at a simulated cluster, -after so much time of an update
// between two releases that are built in. With -watch it follows the whole of that
// update: in place on a terminal, elsewhere as one line a change. The module of
// package kubernetes has the same for a live cluster.
//
// The exit code is 0 when all is well, 1 when the update is stuck or an insight is an
// error, 2 when the command line is wrong, 3 when the recording cannot be read or what
// decides was not recorded.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/examples/internal/recording"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
	"github.com/clusterupdate/clusterupdate/signature"
)

func main() { program.Main(command()) }

type options struct {
	dump, payload, format string
	details               view.Details
	why, watch, strict    bool
	after                 program.Span
	speed                 program.Speed
}

func command() program.Command {
	o := options{after: program.Span(10 * time.Minute)}
	return program.Command{
		Name:     "status",
		About:    "Status shows how the update of a cluster does.",
		Codes:    "0: all is well; 1: the update is stuck, or an insight is an error; 3: the recording cannot be read, or what decides was not recorded",
		Needs:    map[string][]string{"payload": {"dump"}, "speed": {"watch"}, "details": {"o text"}},
		Excludes: map[string][]string{"dump": {"watch", "after"}, "watch": {"after"}},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.dump, "dump", "", "recording of a cluster: a `directory or archive` (default: a simulated cluster)")
			f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to")
			f.Func("details", "what to show in full: none, all, nodes, health or operators (default none)", func(value string) (err error) {
				o.details, err = view.ParseDetails(value)
				return err
			})
			program.Format(f, &o.format, "json")
			f.BoolVar(&o.why, "why", false, "show what the update waits on")
			f.BoolVar(&o.strict, "strict", false, "exit with 1 on warnings too")
			f.BoolVar(&o.watch, "watch", false, "follow the update, and show the status whenever it changes")
			f.Var(&o.after, "after", "look at the simulated update after this `duration`")
			f.Var(&o.speed, "speed", "run live, by this `factor` faster than real time (default: in virtual time, at once)")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			show := o.simulated
			if o.dump != "" {
				show = o.recorded
			}
			s, err := show(ctx, stdout, stderr)
			if err != nil {
				return err
			}
			return o.exit(s.Verdict())
		},
	}
}

func (o *options) exit(v view.Verdict) error {
	switch {
	case v == view.VerdictStuck, v == view.VerdictWarning && o.strict:
		return program.ErrNo
	case v == view.VerdictUnknown:
		return program.ErrUnknown
	}
	return nil
}

// recorded shows the status of a recorded cluster.
func (o *options) recorded(ctx context.Context, stdout, stderr io.Writer) (*view.Status, error) {
	recorded, err := recording.Open(ctx, o.dump, stderr, "")
	if err != nil {
		return nil, err
	}
	so := view.StatusOptions{Drains: o.why}
	payload := "" // the version of its release
	if o.payload != "" {
		p, err := manifest.Load(ctx, os.DirFS(o.payload), manifest.LoadOptions{Filter: manifest.DefaultFilter()})
		if err != nil {
			return nil, fmt.Errorf("-payload: %s: %w", o.payload, err)
		}
		so.Components = preview.Components(p)
		payload = p.Release.Version
	}
	s, err := view.ReadStatus(ctx, recorded, so)
	if err != nil {
		return nil, err
	}
	if c := s.ControlPlane; payload != "" && c != nil && c.Target != payload {
		fmt.Fprintf(stderr, "warning: -payload: %s is release %s, the cluster updates to %s\n", o.payload, payload, c.Target)
	}
	return s, o.print(s, stdout, stderr)
}

// print prints a status in full.
func (o *options) print(s *view.Status, stdout, stderr io.Writer) error {
	if o.format == "json" {
		return program.JSON(stdout, s)
	}
	return s.WriteText(stdout, stderr, view.StatusText{Details: o.details, Waits: o.why, Width: program.TerminalOf(stdout).Width})
}

// simulated shows the status of a simulated cluster that is being updated.
func (o *options) simulated(ctx context.Context, stdout, stderr io.Writer) (*view.Status, error) {
	images, err := rehearsal.Open(ctx, "", "")
	if err != nil {
		return nil, err
	}
	cluster, err := rehearsal.New(rehearsal.Options{
		Cluster: simulation.Options{
			ClusterVersion: simulation.ClusterVersion{Channel: "rehearsal"},
			ControlPlane:   3, Pools: []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
		},
		Images: images, Channel: "rehearsal", Speed: float64(o.speed), Start: time.Now(), Verifier: signature.Insecure(),
	})
	if err != nil {
		return nil, err
	}
	block := program.NewBlock(stdout)
	follow, err := view.FollowProcess(view.FollowOptions{API: cluster, Components: preview.Components(images[1].Payload), Observe: func(s *view.Status, err error) {
		var text bytes.Buffer
		switch {
		case err != nil || !o.watch:
		case o.format == "json":
			json.NewEncoder(stdout).Encode(s)
		case o.print(s, &text, &text) == nil:
			block.Show(text.String(), s.Now.UTC().Format(time.TimeOnly)+" "+s.String())
		}
	}})
	if err != nil {
		return nil, err
	}
	err = cluster.Play(ctx, func(ctx context.Context, wait func(time.Duration) error) error {
		request := rehearsal.Request{API: cluster, Version: images[1].Version(), Now: cluster.Clock.Now, Wait: wait}
		if o.watch {
			return request.Run(ctx)
		}
		return errors.Join(request.Start(ctx), wait(time.Duration(o.after)))
	}, follow)
	if err != nil {
		return nil, err
	}
	s, err := view.ReadStatus(ctx, cluster, view.StatusOptions{Now: cluster.Clock.Now(), Components: preview.Components(images[1].Payload), Drains: o.why})
	if err != nil || o.watch {
		return s, err
	}
	return s, o.print(s, stdout, stderr)
}
