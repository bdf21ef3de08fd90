// Package updatetest has a simulated cluster that an Updater updates from the first release
// of the sample to the second, for tests.
package updatetest

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterversion"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/sample"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/mcp/rollout"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Cluster is a simulated cluster in virtual time, with an Updater and the rollout of nodes.
type Cluster struct {
	*simulation.Cluster
	Virtual *reconcile.Virtual
	Images  payload.Images // of both releases
}

// New returns a cluster with three control plane nodes, at rest at the first release. Clock,
// release and channel of o are set, and Cluster and Clock of v.
func New(t testing.TB, o simulation.Options, v reconcile.VirtualOptions) *Cluster {
	t.Helper()
	images := payload.Images{
		checktest.Get(payload.Open(t.Context(), sample.FromVersion, sample.From()))(t),
		checktest.Get(payload.Open(t.Context(), sample.ToVersion, sample.To()))(t),
	}
	updates := checktest.Get(graph.DecodeBytes(images.Graph(sample.Channel), graph.DecodeOptions{}))(t)
	clock := reconcile.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.Clock = clock
	o.Release = payload.Release(images[0].Payload)
	o.ClusterVersion.Channel = sample.Channel
	cluster := checktest.Get(simulation.New(o))(t)
	checktest.OK(t, cluster.Expect(payload.Release(images[1].Payload)))
	updater := checktest.Get(clusterupdate.New(clusterupdate.Options{
		API: cluster, Payloads: images, Graph: graph.Static(updates), Verifier: signature.Insecure(), Clock: clock,
	}))(t)
	nodes := checktest.Get(rollout.New(rollout.Options{API: cluster, Mode: rollout.Drive, Clock: clock}))(t)
	v.Cluster = cluster
	v.Clock = clock
	driver := reconcile.NewVirtual(v, cluster.Process(), updater.Process(), nodes.Process())
	t.Cleanup(driver.Close)
	return &Cluster{Cluster: cluster, Virtual: driver, Images: images}
}

// Request requests the update to the second release.
func (c *Cluster) Request(t testing.TB) {
	t.Helper()
	request := clusterversion.UpdateRequest{To: sample.ToVersion}
	checktest.Get(clusterversion.Submit(t.Context(), c, request))(t)
}

// Advance plays so much time.
func (c *Cluster) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	checktest.OK(t, c.Virtual.RunUntil(c.Virtual.Now().Add(d)))
}
