// Command update rehearses a cluster update from one release to the next: a
// whole update as a real cluster does it, on a simulated one.
//
// Without flags it updates an in-memory cluster of 3 control-plane nodes, 6
// workers in two pools and 10 operators between two small releases that are
// built in, in virtual time: at once, and the same each time but for the key:
//
//	go run ./examples/update
//
// With -from and -payload it uses releases from directories, as
// "oc adm release extract" and an image's own layout give them: manifests/
// and release-manifests/ side by side. With -speed it runs live, so many times
// faster than on the wall.
//
// Everything that decides is the library's: the graph's answer, the signature
// (made with a key of this run), the preconditions, the order of the
// manifests, which node is next. Only operators, kubelets and workloads are
// played. The exit code is 0 when the update completed, 1 when it was refused
// or is stuck, 2 when the flags are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

var clusterVersion = clusterapi.Key("", "version")

type options struct {
	from, payload, fail string
	json, tamper        bool
	speed               float64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("update", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.from, "from", "", "directory of the release that the cluster runs (default: built in)")
	flags.StringVar(&o.payload, "payload", "", "directory of the release to update to (default: built in)")
	flags.BoolVar(&o.json, "json", false, "print events as JSON lines")
	flags.StringVar(&o.fail, "fail", "", "make this `operator` go Degraded")
	flags.BoolVar(&o.tamper, "tamper", false, "change one byte of the release's signature")
	flags.Float64Var(&o.speed, "speed", virtual, "run live, this many times faster than real time (default: in virtual time, at once)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 || (o.from == "") != (o.payload == "") || o.speed != virtual && !(o.speed > 0 && o.speed <= math.MaxFloat64) {
		fmt.Fprintln(stderr, "update: no arguments; -from and -payload go together; -speed is above 0")
		return 2
	}
	if err := rehearse(ctx, o, stdout); err != nil {
		fmt.Fprintln(stderr, "update:", err)
		return 1
	}
	return 0
}

// virtual is the speed of a run in virtual time.
const virtual = -1

// rehearse runs the update to its end.
func rehearse(ctx context.Context, o options, stdout io.Writer) (err error) {
	from, err := open(ctx, o.from, "4.20", sample.From())
	if err != nil {
		return err
	}
	to, err := open(ctx, o.payload, "4.21", sample.To())
	if err != nil {
		return err
	}
	services, err := serve(from, to, o.tamper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, services.close()) }()
	clocks := simulation.ScaledClock(max(o.speed, 1))
	var jumps *reconcile.Clock
	if o.speed == virtual {
		jumps = reconcile.NewClock(time.Now())
		clocks = jumps
	}
	cluster, err := newCluster(clocks, from, to, o.fail)
	if err != nil {
		return err
	}
	store, err := signature.NewHTTPStore(services.storeURL, signature.HTTPOptions{})
	if err != nil {
		return err
	}

	view := newView(stdout, o.json, to.version())
	updater, err := clusterupdate.New(clusterupdate.Options{
		API:      cluster,
		Payloads: payloads{from, to},
		Graph:    &graph.Client{Upstream: services.graphURL},
		Verifier: signature.NewVerifier([]*signature.Keyring{services.keyring}, store),
		// Only the cluster's time is sped up: our own work takes as long as
		// ever, so its limits are wide.
		Interval:        time.Hour,
		RetrieveTimeout: time.Hour,
		Clock:           clocks,
		Observe:         view.update,
	})
	if err != nil {
		return err
	}
	nodes, err := rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: clocks, Observe: view.node})
	if err != nil {
		return err
	}

	// The version operator, the machine-config controller and the rest of the
	// cluster run beside one another, as they do in reality.
	administrator := func(ctx context.Context, wait func() error) error {
		if err := requestUpdate(ctx, cluster, wait, to.version()); err != nil {
			return err
		}
		return await(ctx, cluster, clocks, wait, to.version())
	}
	processes := []reconcile.Process{cluster.Process(), nodes.Process(), updater.Process()}
	if o.speed == virtual {
		v := reconcile.NewVirtual(reconcile.VirtualOptions{Cluster: cluster, Clock: jumps, Seed: 1}, processes...)
		err = administrator(ctx, func() error { return errors.Join(v.RunUntil(v.Now().Add(look)), ctx.Err()) })
		v.Close()
	} else {
		err = live(ctx, cluster, clocks, processes, administrator)
	}
	cv, getErr := clusterapi.Get[configv1.ClusterVersion](context.WithoutCancel(ctx), cluster, clusterVersion)
	if getErr != nil {
		return errors.Join(err, getErr)
	}
	view.end(cv, err)
	return err
}

func open(ctx context.Context, dir, name string, embedded fs.FS) (*release, error) {
	if dir == "" {
		return openRelease(ctx, name, embedded)
	}
	return openRelease(ctx, dir, os.DirFS(dir))
}

// live runs processes until the administrator has seen enough.
func live(ctx context.Context, api clusterapi.ClusterAPI, c clock.WithTicker, processes []reconcile.Process, administrator func(context.Context, func() error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	// Only the cluster's time is sped up: calls take as long as ever.
	group.Go(func() error {
		return reconcile.Run(ctx, reconcile.Options{API: api, Clock: c, CallTimeout: reconcile.Never}, processes...)
	})
	group.Go(func() error {
		defer cancel()
		return administrator(ctx, func() error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-c.After(look):
				return nil
			}
		})
	})
	return group.Wait()
}

// look is how often the administrator looks, in the cluster's time.
const look = 30 * time.Second

// requestUpdate asks for a version as an administrator does, once it is
// offered.
func requestUpdate(ctx context.Context, api clusterapi.ClusterAPI, wait func() error, version string) error {
	return poll(wait, func() (bool, error) {
		cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterVersion)
		if err != nil || !slices.ContainsFunc(cv.Status.AvailableUpdates, func(r configv1.Release) bool { return r.Version == version }) {
			return false, err
		}
		_, err = clusterapi.Modify(ctx, api, clusterVersion, clusterapi.ModifyOptions{}, func(cv *configv1.ClusterVersion) error {
			cv.Spec.DesiredUpdate = &configv1.Update{Version: version}
			return nil
		})
		return true, err
	})
}

// stuckAfter is how long an update may fail, in the cluster's time, before it
// is called stuck.
const stuckAfter = 15 * time.Minute

// await returns when the update has completed and every node runs it, or with
// an error when it was refused or is stuck.
func await(ctx context.Context, api clusterapi.ClusterAPI, c clock.PassiveClock, wait func() error, version string) error {
	return poll(wait, func() (bool, error) {
		cv, err := clusterapi.Get[configv1.ClusterVersion](ctx, api, clusterVersion)
		if err != nil {
			return false, err
		}
		done, err := state(cv, c.Now(), version)
		if err != nil || !done {
			return false, err
		}
		pools, err := clusterapi.List[mcfgv1.MachineConfigPool](ctx, api, clusterapi.ListOptions{})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(pools, func(p mcfgv1.MachineConfigPool) bool { return !updated(&p) }), nil
	})
}

// poll looks until f says done, and waits in between.
func poll(wait func() error, f func() (done bool, err error)) error {
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		if err := wait(); err != nil {
			return err
		}
	}
}

// state reads a ClusterVersion as an administrator would.
func state(cv *configv1.ClusterVersion, now time.Time, version string) (done bool, err error) {
	for _, c := range cv.Status.Conditions {
		switch {
		case c.Type == clusterupdate.ConditionReleaseAccepted && c.Status == configv1.ConditionFalse:
			return false, fmt.Errorf("refused: %s: %s", c.Reason, c.Message)
		case c.Type == clusterupdate.ConditionFailing && c.Status != configv1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) > stuckAfter:
			return false, fmt.Errorf("stuck: %s: %s", c.Reason, c.Message)
		}
	}
	newest := cv.Status.History[0]
	return newest.Version == version && newest.State == configv1.CompletedUpdate, nil
}

func updated(p *mcfgv1.MachineConfigPool) bool {
	if p.Spec.Configuration.Name != p.Status.Configuration.Name {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == mcfgv1.MachineConfigPoolUpdated {
			return c.Status == "True"
		}
	}
	return false
}
