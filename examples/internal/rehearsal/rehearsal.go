// Package rehearsal has what the examples share that rehearse an update: a
// simulated cluster, with the library as its version operator and its
// machine-config controller.
package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Options say what is rehearsed.
type Options struct {
	// Cluster has the cluster's own options, but for its clock and release.
	Cluster  simulation.Options
	Images   payload.Images                  // the release that runs, and the one to update to
	Fault    func(*simulation.Release) error // spoils the latter; may be nil
	Channel  string                          // of the update graph
	Graph    graph.Source                    // nil: one in which the images follow one another
	Payloads manifest.PayloadSource          // where the releases' images are; nil: Images
	Speed    float64                         // how many times faster than real time; 0: in virtual time
	Start    time.Time
	Verifier signature.Verifier
	Updater  func(clusterapi.Event) // gets the events of the version operator; may be nil
	Nodes    func(clusterapi.Event) // and those of the machine-config controller; may be nil
}

// Rehearsal is a simulated cluster that can be updated.
type Rehearsal struct {
	*simulation.Cluster
	Clock     clock.WithTicker
	Graph     graph.Source
	processes []reconcile.Process
}

// Open reads two releases from directories, or those that are built in. Errors name the
// flags -running and -payload.
func Open(ctx context.Context, from, to string) (payload.Images, error) {
	releases := [2]fs.FS{sample.From(), sample.To()}
	options := [2]string{"-running", "-payload"}
	var images payload.Images
	for i, dir := range []string{from, to} {
		if dir != "" {
			releases[i] = os.DirFS(dir)
		}
		image, err := payload.Open(ctx, cmp.Or(dir, "the built-in release"), releases[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", options[i], err)
		}
		images = append(images, image)
	}
	return images, nil
}

// New makes a cluster. Errors say which option cannot work.
func New(o Options) (*Rehearsal, error) {
	r := &Rehearsal{Clock: simulation.ScaledClock(o.Speed)}
	if o.Speed == 0 {
		r.Clock = reconcile.NewClock(o.Start)
	}
	// The cluster's time is fast, this machine perhaps not: operators must not give
	// up over that.
	const long = 6 * time.Hour
	o.Cluster.Clock = r.Clock
	o.Cluster.Timing = simulation.Timing{PoolLimit: long, DrainLimit: long, UncordonLimit: long}
	o.Cluster.Release = payload.Release(o.Images[0].Payload)
	next := payload.Release(o.Images[1].Payload)
	if o.Fault != nil {
		if err := o.Fault(&next); err != nil {
			return nil, err
		}
	}
	var err error
	r.Cluster, err = simulation.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	if err := r.Cluster.Expect(next); err != nil {
		return nil, err
	}
	r.Graph = o.Graph
	if r.Graph == nil {
		updates, err := graph.DecodeBytes(o.Images.Graph(o.Channel), graph.DecodeOptions{})
		if err != nil {
			return nil, err
		}
		r.Graph = graph.Static(updates)
	}
	payloads := o.Payloads
	if payloads == nil {
		payloads = o.Images
	}
	updater, err := clusterupdate.New(clusterupdate.Options{
		API: r.Cluster, Payloads: payloads, Graph: r.Graph, Verifier: o.Verifier,
		Interval: time.Hour, RetrieveTimeout: time.Hour, Clock: r.Clock, Observe: o.Updater,
	})
	if err != nil {
		return nil, err
	}
	nodes, err := rollout.New(rollout.Options{API: r.Cluster, Mode: rollout.Drive, Clock: r.Clock, Observe: o.Nodes})
	if err != nil {
		return nil, err
	}
	r.processes = []reconcile.Process{r.Cluster.Process(), nodes.Process(), updater.Process()}
	return r, nil
}

// AtRest makes a cluster of three nodes that runs the first of two releases that are
// built in, has come to rest, and knows of the update to the second.
func AtRest(ctx context.Context) (*Rehearsal, payload.Images, error) {
	images, err := Open(ctx, "", "")
	if err != nil {
		return nil, nil, err
	}
	r, err := New(Options{
		Cluster: simulation.Options{ControlPlane: 3, ClusterVersion: simulation.ClusterVersion{Channel: "rehearsal"}},
		Images:  images, Channel: "rehearsal", Start: time.Now(), Verifier: signature.Insecure(),
	})
	if err != nil {
		return nil, nil, err
	}
	err = r.Play(ctx, func(_ context.Context, wait func(time.Duration) error) error { return wait(10 * time.Minute) })
	return r, images, err
}

// Play runs the cluster while people act. All of its processes run alongside
// one another, as they do in reality, and meet in the cluster's API only.
func (r *Rehearsal) Play(ctx context.Context, act func(ctx context.Context, wait func(time.Duration) error) error, more ...reconcile.Process) error {
	return reconcile.Play(ctx, reconcile.PlayOptions{Cluster: r.Cluster, Clock: r.Clock, Seed: 1}, act, append(r.processes, more...)...)
}
