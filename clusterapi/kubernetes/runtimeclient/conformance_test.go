package runtimeclient_test

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/clusterapitest"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/runtimeclient"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func TestConformance(t *testing.T) {
	clusterapitest.Conformance(t, func(t *testing.T) (clusterapi.ClusterAPI, clusterapitest.Capabilities) {
		config := testserver.Start(t).Config()
		config.WarningHandlerWithContext = rest.NoWarnings{}
		config.Wrap(runtimeclient.RefuseAtOnce)
		c := checktest.Get(client.NewWithWatch(config, client.Options{}))(t)
		return newAPI(t, c, runtimeclient.Options{}), clusterapitest.Capabilities{Watch: true}
	})
}

func newAPI(t testing.TB, c client.Client, o runtimeclient.Options) clusterapi.ClusterAPI {
	t.Helper()
	return checktest.Get(runtimeclient.New(c, o))(t)
}
