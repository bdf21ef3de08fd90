package clusterapitest_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// recording is a cluster that has what a recorded one must have.
func recording(t testing.TB) *memory.Cluster {
	t.Helper()
	c := memory.New(asServer)
	checktest.OK(t, c.Load(clusterapitest.Objects()...))
	return c
}

func TestConformanceOfARecording(t *testing.T) {
	clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		return clusterapi.ReadOnly(recording(t)), clusterapitest.Capabilities{Watch: true, ReadOnly: true}
	})
}

// recordedFaults are wrong backends that only read.
var recordedFaults = []struct {
	name, test string
	api        func(*memory.Cluster) clusterapi.ClusterAPI
}{
	{"it takes writes", "Writes/Update", func(c *memory.Cluster) clusterapi.ClusterAPI { return c }},
	{"it lacks an object", "Recorded", func(c *memory.Cluster) clusterapi.ClusterAPI {
		_ = c.Remove(gvk{Version: "v1", Kind: "Secret"}, clusterapi.Key("conformance-recorded-a", "get-it"))
		return clusterapi.ReadOnly(c)
	}},
	{"its items have no resourceVersion", "List/SortedByNamespaceThenName", func(c *memory.Cluster) clusterapi.ClusterAPI {
		b := newBroken(c)
		listed(eachItem(func(u object) { u.SetResourceVersion("") }))(b)
		return clusterapi.ReadOnly(b)
	}},
	{"its watch never ends", "Watch/Recorded", func(c *memory.Cluster) clusterapi.ClusterAPI {
		b := newBroken(c)
		for _, f := range faults {
			if f.name == "Watch does not end" {
				f.make(b)
			}
		}
		return clusterapi.ReadOnly(b)
	}},
}
