package view_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/clusterapi/view"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/runlevel/preview"
	"github.com/clusterupdate/clusterupdate/signature"
)

// updatedCluster is a simulated cluster with all that updates it to the second release
// of the sample.
type updatedCluster struct {
	*simulation.Cluster
	v          *reconcile.Virtual
	components func(*configv1.ClusterVersion) []view.Component
}

func newUpdatedCluster(t *testing.T, o reconcile.VirtualOptions, more ...func(*updatedCluster) reconcile.Process) *updatedCluster {
	t.Helper()
	images := payload.Images{
		checktest.Get(payload.Open(t.Context(), sample.FromVersion, sample.From()))(t),
		checktest.Get(payload.Open(t.Context(), sample.ToVersion, sample.To()))(t),
	}
	updates := checktest.Get(graph.DecodeBytes(images.Graph(sample.Channel), graph.DecodeOptions{}))(t)
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cluster := checktest.Get(simulation.New(simulation.Options{
		Clock: clock, Release: payload.Release(images[0].Payload), ControlPlane: 3,
		Pools:          []simulation.Pool{{Name: "worker", Nodes: 2}},
		ClusterVersion: simulation.ClusterVersion{Channel: sample.Channel},
	}))(t)
	cluster.Expect(payload.Release(images[1].Payload))
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: images, Graph: graph.Static(updates), Verifier: signature.Insecure(), Clock: clock,
	}))(t)
	nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive}))(t)
	c := &updatedCluster{Cluster: cluster, components: preview.Components(images[1].Payload)}
	o.Cluster, o.Clock = cluster, clock
	c.v = reconcile.NewVirtual(o, cluster.Process(), updater.Process(), nodes.Process())
	t.Cleanup(c.v.Close)
	for _, p := range more {
		c.v.Add(p(c))
	}
	c.advance(t, time.Minute)
	checktest.Get(clusterversion.Submit(t.Context(), cluster, clusterversion.UpdateRequest{To: sample.ToVersion}))(t)
	return c
}

func (c *updatedCluster) advance(t *testing.T, d time.Duration) {
	t.Helper()
	checktest.OK(t, c.v.RunUntil(c.v.Now().Add(d)))
}
