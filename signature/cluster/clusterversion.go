package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/signature"
)

const (
	clusterVersionName = "version"
	caNamespace        = "openshift-config"
	caKey              = "ca.crt"
	// maxCustomStores is the limit of the ClusterVersion API.
	maxCustomStores = 32
)

// ClusterVersionStore asks the stores of spec.signatureStores of the
// ClusterVersion, which is read again each time:
//
//   - unset: nothing is asked, and the next store of a [signature.Serial] is;
//   - set: all of them are asked in parallel, and when none has a valid
//     signature the search ends, so that the payload's own stores are not asked;
//   - an empty list, or one that cannot be used, ends the search.
//
// A store whose "ca" names a ConfigMap of namespace openshift-config trusts the
// authorities under its key ca.crt, and only these; if they are missing or
// broken, that store is not asked. A store without "ca" trusts those of the
// cluster's proxy, in HTTP as [clusterapi.ReadEgress] has them, and the system's.
// It is safe for concurrent use; do not copy.
type ClusterVersionStore struct {
	Reader clusterapi.Reader
	// HTTP configures the stores. "ca" can be honoured only if its Transport is
	// nil or an *http.Transport.
	HTTP signature.HTTPOptions

	mu   sync.Mutex
	last []configv1.SignatureStore // as last read
}

// String describes the store. Before the first search it describes the field as
// unset.
func (s *ClusterVersionStore) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last == nil:
		return "ClusterVersion signatureStores unset, falling back to default stores"
	case len(s.last) == 0:
		return "0 ClusterVersion signatureStores"
	}
	urls := make([]string, len(s.last))
	for i, item := range s.last {
		urls[i] = shownURL(item.URL)
	}
	return "ClusterVersion signatureStores: " + bounded.Join(urls, ", ", 16<<10)
}

// Candidates implements [signature.Store].
func (s *ClusterVersionStore) Candidates(ctx context.Context, digest string) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		end := func(err error) {
			own := signature.Candidate{Store: s.String()}
			yield(own, &signature.StoreError{Store: own.Store, Err: err})
		}
		cv, err := readObject[configv1.ClusterVersion](ctx, s.Reader, "", clusterVersionName)
		if err != nil {
			end(fmt.Errorf("unable to read spec.signatureStores of ClusterVersion %s: %w", clusterVersionName, err))
			return
		}
		items := cv.Spec.SignatureStores
		s.mu.Lock()
		s.last = items
		s.mu.Unlock()
		switch {
		case items == nil:
			return
		case len(items) == 0:
			end(errors.New("ClusterVersion spec.signatureStores is an empty array. Unset signatureStores entirely if you want to enable the default signature stores"))
			return
		case len(items) > maxCustomStores:
			end(fmt.Errorf("ClusterVersion spec.signatureStores has %d items, more than the limit of %d", len(items), maxCustomStores))
			return
		}

		var members []signature.Store
		reads, cancel := reconcile.WithTimeout(ctx, readTimeout) // of all members together
		defer cancel()
		for _, item := range items {
			store, err := s.member(reads, item)
			var ca *caError
			switch {
			case errors.As(err, &ca):
				if !yield(signature.Candidate{Store: shownURL(item.URL)}, err) {
					return
				}
			case err != nil:
				end(err)
				return
			default:
				if s.HTTP.Transport == nil || item.CA.Name != "" { // one of our own
					defer store.CloseIdleConnections()
				}
				members = append(members, store)
			}
		}
		cancel()
		for c, err := range signature.Parallel(members...).Candidates(ctx, digest) {
			if _, ended := err.(*signature.StoreError); !yield(c, err) || ended { // one that another error wraps is an ordinary failure
				return
			}
		}
		end(errors.New("ClusterVersion spec.signatureStores exhausted without finding a valid signature"))
	}
}

// caError explains why a store is not honoured.
type caError struct {
	url, name string
	err       error
}

func (e *caError) Error() string {
	return fmt.Sprintf("signature store %s is not honoured: certificate authorities of config map %s/%s: %v", e.url, caNamespace, e.name, e.err)
}

func (e *caError) Unwrap() error { return e.err }

// readObject reads an object within readTimeout.
func readObject[T any](ctx context.Context, r clusterapi.Reader, namespace, name string) (*T, error) {
	ctx, cancel := reconcile.WithTimeout(ctx, readTimeout)
	defer cancel()
	return clusterapi.Get[T](ctx, r, clusterapi.Key(namespace, name))
}

// withSystemRoots returns the authorities of a bundle and those of the system.
func withSystemRoots(bundle []byte) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(bundle)
	return pool
}

// member returns the store of one item.
func (s *ClusterVersionStore) member(ctx context.Context, item configv1.SignatureStore) (*signature.HTTPStore, error) {
	o, err := s.trust(ctx, item)
	if err != nil {
		return nil, err
	}
	return signature.NewHTTPStore(item.URL, o)
}

// trust returns the options with whom to trust for one item.
func (s *ClusterVersionStore) trust(ctx context.Context, item configv1.SignatureStore) (signature.HTTPOptions, error) {
	o := s.HTTP
	if o.Transport == nil && len(o.Bundle) > 0 {
		o.RootCAs = withSystemRoots(o.Bundle)
	}
	if name := item.CA.Name; name != "" {
		fail := func(err error) (signature.HTTPOptions, error) {
			return o, &caError{url: shownURL(item.URL), name: name, err: err}
		}
		cm, err := readObject[corev1.ConfigMap](ctx, s.Reader, caNamespace, name)
		if err != nil {
			return fail(err)
		}
		bundle := cm.Data[caKey]
		if bundle == "" {
			return fail(fmt.Errorf("no key %s", caKey))
		}
		o.RootCAs, err = httpclient.RootCAs([]byte(bundle))
		if err != nil {
			return fail(err)
		}
		switch t := o.Transport.(type) {
		case nil:
		case *http.Transport:
			t = t.Clone()
			if t.TLSClientConfig == nil {
				t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			t.TLSClientConfig.RootCAs = o.RootCAs
			o.Transport = t
		default:
			return fail(fmt.Errorf("a transport of type %T cannot be told whom to trust", t))
		}
	}
	return o, nil
}

// shownURL is the URL of a store without what may be a credential in it.
func shownURL(text string) string { return bounded.Text(redact.URL(text), 1<<10) }
