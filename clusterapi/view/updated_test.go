package view_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/internal/updatetest"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
)

// components are those of what newUpdating updates to.
func components(c *updatetest.Cluster) func(*configv1.ClusterVersion) []view.Component {
	return preview.Components(c.Images[1].Payload)
}

// newUpdating returns a cluster that is requested to update, with more processes.
func newUpdating(t *testing.T, o reconcile.VirtualOptions, more ...func(*updatetest.Cluster) reconcile.Process) *updatetest.Cluster {
	t.Helper()
	c := updatetest.New(t, simulation.Options{Pools: []simulation.Pool{{Nodes: 2}}}, o)
	for _, p := range more {
		c.Virtual.Add(p(c))
	}
	c.Advance(t, time.Minute)
	c.Request(t)
	return c
}
