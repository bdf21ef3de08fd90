package main

import (
	"bytes"
	"context"
	"io/fs"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/manifest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
)

// newCluster makes a cluster that runs the first of the two releases that are
// built in, and knows how the second one behaves.
func newCluster(ctx context.Context, c clock.WithTicker) (*simulation.Cluster, error) {
	from, err := release(ctx, sample.FromVersion)
	if err != nil {
		return nil, err
	}
	to, err := release(ctx, sample.ToVersion)
	if err != nil {
		return nil, err
	}
	cluster, err := simulation.New(simulation.Options{
		Clock:          c,
		Release:        from,
		Pools:          []simulation.Pool{{Name: "worker", Nodes: 2}},
		ClusterVersion: simulation.ClusterVersion{Channel: "stable-4.20", ClusterID: externalID},
		// The cluster's time is fast, this machine perhaps not: no operator is
		// to lose its patience over that.
		Timing: simulation.Timing{PoolLimit: 6 * time.Hour, DrainLimit: 6 * time.Hour, UncordonLimit: 6 * time.Hour},
	})
	if err != nil {
		return nil, err
	}
	if err := cluster.Load(upgradeconfig.Definition()); err != nil {
		return nil, err
	}
	cluster.Expect(to)
	return cluster, nil
}

// release tells the simulation what a release brings.
func release(ctx context.Context, version string) (simulation.Release, error) {
	image, err := sample.Image(version)
	if err != nil {
		return simulation.Release{}, err
	}
	fsys, err := sample.Payload(image)
	if err != nil {
		return simulation.Release{}, err
	}
	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{Image: image, Filter: manifest.DefaultFilter(), Dir: version})
	if err != nil {
		return simulation.Release{}, err
	}
	return payload.Release(p), nil
}

// newUpdater makes the cluster's version operator, and newRollout its
// machine-config controller.
func newUpdater(cluster *simulation.Cluster, c clock.WithTicker, updates graph.Source, observe func(clusterupdate.Event)) (*clusterupdate.Updater, error) {
	return clusterupdate.New(clusterupdate.Options{
		API: cluster,
		Payloads: manifest.PayloadSourceFunc(func(_ context.Context, r configv1.Release) (fs.FS, error) {
			return sample.Payload(r.Image)
		}),
		Graph:    updates,
		Verifier: signature.Insecure(),
		// Only the cluster's time is sped up: our own work takes as long as
		// ever, so its limit is wide.
		RetrieveTimeout: time.Hour,
		Clock:           c,
		Observe:         observe,
	})
}

func newRollout(cluster *simulation.Cluster, c clock.WithTicker, observe func(rollout.Event)) (*rollout.Rollout, error) {
	return rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: c, Observe: observe})
}

// newUpdates makes an update service. The second release is in channel stable-4.21
// only, so the policy has to bring that channel along.
func newUpdates() (graph.Source, error) {
	g, err := graph.Decode(bytes.NewReader(sample.Graph()), graph.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	none, err := graph.New(graph.Data{}, graph.DecodeOptions{})
	if err != nil {
		return nil, err
	}
	return graph.SourceFunc(func(ctx context.Context, q graph.Query) (*graph.Graph, error) {
		if q.Channel == sample.Channel {
			return graph.Static(g).Fetch(ctx, q)
		}
		return graph.Static(none).Fetch(ctx, q)
	}), nil
}
