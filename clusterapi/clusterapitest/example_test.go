package clusterapitest_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

// A backend's own test is one function.
func ExampleConformance() {
	TestConformance := func(t *testing.T) {
		clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
			return memory.New(memory.Options{}), clusterapitest.Capabilities{Watch: true}
		})
	}
	_ = TestConformance
}
