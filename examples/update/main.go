// Command update rehearses a cluster update from one release to the next: a
// whole update as a real cluster does it, on a simulated one.
//
// Without flags it updates an in-memory cluster of 3 control-plane nodes, 6
// workers in two pools and 10 operators between two small releases that are
// built in, in virtual time: at once, and the same each time but for the key:
//
//	go run ./examples/update
//
// With -running and -payload it uses releases from directories, laid out as in their
// images: manifests/ and release-manifests/ side by side. With -speed it runs live,
// that many times faster than real time. Everything that decides is the library's;
// only operators, kubelets and workloads are played.
//
// With -upstream the updates are those of an update service, such as the example
// policyengine: the one to the release must be recommended there.
//
// The exit code is 0 when the update completed, 1 when it was refused, is not
// recommended, is stuck or was interrupted, 2 when the command line is wrong, 3 when a
// release cannot be read or the update service not be asked.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/examples/internal/rehearsal"
	"github.com/clusterupdate/clusterupdate/examples/update/progress"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/program"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

func main() { program.Main(command()) }

type options struct {
	running, payload, fail, upstream, channel, format string
	tamper                                            bool
	speed                                             program.Speed
}

func command() program.Command {
	var o options
	return program.Command{
		Name:  "update",
		About: "Update rehearses a cluster update on a simulated cluster.",
		Codes: "0: the update completed; 1: it was refused, is not recommended, is stuck or was interrupted; " +
			"3: a release cannot be read, or the update service not be asked",
		Needs: map[string][]string{"running": {"payload"}, "payload": {"running"}, "channel": {"upstream"}},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.running, "running", "", "`directory` of the release that the cluster runs (default: built in)")
			f.StringVar(&o.payload, "payload", "", "`directory` of the release to update to (default: built in)")
			f.StringVar(&o.upstream, "upstream", "", "`address` of an update service that has the updates (default: one update, from release to release)")
			f.StringVar(&o.channel, "channel", "", "`name` of the cluster's channel at the service (default: stable-X.Y of the release to update to)")
			program.Format(f, &o.format, "json")
			f.StringVar(&o.fail, "fail", "", "make this `operator` go Degraded")
			f.BoolVar(&o.tamper, "tamper", false, "change one byte of the release's signature")
			f.Var(&o.speed, "speed", "run live, by this `factor` faster than real time (default: in virtual time, at once)")
		},
		Run: func(ctx context.Context, _ []string, stdout, _ io.Writer) error { return rehearse(ctx, o, stdout) },
	}
}

// clusterID is the cluster's ID: a service requires one.
const clusterID = "0bd2a4f6-7a0c-4d5e-9b1f-3c6e8a1d2f40"

// updates returns the channel of the cluster, and who knows its updates; nil: one update,
// from release to release. A service must recommend that one, or there is nothing to
// rehearse.
func (o options) updates(ctx context.Context, from, to *payload.Image) (string, graph.Source, error) {
	if o.upstream == "" {
		return "rehearsal", nil, nil
	}
	v, err := graph.ParseVersion(to.Version())
	if err != nil {
		return "", nil, err
	}
	channel := cmp.Or(o.channel, fmt.Sprintf("stable-%d.%d", v.Major(), v.Minor()))
	client := &graph.Client{Upstream: o.upstream, UserAgent: "clusterupdate-update"}
	g, err := client.Fetch(ctx, graph.Query{Channel: channel, Arch: "amd64", Version: from.Version(), ClusterID: clusterID})
	if err != nil {
		return "", nil, fmt.Errorf("-upstream: %s: %w", o.upstream, err)
	}
	updates, err := g.Updates(graph.UpdatesQuery{Version: from.Version(), Channel: channel, Architecture: "amd64"})
	if err != nil {
		return "", nil, program.No(fmt.Errorf("%s: %w", o.upstream, err))
	}
	for _, r := range updates.Available {
		if r.Version == to.Version() && r.Image == to.PullSpec {
			return channel, client, nil
		}
	}
	return "", nil, program.No(fmt.Errorf("%s does not recommend the update from %s to %s, image %s, in channel %s",
		o.upstream, from.Version(), to.Version(), to.PullSpec, channel))
}

// rehearse runs the update to its end.
func rehearse(ctx context.Context, o options, stdout io.Writer) error {
	images, err := rehearsal.Open(ctx, o.running, o.payload)
	if err != nil {
		return err
	}
	from, to := images[0], images[1]
	channel, updates, err := o.updates(ctx, from, to)
	if err != nil {
		return err
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
	// What happens is shown in lines, with bars below them on a terminal, or as
	// JSON.
	block, encoder := program.NewBlock(stdout), json.NewEncoder(stdout)
	shown := progress.New(to.Version(), block.Print)
	var mu sync.Mutex
	show := func(event any, tell func()) {
		mu.Lock()
		defer mu.Unlock()
		if o.format == "json" {
			encoder.Encode(event)
			return
		}
		tell()
		block.Draw(shown.Bars)
	}
	two := intstr.FromInt32(2)
	cluster, err := rehearsal.New(rehearsal.Options{
		Cluster: simulation.Options{
			ClusterVersion: simulation.ClusterVersion{Channel: channel, ClusterID: clusterID},
			ControlPlane:   3, Pools: []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
			// A web shop must keep two of its three replicas.
			Workloads: []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}},
		},
		Images: images, Channel: channel, Graph: updates, Speed: float64(o.speed), Start: time.Now(),
		Fault: func(next *simulation.Release) error {
			if o.fail == "" {
				return nil
			}
			fault := simulation.Fault{Kind: simulation.FaultDegraded, Reason: "Rehearsal", Message: "made to fail by -fail " + o.fail}
			if err := next.Break(o.fail, fault); err != nil {
				return program.Usagef("-fail %s: %w", o.fail, err)
			}
			return nil
		},
		Verifier: signature.NewVerifier([]*signature.Keyring{keyring}, signatures),
		Updater:  func(e clusterapi.Event) { show(e, func() { shown.Updater(e) }) },
		Nodes:    func(e clusterapi.Event) { show(e, func() { shown.Node(e) }) },
	})
	if err != nil {
		return err
	}
	err = cluster.Play(ctx, func(ctx context.Context, wait func(time.Duration) error) error {
		return rehearsal.Request{API: cluster, Version: to.Version(), Now: cluster.Clock.Now, Wait: wait}.Run(ctx)
	})
	cv, getErr := clusterapi.Get[configv1.ClusterVersion](context.WithoutCancel(ctx), cluster, clusterapi.Key("", "version"))
	if getErr != nil {
		return errors.Join(err, getErr)
	}
	if o.format == "json" {
		encoder.Encode(map[string]any{"type": "History", "history": cv.Status.History})
		return err
	}
	for _, line := range shown.Summary(cv) {
		block.Print(line)
	}
	return err
}
