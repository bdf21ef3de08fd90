package graph_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

const (
	clusterID = "3c5a1b2e-6f1d-4c7f-9a60-2b9d3c1e8f00"
	oneNode   = `{"nodes":[{"version":"4.1.0","payload":"a"}]}`
	prefix    = "Unable to retrieve available updates: "
)

var query = graph.Query{Channel: "stable-4.1", Arch: "amd64", Version: "4.1.0", ClusterID: clusterID}

// service starts a server and returns a client of it.
func service(t *testing.T, handler http.HandlerFunc) *graph.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c := &graph.Client{Upstream: server.URL}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// wantError checks an error's reason, as sentinel and as text, and the message
// of the condition.
func wantError(t *testing.T, err error, reason graph.Reason, message string) {
	t.Helper()
	e := new(graph.Error)
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a *graph.Error", err, err)
	}
	if !errors.Is(err, reason) || e.Reason != string(reason) {
		t.Errorf("reason %s, want %s", e.Reason, reason)
	}
	got := graph.RetrievedUpdates(err).Message
	if !strings.Contains(got, message) || message == "" {
		t.Errorf("message %q, want %q", got, message)
	}
	if want := e.Reason + ": " + strings.TrimPrefix(got, prefix); err.Error() != want {
		t.Errorf("prints as %q, want %q", err, want)
	}
	c := graph.RetrievedUpdates(fmt.Errorf("wrapped: %w", err))
	want := configv1.ClusterOperatorStatusCondition{Type: "RetrievedUpdates", Status: "False", Reason: e.Reason, Message: got}
	checktest.Same(t, want, c)
}

// requested returns the address that a client asks.
func requested(t *testing.T, upstream string, q graph.Query) (u *url.URL, err error) {
	t.Helper()
	c := &graph.Client{Upstream: upstream, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		u = r.URL
		return answer(r, 200, "{}"), nil
	})}
	_, err = c.Fetch(t.Context(), q)
	return u, err
}

func TestRequestURL(t *testing.T) {
	for _, tt := range []struct {
		name, upstream string
		q              graph.Query
		want           string
	}{
		{"plain", "https://u.io/graph", query, "https://u.io/graph?arch=amd64&channel=stable-4.1&id=" + clusterID + "&version=4.1.0"},
		{"multi", "https://u.io/graph", graph.Query{Channel: "c", Arch: "Multi", Version: "4.1.0", ClusterID: clusterID}, "https://u.io/graph?arch=multi&channel=c&id=" + clusterID + "&version=4.1.0"},
		{"own parameters", "https://u.io/graph?channel=x&z=1&a=b%20c&version=0&channel=y", query, "https://u.io/graph?a=b+c&arch=amd64&channel=stable-4.1&id=" + clusterID + "&version=4.1.0&z=1"},
		{"escaped", "https://u.io/graph", graph.Query{Channel: "a&b c", Arch: "amd64", Version: "4.1.0+x", ClusterID: clusterID}, "https://u.io/graph?arch=amd64&channel=a%26b+c&id=" + clusterID + "&version=4.1.0%2Bx"},
		{"upper case ID", "http://u.io", graph.Query{Channel: "c", Arch: "amd64", Version: "4.1.0", ClusterID: "{" + strings.ToUpper(clusterID) + "}"}, "http://u.io?arch=amd64&channel=c&id=" + clusterID + "&version=4.1.0"},
		{"urn", "http://u.io", graph.Query{Channel: "c", Arch: "amd64", Version: "4.1.0", ClusterID: "URN:uuid:" + clusterID}, "http://u.io?arch=amd64&channel=c&id=" + clusterID + "&version=4.1.0"},
		{"bare digits", "http://u.io", graph.Query{Channel: "c", Arch: "amd64", Version: "4.1.0", ClusterID: strings.ReplaceAll(clusterID, "-", "")}, "http://u.io?arch=amd64&channel=c&id=" + clusterID + "&version=4.1.0"},
	} {
		u, err := requested(t, tt.upstream, tt.q)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(tt.want, u.String()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Each case has the faults of all that follow it, too.
func TestRequestReasons(t *testing.T) {
	for _, tt := range []struct {
		upstream string
		q        graph.Query
		reason   graph.Reason
		message  string
	}{
		{":", graph.Query{}, graph.ErrInvalidURI, `failed to parse update service URL: parse ":": missing protocol scheme`},
		{"http://u.io", graph.Query{}, graph.ErrInvalidID, "invalid cluster ID: invalid UUID length: 0"},
		{"http://u.io", graph.Query{ClusterID: strings.Repeat("x", 36)}, graph.ErrInvalidID, "invalid cluster ID: invalid UUID format"},
		{"http://u.io", graph.Query{ClusterID: "[" + clusterID + "]"}, graph.ErrInvalidID, "invalid cluster ID: invalid UUID format"},
		{"http://u.io", graph.Query{ClusterID: "urn:oid::" + clusterID}, graph.ErrInvalidID, `invalid cluster ID: invalid urn prefix: "urn:oid::"`},
		{"http://u.io", graph.Query{ClusterID: strings.Replace(clusterID, "3", "g", 1)}, graph.ErrInvalidID, "invalid cluster ID: invalid UUID format"},
		{"http://u.io", graph.Query{ClusterID: clusterID}, graph.ErrNoArchitecture, "Architecture has not been configured."},
		{"http://u.io", graph.Query{ClusterID: clusterID, Arch: "amd64"}, graph.ErrNoCurrentVersion, "The cluster version does not have a semantic version assigned and cannot calculate valid upgrades."},
		{"http://u.io", graph.Query{ClusterID: clusterID, Arch: "amd64", Version: "4.1"}, graph.ErrNoChannel, "The update channel has not been configured."},
		{"http://u.io", graph.Query{ClusterID: clusterID, Arch: "amd64", Version: "4.1", Channel: "c"}, graph.ErrInvalidCurrentVersion,
			"The current cluster version is not a valid semantic version and cannot be used to calculate upgrades."},
	} {
		_, err := requested(t, tt.upstream, tt.q)
		wantError(t, err, tt.reason, tt.message)
		if e := new(graph.Error); errors.As(err, &e) && (graph.RetrievedUpdates(err).Message != tt.message || e.KeepsUpdates()) {
			t.Errorf("%s: %q", tt.reason, err)
		}
	}
	checktest.Same(t, configv1.ClusterOperatorStatusCondition{Type: "RetrievedUpdates", Status: "True"}, graph.RetrievedUpdates(nil))
	if c := graph.RetrievedUpdates(errors.New("odd")); c.Reason != "Unknown" || c.Message != prefix+"odd" {
		t.Errorf("%+v", c)
	}
}

func TestClientRequest(t *testing.T) {
	var seen http.Header
	var uri string
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		seen, uri = r.Header, r.RequestURI
		w.Header().Set("Content-Type", "text/html") // ignored
		fmt.Fprint(w, oneNode)
	})
	c.UserAgent = "ClusterVersionOperator/4.1.0"
	g, err := c.Fetch(context.Background(), query)
	checktest.OK(t, err)
	checktest.Equal(t, 1, g.Len(), "%v", g)
	checktest.Equal(t, "/?arch=amd64&channel=stable-4.1&id="+clusterID+"&version=4.1.0", uri, "asked for")
	want := http.Header{"Accept": {"application/json"}, "User-Agent": {"ClusterVersionOperator/4.1.0"}, "Accept-Encoding": {"gzip"}}
	checktest.Same(t, want, seen)
}

func TestClientCompatAddsParameters(t *testing.T) {
	var got url.Values
	c := service(t, func(w http.ResponseWriter, r *http.Request) { got = r.URL.Query(); fmt.Fprint(w, oneNode) })
	c.Upstream += "?channel=x"
	c.Decode.Compat = true
	checktest.Must(c.Fetch(context.Background(), query))
	checktest.Same(t, []string{"x", "stable-4.1"}, got["channel"])
}

func TestClientUpstream(t *testing.T) {
	var hosts []string
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.URL.Scheme+"://"+r.URL.Host+r.URL.Path)
		return &http.Response{StatusCode: 200, Status: "200 OK", Body: io.NopCloser(strings.NewReader(oneNode)), ContentLength: -1, Request: r}, nil
	})
	c := &graph.Client{Transport: transport}
	forced := &graph.Client{Transport: transport, Upstream: "http://forced/g"}
	for _, s := range []graph.Source{c, c.WithUpstream(""), c.WithUpstream("http://spec/g"), forced.WithUpstream("http://spec/g"), forced} {
		checktest.Must(s.Fetch(context.Background(), query))
	}
	want := []string{graph.DefaultUpstream, graph.DefaultUpstream, "http://spec/g", "http://forced/g", "http://forced/g"}
	checktest.Same(t, want, hosts)
	_, err := c.WithUpstream("http://spec/%zz").Fetch(context.Background(), query)
	wantError(t, err, graph.ErrInvalidURI, "failed to parse update service URL: ")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestClientAnswers(t *testing.T) {
	bomb := new(bytes.Buffer)
	z := gzip.NewWriter(bomb)
	for range 64 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, body) }
	}
	raw := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, answer)
		}
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		reason  graph.Reason
		message string
		check   func(error) bool
	}{
		{"204", status(204, ""), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 204 No Content", nil},
		{"206", status(206, oneNode), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 206 Partial Content", nil},
		{"304 unasked", status(304, ""), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 304 Not Modified", nil},
		{"404", status(404, "not found"), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 404 Not Found", nil},
		{"400 with a kind", status(400, `{"kind":"missing_params","value":"mandatory client parameters missing: channel"}`), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 400 Bad Request",
			func(err error) bool {
				var e *graph.StatusError
				return errors.As(err, &e) && *e == graph.StatusError{StatusCode: 400, Status: "400 Bad Request", Kind: "missing_params", Value: "mandatory client parameters missing: channel"}
			}},
		{"429", status(429, ""), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 429 Too Many Requests", nil},
		{"500", status(500, `{"kind":1}`), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 500 Internal Server Error", nil},
		{"503 endless", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			w.Write(make([]byte, 1<<20))
		}, graph.ErrResponseFailed, prefix + "unexpected HTTP status: 503 Service Unavailable", nil},
		{"empty body", text(""), graph.ErrResponseInvalid, prefix + "line 1: unexpected end of JSON input", nil},
		{"HTML", text("<html>"), graph.ErrResponseInvalid, prefix + "line 1: invalid character '<' looking for beginning of value", nil},
		{"bad graph", text(`{"nodes":[{"version":"4.1.0","payload":"a"}],"edges":[[0,1]]}`), graph.ErrResponseInvalid, prefix + "edges[0]: index 1 is out of range: the graph has 1 nodes", nil},
		{"cut body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, oneNode)
		}, graph.ErrResponseFailed, prefix + "unexpected EOF", func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"cut gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes()[:bomb.Len()/64])
		}, graph.ErrResponseFailed, prefix + "unexpected EOF", func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"no gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, oneNode)
		}, graph.ErrResponseFailed, prefix + "gzip: gzip: invalid header", nil},
		{"longer than it says", raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n" + oneNode), graph.ErrResponseInvalid, prefix + "nodes[0] (line 1): unexpected end of JSON input", nil},
		{"a length that is none", raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + oneNode), graph.ErrRemoteFailed, "bad Content-Length", nil},
		{"cut chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" + oneNode), graph.ErrResponseFailed, prefix + "unexpected EOF", nil},
		{"cut header", raw("HTTP/1.1 200 OK\r\nContent-"), graph.ErrRemoteFailed, "malformed MIME header", nil},
		{"cut body of another status", raw("HTTP/1.1 206 Partial Content\r\nContent-Length: 1000\r\n\r\n" + oneNode), graph.ErrResponseFailed, prefix + "unexpected HTTP status: 206 Partial Content", nil},
		{"no HTTP", raw("220 mail ready\r\n\r\n"), graph.ErrRemoteFailed, "malformed HTTP", nil},
		{"bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, graph.ErrResponseFailed, prefix + "more than 1048576 bytes", func(err error) bool {
			var e *graph.LimitError
			return errors.As(err, &e) && e.Max == 1<<20
		}},
		{"redirects without end", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
			graph.ErrRemoteFailed, "more than 5 redirects", nil},
		{"aborted", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, graph.ErrRemoteFailed, "EOF", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := service(t, tt.handler)
			c.DisableRetries = true // see TestClientRetries
			c.Decode.MaxBytes = 1 << 20
			g, err := c.Fetch(context.Background(), query)
			if g != nil {
				t.Error("a graph along with an error")
			}
			wantError(t, err, tt.reason, tt.message)
			if tt.check != nil && !tt.check(err) {
				t.Errorf("%#v does not carry the cause", err)
			}
			if e := new(graph.Error); errors.As(err, &e) && !e.KeepsUpdates() {
				t.Error("would clear the lists")
			}
		})
	}
}

func TestClientGzip(t *testing.T) {
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, oneNode)
		z.Close()
	})
	checktest.Equal(t, 1, checktest.Get(c.Fetch(context.Background(), query))(t).Len(), "c.Fetch(ctx, query).Len()")
}

func TestClientStalls(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	c.Timeout = 50 * time.Millisecond
	_, err := c.Fetch(context.Background(), query)
	wantError(t, err, graph.ErrRemoteFailed, "no complete answer within the time-out of 50ms")
	checktest.ErrorIs(t, context.DeadlineExceeded, err)

	c2 := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c2.Timeout = 200 * time.Millisecond
	_, err = c2.Fetch(context.Background(), query)
	wantError(t, err, graph.ErrResponseFailed, "no complete answer within the time-out of 200ms")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Fetch(ctx, query)
	wantError(t, err, graph.ErrRemoteFailed, "context canceled")
	checktest.ErrorIs(t, context.Canceled, err)
}

func TestClientRedirectKeepsIDHome(t *testing.T) {
	var other *http.Request
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { other = r; fmt.Fprint(w, oneNode) }))
	defer away.Close()
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, away.URL+"/mirror?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	})
	checktest.Must(c.Fetch(context.Background(), query))
	if got, want := other.RequestURI, "/mirror?arch=amd64&channel=stable-4.1&version=4.1.0"; got != want {
		t.Errorf("the other host was asked %s, want %s", got, want)
	}
	for k, v := range other.Header {
		if strings.Contains(strings.Join(v, " "), clusterID) {
			t.Errorf("header %s carries the cluster's ID", k)
		}
	}
}

func TestClientConditional(t *testing.T) {
	var asked []string
	var revision atomic.Int32
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		etag := fmt.Sprintf(`"%s-%d"`, r.URL.Query().Get("channel"), revision.Load())
		asked = append(asked, r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, oneNode)
	})
	fetch := func(channel, id string) *graph.Graph {
		t.Helper()
		g, err := c.Fetch(context.Background(), graph.Query{Channel: channel, Arch: "amd64", Version: "4.1.0", ClusterID: id})
		checktest.OK(t, err)
		return g
	}
	first := fetch("a", clusterID)
	checktest.Equal(t, first, fetch("a", clusterID), "304 did not give the copy")
	checktest.Equal(t, first, fetch("a", "11111111-2222-4333-8444-555555555555"), "another cluster got another copy")
	if fetch("b", clusterID) == first {
		t.Error("another channel got the copy")
	}
	revision.Add(1)
	second := fetch("a", clusterID)
	if second == first || fetch("a", clusterID) != second {
		t.Error("the new graph was not taken")
	}
	want := []string{"", `"a-0"`, `"a-0"`, "", `"a-0"`, `"a-1"`}
	checktest.Same(t, want, asked)

	// Of three channels with room for two answers, the one that was used
	// longest ago is asked for in full.
	c.Kept, asked = 2, nil
	for _, channel := range []string{"x", "y", "x", "z", "x", "y"} {
		fetch(channel, clusterID)
	}
	checktest.Same(t, []string{"", "", `"x-1"`, "", `"x-1"`, ""}, asked)
}

func TestClientForgetsWithoutETag(t *testing.T) {
	first := true
	c := service(t, func(w http.ResponseWriter, r *http.Request) {
		if first {
			w.Header().Set("ETag", `"1"`)
		} else if r.Header.Get("If-None-Match") == "" {
			w.WriteHeader(500)
		}
		first = false
		fmt.Fprint(w, oneNode)
	})
	for _, want := range []bool{true, true, false} {
		checktest.Equal(t, want, checktest.Err(c.Fetch(context.Background(), query)) == nil, "error")
	}
}

func TestRootCAs(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, oneNode) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a refused handshake is wanted
	server.StartTLS()
	defer server.Close()
	c := &graph.Client{Upstream: server.URL}
	defer c.CloseIdleConnections()
	checktest.ErrorIs(t, graph.ErrRemoteFailed, checktest.Err(c.Fetch(context.Background(), query)))
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trusting := &graph.Client{Upstream: server.URL, RootCAs: pool}
	defer trusting.CloseIdleConnections()
	checktest.Good(t, checktest.Err(trusting.Fetch(context.Background(), query)))
}
