package graph

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Client asks an update service over HTTP. The zero value asks the public one.
// Set its fields before the first Fetch; after that it is safe for concurrent
// use. It must not be copied.
//
// An answer is the whole channel, whatever cluster or version asks. So calls for
// one upstream, architecture and channel share one exchange while it is under
// way. Each waits for as long as its own context lets it; the exchange is
// cancelled when nobody waits any more. An answer that has an ETag is kept, and
// asked for again on condition that it has changed.
//
// A request that is answered by 429 or 503, or whose connection breaks, is sent
// again after a second, then two, or after the time in Retry-After. At most 5
// redirects are followed, and none from https to http. One to another host does not
// carry the cluster's ID along.
type Client struct {
	// Upstream is the service's address. It goes before the one of
	// WithUpstream; empty there too means [DefaultUpstream].
	Upstream string
	// UserAgent is sent if it is set. The cluster-version operator's is
	// ClusterVersionOperator/<version>.
	UserAgent string
	// Transport sends the requests; nil means one of the client's own, with Proxy
	// and RootCAs, which are ignored otherwise. NewTransport of package clusterapi
	// makes one that goes out as a cluster does.
	Transport http.RoundTripper
	// Proxy chooses the proxy; nil means none: the environment is not
	// consulted.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the trusted authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Timeout bounds a whole exchange; zero means 60 seconds. A request that is
	// sent again has as much again.
	Timeout time.Duration
	// Retries is how often a request is sent again; zero means 2. An answer that
	// asks to wait for more than two minutes is final. DisableRetries sends each
	// request once.
	Retries        int
	DisableRetries bool
	// Kept is the number of answers that are kept for conditional requests;
	// zero means 16.
	Kept int
	// KeptBytes bounds the JSON of all that are kept, in bytes; zero means
	// 64 MiB.
	KeptBytes int64
	// MaxAge is for how long an answer serves further calls without asking, as a
	// fleet of clusters wants it; zero means that each asks.
	MaxAge time.Duration
	// Decode describes what a graph may be. Its MaxBytes bounds the body after
	// decompression. With its Compat, parameters are added to the upstream's
	// instead of replacing them.
	Decode DecodeOptions

	once    sync.Once
	http    *httpclient.Client
	invalid error     // what is wrong with the fields
	buffers sync.Pool // of *[]byte

	mu      sync.Mutex
	kept    []keptAnswer // the most recently used last
	flights map[answerKey]*flight
}

// answerKey is what an answer depends on: not on who asks.
type answerKey struct{ upstream, arch, channel string }

type keptAnswer struct {
	key   answerKey
	etag  string
	at    time.Time // when it was last known to be the service's
	bytes int64
	graph *Graph
}

var (
	_ Source     = (*Client)(nil)
	_ Upstreamer = (*Client)(nil)
)

// Fetch asks for the graph. Errors are [*Error] of the reasons InvalidURI,
// InvalidID, NoArchitecture, NoCurrentVersion, NoChannel and
// InvalidCurrentVersion, of which the first that holds counts; InvalidRequest, RemoteFailed, ResponseFailed (with a
// [*StatusError] for a status other than 200) or ResponseInvalid. Fields below
// zero are an InvalidRequest that names them.
func (c *Client) Fetch(ctx context.Context, q Query) (*Graph, error) {
	return c.fetch(ctx, cmp.Or(c.Upstream, DefaultUpstream), q)
}

// WithUpstream returns a source that asks upstream, unless the client has an
// Upstream of its own. Both share connections and kept answers.
func (c *Client) WithUpstream(upstream string) Source {
	upstream = cmp.Or(c.Upstream, upstream, DefaultUpstream)
	return SourceFunc(func(ctx context.Context, q Query) (*Graph, error) { return c.fetch(ctx, upstream, q) })
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() {
	if client, err := c.client(); err == nil {
		client.CloseIdleConnections()
	}
}

func (c *Client) client() (*httpclient.Client, error) {
	c.once.Do(func() {
		c.invalid = options.NonNegative(c)
		if c.invalid != nil {
			return
		}
		c.http = httpclient.New(httpclient.Options{
			Transport: c.Transport, Proxy: c.Proxy, RootCAs: c.RootCAs,
			Timeout: c.Timeout, MaxBody: c.Decode.withDefaults().MaxBytes,
			DropQuery: []string{"id"}, UserAgent: c.UserAgent,
		})
	})
	return c.http, c.invalid
}

func (c *Client) fetch(ctx context.Context, upstream string, q Query) (*Graph, error) {
	set := url.Values.Set
	if c.Decode.Compat {
		set = url.Values.Add
	}
	u, err := requestURL(upstream, q, set)
	if err != nil {
		return nil, err
	}
	if _, err := c.client(); err != nil {
		return nil, failure(ErrInvalidRequest, err)
	}
	key := answerKey{upstream, q.Architecture(), q.Channel}
	return c.share(ctx, key, func(ctx context.Context) (*Graph, error) { return c.exchange(ctx, key, u.String()) })
}

// exchange asks once, or again if that may help.
func (c *Client) exchange(ctx context.Context, key answerKey, address string) (*Graph, error) {
	kept, ok := c.lookup(key)
	if ok && c.MaxAge > 0 && time.Since(kept.at) < c.MaxAge {
		return kept.graph, nil
	}
	header := http.Header{"Accept": {"application/json"}}
	ok = ok && kept.etag != ""
	if ok {
		header.Set("If-None-Match", kept.etag)
	}

	buffer, _ := c.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	retries := cmp.Or(c.Retries, 2)
	if c.DisableRetries {
		retries = -1
	}
	resp, err := c.http.DoRetry(ctx, httpclient.Request{URL: address, Header: header, Buffer: *buffer}, httpclient.Retry{
		Max: retries, Wait: func(n int) time.Duration { return time.Second << (n - 1) }, Patience: retryPatience,
	})
	if err != nil {
		return nil, transportError(err)
	}
	if cap(resp.Body) <= maxBuffer {
		*buffer = resp.Body[:0]     // grown, perhaps
		defer c.buffers.Put(buffer) // decoding keeps nothing of it
	}

	if ok && resp.StatusCode == http.StatusNotModified {
		kept.at = time.Now()
		c.keep(kept)
		return kept.graph, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp.StatusCode, resp.Status, resp.Body)
	}
	g, err := DecodeBytes(resp.Body, c.Decode)
	if err != nil {
		return nil, failure(ErrResponseInvalid, err)
	}
	c.keep(keptAnswer{key: key, etag: resp.Header.Get("ETag"), at: time.Now(), bytes: int64(len(resp.Body)), graph: g})
	return g, nil
}

const (
	// retryPatience is the longest time that a service may ask to be left alone
	// for before it is asked again.
	retryPatience = 2 * time.Minute
	// maxBuffer is the largest buffer that waits for the next answer.
	maxBuffer = 4 << 20
	// maxETag is the longest ETag that is sent back.
	maxETag = 1 << 10
)

// transportError gives an exchange without an answer its reason.
func transportError(err error) error {
	var request *httpclient.RequestError
	var body *httpclient.BodyError
	switch {
	case errors.As(err, &request):
		return failure(ErrInvalidRequest, err)
	case errors.As(err, &body):
		if body.StatusCode != http.StatusOK {
			return statusError(body.StatusCode, body.Status, nil)
		}
		if passed, ok := errors.AsType[*LimitError](err); ok {
			return failure(ErrResponseFailed, &LimitError{What: "bytes", Max: passed.Max})
		}
		return failure(ErrResponseFailed, err)
	}
	return failure(ErrRemoteFailed, err)
}

// statusError words an unexpected status and carries what the body says.
func statusError(code int, status string, body []byte) error {
	status = bounded.Text(status, bounded.MaxQuoted)
	e := &StatusError{StatusCode: code, Status: status}
	var answer struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	if json.Unmarshal(body, &answer) == nil {
		e.Kind, e.Value = answer.Kind, answer.Value
	}
	return &Error{Reason: string(ErrResponseFailed), Message: "unexpected HTTP status: " + status, Err: e}
}

// lookup finds a kept answer and marks it as used.
func (c *Client) lookup(key answerKey) (keptAnswer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.kept {
		if k.key == key {
			c.kept = append(append(c.kept[:i:i], c.kept[i+1:]...), k)
			return k, true
		}
	}
	return keptAnswer{}, false
}

// keep stores an answer that can be used again, in the place of the one before.
func (c *Client) keep(answer keptAnswer) {
	limit, maxBytes := cmp.Or(c.Kept, 16), cmp.Or(c.KeptBytes, defaultMaxBytes)
	if len(answer.etag) > maxETag {
		answer.etag = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept []keptAnswer
	var size int64
	for _, k := range c.kept {
		if k.key != answer.key {
			kept = append(kept, k)
			size += k.bytes
		}
	}
	if answer.bytes <= maxBytes && (answer.etag != "" || c.MaxAge > 0) {
		kept = append(kept, answer)
		size += answer.bytes
	}
	for len(kept) > limit || size > maxBytes {
		size -= kept[0].bytes
		kept = kept[1:]
	}
	c.kept = slices.Clone(kept)
}
