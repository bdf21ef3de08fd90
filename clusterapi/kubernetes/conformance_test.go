package kubernetes_test

import (
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
)

func TestConformance(t *testing.T) {
	clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		s := testserver.Start(t)
		return newAPI(t, s, kubernetes.Options{}), clusterapitest.Capabilities{Watch: true}
	})
}
