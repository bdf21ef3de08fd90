package risk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/internal/schema"
	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/internal/redact"
)

// The defaults of [Prometheus] are what a pod finds in an OpenShift cluster.
const (
	defaultPrometheusURL       = "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091"
	defaultPrometheusTokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	defaultPrometheusCAFile    = "/etc/tls/service-ca/service-ca.crt"
	defaultPrometheusTimeout   = 5 * time.Minute
)

// Prometheus asks the HTTP API of a Prometheus or Thanos. It is a
// [graph.RiskMatcher] and an [AlertSource]. Requests are GET, since the proxy before
// a cluster's monitoring asks for more rights for POST. The zero value asks the
// monitoring of the cluster that it runs in. Set its fields before the first use;
// after that it is safe for concurrent use. It must not be copied. Wrap it in a
// [Cache] if it judges risks again and again.
//
// Redirects are not followed, so that the token stays with its server.
type Prometheus struct {
	// URL is where /api/v1 is; empty means Thanos in the cluster:
	// https://thanos-querier.openshift-monitoring.svc.cluster.local:9091.
	URL string
	// Token is the bearer token. Empty means that TokenFile has it, which is
	// read for each request since it is rotated; NoToken sends none.
	Token     string
	TokenFile string // empty means the pod's service account
	NoToken   bool
	// RootCAs are the trusted authorities; nil means those in CAFile, and
	// SystemCAs those of the system.
	RootCAs   *x509.CertPool
	CAFile    string // empty means the authority of the cluster's Services
	SystemCAs bool
	// Address finds the host and port to connect to, such as the cluster IP and
	// port of a Service; the certificate must still be for URL's host. Nil resolves
	// URL's host by DNS.
	Address func(ctx context.Context) (string, error)
	// Transport sends the requests; nil means one of its own, with RootCAs
	// and Address, which are ignored otherwise.
	Transport http.RoundTripper
	// Timeout bounds a request; zero means 5 minutes.
	Timeout time.Duration
	// ClusterID, of a hosted control plane, is put into queries, see
	// [HostedQuery]. Empty leaves them as they are.
	ClusterID string
	// MaxBytes bounds an answer, in bytes; zero means 16 MiB.
	MaxBytes int64
	// MaxSamples bounds the samples of a query's answer; zero means 10,000. A
	// risk wants one.
	MaxSamples int
	// MaxAlerts bounds the alerts; zero means 5,000. One that has more than 100
	// labels or annotations, or 64 KiB of them, is an error.
	MaxAlerts int

	mu   sync.Mutex
	http *httpclient.Client
}

var (
	_ graph.RiskMatcher = (*Prometheus)(nil)
	_ AlertSource       = (*Prometheus)(nil)
)

// Match evaluates the rule's query. Its errors are those of the
// cluster-version operator.
func (p *Prometheus) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	return InstantQuery(p.Query).Match(ctx, rule)
}

// Query evaluates an instant query at the present. Errors say what was being done
// (executing PromQL query, creating PromQL client, ...) and why it failed; a limit
// that was passed; a field below zero.
func (p *Prometheus) Query(ctx context.Context, query string) (InstantResult, error) {
	if p.ClusterID != "" {
		query = HostedQuery(query, p.ClusterID)
	}
	var data struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	}
	err := p.get(ctx, "executing PromQL query", "query", url.Values{"query": {query}}, func(_, answered []byte) error {
		return json.Unmarshal(answered, &data)
	})
	if err != nil {
		return InstantResult{}, err
	}
	r := InstantResult{Type: data.ResultType}
	if r.Type != "vector" {
		return r, nil
	}
	err = p.eachSample(data.Result, func(i int, element []byte) error {
		var sample struct {
			Value [2]json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(element, &sample); err != nil {
			return fmt.Errorf("invalid vector: sample %d: %w", i, err)
		}
		var text string
		if err := json.Unmarshal(sample.Value[1], &text); err != nil {
			return fmt.Errorf("sample %d: invalid value: %w", i, err)
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		r.Values = append(r.Values, value)
		return nil
	})
	if err != nil {
		return r, fmt.Errorf("executing PromQL query: %w", err)
	}
	return r, nil
}

// eachSample calls f for each element of a JSON array, or null. It reads them
// one by one, so that what a short text can hold is never made at once.
func (p *Prometheus) eachSample(array []byte, f func(i int, element []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(array))
	switch start, err := d.Token(); {
	case err != nil:
		return fmt.Errorf("invalid vector: %w", err)
	case start == nil:
		return nil
	case start != json.Delim('['):
		return errors.New("invalid vector: not an array")
	}
	most := limit.Limit{Max: int64(cmp.Or(p.MaxSamples, 10_000)), Name: "MaxSamples", What: "samples"}
	for i := 0; d.More(); i++ {
		if err := most.Check(int64(i) + 1); err != nil {
			return err
		}
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return fmt.Errorf("invalid vector: %w", err)
		}
		if len(element) > maxSample {
			return &limit.LimitError{Where: fmt.Sprintf("sample %d", i), Max: maxSample, What: "bytes"}
		}
		if err := f(i, element); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxSample = 64 << 10 // bytes of one
	maxWords  = 4 << 10  // bytes of an error that a server words
)

// Firing returns the alerts that are pending or firing. Errors are as those of
// [Prometheus.Query], and start with "reading alerts".
func (p *Prometheus) Firing(ctx context.Context) ([]clusterapi.Alert, error) {
	var alerts []clusterapi.Alert
	err := p.get(ctx, "reading alerts", "alerts", nil, func(answer, _ []byte) (err error) {
		alerts, err = clusterapi.DecodeAlerts(answer)
		return err
	})
	if err != nil {
		return nil, err
	}
	most := limit.Limit{Max: int64(cmp.Or(p.MaxAlerts, 5_000)), Name: "MaxAlerts", What: "alerts"}
	if err := most.Check(int64(len(alerts))); err != nil {
		return nil, fmt.Errorf("reading alerts: %w", err)
	}
	return alerts, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (p *Prometheus) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http != nil {
		p.http.CloseIdleConnections()
	}
}

// get asks an endpoint of the API and has the answer and its data decoded. Its errors
// start with what it is doing.
func (p *Prometheus) get(
	ctx context.Context, doing, endpoint string, query url.Values, decode func(answer, data []byte) error,
) error {
	client, err := p.client()
	if err != nil {
		return fmt.Errorf("creating PromQL round-tripper: %w", err)
	}
	header, err := p.header()
	if err != nil {
		return fmt.Errorf("creating PromQL round-tripper: %w", err)
	}
	// The server may repeat the token.
	hide := new(redact.Redactor).With(strings.TrimPrefix(header.Get("Authorization"), "Bearer "))
	u, err := url.Parse(cmp.Or(p.URL, defaultPrometheusURL))
	if err != nil {
		return fmt.Errorf("creating PromQL client: %w", redact.Error(err))
	}
	u = u.JoinPath("api", "v1", endpoint)
	u.RawQuery = query.Encode()
	resp, err := client.Do(ctx, httpclient.Request{URL: u.String(), Header: header})
	var address *addressError
	switch {
	case errors.As(err, &address):
		return address
	case err != nil:
		return fmt.Errorf("%s: %w", doing, hide.Error(err))
	}
	var answer struct {
		Status    string          `json:"status"`
		Data      json.RawMessage `json:"data"`
		ErrorType string          `json:"errorType"`
		Error     string          `json:"error"`
	}
	err = json.Unmarshal(resp.Body, &answer)
	switch {
	case err == nil && answer.Status == "error":
		return fmt.Errorf("%s: %s: %s", doing, bounded.Text(hide.Text(answer.ErrorType), bounded.MaxQuoted), bounded.Text(hide.Text(answer.Error), maxWords))
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: unexpected HTTP status: %s", doing, bounded.Text(hide.Text(resp.Status), bounded.MaxQuoted))
	case err != nil:
		return fmt.Errorf("%s: invalid answer: %w", doing, hide.Error(err))
	case answer.Status != "success":
		return fmt.Errorf("%s: the answer's status is %s", doing, bounded.Quote(hide.Text(answer.Status)))
	}
	if err := decode(resp.Body, answer.Data); err != nil {
		return fmt.Errorf("%s: invalid data: %w", doing, hide.Error(err))
	}
	return nil
}

func (p *Prometheus) header() (http.Header, error) {
	header := http.Header{"Accept": {"application/json"}}
	if p.NoToken {
		return header, nil
	}
	token := p.Token
	if token == "" {
		text, err := os.ReadFile(cmp.Or(p.TokenFile, defaultPrometheusTokenFile))
		if err != nil {
			return nil, fmt.Errorf("unable to read the bearer token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	header.Set("Authorization", "Bearer "+token)
	return header, nil
}

// client makes the client at the first use; until that succeeds it is tried
// again, since files may appear.
func (p *Prometheus) client() (*httpclient.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.http != nil {
		return p.http, nil
	}
	if err := options.NonNegative(p); err != nil {
		return nil, err
	}
	o := httpclient.Options{
		Transport: p.Transport, Timeout: cmp.Or(p.Timeout, defaultPrometheusTimeout), MaxBody: cmp.Or(p.MaxBytes, 16<<20),
		NoRedirects: true,
	}
	if o.Transport == nil {
		roots, err := p.roots()
		if err != nil {
			return nil, err
		}
		t := &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxIdleConns:        4,
			IdleConnTimeout:     30 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		}
		if p.Address != nil {
			t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				address, err := p.Address(ctx)
				if err != nil {
					return nil, &addressError{err}
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
		}
		o.Transport = t
	}
	p.http = httpclient.New(o)
	return p.http, nil
}

func (p *Prometheus) roots() (*x509.CertPool, error) {
	if p.RootCAs != nil || p.SystemCAs {
		return p.RootCAs, nil
	}
	if strings.HasPrefix(p.URL, "http://") {
		return nil, nil
	}
	name := cmp.Or(p.CAFile, defaultPrometheusCAFile)
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("unable to read the CA file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("unable to add certificates of %s", name)
	}
	return pool, nil
}

// addressError reports that the endpoint is not known.
type addressError struct{ err error }

func (e *addressError) Error() string { return fmt.Sprintf("failure determine thanos IP: %v", e.err) }
func (e *addressError) Unwrap() error { return e.err }

// InstantResult is what a PromQL query at one point in time returns.
type InstantResult struct {
	// Type is vector, scalar, matrix or string.
	Type string
	// Values are those of a vector's samples; labels and times do not matter.
	Values []float64
}

// InstantQuery evaluates PromQL at the present. As a [graph.RiskMatcher] it judges
// rules of type PromQL: a vector of one sample that is 1 matches, 0 does not,
// anything else is an error. It is as safe for concurrent use as the function.
type InstantQuery func(ctx context.Context, query string) (InstantResult, error)

// Match evaluates the rule's query. Errors are those of f, or say that the rule
// has no query or that the result is not a vector of one sample, 0 or 1.
func (f InstantQuery) Match(ctx context.Context, rule configv1.ClusterCondition) (bool, error) {
	if err := schema.CheckPromQL(rule); err != nil {
		return false, err
	}
	r, err := f(ctx, rule.PromQL.PromQL)
	switch {
	case err != nil:
		return false, err
	case r.Type != "vector":
		return false, fmt.Errorf("invalid PromQL result type is %s, not vector", bounded.Text(r.Type, bounded.MaxQuoted))
	case len(r.Values) != 1:
		return false, fmt.Errorf("invalid PromQL result length must be one, but is %d", len(r.Values))
	case r.Values[0] == 0:
		return false, nil
	case r.Values[0] == 1:
		return true, nil
	}
	return false, fmt.Errorf("invalid PromQL result (must be 0 or 1): %v", r.Values[0])
}

// HostedQuery returns a query for a hosted control plane, whose metrics name
// their cluster: _id="" becomes the cluster's.
func HostedQuery(query, clusterID string) string {
	return strings.ReplaceAll(query, `_id=""`, fmt.Sprintf("_id=%q", clusterID))
}
