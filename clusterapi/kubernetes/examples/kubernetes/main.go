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
// The exit code is 0 when the cluster may be updated, 1 when something blocks that or the
// program was interrupted, 2 when the command line is wrong, 3 when the cluster cannot be
// read.
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
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/examples/internal/connection"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/preconditions/rules"
)

func main() { program.Main(command()) }

func command() program.Command {
	var cluster connection.Flags
	var to program.Version
	return program.Command{
		Name:  "kubernetes",
		About: "Kubernetes shows which updates a cluster has, and whether it may start them.",
		Codes: "0: the cluster may be updated; 1: something blocks that; 3: the cluster cannot be read",
		Flags: func(f *flag.FlagSet) {
			cluster.Declare(f)
			f.Var(&to, "to", "`version` to update to, after confirmation (default: only look)")
		},
		Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			api, err := cluster.Open()
			if err != nil {
				return err
			}
			return show(ctx, api, string(to), os.Stdin, stdout)
		},
	}
}

var clusterVersion = clusterapi.Key("", "version")

// errBlocked reports that the preconditions of no release are met.
var errBlocked = program.No(errors.New("preconditions are not met"))

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
			return program.No(fmt.Errorf("%s is not among the updates that the cluster has been offered", to))
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
			return false, program.No(fmt.Errorf("%s is not offered any more", target.Version))
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
