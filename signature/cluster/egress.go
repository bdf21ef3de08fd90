package cluster

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/signature"
)

// ClusterHTTP returns how a cluster reaches the outside: the proxy of its Proxy
// object, none where there is no such object, and the authorities of ConfigMap
// openshift-config-managed/trusted-ca-bundle, which replace those of the system
// where there are any. The environment's proxy is not consulted. A proxy or a
// bundle that cannot be used is an error: going around it would be worse. Each
// of the two is read within 30 s.
func ClusterHTTP(ctx context.Context, r clusterapi.Reader) (signature.HTTPOptions, error) {
	var o signature.HTTPOptions
	proxy, err := readObject[configv1.Proxy](ctx, r, "", "cluster")
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
	case err != nil:
		return o, fmt.Errorf("unable to read the cluster's proxy: %w", err)
	default:
		if o.Proxy, err = httpclient.Proxy(proxy.Status.HTTPProxy, proxy.Status.HTTPSProxy, proxy.Status.NoProxy); err != nil {
			return o, fmt.Errorf("the cluster's proxy: %w", err)
		}
	}
	bundle, err := readObject[corev1.ConfigMap](ctx, r, ConfigMapNamespace, "trusted-ca-bundle")
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return o, fmt.Errorf("unable to read the trusted authorities: %w", err)
	default:
		if o.RootCAs, err = httpclient.RootCAs([]byte(bundle.Data["ca-bundle.crt"])); err != nil {
			return o, errors.New("unable to add ca-bundle.crt certificates")
		}
		o.Bundle = []byte(bundle.Data["ca-bundle.crt"])
	}
	return o, nil
}
