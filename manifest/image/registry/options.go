package registry

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

// Options are those of [New], [NewStore] and [OpenSource]. The zero value works for
// registries that anybody may read. It is plain data: safe to copy, and to read from many
// goroutines at a time.
type Options struct {
	// Image has the platform to choose, and the limits. An empty Name means
	// "registry", or the first mirror.
	Image image.Options
	// Keychain has the credentials of registries, which are sent when a registry
	// asks for them; it must be safe for concurrent use. Nil: nobody logs in.
	Keychain authn.Keychain
	// Mirrors are the repositories to read from in place of the one in each pull
	// spec, in this order, such as mirror.example/ocp/release, without tag and
	// digest. Each is asked once; then those that failed for the moment are asked
	// again, up to Retries times. Empty: the repository in the pull spec.
	Mirrors []string
	// Retries is how often a request is sent again that failed for the moment: the
	// connection broke, or the answer was 429, 502, 503 or 504. The wait is the one
	// that the answer asks for in Retry-After, if it is at most two minutes, else 1 s,
	// 2 s, 4 s and so on. A blob that breaks off continues from there. 0: never.
	Retries int
	// Transport sends the requests. Nil means an own one with RootCAs and Proxy;
	// with a Transport those two are ignored.
	Transport http.RoundTripper
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil means none: the environment is
	// consulted only if this is http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout bounds the wait until an answer starts; 0: 30 s. How long a layer may
	// take is up to the context. A Transport of the caller's has its own.
	Timeout time.Duration
	// MaxRedirects is how many redirects a request follows; 0: 3. None may leave
	// https, or lead from one host to a private address of another.
	MaxRedirects int
	// PrivateRedirects allows redirects to private addresses, for registries that
	// keep blobs on a local network.
	PrivateRedirects bool
	// PlainHTTP allows http, for registries on a local network that speak nothing
	// else. What they serve is still verified; credentials can be read on the way.
	PlainHTTP bool
}

// New returns a source that reads from registries. The errors are those of
// [NewStore].
func New(o Options) (*image.Source, error) {
	s, err := NewStore(o)
	if err != nil {
		return nil, err
	}
	o.Image.Name = cmp.Or(o.Image.Name, append(o.Mirrors[:len(o.Mirrors):len(o.Mirrors)], "registry")[0])
	return image.FromStore(s, o.Image)
}

// OpenSource opens cosign signatures by their place: docker://host/path for a
// repository in a registry, else what sigstore.OpenSource opens. Errors are those of
// [NewStore], and of FromStore and OpenSource in package sigstore.
func OpenSource(place string, o Options, l sigstore.Limits) (sigstore.Source, error) {
	repository, ok := strings.CutPrefix(place, "docker://")
	if !ok {
		return sigstore.OpenSource(place, l)
	}
	s, err := NewStore(o)
	if err != nil {
		return nil, err
	}
	return sigstore.FromStore(s, repository, l)
}

// NewStore returns the store that [New] reads from. It returns an error for a mirror
// that is not a repository, and for a negative option.
func NewStore(o Options) (*Store, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	s := &Store{keychain: o.Keychain, plain: o.PlainHTTP, retries: o.Retries, sessions: map[string]*session{}}
	for _, mirror := range o.Mirrors {
		r, err := s.parse(mirror)
		if err != nil {
			return nil, err
		}
		s.mirrors = append(s.mirrors, r)
	}
	if o.Keychain == nil {
		s.keychain = authn.NewMultiKeychain() // of nobody
	}
	inner := o.Transport
	if inner == nil {
		s.own = httpclient.NewTransport(o.Proxy, o.RootCAs)
		s.own.ResponseHeaderTimeout = cmp.Or(o.Timeout, 30*time.Second)
		inner = s.own
	}
	s.transport = &guard{
		inner: inner, plain: o.PlainHTTP, private: o.PrivateRedirects, maxRedirects: cmp.Or(o.MaxRedirects, 3),
	}
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
