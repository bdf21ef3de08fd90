package main

import (
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
)

// newCluster makes the cluster to update. Beside its operators it runs a web
// shop that must keep two of its three replicas.
func newCluster(c clock.WithTicker, from, to *release, component string) (*simulation.Cluster, error) {
	two := intstr.FromInt32(2)
	cluster, err := simulation.New(simulation.Options{
		Clock:          c,
		Release:        payload.Release(from.payload),
		ControlPlane:   3,
		Pools:          []simulation.Pool{{Name: "worker", Nodes: 4}, {Name: "infra", Nodes: 2}},
		ClusterVersion: simulation.ClusterVersion{Channel: channel},
		Workloads:      []simulation.Workload{{Namespace: "shop", Name: "web", Replicas: 3, MinAvailable: &two}},
		// The cluster's time is fast, this machine perhaps not: no operator is
		// to lose its patience over that.
		Timing: simulation.Timing{PoolLimit: 6 * time.Hour, DrainLimit: 6 * time.Hour, UncordonLimit: 6 * time.Hour},
	})
	if err != nil {
		return nil, err
	}
	next := payload.Release(to.payload)
	if component != "" {
		if err := fail(&next, to.payload.Operators(), component); err != nil {
			return nil, err
		}
	}
	cluster.Expect(next)
	return cluster, nil
}
