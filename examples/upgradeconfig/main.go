// Command upgradeconfig shows how a policy becomes a finished upgrade: a
// provider is asked for policies, the UpgradeConfig of the cluster follows
// them, and at its time the cluster is upgraded, control plane and nodes.
//
// The cluster is simulated, and its time is virtual: an upgrade takes no time, and is the
// same each time. With -speed it runs live, that many times faster than real time.
//
//	go run ./examples/upgradeconfig          # policies are files in a Git repository
//	go run ./examples/upgradeconfig -local   # an administrator writes the UpgradeConfig
//	go run ./examples/upgradeconfig -ocm     # OpenShift Cluster Manager, a look-alike
//
// With -ocm the policy is moved, OCM is down for a while, an upgrade is cancelled,
// and another is carried out.
//
// The exit code is 0 when the upgrade completed, 1 when it failed or was interrupted, 2
// when the command line is wrong, 3 when the cluster or the provider cannot be reached.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/examples/upgradeconfig/policies"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/preconditions"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/upgrade/upgradetest"
)

func main() { program.Main(command()) }

// externalID is how the cluster calls itself, internalID how OCM calls it.
const externalID, internalID = "3f1c52c4-0a55-4a1d-9c1b-2f6c1f1d7a10", "1a2b"

func command() program.Command {
	var local, ocm bool
	var speed program.Speed
	return program.Command{
		Name:     "upgradeconfig",
		About:    "Upgradeconfig shows how a policy becomes a finished upgrade, on a simulated cluster.",
		Codes:    "0: the upgrade completed; 1: it failed or was interrupted; 3: the cluster or the provider cannot be reached",
		Excludes: map[string][]string{"local": {"ocm"}},
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&local, "local", false, "an administrator writes the UpgradeConfig")
			f.BoolVar(&ocm, "ocm", false, "policies come from OpenShift Cluster Manager")
			f.Var(&speed, "speed", "run live, by this `factor` faster than real time (default: in virtual time, at once)")
		},
		Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			dir, err := os.MkdirTemp("", "policies")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			images, err := rehearsal.Open(ctx, "", "")
			if err != nil {
				return err
			}
			log := &policies.Log{Out: stdout}
			cluster, err := rehearsal.New(rehearsal.Options{
				Cluster: simulation.Options{
					Pools:          []simulation.Pool{{Name: "worker", Nodes: 2}},
					ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.20", ClusterID: externalID},
				},
				Images: images, Channel: sample.Channel, Verifier: signature.Insecure(), Updater: log.Updater, Nodes: log.Node,
				Speed: float64(speed), Start: time.Date(2031, time.February, 4, 0, 0, 0, 0, time.UTC),
			})
			if err != nil {
				return err
			}
			log.Clock = cluster.Clock
			if err := cluster.Load(upgradeconfig.Definition()); err != nil {
				return err
			}
			switch {
			case local:
				return play(ctx, cluster, log, upgradeconfig.Local{API: cluster}, administrator(cluster))
			case ocm:
				return manager(ctx, cluster, log)
			}
			return play(ctx, cluster, log, upgradeconfig.GitDir{Tree: os.DirFS(dir)}, git(dir))
		},
	}
}

// play carries out what the provider says, while people take their steps.
func play(ctx context.Context, s *rehearsal.Rehearsal, log *policies.Log, provider upgradeconfig.Provider, steps []policies.Step) error {
	manager, err := upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
		API: s, Provider: provider, Interval: 10 * time.Minute, KeepWhileUpgrading: true, Clock: s.Clock, Observe: log.Config,
	})
	if err != nil {
		return err
	}
	// Through the manager the controller asks the provider right before an upgrade
	// starts, and reports to it how that goes.
	controller, err := upgrade.New(upgrade.Options{
		API: s, Refresh: manager.Refresh, Notifier: manager, Clock: s.Clock, Observe: log.Config,
		Validate:      upgradeconfig.ValidateOptions{Cincinnati: true, Graph: s.Graph, Architecture: "amd64"},
		Preconditions: preconditions.Require(s),
		Health:        upgrade.OperatorHealth(s),
		Capacity:      &upgradetest.Capacity{Clock: s.Clock, Ready: 4 * time.Minute},
		Maintenance:   &upgradetest.Maintenance{},
		Drain:         (&upgrade.ForcedDrain{API: s, Clock: s.Clock}).ForceDrain,
	})
	if err != nil {
		return err
	}
	return log.Perform(ctx, s, steps, manager.Process(), controller.Process())
}

// administrator writes the UpgradeConfig by hand.
func administrator(s *rehearsal.Rehearsal) []policies.Step {
	create := func(at string) error {
		c := &upgradeconfig.UpgradeConfig{Spec: upgradeconfig.Spec{
			Desired:   upgradeconfig.Update{Version: sample.ToVersion, Channel: sample.Channel},
			UpgradeAt: at, PDBForceDrainTimeout: 60, Type: upgradeconfig.OSD,
		}}
		c.Namespace, c.Name = upgradeconfig.DefaultNamespace, upgradeconfig.Name
		_, err := clusterapi.Create(context.Background(), s, c, clusterapi.CreateOptions{})
		return err
	}
	return []policies.Step{{Who: "admin", Text: "creates an UpgradeConfig: " + sample.ToVersion, In: 10 * time.Minute, Do: create, Until: policies.Upgraded}}
}

// git: a team plans upgrades in a Git repository, of which dir is a clone.
func git(dir string) []policies.Step {
	commit := func(state string) func(string) error {
		return func(at string) error {
			text := fmt.Sprintf("id: p-1\nversion: %s\nupgradeAt: %s\ncapacityReservation: true\nstate: %s\n", sample.ToVersion, at, state)
			return errors.Join(os.WriteFile(filepath.Join(dir, "new"), []byte(text), 0o600),
				os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "upgrade.yaml")))
		}
	}
	return []policies.Step{
		{Who: "git", Text: "commit: upgrade in two hours", In: 2 * time.Hour, Do: commit("scheduled"), Until: policies.Planned},
		{Who: "git", Text: "commit: upgrade in fifteen minutes already", In: 15 * time.Minute, Do: commit("scheduled"), Until: policies.Upgraded},
		{Who: "git", Text: "commit: done", Do: commit("completed"), Until: policies.Gone},
	}
}

// manager: OpenShift Cluster Manager has the policies. It goes down for a while, a
// policy is cancelled, and another is carried out.
func manager(ctx context.Context, s *rehearsal.Rehearsal, log *policies.Log) error {
	server, provider, err := ocmtest.Connect(ctx, s, ocmtest.Cluster{ID: internalID, ExternalID: externalID, Version: sample.FromVersion, ChannelGroup: "stable"}, ocm.Options{
		Type: upgradeconfig.OSD, Clock: s.Clock, Observe: log.Config,
		Rand: func(n int64) int64 { return n / 2 }, // the middle of each wait, so that runs are alike
	})
	if err != nil {
		return err
	}
	set := func(id, state string) func(string) error {
		return func(at string) error {
			server.SetPolicy(internalID, ocmtest.Policy{ID: id, Version: sample.ToVersion, NextRun: at, State: state})
			return nil
		}
	}
	fail := func(faults ...ocmtest.Fault) func(string) error {
		return func(string) error {
			server.Forget()
			server.Fail(faults...)
			return nil
		}
	}
	asked := func(n int) func(*upgradeconfig.UpgradeConfig, string) bool {
		return func(*upgradeconfig.UpgradeConfig, string) bool { return len(server.Requests()) >= n }
	}
	completed := func(c *upgradeconfig.UpgradeConfig, _ string) bool {
		p, _ := server.Policy(internalID, "p-2")
		return p.State == "completed" && c == nil
	}
	err = play(ctx, s, log, provider, []policies.Step{
		{Who: "OCM", Text: "policy p-1 is scheduled", In: 2 * time.Hour, Do: set("p-1", "scheduled"), Until: policies.Planned},
		{Who: "OCM", Text: "policy p-1 is scheduled", In: 4 * time.Hour, Do: set("p-1", "scheduled"), Until: policies.Planned},
		// Three syncs, of which each tries six times.
		{Who: "OCM", Text: "is down; the UpgradeConfig stays", Do: fail(ocmtest.Fault{Status: http.StatusServiceUnavailable, Always: true}), Until: asked(18)},
		{Who: "OCM", Text: "is up again", Do: fail(), Until: asked(3)},
		{Who: "OCM", Text: "policy p-1 is cancelled", Do: set("p-1", "cancelled"), Until: policies.Gone},
		{Who: "OCM", Text: "policy p-2 is scheduled", In: 20 * time.Minute, Do: set("p-2", "scheduled"), Until: completed},
	})
	for _, id := range []string{"p-1", "p-2"} {
		if p, ok := server.Policy(internalID, id); ok {
			log.Say("OCM", fmt.Sprintf("in the end policy %s is %s: %s", id, p.State, p.Description))
		}
	}
	return err
}
