package clusterapi

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
)

// egressRead bounds each read of an object that reports how to get out.
const egressRead = 30 * time.Second

// Egress is how a cluster reaches the outside. Each HTTP client of this module has
// fields with the same names and types, and some also have a Transport, which
// [NewTransport] fills.
type Egress struct {
	// Proxy returns the proxy of a request. Nil means none; the environment is
	// not consulted.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the authorities to trust. Nil means those of the system.
	RootCAs *x509.CertPool
	// Bundle is the PEM text that RootCAs were read from, for those who add others
	// to it.
	Bundle []byte
	// Revision changes when an object that Egress was read from does.
	Revision string
}

// ReadEgress reads the proxy of a cluster's Proxy object, none without such an
// object, and the authorities of ConfigMap
// openshift-config-managed/trusted-ca-bundle, which replace those of the system if
// there are any. Each of the two is read within 30 s. Errors are those of the
// reads, and a proxy or a bundle that cannot be used: going around it would be
// worse.
func ReadEgress(ctx context.Context, r Reader) (Egress, error) {
	var e Egress
	proxy, revision, err := readEgress[configv1.Proxy](ctx, r, "", "cluster")
	if err != nil {
		return e, fmt.Errorf("unable to read the cluster's proxy: %w", err)
	}
	bundle, bundleRevision, err := readEgress[corev1.ConfigMap](ctx, r, "openshift-config-managed", "trusted-ca-bundle")
	if err != nil {
		return e, fmt.Errorf("unable to read the trusted authorities: %w", err)
	}
	e.Bundle = []byte(bundle.Data["ca-bundle.crt"])
	e.Revision = revision + " " + bundleRevision
	e.Proxy, err = httpclient.Proxy(proxy.Status.HTTPProxy, proxy.Status.HTTPSProxy, proxy.Status.NoProxy)
	if err != nil {
		return Egress{}, fmt.Errorf("the cluster's proxy: %w", err)
	}
	e.RootCAs, err = httpclient.RootCAs(e.Bundle)
	if err != nil {
		return Egress{}, errors.New("unable to add ca-bundle.crt certificates")
	}
	return e, nil
}

// readEgress returns an empty object for one that is not there.
func readEgress[T any](ctx context.Context, r Reader, namespace, name string) (object *T, revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, egressRead)
	defer cancel()
	object, err = Get[T](ctx, r, Key(namespace, name))
	if IsMissing(err) {
		return new(T), "none", nil
	}
	if err != nil {
		return nil, "", err
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return nil, "", err
	}
	return object, string(m.GetUID()) + "/" + m.GetResourceVersion(), nil
}

// transport sends each request as [ReadEgress] says at that time.
type transport struct {
	reader Reader

	mu       sync.Mutex
	revision string
	current  *http.Transport
}

// NewTransport returns the [http.RoundTripper] of a cluster's programs. It reads
// the proxy and the authorities of the cluster before each request, so that a
// change counts at once. It fits the Transport field of every HTTP client of this
// module, and is safe for concurrent use. Its errors are those of [ReadEgress],
// before anything is sent, and those of [http.Transport].
func NewTransport(r Reader) http.RoundTripper { return &transport{reader: r} }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e, err := ReadEgress(r.Context(), t.reader)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return t.at(e).RoundTrip(r)
}

// at is the transport to send by as e says.
func (t *transport) at(e Egress) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || t.revision != e.Revision {
		if t.current != nil {
			t.current.CloseIdleConnections()
		}
		t.revision, t.current = e.Revision, httpclient.NewTransport(e.Proxy, e.RootCAs)
	}
	return t.current
}

// CloseIdleConnections closes connections that wait for a next request.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}
