package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

func answer(r *http.Request, code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1, Request: r}
}

// slow answers after a time, unless the request's context ends before.
func slow(d time.Duration, count *atomic.Int32, body func() string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		count.Add(1)
		select {
		case <-time.After(d):
			return answer(r, 200, body()), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func one() string { return oneNode }

func of(version string, n int) graph.Query {
	return graph.Query{Channel: "stable-4.1", Arch: "amd64", Version: version, ClusterID: fmt.Sprintf("11111111-2222-4333-8444-%012d", n)}
}

// A thousand clusters of many versions cost one download while it lasts.
func TestClientSharesOneDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		c := &graph.Client{Transport: slow(10*time.Second, &count, one)}
		var wg sync.WaitGroup
		var first atomic.Pointer[graph.Graph]
		for i := range 1000 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				g, err := c.Fetch(t.Context(), of(fmt.Sprint("4.1.", i%50), i))
				if err != nil {
					t.Error(err)
				} else if !first.CompareAndSwap(nil, g) && first.Load() != g {
					t.Error("another graph")
				}
			})
		}
		wg.Wait()
		checktest.Equal(t, 1, count.Load(), "downloads")
		// Other questions have exchanges of their own.
		for _, q := range []graph.Query{{Channel: "fast-4.1", Arch: "amd64"}, {Channel: "stable-4.1", Arch: "Multi"}} {
			q.Version, q.ClusterID = "4.1.0", clusterID
			wg.Go(func() { c.Fetch(t.Context(), q) })
		}
		wg.Go(func() { c.WithUpstream("http://other").Fetch(t.Context(), query) })
		wg.Go(func() { c.Fetch(t.Context(), query) })
		wg.Wait()
		if n := count.Load(); n != 5 {
			t.Errorf("%d downloads, want 4 more", n-1)
		}
	})
}

// The one that began goes away; the others get the answer of the same exchange.
func TestClientOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		c := &graph.Client{Transport: slow(10*time.Second, &count, one)}
		type result struct {
			err  error
			took time.Duration
		}
		results := make([]result, 4)
		var wg sync.WaitGroup
		start := time.Now()
		fetch := func(i int, ctx context.Context) {
			wg.Go(func() {
				_, err := c.Fetch(ctx, of("4.1.0", i))
				results[i] = result{err, time.Since(start)}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		fetch(0, ctx)
		impatient, done := context.WithTimeout(t.Context(), 2*time.Second)
		defer done()
		fetch(1, impatient)
		fetch(2, t.Context())
		time.Sleep(time.Second)
		cancel(errors.New("the user went home"))
		synctest.Wait()
		time.Sleep(4 * time.Second)
		fetch(3, t.Context())
		wg.Wait()
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 10 * time.Second, 10 * time.Second} {
			checktest.Equal(t, want, results[i].took, "call %d took", i)
		}
		if err := results[0].err; !errors.Is(err, graph.ErrRemoteFailed) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the user went home") {
			t.Errorf("%v", err)
		}
		if err := results[1].err; !errors.Is(err, graph.ErrRemoteFailed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := errors.Join(results[2].err, results[3].err); err != nil || count.Load() != 1 {
			t.Errorf("%d downloads, error %v", count.Load(), err)
		}
	})
}

// When everybody is gone the exchange is, too, and the next call begins a new one.
func TestClientCancelsWhatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count, cancelled atomic.Int32
		c := &graph.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if count.Add(1) == 1 {
				<-r.Context().Done()
				cancelled.Add(1)
				return nil, r.Context().Err()
			}
			return answer(r, 200, oneNode), nil
		})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { c.Fetch(ctx, of("4.1.0", i)) })
		}
		wg.Wait()
		synctest.Wait()
		checktest.Equal(t, 1, cancelled.Load(), "the exchange goes on")
		if _, err := c.Fetch(t.Context(), query); err != nil || count.Load() != 2 {
			t.Errorf("%d downloads, error %v", count.Load(), err)
		}
	})
}

// A server that accepts and never answers costs each call its own time-out, not
// the rest of another's, and not the sum of all.
func TestClientTimeoutIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		c := &graph.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if count.Add(1) > 1 {
				time.Sleep(5 * time.Second)
				return answer(r, 200, oneNode), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		var wg sync.WaitGroup
		wg.Go(func() {
			checktest.ErrorIs(t, graph.ErrRemoteFailed, checktest.Err(c.Fetch(t.Context(), query)))
		})
		time.Sleep(59 * time.Second)
		for i := range 10 {
			wg.Go(func() {
				start := time.Now()
				if _, err := c.Fetch(t.Context(), of("4.1.0", i)); err != nil || time.Since(start) != 6*time.Second {
					t.Errorf("%s: %v", time.Since(start), err)
				}
			})
		}
		wg.Wait()
		checktest.Equal(t, 2, count.Load(), "downloads")
	})
}

func TestClientPanickingTransport(t *testing.T) {
	c := &graph.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { panic("broken transport") })}
	_, err := c.Fetch(t.Context(), query)
	if p := new(clusterapi.PanicError); !errors.Is(err, graph.ErrRemoteFailed) || !errors.As(err, &p) || !strings.Contains(err.Error(), "broken transport") {
		t.Errorf("%v", err)
	}
}

func TestClientRetries(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []func(*http.Request) (*http.Response, error)
		retries int
		timeout time.Duration // of the caller
		took    time.Duration
		asked   int
		want    string // of the error
	}{
		{name: "busy twice", answers: replies(429, "", 503, ""), took: 3 * time.Second, asked: 3},
		{name: "busy", answers: replies(503, "", 503, "", 503, "", 503, ""), took: 3 * time.Second, asked: 3, want: "unexpected HTTP status: 503"},
		{name: "asked to wait", answers: replies(429, "17"), took: 17 * time.Second, asked: 2},
		{name: "asked to wait for two minutes", answers: replies(503, "120"), took: 2 * time.Minute, asked: 2},
		{name: "asked to wait for long", answers: replies(503, "121"), asked: 1, want: "unexpected HTTP status: 503"},
		{name: "never", retries: -1, answers: replies(503, ""), asked: 1, want: "unexpected HTTP status: 503"},
		{name: "more often", retries: 4, answers: replies(503, "1", 503, "1", 503, "1", 503, "1"), took: 4 * time.Second, asked: 5},
		{name: "other status", answers: replies(500, ""), asked: 1, want: "unexpected HTTP status: 500"},
		{name: "the caller's deadline", answers: replies(503, "100"), timeout: 5 * time.Second, took: 5 * time.Second, asked: 1, want: "context deadline exceeded"},
		{name: "broken connection", answers: []func(*http.Request) (*http.Response, error){
			func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }}, took: time.Second, asked: 2},
	} {
		checktest.Bubble(t, tt.name, func(t *testing.T) {
			asked := 0
			c := &graph.Client{Retries: max(tt.retries, 0), DisableRetries: tt.retries < 0, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if asked++; asked <= len(tt.answers) {
					return tt.answers[asked-1](r)
				}
				return answer(r, 200, oneNode), nil
			})}
			ctx := t.Context()
			if tt.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.timeout)
				defer cancel()
			}
			start := time.Now()
			_, err := c.Fetch(ctx, query)
			took := time.Since(start)
			synctest.Wait()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || took != tt.took || asked != tt.asked {
				t.Errorf("%d requests in %s: %v", asked, took, err)
			}
		})
	}
}

// replies are pairs of a status and its Retry-After.
func replies(pairs ...any) (all []func(*http.Request) (*http.Response, error)) {
	for i := 0; i < len(pairs); i += 2 {
		code, after := pairs[i].(int), pairs[i+1].(string)
		all = append(all, func(r *http.Request) (*http.Response, error) {
			if after == "" {
				return answer(r, code, ""), nil
			}
			return answer(r, code, "", "Retry-After", after), nil
		})
	}
	return all
}

func TestClientMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		c := &graph.Client{MaxAge: time.Minute, Transport: slow(0, &count, one)}
		for i, want := range []int32{1, 1, 2} {
			if _, err := c.Fetch(t.Context(), of(fmt.Sprint("4.1.", i), i)); err != nil || count.Load() != want {
				t.Errorf("call %d: %d downloads, want %d; error %v", i, count.Load(), want, err)
			}
			time.Sleep(40 * time.Second)
		}
	})
}

// What is kept has a size, and an ETag a length.
func TestClientKeepsLittle(t *testing.T) {
	var conditional []bool
	etag := `"1"`
	c := &graph.Client{KeptBytes: int64(2*len(oneNode)) + 1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		conditional = append(conditional, r.Header.Get("If-None-Match") != "")
		return answer(r, 200, oneNode, "ETag", etag), nil
	})}
	for _, channel := range []string{"a", "b", "a", "b", "c", "a", "c"} {
		q := query
		q.Channel = channel
		checktest.Must(c.Fetch(t.Context(), q))
	}
	checktest.Same(t, []bool{false, false, true, true, false, false, true}, conditional)
	conditional, etag = nil, `"`+strings.Repeat("1", 1<<10)+`"`
	q := query
	q.Channel = "long"
	c.Fetch(t.Context(), q)
	c.Fetch(t.Context(), q)
	checktest.Same(t, []bool{false, false}, conditional)
}
