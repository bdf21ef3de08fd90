package signature

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// The limits of [HTTPStore] and [FileStore].
const (
	// lastSignature is the number of the last signature asked for.
	lastSignature = 9
	// largestSignature is the largest signature, in bytes, that is read.
	largestSignature = 50 << 10
	// maxRedirects is the number of redirects that a request follows. None may
	// leave https, and credentials stay with the host they were given for.
	maxRedirects = 3
)

// HTTPOptions configure [HTTPStore]. The zero value works.
type HTTPOptions struct {
	// Transport sends the requests. Nil means an own one with RootCAs and
	// Proxy; with a Transport those two are ignored.
	Transport http.RoundTripper
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil means none: the environment is
	// consulted only if this is http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout bounds each request from the connection to the end of the body.
	// Zero means 30 s.
	Timeout time.Duration
	// MaxSignatures is the number of the last signature asked for; zero means 9.
	MaxSignatures int
	// MaxSignature is the largest signature, in bytes, that is read; zero means
	// 50 KiB.
	MaxSignature int
	// MaxRedirects is how many redirects a request follows; zero means 3.
	MaxRedirects int
	// DisableRedirects follows none.
	DisableRedirects bool

	// Bundle is what RootCAs were read from, for those who add others to it.
	Bundle []byte
}

// HTTPStore reads signatures from a web server, where they lie as
// <base>/<algo>=<hash>/signature-<N>, N counting from 1 to 9. The first 404 ends
// the search; other failures are reported and the next number is tried, but two
// transport errors in a row end it, too. It is safe for concurrent use.
type HTTPStore struct {
	base   url.URL // without user info
	auth   string  // Authorization header; may be empty
	client *httpclient.Client
	last   int // number of the last signature
	limit  int // bytes of one
}

// NewHTTPStore returns a store under an http or https URL. The query of base is
// sent with every request, its user info as basic authentication; the latter
// shows in no description or error.
func NewHTTPStore(base string, o HTTPOptions) (*HTTPStore, error) {
	u, err := url.Parse(base)
	if err != nil {
		// The text of the parser's error holds the URL, and with it a password.
		return nil, errors.New("the URL of the signature store cannot be parsed")
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	s := &HTTPStore{base: *u, last: orDefault(o.MaxSignatures, lastSignature), limit: orDefault(o.MaxSignature, largestSignature)}
	if u.User != nil {
		password, _ := u.User.Password()
		s.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		s.base.User = nil
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the store %s scheme is unrecognized", redact.URL(s.base.String()))
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the store %s has no host", redact.URL(s.base.String()))
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, maxRedirects)
	s.client = httpclient.New(httpclient.Options{
		Transport: o.Transport, RootCAs: o.RootCAs, Proxy: o.Proxy,
		Timeout: o.Timeout, MaxBody: int64(s.limit), MaxRedirects: o.MaxRedirects,
		NoRedirects: o.DisableRedirects, NoDecompression: true,
	})
	return s, nil
}

// String describes the store.
func (s *HTTPStore) String() string {
	return "containers/image signature store under " + redact.URL(s.base.String())
}

// CloseIdleConnections closes connections that wait for a next request.
func (s *HTTPStore) CloseIdleConnections() { s.client.CloseIdleConnections() }

// Candidates implements [Store].
func (s *HTTPStore) Candidates(ctx context.Context, digest string) iter.Seq2[Candidate, error] {
	return probe{store: s.String(), last: s.last, remote: true, read: s.read}.candidates(ctx, digest)
}

func (s *HTTPStore) read(ctx context.Context, name string) (location string, data []byte, err error) {
	location = s.location(name)
	data, err = s.fetch(ctx, location)
	return redact.URL(location), data, err
}

func (s *HTTPStore) location(name string) string {
	u := s.base
	u.Path = path.Join("/", u.Path, name)
	u.RawPath = "" // escapes of the base are decoded, e.g. %2F
	return u.String()
}

// errTooLarge is the failure to read something too large to be a signature. Its
// value is the limit, in bytes.
type errTooLarge int

func (e errTooLarge) Error() string { return "signature is too large: " + e.Unwrap().Error() }

func (e errTooLarge) Unwrap() error { return &limit.LimitError{Max: int64(e), What: "bytes"} }

// statusError is an answer other than 2xx and 404.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("response status %d", int(e)) }

func (s *HTTPStore) fetch(ctx context.Context, location string) ([]byte, error) {
	target, _, _ := strings.Cut(location, "#")
	location = redact.URL(location)
	var header http.Header
	if s.auth != "" {
		header = http.Header{"Authorization": {s.auth}}
	}
	resp, err := s.client.Get(ctx, target, header)
	if body, ok := errors.AsType[*httpclient.BodyError](err); ok {
		if errors.As(err, new(*limit.LimitError)) {
			return nil, fmt.Errorf("unable to retrieve signature from %s: %w", location, errTooLarge(s.limit))
		}
		return nil, fmt.Errorf("unable to retrieve signature from %s: %w", location, body)
	}
	switch {
	case err != nil:
		return nil, redirected(location, target, err)
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("unable to retrieve signature from %s: %w", location, ErrNotFound)
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("unable to retrieve signature from %s: %w", location, statusError(resp.StatusCode))
	}
	return resp.Body, nil
}

// redirected names the signature in the error of a transport, which names the URL
// that failed: after a redirect that is another. Only its host is shown, since its
// path and query may be a secret.
func redirected(location, target string, err error) error {
	failed, ok := err.(*url.Error)
	if !ok || failed.URL == redact.URL(target) {
		return err
	}
	to, bad := url.Parse(failed.URL)
	if bad != nil {
		return fmt.Errorf("unable to retrieve signature from %s: after a redirect: %w", location, failed.Err)
	}
	return fmt.Errorf("unable to retrieve signature from %s: redirected to %s://%s: %w", location, to.Scheme, to.Host, failed.Err)
}
