package ocmtest

import (
	"context"
	"encoding/base64"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
)

// Connect makes a server that knows one cluster, gives the cluster a pull secret
// that the server lets in, and returns a provider that asks the server, without
// a network. Errors are those of creating the secret and of [ocm.New].
func Connect(ctx context.Context, api clusterapi.ReadWriter, cluster Cluster, o ocm.Options) (*Server, *ocm.Provider, error) {
	token := base64.StdEncoding.EncodeToString([]byte("user:of a test"))
	server := &Server{Token: token}
	server.SetCluster(cluster)
	if _, err := api.Create(ctx, Objects(cluster.ExternalID, token)[0], clusterapi.CreateOptions{}); err != nil {
		return nil, nil, err
	}
	o.Base = Transport(server)
	provider, err := ocm.New(api, o)
	return server, provider, err
}
