package clusterupdate_test

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// virtualRun is a cluster with an Updater, in virtual time.
type virtualRun struct {
	*testCluster
	*reconcile.Virtual
	u *clusterupdate.Updater
}

// virtually starts an Updater of a cluster in virtual time. It reads and writes the cluster
// by o.API if that is set.
func virtually(t testing.TB, c *testCluster, o clusterupdate.Options, v reconcile.VirtualOptions) *virtualRun {
	t.Helper()
	clock := reconcile.NewClock(toyStart)
	if o.API == nil {
		o.API = c.Cluster
	}
	o.Clock = clock
	u := checktest.Get(clusterupdate.New(o))(t)
	v.Cluster, v.Clock = c.Cluster, clock
	r := &virtualRun{testCluster: c, Virtual: reconcile.NewVirtual(v, u.Process()), u: u}
	t.Cleanup(r.Close)
	return r
}

// after lets time pass.
func (r *virtualRun) after(t checktest.T, d time.Duration) {
	t.Helper()
	checktest.OK(t, r.RunUntil(r.Now().Add(d)))
}

// toyOptions are those of an Updater that knows toy releases.
func toyOptions(t testing.TB, releases []*toyRelease) clusterupdate.Options {
	return clusterupdate.Options{
		Payloads: payloadsOf(releases), Graph: toyGraph(t, releases), Verifier: toyVerifier(releases), Interval: 5 * time.Minute,
	}
}

// sampleOptions are those of an Updater that knows the sample's releases.
func sampleOptions(t testing.TB) clusterupdate.Options {
	return clusterupdate.Options{Payloads: sampleSource(), Graph: sampleGraph(t), Verifier: signature.Insecure()}
}
