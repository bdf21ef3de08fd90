// Command kubernetes shows which updates a cluster has, and whether it may
// start them.
//
//	go run . -kubeconfig FILE
//
// It reads the ClusterVersion for the updates that the cluster has been
// offered, and checks the preconditions of each. It writes nothing.
//
//	go run . -kubeconfig FILE -to VERSION
//
// With -to it checks that version alone, asks for confirmation, and then
// requests it from the cluster, whose own version operator does the work. A
// release that is blocked, or that was not offered, is not requested.
//
// The exit code is 0 when the cluster may be updated, 1 when something stands
// in the way or the program was interrupted, 2 when the command line is wrong.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal does what signals do
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("kubernetes", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	kubeconfig := flags.String("kubeconfig", "", "`file` that says how to reach the cluster (default: that of $KUBECONFIG or ~/.kube/config)")
	name := flags.String("context", "", "context in that file (default: the current one)")
	to := flags.String("to", "", "`version` to update to, after confirmation (default: only look)")
	err := flags.Parse(args)
	switch rest, v := strings.CutPrefix(*to, "v"); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, "usage: kubernetes [flags]\n\nKubernetes shows which updates a cluster has, and whether it may start them.\n\nflags:")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		fmt.Fprintln(stdout, "\nexit codes: 0: the cluster may be updated; 1: something stands in the way; 2: the command line is wrong.")
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && v:
		err = fmt.Errorf("-to %s: versions of releases have no v: write %s", *to, rest)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kubernetes: %v; kubernetes -h shows the usage\n", err)
		return 2
	}
	api, err := connect(*kubeconfig, *name)
	if err == nil {
		err = show(ctx, api, *to, stdin, stdout)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		fmt.Fprintln(stderr, "kubernetes:", err)
		return 1
	}
	return 0
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

var clusterVersion = clusterapi.Key("", "version")

// errBlocked reports that no release that was looked at may be taken.
var errBlocked = errors.New("preconditions are not met")

func show(ctx context.Context, api clusterapi.ClusterAPI, to string, stdin io.Reader, out io.Writer) error {
	cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterVersion)
	if err != nil {
		return fmt.Errorf("reading the ClusterVersion: %w", err)
	}
	fmt.Fprintf(out, "cluster %s runs %s, channel %s\n", cv.Spec.ClusterID, cmp.Or(cv.Status.Desired.Version, "an unknown version"), cmp.Or(cv.Spec.Channel, "not set"))
	offers := offered(cv)
	if to != "" {
		offers = slices.DeleteFunc(offers, func(o offer) bool { return o.Version != to })
		if len(offers) == 0 {
			return fmt.Errorf("%s is not among the updates that the cluster has been offered", to)
		}
	}
	if len(offers) == 0 {
		fmt.Fprintln(out, "no updates available")
		return nil
	}
	blocked := 0
	for _, o := range offers {
		fmt.Fprintf(out, "\n%s %s\n", o.Version, o.advice)
		d, err := check(ctx, api, cv, o.Release)
		if err != nil {
			return err
		}
		tell(out, d)
		if d.Blocked {
			blocked++
		}
	}
	if blocked == len(offers) {
		return errBlocked
	}
	if to == "" {
		return nil
	}
	return confirm(ctx, api, offers[0].Release, stdin, out)
}

// offer is a release that the cluster has been offered.
type offer struct {
	configv1.Release
	advice string
}

func offered(cv *configv1.ClusterVersion) []offer {
	var out []offer
	for _, r := range cv.Status.AvailableUpdates {
		out = append(out, offer{r, "is recommended"})
	}
	for _, c := range cv.Status.ConditionalUpdates {
		if slices.ContainsFunc(out, func(o offer) bool { return o.Image == c.Release.Image }) {
			continue
		}
		var names []string
		for _, risk := range c.Risks {
			names = append(names, risk.Name)
		}
		out = append(out, offer{c.Release, "is not recommended without looking at its risks: " + strings.Join(names, ", ")})
	}
	return out
}

// check runs every check that can be answered through the API.
func check(ctx context.Context, api clusterapi.Reader, cv *configv1.ClusterVersion, target configv1.Release) (preconditions.Decision, error) {
	checks := slices.Concat(preconditions.Operator(), rules.Documented(rules.Options{}))
	report, err := preconditions.Run(ctx, checks, &preconditions.Input{
		Reader:     api,
		Transition: preconditions.NewTransition(cv, target, false, preconditions.Full),
		Now:        time.Now(),
	}, preconditions.Options{})
	if err != nil {
		return preconditions.Decision{}, err
	}
	return report.Decide(preconditions.Policy{}), nil
}

func tell(out io.Writer, d preconditions.Decision) {
	for _, r := range d.Results {
		fmt.Fprintf(out, "  %-13s %s\n", r.State, r.Check)
		for _, f := range r.Findings {
			fmt.Fprintf(out, "    %s %s: %s\n", f.Severity, f.Reason, f.Message)
			if f.Remedy != "" {
				fmt.Fprintf(out, "      to do: %s\n", f.Remedy)
			}
		}
	}
}

// confirm requests a release once the version has been typed in.
func confirm(ctx context.Context, api clusterapi.ClusterAPI, target configv1.Release, stdin io.Reader, out io.Writer) error {
	fmt.Fprintf(out, "\nThis updates the whole cluster. Type %s to go on: ", target.Version)
	answer, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != target.Version {
		fmt.Fprintln(out, "\nnothing was changed")
		return nil
	}
	_, err = clusterversion.Modify(ctx, api, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) (bool, error) {
		if !slices.ContainsFunc(offered(cv), func(o offer) bool { return o.Image == target.Image }) {
			return false, fmt.Errorf("%s is not offered any more", target.Version)
		}
		clusterversion.SetDesired(cv, configv1.Update{Version: target.Version, Image: target.Image})
		return true, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nrequested %s\n", target.Version)
	return nil
}
