package registry

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest/image"
)

// Options are those of [New] and [NewStore]. The zero value works for registries
// that anybody may read. It is plain data: safe to copy, and to read from many
// goroutines at a time.
type Options struct {
	// Image has the platform to choose, and the limits. An empty Name means
	// "registry", or Repository.
	Image image.Options
	// Keychain has the credentials of registries; it must be safe for concurrent
	// use. Nil: nobody logs in.
	Keychain authn.Keychain
	// Repository is where images are read, such as mirror.example/ocp/release,
	// without tag and digest. Empty: the one in each pull spec.
	Repository string
	// Transport sends the requests. Nil means an own one with RootCAs and Proxy;
	// with a Transport those two are ignored.
	Transport http.RoundTripper
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil means none: the environment is
	// consulted only if this is http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout bounds the wait until an answer begins; 0: 30 s. How long a layer
	// may take is up to the context. A Transport of the caller's has its own.
	Timeout time.Duration
	// MaxRedirects is how many redirects a request follows; 0: 3. None may leave
	// https, or lead from one host to a private address of another.
	MaxRedirects int
	// PlainHTTP allows http, for registries on a local network that speak
	// nothing else. What they serve is verified all the same; credentials can be
	// read on the way.
	PlainHTTP bool
}

// New returns a source that reads from registries. The errors are those of
// [NewStore].
func New(o Options) (*image.Source, error) {
	s, err := NewStore(o)
	if err != nil {
		return nil, err
	}
	o.Image.Name = cmp.Or(o.Image.Name, o.Repository, "registry")
	return image.FromStore(s, o.Image)
}

// NewStore returns the store that [New] reads from. A Repository that is none, and
// a negative option, are errors.
func NewStore(o Options) (*Store, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	s := &Store{keychain: o.Keychain, plain: o.PlainHTTP, sessions: map[string]*session{}}
	if o.Repository != "" {
		r, err := s.parse(o.Repository)
		if err != nil {
			return nil, err
		}
		s.repository = &r
	}
	if o.Keychain == nil {
		s.keychain = authn.NewMultiKeychain() // of nobody
	}
	transport := o.Transport
	if transport == nil {
		own := httpclient.NewTransport(o.Proxy, o.RootCAs)
		own.ResponseHeaderTimeout = cmp.Or(o.Timeout, 30*time.Second)
		transport, s.own = own, own
	}
	s.transport = &guard{transport, o.PlainHTTP, cmp.Or(o.MaxRedirects, 3)}
	return s, nil
}

// parse reads the name of a repository.
func (s *Store) parse(repository string) (name.Repository, error) {
	o := []name.Option{name.WithDefaultRegistry("docker.io")}
	if s.plain {
		o = append(o, name.Insecure)
	}
	r, err := name.NewRepository(repository, o...)
	if err != nil {
		return r, fmt.Errorf("repository %q: %w", repository, err)
	}
	return r, nil
}
