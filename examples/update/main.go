// Command update rehearses a cluster update from one release to the next: a
// whole update as a real cluster does it, on a simulated one.
//
// Without flags it updates an in-memory cluster of 3 control-plane nodes, 6
// workers in two pools and 10 operators between two small releases that are
// built in, in virtual time: at once, and the same each time but for the key:
//
//	go run ./examples/update
//
// With -from and -payload it uses releases from directories, laid out as in
// their images: manifests/ and release-manifests/ side by side. With -speed it
// runs live, so many times faster than on the wall. Everything that decides is
// the library's; only operators, kubelets and workloads are played.
//
// The exit code is 0 when the update completed, 1 when it was refused, is stuck
// or was interrupted, 2 when the command line is wrong.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/examples/internal/program"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

func main() { program.Main(command()) }

type options struct {
	from, payload, fail string
	json, tamper        bool
	speed               program.Speed
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "update",
		About: "Update rehearses a cluster update on a simulated cluster.",
		Exit:  "0: the update completed; 1: it was refused, is stuck or was interrupted",
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.from, "from", "", "`directory` of the release that the cluster runs (default: built in)")
			f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to (default: built in)")
			f.BoolVar(&o.json, "json", false, "print events as JSON lines")
			f.StringVar(&o.fail, "fail", "", "make this `operator` go Degraded")
			f.BoolVar(&o.tamper, "tamper", false, "change one byte of the release's signature")
			f.Var(&o.speed, "speed", "run live, by this `factor` faster than real time (default: in virtual time, at once)")
		},
		Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			if (o.from == "") != (o.payload == "") {
				return program.Usagef("-from and -payload go together")
			}
			return rehearse(ctx, o, stdout)
		},
	}
}

// channel is where the update graph of a run has its releases.
const channel = "rehearsal"

// patience is how long nobody loses it: the cluster's time is fast, this
// machine perhaps not.
const patience = 6 * time.Hour

// rehearse runs the update to its end.
func rehearse(ctx context.Context, o options, stdout io.Writer) error {
	fromFS, toFS := sample.From(), sample.To()
	if o.from != "" {
		fromFS, toFS = os.DirFS(o.from), os.DirFS(o.payload)
	}
	from, err := payload.Open(ctx, cmp.Or(o.from, "the built-in release"), fromFS)
	if err != nil {
		return err
	}
	to, err := payload.Open(ctx, cmp.Or(o.payload, "the built-in release"), toFS)
	if err != nil {
		return err
	}
	next := payload.Release(to.Payload)
	if o.fail != "" {
		fault := simulation.Fault{Kind: simulation.FaultDegraded, Reason: "Rehearsal", Message: "made to fail by -fail " + o.fail}
		if err := next.Break(o.fail, fault); err != nil {
			return fmt.Errorf("-fail %s: %w", o.fail, err)
		}
	}
	key, err := signaturetest.NewKey(signaturetest.KeyOptions{})
	if err != nil {
		return err
	}
	keyring, signatures, err := key.Publish("rehearsal", map[string]string{from.Digest(): from.Tag(), to.Digest(): to.Tag()})
	if err != nil {
		return err
	}
	if message := signatures[to.Digest()][0]; o.tamper {
		message[len(message)/2] ^= 1
	}
	updates, err := graph.DecodeBytes(fmt.Appendf(nil, `{"nodes": [%s, %s], "edges": [[0, 1]]}`, node(from), node(to)), graph.DecodeOptions{})
	if err != nil {
		return err
	}
	clock := simulation.ScaledClock(float64(o.speed))
	if o.speed == 0 {
		clock = reconcile.NewClock(time.Now())
	}
	two := intstr.FromInt32(2)
	cluster, err := simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(from.Payload), ClusterVersion: simulation.ClusterVersion{Channel: channel},
		ControlPlane: 3, Pools: []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
		// A web shop must keep two of its three replicas.
		Workloads: []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}},
		Timing:    simulation.Timing{PoolLimit: patience, DrainLimit: patience, UncordonLimit: patience},
	})
	if err != nil {
		return err
	}
	cluster.Expect(next)

	// What happens is shown in lines, with bars below them on a terminal, or as
	// JSON.
	block, encoder := program.NewBlock(stdout), json.NewEncoder(stdout)
	progress := &clusterupdate.Progress{Target: to.Version(), Say: block.Print}
	var mu sync.Mutex
	show := func(event any, tell func()) {
		mu.Lock()
		defer mu.Unlock()
		if o.json {
			encoder.Encode(event)
			return
		}
		tell()
		block.Draw(progress.Bars)
	}
	updater, err := clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: payload.Images{from, to}, Graph: graph.Static(updates),
		Verifier: signature.NewVerifier([]*signature.Keyring{keyring}, signatures),
		Interval: time.Hour, RetrieveTimeout: time.Hour, Clock: clock,
		Observe: func(e clusterupdate.Event) { show(e, func() { progress.Updater(e) }) },
	})
	if err != nil {
		return err
	}
	nodes, err := rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: clock,
		Observe: func(e rollout.Event) { show(e, func() { progress.Node(e) }) }})
	if err != nil {
		return err
	}
	// The version operator, the machine-config controller and the rest of the
	// cluster run alongside one another, as they do in reality.
	err = reconcile.Play(ctx, reconcile.PlayOptions{Cluster: cluster, Clock: clock, Seed: 1},
		func(ctx context.Context, wait func(time.Duration) error) error {
			return program.Request{API: cluster, Version: to.Version(), Now: clock.Now, Wait: wait}.Run(ctx)
		}, cluster.Process(), nodes.Process(), updater.Process())
	cv, getErr := clusterapi.Get[configv1.ClusterVersion](context.WithoutCancel(ctx), cluster, clusterapi.Key("", "version"))
	if getErr != nil {
		return errors.Join(err, getErr)
	}
	if o.json {
		encoder.Encode(map[string]any{"type": "History", "history": cv.Status.History})
		return err
	}
	for _, line := range progress.Summary(cv) {
		block.Print(line)
	}
	return err
}

func node(r *payload.Image) string {
	return fmt.Sprintf(`{"version": %q, "payload": %q, "metadata": {"url": %q, %q: %q}}`,
		r.Version(), r.PullSpec, r.Payload.Release.URL, graph.MetadataChannels, channel)
}
