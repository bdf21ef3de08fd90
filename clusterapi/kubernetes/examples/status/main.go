// Command status shows how the update of a cluster does, as oc adm upgrade status
// does, and what the update waits on.
//
//	go run . -kubeconfig FILE
//	go run . -kubeconfig FILE -watch
//
// With -watch it shows the status again whenever it changes: in place on a
// terminal, elsewhere as lines. With -o json it prints the status as JSON, one
// document a change. It writes nothing to the cluster.
//
// The exit code is 0 when all is well, 1 when the update is stuck, an insight is an error,
// or the program was interrupted before it had read the status, 2 when the command line
// is wrong, 3 when the cluster cannot be read.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/examples/internal/connection"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/program"
)

func main() { program.Main(command()) }

type options struct {
	cluster connection.Flags
	details view.Details
	format  string
	watch   bool
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "status",
		About: "Status shows how the update of a cluster does.",
		Codes: "0: all is well; 1: the update is stuck, or an insight is an error; 3: the cluster cannot be read",
		Needs: map[string][]string{"details": {"o text"}},
		Flags: func(f *flag.FlagSet) {
			o.cluster.Declare(f)
			f.Func("details", "what to show in full: none, all, nodes, health or operators (default none)", func(value string) (err error) {
				o.details, err = view.ParseDetails(value)
				return err
			})
			program.Format(f, &o.format, "json")
			f.BoolVar(&o.watch, "watch", false, "follow the update, and show the status whenever it changes")
		},
		Run: func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
			api, err := o.cluster.Open()
			if err != nil {
				return err
			}
			return o.show(ctx, api, stdout, stderr)
		},
	}
}

// show prints the status, or each as it changes.
func (o *options) show(ctx context.Context, api clusterapi.ClusterAPI, stdout, stderr io.Writer) error {
	if o.watch {
		return o.follow(ctx, api, stdout, stderr)
	}
	s, err := view.ReadStatus(ctx, api, view.StatusOptions{})
	if err != nil {
		return err
	}
	if err := o.print(s, stdout, stderr); err != nil {
		return err
	}
	return answer(s.Verdict())
}

// follow prints each status as it changes, until the context ends: in place of the one
// before on a terminal, else as a line.
func (o *options) follow(ctx context.Context, api clusterapi.ClusterAPI, stdout, stderr io.Writer) error {
	last, block := view.VerdictUnknown, program.NewBlock(stdout)
	observe := func(s *view.Status, err error) {
		if err != nil {
			last = view.VerdictUnknown
			fmt.Fprintln(stderr, "status:", err)
			return
		}
		last = s.Verdict()
		if o.format == "json" {
			o.print(s, stdout, stderr)
			return
		}
		var text bytes.Buffer
		o.print(s, &text, &text)
		block.Show(text.String(), s.Now.UTC().Format(time.TimeOnly)+" "+s.String())
	}
	if err := view.Follow(ctx, view.FollowOptions{API: api, Observe: observe}); err != nil {
		return err
	}
	return answer(last)
}

// print prints a status in full.
func (o *options) print(s *view.Status, stdout, stderr io.Writer) error {
	if o.format == "json" {
		return json.NewEncoder(stdout).Encode(s)
	}
	return s.WriteText(stdout, stderr, view.StatusText{
		Details: o.details, Waits: true, Width: program.TerminalOf(stdout).Width,
	})
}

// answer is the exit code of a verdict.
func answer(v view.Verdict) error {
	return map[view.Verdict]error{view.VerdictStuck: program.ErrNo, view.VerdictUnknown: program.ErrUnknown}[v]
}
