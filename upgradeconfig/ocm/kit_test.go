package ocm_test

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/upgradeconfig"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm/ocmtest"
)

const (
	uuid      = "7f3c1a52-4a57-4a0e-9d0b-0f1b6f6f2c11"
	clusterID = "1a2b"
	listPath  = "/api/clusters_mgmt/v1/clusters"
	policies  = listPath + "/" + clusterID + "/upgrade_policies"
	hosted    = listPath + "/" + clusterID + "/control_plane/upgrade_policies"
)

var token = base64.StdEncoding.EncodeToString([]byte("ocm-user:pass-word+9?/=very-secret-indeed"))

func pol(id, version, nextRun, state string) ocmtest.Policy {
	return ocmtest.Policy{ID: id, Version: version, NextRun: nextRun, State: state}
}

// p7 is the policy of most tests.
var p7 = pol("p-7", "4.17.4", "2031-02-04T03:00:00Z", "scheduled")

var p7Spec = upgradeconfig.Spec{
	Desired:              upgradeconfig.Update{Version: "4.17.4", Channel: "fast-4.17"},
	UpgradeAt:            "2031-02-04T03:00:00Z",
	PDBForceDrainTimeout: 45,
	Type:                 upgradeconfig.OSD,
	CapacityReservation:  true,
}

// newServer is an OCM with one cluster that has these policies.
func newServer(list ...ocmtest.Policy) *ocmtest.Server {
	s := &ocmtest.Server{Token: token}
	s.SetCluster(ocmtest.Cluster{ID: clusterID, ExternalID: uuid, Version: "4.17.3", ChannelGroup: "fast", DrainMinutes: 45, Policies: list})
	return s
}

// newCluster is a cluster that can authenticate.
func newCluster(t testing.TB) *memory.Cluster {
	t.Helper()
	return store(t, ocmtest.Objects(uuid, token)...)
}

func store(t testing.TB, objects ...*unstructured.Unstructured) *memory.Cluster {
	t.Helper()
	c := serving(memory.NewOpenShift(memory.Options{}))
	for _, o := range objects {
		// As it is: a server would refuse a pull secret that is not one.
		checktest.OK(t, c.Load(o))
	}
	return c
}

// newProvider asks h; what o leaves open is that of most tests.
func newProvider(t testing.TB, h http.Handler, o ocm.Options) *ocm.Provider {
	t.Helper()
	if o.Base == nil {
		o.Base = ocmtest.Transport(h)
	}
	o.Type = cmp.Or(o.Type, upgradeconfig.OSD)
	if o.Rand == nil {
		o.Rand = func(n int64) int64 { return n / 2 } // no jitter
	}
	p := must(ocm.New(newCluster(t), o))
	return p
}

// asked lists the requests as method and path, without the part that all share.
func asked(s *ocmtest.Server) []string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, strings.Replace(r.String(), listPath, "", 1))
	}
	return out
}

func ids(list []upgradeconfig.Policy) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.ID)
	}
	return out
}

type handlerFunc = http.HandlerFunc

// serving adds the kind UpgradeConfig to a cluster.
func serving(c *memory.Cluster) *memory.Cluster {
	if err := c.Load(upgradeconfig.Definition()); err != nil {
		panic(err)
	}
	return c
}

// must returns what a constructor made.
func must[T any](v T, err error) T { return checktest.Must(v, err) }

// connect makes the provider of one sync: it has read what authenticates the
// cluster.
func connect(t testing.TB, cluster *memory.Cluster, o ocm.Options) (upgradeconfig.Provider, error) {
	c := &upgradeconfig.Config{UpgradeType: o.Type}
	c.ConfigManager.OCMBaseURL = cmp.Or(o.URL, "https://api.openshift.com")
	return ocm.FromConfig(cluster, o)(t.Context(), c)
}
