package httpclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/redact"
)

const (
	// MaxErrorBody is how many bytes of the body of an answer other than 2xx
	// are kept. Longer ones are cut, not refused: the status is what counts.
	MaxErrorBody = 64 << 10
	// MaxHeader is how many bytes the header of an answer has at most, where the
	// transport is our own.
	MaxHeader = 256 << 10
)

// Options configure a [Client]. The zero value is usable.
type Options struct {
	// Transport sends the requests. Nil means an own one with RootCAs and
	// Proxy, TLS 1.2 or better and no proxy from the environment. With a
	// Transport, RootCAs and Proxy are ignored: they are the transport's.
	Transport http.RoundTripper
	// RootCAs are the authorities to trust; nil means those of the system.
	RootCAs *x509.CertPool
	// Proxy returns the proxy of a request; nil means none.
	Proxy func(*http.Request) (*url.URL, error)

	// Timeout bounds a whole exchange, redirects and body included; 0: 60 s.
	Timeout time.Duration
	// MaxBody is the largest body in bytes, after decompression; 0: 64 MiB. It
	// cannot be switched off.
	MaxBody int64
	// MaxRedirects is how many redirects are followed; 0: 5. NoRedirects follows
	// none.
	MaxRedirects int
	NoRedirects  bool

	// DropQuery names the query parameters that must not follow a redirect to
	// another host.
	DropQuery []string
	// SameOrigin refuses redirects to another scheme, host or port, and those that
	// would turn a request into a GET, whose answer would pass for the request's.
	SameOrigin bool
	// NoDecompression asks for the body as it is stored and never undoes a
	// Content-Encoding.
	NoDecompression bool
	// UserAgent is sent unless the request has its own; empty means Go's.
	UserAgent string
}

// Client sends requests within the limits of its Options. It is safe for
// concurrent use. Make one with [New].
type Client struct {
	o    Options
	http http.Client
}

// New returns a client.
func New(o Options) *Client {
	o.Timeout = cmp.Or(o.Timeout, 60*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 5)
	if o.NoRedirects {
		o.MaxRedirects = 0
	}
	if o.Transport == nil {
		o.Transport = NewTransport(o.Proxy, o.RootCAs)
	}
	c := &Client{o: o}
	c.http = http.Client{Transport: o.Transport, CheckRedirect: c.checkRedirect}
	return c
}

// NewTransport returns the transport that a client has by default: TLS 1.2 or
// better, and no proxy from the environment.
func NewTransport(proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:                 proxy,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,

		MaxResponseHeaderBytes: MaxHeader,
	}
}

// CloseIdleConnections closes connections that wait for a next request, and
// with them their goroutines, where the transport can do so.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Request is what [Client.Do] sends.
type Request struct {
	Method string // empty means GET
	URL    string
	Header http.Header // may be nil; not changed
	Body   []byte      // may be nil
	// Buffer lends its capacity to the Response's body, which then aliases it:
	// who asks often can do with one buffer. May be nil.
	Buffer []byte
}

// Response is an answer whose body has been read.
type Response struct {
	StatusCode int    // e.g. 404
	Status     string // e.g. "404 Not Found"
	Header     http.Header
	// Body is the whole body of a 2xx answer. Of another status it is what
	// could be read of its first MaxErrorBody bytes.
	Body []byte
	// URL is the address that answered, after redirects.
	URL *url.URL
}

// Get asks for a URL. See [Client.Do].
func (c *Client) Get(ctx context.Context, url string, header http.Header) (*Response, error) {
	return c.Do(ctx, Request{URL: url, Header: header})
}

// Do sends a request and reads the answer. Any status is an answer; the error
// reports that there was none, or that its body could not be read to the end.
//
// Errors: [*RequestError] when nothing was sent because the request cannot be
// built; [*TimeoutError]; [*limit.LimitError] when the body or the redirects pass
// their limit; [*BodyError] (which may hold a limit's error) when the status had
// been received; the transport's [*url.Error] otherwise, whose URL has neither user
// nor query. The context's error is found by errors.Is in each.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	timedOut := func(err error) error {
		if outer.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &TimeoutError{Timeout: c.o.Timeout, Err: err}
		}
		return err
	}

	req, err := c.build(ctx, r)
	if err != nil {
		return nil, &RequestError{Err: redact.Error(err)}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		err = withoutCredentials(err)
		if resp != nil { // a refused redirect: the body is closed already
			return nil, err
		}
		return nil, timedOut(err)
	}
	defer resp.Body.Close()

	answer := &Response{StatusCode: resp.StatusCode, Status: resp.Status, Header: resp.Header, URL: req.URL}
	if resp.Request != nil { // a transport that is not net/http's may leave it out
		answer.URL = resp.Request.URL
	}
	answer.Body, err = c.readBody(resp, r.Buffer[:0])
	if err != nil && resp.StatusCode/100 == 2 {
		return nil, &BodyError{StatusCode: resp.StatusCode, Status: resp.Status, Err: timedOut(err)}
	}
	return answer, nil
}

// withoutCredentials returns the error of a transport without what its URL, which
// after a redirect is another host's, may hold of credentials.
func withoutCredentials(err error) error {
	failed, ok := err.(*url.Error)
	if !ok {
		return redact.Error(err)
	}
	return &url.Error{Op: failed.Op, URL: redact.URL(failed.URL), Err: redact.Error(failed.Err)}
}

func (c *Client) build(ctx context.Context, r Request) (*http.Request, error) {
	method := cmp.Or(r.Method, http.MethodGet)
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, body)
	if err != nil {
		return nil, err
	}
	for k, v := range r.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	if c.o.UserAgent != "" && req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	// Asking in person keeps the transport from undoing gzip behind our back,
	// where the size could not be bounded and an injected transport may differ.
	if c.o.NoDecompression {
		req.Header.Set("Accept-Encoding", "identity")
	} else {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	return req, nil
}
