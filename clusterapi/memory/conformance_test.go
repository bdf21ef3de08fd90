package memory_test

import (
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
)

func TestConformance(t *testing.T) {
	for name, o := range map[string]memory.Options{
		"Strict":         {CheckNamespaces: true},
		"Fork":           {CheckNamespaces: true, Base: memory.New(memory.Options{})},
		"EstablishAfter": {EstablishAfter: 100 * time.Millisecond, GracefulPods: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clusterapitest.Conformance(t, func(*testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
				return memory.New(o), clusterapitest.Capabilities{Watch: true}
			})
		})
	}
}
