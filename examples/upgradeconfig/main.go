// Command upgradeconfig shows how a policy becomes a finished upgrade: a
// provider is asked for policies, the UpgradeConfig of the cluster follows
// them, and at its time the cluster is upgraded, control plane and nodes.
//
// The cluster is simulated, and its time is virtual: the story is over at once,
// and is the same each time. With -speed it runs live, so many times faster than
// on the wall. The version operator and the machine-config controller are the
// library's.
//
//	go run ./examples/upgradeconfig          # policies are files in a Git repository
//	go run ./examples/upgradeconfig -local   # an administrator writes the UpgradeConfig
//	go run ./examples/upgradeconfig -ocm     # OpenShift Cluster Manager, a look-alike on loopback
//
// With -ocm the policy is moved, OCM is down for a while, an upgrade is
// cancelled, and another one is carried out. The exit code is 0 when the story
// came to its end, 1 when it did not, 2 when the flags are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	local, ocm bool
	speed      float64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("upgradeconfig", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.local, "local", false, "an administrator writes the UpgradeConfig")
	flags.BoolVar(&o.ocm, "ocm", false, "policies come from OpenShift Cluster Manager")
	flags.Float64Var(&o.speed, "speed", virtual, "run live, this many times faster than real time (default: in virtual time, at once)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 || o.local && o.ocm || o.speed != virtual && !(o.speed > 0 && o.speed <= math.MaxFloat64) {
		fmt.Fprintln(stderr, "upgradeconfig: no arguments; -local or -ocm, not both; -speed is above 0")
		return 2
	}
	if err := play(ctx, o, stdout); err != nil {
		fmt.Fprintln(stderr, "upgradeconfig:", err)
		return 1
	}
	return 0
}

// virtual is the speed of a run in virtual time.
const virtual = -1

// play plays a story to its end.
func play(ctx context.Context, o options, stdout io.Writer) (err error) {
	c := simulation.ScaledClock(max(o.speed, 1))
	var jumps *reconcile.Clock
	if o.speed == virtual {
		jumps = reconcile.NewClock(time.Date(2031, time.February, 4, 0, 0, 0, 0, time.UTC))
		c = jumps
	}
	cluster, err := newCluster(ctx, c)
	if err != nil {
		return err
	}
	view := newView(stdout, c)
	st := &stage{cluster: cluster, clock: c, view: view}
	var story *story
	switch {
	case o.ocm:
		if story, err = st.manager(ctx); err != nil {
			return err
		}
	case o.local:
		story = st.local()
	default:
		dir, err := os.MkdirTemp("", "policies")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		story = st.git(dir)
	}
	if story.end != nil {
		defer func() { err = errors.Join(err, story.end()) }()
	}

	manager, err := upgradeconfig.NewManager(upgradeconfig.ManagerOptions{
		API: cluster, Provider: story.provider, Interval: 10 * time.Minute, Clock: c, Observe: view.config,
		// An upgrade that runs is not to be cut off by a change of plans.
		KeepWhileUpgrading: true,
	})
	if err != nil {
		return err
	}
	updates, err := newUpdates()
	if err != nil {
		return err
	}
	controller, err := newController(cluster, c, updates, manager, view.config)
	if err != nil {
		return err
	}
	updater, err := newUpdater(cluster, c, updates, view.update)
	if err != nil {
		return err
	}
	nodes, err := newRollout(cluster, c, view.node)
	if err != nil {
		return err
	}

	// All of them run beside one another, as they do in reality, and meet in
	// the cluster's API only.
	if o.speed == virtual {
		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: jumps, Seed: 1},
			cluster.Process(), nodes.Process(), updater.Process(), manager.Process(), controller.Process())
		defer v.Close()
		st.wait = func(ctx context.Context, d time.Duration) error {
			return errors.Join(v.RunUntil(v.Now().Add(d)), ctx.Err())
		}
		return story.play(ctx, func() { v.Wake("upgradeconfig-policies", "sync", reconcile.Key{Kind: "now"}) })
	}
	st.wait = func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.After(d):
			return nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return cluster.Run(ctx) })
	group.Go(func() error { return nodes.Run(ctx) })
	group.Go(func() error { return updater.Run(ctx) })
	group.Go(func() error { return stopped(ctx, manager.Run(ctx)) })
	group.Go(func() error { return stopped(ctx, controller.Run(ctx)) })
	group.Go(func() error {
		defer cancel()
		return story.play(ctx, manager.SyncNow)
	})
	return group.Wait()
}

// stopped takes being stopped for what it is.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
