package ocm

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/redact"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/internal/loop"
)

// connection sends requests on behalf of one cluster.
type connection struct {
	http       *httpclient.Client
	base       string
	agent      bool
	externalID string
	header     http.Header
	secrets    *redact.Redactor
	retry      httpclient.Retry
}

// newClient returns the client of a provider. Its own transport leaves no
// connection open after a request: most requests are hours apart, and net/http
// logs what a server sends unasked on an open connection.
func newClient(o Options, agent bool) *httpclient.Client {
	transport := cmp.Or(o.Transport, o.Base)
	if transport == nil {
		dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
		handshake, proxy := 10*time.Second, o.Proxy
		if agent {
			handshake, proxy = 30*time.Second, nil
		}
		transport = &http.Transport{
			Proxy:               proxy,
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: handshake,
			ForceAttemptHTTP2:   true,
			DisableKeepAlives:   true,
		}
	}
	return httpclient.New(httpclient.Options{
		Transport: transport, Timeout: o.Timeout, MaxBody: o.MaxBody,
		SameOrigin: true, UserAgent: o.UserAgent,
	})
}

// connect reads what authenticates the cluster. No request is sent.
func (p *Provider) connect(ctx context.Context) (*connection, error) {
	c := &connection{
		http: p.client, base: p.base, agent: p.agent,
		header: http.Header{"Accept": {"application/json"}},
		retry:  httpclient.Retry{Max: p.o.Retries, Wait: p.retryWait, MaxAfter: maxRetryAfter, Clock: p.o.Clock, Sleep: p.sleep},
	}
	var token string
	var tokenErr, idErr error
	if p.o.Transport == nil {
		token, tokenErr = readToken(ctx, p.api)
	}
	c.externalID, idErr = readClusterID(ctx, p.api)
	if err := errors.Join(tokenErr, idErr); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccessToken, err)
	}
	if p.o.Transport == nil {
		c.header.Set("Authorization", "AccessToken "+c.externalID+":"+token)
	}
	c.secrets = new(redact.Redactor).With(token)
	c.retry.Report = func(n int, wait time.Duration, resp *httpclient.Response, err error) {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		p.o.Logger.Info("OCM request failed for the moment", "retry", n, "wait", wait, "status", status, "error", c.secrets.Error(err))
	}
	return c, nil
}

// retryWait is the time before retry n.
func (p *Provider) retryWait(n int) time.Duration {
	wait := p.o.RetryWait
	for range n {
		wait = min(2*wait, maxRetryWait)
	}
	return loop.Jitter(wait, retryJitter, p.o.Rand)
}

// answer is what a body decodes to.
type answer interface{ check() error }

// get reads the answer to a GET into a. Anything but status 200 with a body
// that a accepts is an error: half an answer must not read as "nothing". It
// returns the operation ID, for errors about what a says.
func (c *connection) get(ctx context.Context, path string, query url.Values, a answer) (operation string, err error) {
	resp, err := c.send(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", c.failure(http.MethodGet, path, query, resp)
	}
	if err := decode(resp.Body, a); err != nil {
		fail := c.failure(http.MethodGet, path, query, resp)
		fail.Err = fmt.Errorf("malformed answer: %w", c.secrets.Error(err))
		return "", fail
	}
	return c.secrets.Line(resp.Header.Get("X-Operation-Id")), nil
}

// withOperation adds the operation that an error is about.
func withOperation(operation string, err error) error {
	if err == nil || operation == "" {
		return err
	}
	return fmt.Errorf("%w (operation id %s)", err, operation)
}

// change sends a JSON document. It is not sent again, whatever happens: it may
// have had its effect.
func (c *connection) change(ctx context.Context, method, path string, document any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, method, path, nil, body)
	if errors.As(err, new(*httpclient.BodyError)) {
		return nil // status 2xx says it all
	}
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return c.failure(method, path, nil, resp)
	}
	return nil
}

func (c *connection) send(ctx context.Context, method, path string, query url.Values, body []byte) (*httpclient.Response, error) {
	r := httpclient.Request{Method: method, URL: c.url(path, query), Header: c.header, Body: body}
	if body != nil {
		r.Header = c.header.Clone()
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.DoRetry(ctx, r, c.retry)
	if err == nil {
		return resp, nil
	}
	fail := &RequestError{Method: method, URL: c.secrets.Echo(r.URL), Err: err}
	if e, ok := errors.AsType[*url.Error](err); ok && !errors.As(err, new(*httpclient.TimeoutError)) {
		fail.Err = e.Err // without the URL, which is in the text already
	}
	if ctx.Err() != nil {
		fail.Err = ctx.Err()
	}
	fail.Err = c.secrets.Error(fail.Err)
	return nil, fail
}

func (c *connection) url(path string, query url.Values) string {
	if len(query) == 0 {
		return c.base + path
	}
	return c.base + path + "?" + query.Encode()
}

// failure describes what an answer has to say about a request that failed.
func (c *connection) failure(method, path string, query url.Values, resp *httpclient.Response) *RequestError {
	e := &RequestError{Method: method, URL: c.secrets.Echo(c.url(path, query)), StatusCode: resp.StatusCode}
	var body wireError
	if decode(resp.Body, &body) == nil && body.Kind == "Error" {
		e.Code, e.Reason = c.secrets.Line(body.Code), c.secrets.Line(body.Reason)
		if e.Code == "" && e.Reason == "" {
			e.Reason = "an error without a reason"
		}
	}
	e.OperationID = c.secrets.Line(cmp.Or(resp.Header.Get("X-Operation-Id"), body.OperationID))
	return e
}

// api is the part of the service that knows clusters.
const api = "/api/clusters_mgmt/v1/clusters"

// segment returns an ID from OCM as a part of a path.
func segment(id string) (string, error) {
	switch id {
	case "":
		return "", errors.New("it has no ID")
	case ".", "..":
		return "", fmt.Errorf("its ID is %q", id)
	}
	return url.PathEscape(id), nil
}
