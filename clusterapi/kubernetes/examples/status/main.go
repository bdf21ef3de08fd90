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
// The exit code is 0 when all is well, 1 when the update is stuck or the program
// failed, 2 when the command line is wrong, 3 when what decides could not be read.
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
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal does what signals do
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	kubeconfig, context, details, format string
	watch                                bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("status", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster (default: that of $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&o.context, "context", "", "context in that file (default: the current one)")
	flags.StringVar(&o.details, "details", "none", "what to show in full: none, all, nodes, health, operators")
	flags.StringVar(&o.format, "o", "text", "`format`: text or json")
	flags.BoolVar(&o.watch, "watch", false, "show the status again whenever it changes")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: status [flags]\n\nStatus shows how the update of a cluster does.\n\nflags:")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		fmt.Fprintln(stdout, "\nexit codes: 0: all is well; 1: the update is stuck; 2: the command line is wrong; 3: what decides could not be read.")
		return 0
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil && o.format != "text" && o.format != "json" {
		err = fmt.Errorf("-o %s: not text or json", o.format)
	}
	if err == nil {
		_, err = view.ParseDetails(o.details)
	}
	if err != nil {
		fmt.Fprintf(stderr, "status: %v; status -h shows the usage\n", err)
		return 2
	}
	api, err := connect(o.kubeconfig, o.context)
	if err == nil {
		return o.show(ctx, api, stdout, stderr)
	}
	fmt.Fprintln(stderr, "status:", err)
	return 1
}

func connect(kubeconfig, context string) (clusterapi.ClusterAPI, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.New(config, kubernetes.Options{UserAgent: "clusterupdate-example"})
}

// show prints the status, or each as it changes, and returns the exit code.
func (o options) show(ctx context.Context, api clusterapi.ClusterAPI, stdout, stderr io.Writer) int {
	last := view.VerdictUnknown
	if o.watch {
		err := view.Follow(ctx, view.FollowOptions{API: api, Observe: func(s *view.Status, err error) {
			if err != nil {
				last = view.VerdictUnknown
				fmt.Fprintln(stderr, "status:", err)
				return
			}
			last = s.Verdict()
			o.redraw(s, stdout, stderr)
		}})
		if err != nil {
			fmt.Fprintln(stderr, "status:", err)
			return 1
		}
		return code(last)
	}
	s, err := view.ReadStatus(ctx, api, view.StatusOptions{})
	if err == nil {
		err = o.print(s, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "status:", err)
		return 1
	}
	return code(s.Verdict())
}

// print prints a status in full.
func (o options) print(s *view.Status, stdout, stderr io.Writer) error {
	if o.format == "json" {
		return json.NewEncoder(stdout).Encode(s)
	}
	return s.WriteText(stdout, stderr, view.StatusText{Details: view.Details(o.details), Waits: true})
}

// redraw shows a status in place of the one before on a terminal, else as a line.
func (o options) redraw(s *view.Status, stdout, stderr io.Writer) {
	f, ok := stdout.(*os.File)
	switch {
	case o.format == "json":
		o.print(s, stdout, stderr)
	case ok && term.IsTerminal(int(f.Fd())):
		var text bytes.Buffer
		o.print(s, &text, &text)
		fmt.Fprintf(stdout, "\x1b[H\x1b[J%s", text.Bytes())
	default:
		fmt.Fprintf(stdout, "%s %s\n", s.Now.UTC().Format("15:04:05"), s)
	}
}

func code(v view.Verdict) int {
	return map[view.Verdict]int{view.VerdictStuck: 1, view.VerdictUnknown: 3}[v]
}
