package httpclient_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/httpclient"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, o httpclient.Options) *httpclient.Client {
	t.Helper()
	c := httpclient.New(o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func gzipped(parts ...[]byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, p := range parts {
		z.Write(p)
	}
	z.Close()
	return b.Bytes()
}

func TestGet(t *testing.T) {
	var seen *http.Request
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "hello")
	})
	header := http.Header{"accept": {"text/plain"}}
	resp := checktest.Get(client(t, httpclient.Options{UserAgent: "test/1"}).Get(context.Background(), s.URL+"/x?y=1",
		header))(t)
	if resp.StatusCode != 202 || resp.Status != "202 Accepted" || string(resp.Body) != "hello" || resp.Header.Get("X-Answer") != "yes" || resp.URL.Path != "/x" {
		t.Errorf("%+v", resp)
	}
	want := http.Header{"Accept": {"text/plain"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"test/1"}}
	if diff := cmp.Diff(want, seen.Header); diff != "" || seen.RequestURI != "/x?y=1" || seen.Method != "GET" {
		t.Errorf("%s %s: %s", seen.Method, seen.RequestURI, diff)
	}
	checktest.Equal(t, 1, len(header), "the caller's header was changed")
}

func TestDoSendsBody(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	})
	resp := checktest.Get(client(t, httpclient.Options{}).Do(context.Background(),
		httpclient.Request{Method: "PATCH", URL: s.URL, Body: []byte("{}")}))(t)
	checktest.Equal(t, "PATCH {}", string(resp.Body), "string(resp.Body) of %v", resp)
}

func TestBuffer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 100)) })
	c := client(t, httpclient.Options{})
	for _, size := range []int{0, 10, 5000} {
		buf := make([]byte, size)
		resp := checktest.Get(c.Do(context.Background(), httpclient.Request{URL: s.URL, Buffer: buf}))(t)
		checktest.Equal(t, 100, len(resp.Body), "len(resp.Body)")
		checktest.Equal(t, size == 5000, size > 0 && &resp.Body[0] == &buf[0], "buffer of %d: lent", size)
	}
}

func TestBody(t *testing.T) {
	zeros := make([]byte, 1<<20)
	plain := []byte("plain")
	for _, tt := range []struct {
		name   string
		o      httpclient.Options
		header http.Header
		status int
		body   []byte
		want   string // the body
		err    string
	}{
		{"gzip", httpclient.Options{}, http.Header{"Content-Encoding": {"gzip"}}, 200, gzipped(plain), "plain", ""},
		{"gzip, kept", httpclient.Options{NoDecompression: true}, http.Header{"Content-Encoding": {"gzip"}}, 200, gzipped(plain), string(gzipped(plain)), ""},
		{"gzip of nothing", httpclient.Options{}, http.Header{"Content-Encoding": {"gzip"}}, 200, nil, "", ""},
		{"no gzip", httpclient.Options{}, http.Header{"Content-Encoding": {"gzip"}}, 200, plain, "", "gzip: "},
		{"cut gzip", httpclient.Options{}, http.Header{"Content-Encoding": {"gzip"}}, 200, gzipped(zeros)[:100], "", "unexpected EOF"},
		{"other encoding", httpclient.Options{}, http.Header{"Content-Encoding": {"br"}}, 200, plain, "", `Content-Encoding "br"`},
		{"limit suffices", httpclient.Options{MaxBody: 5}, nil, 200, plain, "plain", ""},
		{"too long by its length", httpclient.Options{MaxBody: 4}, http.Header{"Content-Length": {"5"}}, 200, plain, "", "more than 4 bytes in the answer"},
		{"too long", httpclient.Options{MaxBody: 1 << 19}, nil, 200, zeros, "", "more than 524288 bytes in the answer"},
		{"bomb", httpclient.Options{MaxBody: 1 << 19}, http.Header{"Content-Encoding": {"gzip"}}, 200, gzipped(zeros), "", "more than 524288 bytes in the answer"},
		{"bomb, kept", httpclient.Options{MaxBody: 1 << 19, NoDecompression: true}, http.Header{"Content-Encoding": {"gzip"}}, 200, gzipped(zeros), string(gzipped(zeros)), ""},
		{"error page", httpclient.Options{}, nil, 500, plain, "plain", ""},
		{"endless error page", httpclient.Options{}, nil, 503, zeros, string(zeros[:64<<10]), ""},
		{"error page with a smaller limit", httpclient.Options{MaxBody: 3}, nil, 404, plain, "pla", ""},
		{"broken error page", httpclient.Options{}, http.Header{"Content-Encoding": {"br"}}, 500, plain, "", ""},
		{"not modified", httpclient.Options{}, http.Header{"Content-Encoding": {"gzip"}}, 304, nil, "", ""},
		{"too many requests", httpclient.Options{}, http.Header{"Retry-After": {"3"}}, 429, nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for k, v := range tt.header {
					w.Header()[k] = v
				}
				w.WriteHeader(tt.status)
				w.Write(tt.body)
			})
			resp, err := client(t, tt.o).Get(context.Background(), s.URL, nil)
			if tt.err == "" {
				checktest.OK(t, err)
				checktest.FailIf(t, string(resp.Body) != tt.want || resp.StatusCode != tt.status,
					"%d, %d bytes, want %d, %d bytes", resp.StatusCode, len(resp.Body), tt.status, len(tt.want))
				return
			}
			body := new(httpclient.BodyError)
			if !errors.As(err, &body) || body.StatusCode != 200 || resp != nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("%v, want a BodyError with %q", err, tt.err)
			}
			checktest.Equal(t, strings.Contains(tt.err, "more than"), errors.As(err, new(*limit.LimitError)), "%#v",
				err)
		})
	}
}

func TestWrongLength(t *testing.T) {
	for _, tt := range []struct{ name, head, err string }{
		{"short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "unexpected EOF"},
		{"long", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhello", ""},
		{"chunks cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nhe", "unexpected EOF"},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhello", "Content-Length"},
		{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\nhello", "unexpected EOF"},
		{"no answer", "", "EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					panic(err)
				}
				io.WriteString(conn, tt.head)
				conn.Close()
			})
			resp, err := client(t, httpclient.Options{}).Get(context.Background(), s.URL, nil)
			if tt.err == "" {
				if err != nil || string(resp.Body) != "he" {
					t.Fatal(resp, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	c := client(t, httpclient.Options{Timeout: 100 * time.Millisecond})
	for path, inBody := range map[string]bool{"/head": false, "/body": true} {
		_, err := c.Get(context.Background(), s.URL+path, nil)
		if !errors.As(err, new(*httpclient.TimeoutError)) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
		checktest.Equal(t, inBody, errors.As(err, new(*httpclient.BodyError)), "%s: BodyError: %v", path, !inBody)
	}
	// The caller's own deadline is not our limit.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := client(t, httpclient.Options{}).Get(ctx, s.URL+"/head", nil)
	checktest.FailIf(t, errors.As(err, new(*httpclient.TimeoutError)) || !errors.Is(err, context.DeadlineExceeded),
		"%v", err)
}

func TestRequestErrors(t *testing.T) {
	c := client(t, httpclient.Options{})
	for _, u := range []string{":", "http://a b/"} {
		_, err := c.Get(context.Background(), u, nil)
		if e := new(httpclient.RequestError); !errors.As(err, &e) {
			t.Errorf("%q: %v (%T)", u, err, err)
		}
	}
	_, err := c.Get(context.Background(), "ftp://x/", nil)
	if e := new(url.Error); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

func TestRedirectLimit(t *testing.T) {
	hops := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hops++
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		if n == 0 {
			fmt.Fprint(w, "there")
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusFound)
	})
	for _, tt := range []struct{ limit, n, hops int }{{0, 5, 6}, {0, 6, -6}, {2, 2, 3}, {2, 3, -3}, {-1, 0, 1}, {-1, 1, -1}} {
		hops = 0
		resp, err := client(t, httpclient.Options{MaxRedirects: max(tt.limit, 0), NoRedirects: tt.limit < 0}).Get(context.Background(), fmt.Sprintf("%s/%d", s.URL, tt.n), nil)
		if tt.hops > 0 {
			if err != nil || string(resp.Body) != "there" || hops != tt.hops || resp.URL.Path != "/0" {
				t.Errorf("%+v: %v after %d requests", tt, err, hops)
			}
			continue
		}
		passed, ok := errors.AsType[*limit.LimitError](err)
		checktest.FailIf(t, !ok || passed.Limit != "MaxRedirects" || hops != -tt.hops || resp != nil,
			"%+v: %v after %d requests", tt, err, hops)
	}
}

func TestRedirectToAnotherHost(t *testing.T) {
	secrets := http.Header{
		"Accept": {"a/b"}, "If-None-Match": {`"1"`}, "Authorization": {"Bearer secret"}, "Cookie": {"a=secret"}, "X-Token": {"secret"}, "Referer": {"https://secret/"},
	}
	var back, other *httptest.Server
	var seen []*http.Request
	other = serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		if r.URL.Path == "/bounce" {
			http.Redirect(w, r, back.URL+"/end?id=secret&z=2", http.StatusFound)
		}
	})
	back = serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r)
		switch r.URL.Path {
		case "/home":
			http.Redirect(w, r, "/end?id=secret&z=1", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL+"/end?a=%20&%69d=secret&id=secret&z=1&bad%zz=1&ID=x", http.StatusFound)
		case "/bounce":
			http.Redirect(w, r, other.URL+"/bounce", http.StatusFound)
		}
	})
	c := client(t, httpclient.Options{DropQuery: []string{"id"}})
	get := func(path string) *http.Request {
		t.Helper()
		seen = nil
		checktest.OK(t, checktest.Err(c.Get(context.Background(), back.URL+path+"?id=secret", secrets)))
		return seen[len(seen)-1]
	}
	if r := get("/home"); r.RequestURI != "/end?id=secret&z=1" || r.Header.Get("Authorization") == "" || r.Header.Get("Referer") != "" {
		t.Errorf("the same host got %s %v", r.RequestURI, r.Header)
	}
	clean := http.Header{"Accept": {"a/b"}, "If-None-Match": {`"1"`}, "Accept-Encoding": {"gzip"}, "User-Agent": {"Go-http-client/1.1"}}
	r := get("/away")
	if diff := cmp.Diff(clean, r.Header); diff != "" || r.RequestURI != "/end?a=%20&z=1&ID=x" {
		t.Errorf("another host got %s %s", r.RequestURI, diff)
	}
	r = get("/bounce")
	if diff := cmp.Diff(clean, r.Header); diff != "" || r.RequestURI != "/end?z=2" || r.Host != strings.TrimPrefix(back.URL, "http://") {
		t.Errorf("after a detour %s got %s %s", r.Host, r.RequestURI, diff)
	}
	// 307 would send the body along.
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	checktest.ErrorIs(t, httpclient.ErrOtherHost, checktest.Err(
		c.Do(context.Background(), httpclient.Request{Method: "POST", URL: s.URL, Body: []byte("secret")})))
}

func TestRedirectSchemes(t *testing.T) {
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: http.NoBody, Request: r}
		if to := r.URL.Query().Get("to"); to != "" {
			resp.StatusCode = 302
			resp.Header.Set("Location", to)
		} else {
			resp.Header.Set("Token", r.Header.Get("Authorization"))
		}
		return resp, nil
	})
	c := client(t, httpclient.Options{Transport: transport})
	for _, tt := range []struct{ from, to, err, token string }{
		{"https://a/", "http://a/", "redirect from https to another scheme refused", ""},
		{"https://a/", "ftp://a/", "redirect from https to another scheme refused", ""},
		{"https://a/", "https://a/b", "", "secret"},
		{"http://a/", "https://a/", "", "secret"},
		{"http://a:80/", "https://a:443/", "", "secret"},
		{"http://a/", "http://a:8080/", "", ""},
		{"https://a/", "https://b.a/", "", ""},
		{"https://a/", "https://b/?to=https%3A%2F%2Fa%2F", "", ""},
		{"http://a/", "https://b/?to=http%3A%2F%2Fb%2F", "redirect from https to another scheme refused", ""},
	} {
		resp, err := c.Get(context.Background(), tt.from+"?to="+url.QueryEscape(tt.to), http.Header{"Authorization": {"secret"}})
		if tt.err != "" {
			if !errors.Is(err, httpclient.ErrInsecureRedirect) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s to %s: %v", tt.from, tt.to, err)
			}
			continue
		}
		checktest.FailIf(t, err != nil || resp.Header.Get("Token") != tt.token,
			"%s to %s: %v, token %q", tt.from, tt.to, err, resp.Header.Get("Token"))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNoEnvironmentProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	var target string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { target = r.RequestURI })
	transport := func(o httpclient.Options) error {
		o.Timeout = 5 * time.Second
		_, err := client(t, o).Get(context.Background(), "http://cluster.invalid/x", nil)
		return err
	}
	if err := transport(httpclient.Options{}); err == nil || strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("without a proxy: %v", err)
	}
	f := checktest.Get(httpclient.Proxy(proxy.URL, "", ""))(t)
	if err := transport(httpclient.Options{Proxy: f}); err != nil || target != "http://cluster.invalid/x" {
		t.Errorf("the proxy was asked for %q: %v", target, err)
	}
}

func TestProxy(t *testing.T) {
	for _, bad := range []string{"://x", "http://", "gopher://x", "http://[::1", "http://u:pass word@h", "%zz", "http://x:port"} {
		for i, f := range []func() error{
			func() error { _, err := httpclient.Proxy(bad, "", ""); return err },
			func() error { _, err := httpclient.Proxy("", bad, ""); return err },
		} {
			if err := f(); err == nil || strings.Contains(err.Error(), "pass") {
				t.Errorf("%q (%d): error %v", bad, i, err)
			}
		}
	}
	for _, good := range []string{"http://p:1", "https://u:p@p", "p:3128", "p", "socks5://p:1"} {
		if f, err := httpclient.Proxy(good, good, ""); f == nil || err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestRootCAs(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // a refused handshake is wanted
	s.StartTLS()
	defer s.Close()
	checktest.Fails(t, checktest.Err(
		client(t, httpclient.Options{}).Get(context.Background(), s.URL, nil)), "an unknown authority is trusted")
	pool := checktest.Get(httpclient.RootCAs(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))(t)
	checktest.Good(t, checktest.Err(client(t, httpclient.Options{RootCAs: pool}).Get(context.Background(), s.URL, nil)))
	checktest.Fails(t, checktest.Err(httpclient.RootCAs([]byte("x"))), "rubbish is a bundle")
}

// TestBareTransport: an injected transport need not repeat the request.
func TestBareTransport(t *testing.T) {
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, ContentLength: -1, Body: io.NopCloser(strings.NewReader("x"))}, nil
	})
	r := checktest.Get(httpclient.New(httpclient.Options{Transport: transport}).Get(t.Context(),
		"http://updates.example/graph", nil))(t)
	checktest.Equal(t, "x", string(r.Body), "string(r.Body) of %v", r)
	checktest.Equal(t, "updates.example", r.URL.Host, "r.URL.Host of %v", r)
}

// Errors name neither the users, queries and fragments of URLs nor where a
// redirect leads beyond its host.
func TestErrorsHideCredentials(t *testing.T) {
	const secret = "hunter2"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop?sig="+secret, http.StatusFound)
		case "/bad":
			w.Header().Set("Location", "https://me:%zz"+secret+"@a/")
			w.WriteHeader(http.StatusFound)
		default:
			http.Redirect(w, r, "http://me:"+secret+"@127.0.0.1:1/a?sig="+secret+"#"+secret, http.StatusFound)
		}
	}))
	defer s.Close()
	c := httpclient.New(httpclient.Options{})
	for _, url := range []string{
		s.URL + "/?token=" + secret, s.URL + "/loop?token=" + secret, s.URL + "/bad#" + secret,
		"http://me:" + secret + "@127.0.0.1:1/", "http://me:" + secret + "@a b/", "http://me:%zz" + secret + "@a/", "me:" + secret + "@a",
	} {
		_, err := c.Get(t.Context(), url, nil)
		checktest.Fails(t, err, "%s: no error", url)
		for ; err != nil; err = errors.Unwrap(err) {
			checktest.FailIf(t, strings.Contains(err.Error(), secret), "%s: %v", url, err)
		}
	}
}
