package httpclient_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
)

func TestDoRetry(t *testing.T) {
	reply := func(status int, header ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			h := http.Header{}
			for i := 0; i+1 < len(header); i += 2 {
				h.Set(header[i], header[i+1])
			}
			return &http.Response{StatusCode: status, Header: h, Body: http.NoBody, ContentLength: -1}, nil
		}
	}
	fail := func(text string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return nil, errors.New(text) }
	}
	cut := func() (*http.Response, error) {
		r, _ := reply(200)()
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), errReader{io.ErrUnexpectedEOF}))
		return r, nil
	}
	type replies = []func() (*http.Response, error)
	for _, tt := range []struct {
		name    string
		request httpclient.Request
		replies replies
		waits   []time.Duration
		status  int
		err     string
	}{
		{"fine", httpclient.Request{}, replies{reply(200)}, nil, 200, ""},
		{"unavailable twice", httpclient.Request{}, replies{reply(503), reply(429), reply(200)}, []time.Duration{1 * time.Second, 2 * time.Second}, 200, ""},
		{"given up", httpclient.Request{}, replies{reply(503), reply(503), reply(503), reply(503), reply(200)}, []time.Duration{1 * time.Second, 2 * time.Second, 3 * time.Second}, 503, ""},
		{"broken connections", httpclient.Request{Method: "DELETE"}, replies{fail("EOF"), fail("read: connection reset by peer"), fail("stream error: PROTOCOL_ERROR"), reply(204)}, []time.Duration{1 * time.Second, 2 * time.Second, 3 * time.Second}, 204, ""},
		{"broken body", httpclient.Request{}, replies{cut, reply(200)}, []time.Duration{1 * time.Second}, 200, ""},
		{"another failure", httpclient.Request{}, replies{fail("no such host")}, nil, 0, "no such host"},
		{"internal error", httpclient.Request{}, replies{reply(500)}, nil, 500, ""},
		{"with a body", httpclient.Request{Body: []byte("x")}, replies{reply(503)}, nil, 503, ""},
		{"PATCH", httpclient.Request{Method: "PATCH"}, replies{reply(503)}, nil, 503, ""},
		{"POST", httpclient.Request{Method: "POST"}, replies{fail("EOF")}, nil, 0, "EOF"},
		{"asked to wait", httpclient.Request{}, replies{reply(503, "Retry-After", "17"), reply(429, "Retry-After", "3600"), reply(200)}, []time.Duration{17 * time.Second, time.Minute}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				c := client(t, httpclient.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
					n++
					return tt.replies[n-1]()
				})})
				start := time.Now()
				var waits []time.Duration
				tt.request.URL = "http://ocm.example/"
				resp, err := c.DoRetry(t.Context(), tt.request, httpclient.Retry{
					Max: 3, MaxAfter: time.Minute,
					Wait:   func(n int) time.Duration { return time.Duration(n) * time.Second },
					Report: func(_ int, wait time.Duration, _ *httpclient.Response, _ error) { waits = append(waits, wait) },
				})
				if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) || err == nil && resp.StatusCode != tt.status {
					t.Errorf("%+v, %v", resp, err)
				}
				diff := cmp.Diff(tt.waits, waits)
				checktest.FailIf(t, diff != "" || n != len(waits)+1, "%d requests: %s", n, diff)
				var sum time.Duration
				for _, w := range waits {
					sum += w
				}
				checktest.Equal(t, sum, time.Since(start), "time passed")
			})
		})
	}
}

func TestDoRetryCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, httpclient.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}, nil
		})})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.DoRetry(ctx, httpclient.Request{URL: "http://ocm.example/"}, httpclient.Retry{Max: 1, Wait: func(int) time.Duration { return time.Hour }})
		checktest.FailIf(t, !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second,
			"%v after %s", err, time.Since(start))
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestRetryAfter(t *testing.T) {
	now := time.Date(2031, 2, 4, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		after, date string
		want        time.Duration
		ok          bool
	}{
		{"", "", 0, false},
		{"0", "", 0, true},
		{" 120 ", "", 2 * time.Minute, true},
		{"-1", "", 0, false},
		{"1.5", "", 0, false},
		{"soon", "", 0, false},
		{"9999999999", "", math.MaxInt64, true},
		{"99999999999999999999", "", math.MaxInt64, true},
		{"Tue, 04 Feb 2031 03:00:30 GMT", "", 30 * time.Second, true},
		{"Tue, 04 Feb 2031 02:00:00 GMT", "", 0, true},
		{"Tue, 04 Feb 2031 03:00:30 GMT", "rubbish", 30 * time.Second, true},
		// The server's clock is a day ahead, or behind.
		{"Wed, 05 Feb 2031 03:00:30 GMT", "Wed, 05 Feb 2031 03:00:00 GMT", 30 * time.Second, true},
		{"Mon, 03 Feb 2031 03:00:30 GMT", "Mon, 03 Feb 2031 03:00:00 GMT", 30 * time.Second, true},
	} {
		h := http.Header{"Retry-After": {tt.after}, "Date": {tt.date}}
		if got, ok := httpclient.RetryAfter(h, now); got != tt.want || ok != tt.ok {
			t.Errorf("%+v: %s, %v", tt, got, ok)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	var hosts []string
	c := client(t, httpclient.Options{SameOrigin: true, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.URL.Scheme+"://"+r.URL.Host+" "+r.Header.Get("Authorization"))
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
		if q := r.URL.Query(); q.Has("to") {
			resp.StatusCode = 302
			if q.Has("keep") {
				resp.StatusCode = 307
			}
			resp.Header.Set("Location", q.Get("to"))
		}
		return resp, nil
	})})
	for _, tt := range []struct {
		method, from, query, to string
		err                     error
	}{
		{"GET", "https://a/", "", "https://a/b", nil},
		{"GET", "https://a/", "", "/b", nil},
		{"GET", "https://a/", "", "https://a:443/b", nil},
		{"GET", "http://a/", "", "https://a/", httpclient.ErrOtherOrigin},
		{"GET", "https://a/", "", "http://a/", httpclient.ErrOtherOrigin},
		{"GET", "https://a/", "", "https://a:8443/", httpclient.ErrOtherOrigin},
		{"GET", "https://a/", "", "https://b/", httpclient.ErrOtherOrigin},
		{"PATCH", "https://a/", "", "https://a/b", httpclient.ErrOtherMethod},
		{"PATCH", "https://a/", "keep&", "https://a/b", nil},
		{"PATCH", "https://a/", "keep&", "https://b/", httpclient.ErrOtherOrigin},
	} {
		hosts = nil
		resp, err := c.Do(t.Context(), httpclient.Request{
			Method: tt.method, URL: tt.from + "?" + tt.query + "to=" + tt.to, Header: http.Header{"Authorization": {"secret"}},
		})
		if tt.err != nil {
			checktest.FailIf(t, !errors.Is(err, tt.err) || len(hosts) != 1, "%+v: %v, asked %q", tt, err, hosts)
			continue
		}
		if err != nil || resp.StatusCode != 200 || len(hosts) != 2 || !strings.HasSuffix(hosts[1], " secret") {
			t.Errorf("%+v: %v, asked %q", tt, err, hosts)
		}
	}
}
