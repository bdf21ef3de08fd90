package httpclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/limittest"
)

// zeros returns n zero bytes and one, compressed.
func zeros(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	checktest.OK(t, checktest.Err(io.CopyN(z, zeroReader{}, n+1)))
	z.Close()
	return b.Bytes()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLimits(t *testing.T) {
	answer := func(code int, compressed []byte) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Header: http.Header{"Content-Encoding": {"gzip"}}, ContentLength: int64(len(compressed)),
				Body: io.NopCloser(bytes.NewReader(compressed)), Request: r}, nil
		}
	}
	wantLimit := func(t *testing.T, err error, field string, most int64) {
		t.Helper()
		if e, ok := errors.AsType[*limit.LimitError](err); !ok || e.Limit != field || e.Max != most {
			t.Errorf("%v, want the limit %d of %s", err, most, field)
		}
	}
	bomb, errorBomb := zeros(t, 64<<20), zeros(t, 64<<20)
	header := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 64<<10))
		}
	}))
	defer header.Close()
	limittest.Walk(t, []limittest.Case{
		{Limit: "time of an exchange", Default: int64(60 * time.Second), Bytes: 1 << 20, Steps: 60, Run: func(t *testing.T) (seconds int64) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c := httpclient.New(httpclient.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				})})
				_, err := c.Get(t.Context(), "http://x.io", nil)
				if late, ok := errors.AsType[*httpclient.TimeoutError](err); !ok || late.Timeout != time.Minute {
					t.Error(err)
				}
				seconds = int64(time.Since(start) / time.Second)
			})
			return seconds
		}},
		{Limit: "body of an answer", Default: 64 << 20, Bytes: 129 << 20, Run: func(t *testing.T) int64 {
			_, err := httpclient.New(httpclient.Options{Transport: answer(200, bomb)}).Get(context.Background(), "http://x.io", nil)
			wantLimit(t, err, "MaxBody", 64<<20)
			return 0
		}},
		{Limit: "body of another status", Default: 64 << 10, Bytes: 1 << 20, Run: func(t *testing.T) int64 {
			resp := checktest.Get(httpclient.New(httpclient.Options{Transport: answer(500,
				errorBomb)}).Get(context.Background(), "http://x.io", nil))(t)
			checktest.Equal(t, 64<<10, len(resp.Body), "len(resp.Body)")
			return 0
		}},
		{Limit: "header of an answer", Default: httpclient.MaxHeader, Bytes: 4 << 20, Run: func(t *testing.T) int64 {
			c := httpclient.New(httpclient.Options{})
			defer c.CloseIdleConnections()
			checktest.ErrorHas(t, "262144 bytes", checktest.Err(c.Get(context.Background(), header.URL, nil)))
			return 0
		}},
		{Limit: "redirects", Default: 5, Bytes: 1 << 20, Steps: 6, Run: func(t *testing.T) (asked int64) {
			c := httpclient.New(httpclient.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked++
				return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"/again"}}, Body: http.NoBody, Request: r}, nil
			})})
			_, err := c.Get(context.Background(), "http://x.io", nil)
			wantLimit(t, err, "MaxRedirects", 5)
			return asked
		}},
	})
}

// What has to go is cut out of a query; the rest is as it was written.
func TestRedirectKeepsTheQuery(t *testing.T) {
	for query, want := range map[string]string{
		"a=1;b=2":               "a=1;b=2",
		"a=1;b=2&c=3":           "a=1;b=2&c=3",
		"a=1&&b=2&":             "a=1&&b=2&",
		"a=%20+x;b":             "a=%20+x;b",
		"id=1":                  "",
		"id=1;a=2":              "a=2",
		"a=1;id=2":              "a=1",
		"a=1;id=2&b=3;c=4":      "a=1;b=3;c=4",
		"a=1&id=2;b=3":          "a=1&b=3",
		"id=0&a=1&id=2&id=3&&b": "a=1&&b",
		"%69d=1;a":              "a",
		"idx=1;xid=2;ID=3":      "idx=1;xid=2;ID=3",
		"a=id=1":                "a=id=1",
	} {
		got := "not asked"
		c := client(t, httpclient.Options{DropQuery: []string{"id"}, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "first.io" {
				return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"http://other.io/?" + query}}, Body: http.NoBody, Request: r}, nil
			}
			got = r.URL.RawQuery
			return &http.Response{StatusCode: 200, Body: http.NoBody, Request: r}, nil
		})})
		_, err := c.Get(context.Background(), "http://first.io/", nil)
		checktest.FailIf(t, err != nil || got != want, "%s became %s, want %s (error %v)", query, got, want, err)
	}
}

// Who asks for more patience than there is gets no second request.
func TestRetryPatience(t *testing.T) {
	for after, want := range map[string]int{"60": 2, "61": 1, "99999999999999999999": 1} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			c := client(t, httpclient.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked++
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {after}}, Body: http.NoBody, Request: r}, nil
			})})
			start := time.Now()
			resp, err := c.DoRetry(t.Context(), httpclient.Request{URL: "http://x.io"}, httpclient.Retry{Max: 1, Patience: time.Minute})
			if err != nil || resp.StatusCode != 503 || asked != want || time.Since(start) != time.Duration(want-1)*time.Minute {
				t.Errorf("Retry-After %s: %d requests in %s, error %v", after, asked, time.Since(start), err)
			}
		})
	}
}
