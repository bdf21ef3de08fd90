package httpclient

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// Retry describes how often and when [Client.DoRetry] sends a request again. The
// zero value never does.
type Retry struct {
	// Max is how often a request is sent again after the first try.
	Max int
	// Wait returns the time before retry n, the first being 1. Nil means none.
	Wait func(n int) time.Duration
	// MaxAfter bounds the wait that an answer asks for in Retry-After, which
	// goes before Wait. Zero means no bound.
	MaxAfter time.Duration
	// Patience is the longest wait that an answer may ask for: one that asks for
	// more is returned at once. Zero means no bound.
	Patience time.Duration
	// Clock measures the waits; nil means the real one.
	Clock clock.Clock
	// Sleep waits; nil means a timer of Clock. It returns the context's error
	// when that ends first.
	Sleep func(ctx context.Context, d time.Duration) error
	// Report is called before each wait, if it is not nil. One of resp and err
	// is nil.
	Report func(n int, wait time.Duration, resp *Response, err error)
}

// DoRetry sends a request as [Client.Do] does, and again while it may be
// answered better: it has no body and its method is GET, HEAD or DELETE, and
// the status was 429 or 503 or the connection broke, but not at a limit. It
// returns the last answer or error, or the context's error if that ends during
// a wait.
func (c *Client) DoRetry(ctx context.Context, r Request, retry Retry) (*Response, error) {
	if retry.Clock == nil {
		retry.Clock = clock.RealClock{}
	}
	for n := 1; ; n++ {
		resp, err := c.Do(ctx, r)
		if n > retry.Max || !repeatable(r) || !isTransient(resp, err) || ctx.Err() != nil {
			return resp, err
		}
		wait, ok := retry.wait(n, resp)
		if !ok {
			return resp, err
		}
		if retry.Report != nil {
			retry.Report(n, wait, resp, err)
		}
		if err := retry.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (r Retry) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// wait returns the time before retry n; ok is false if it is not worth it.
func (r Retry) wait(n int, resp *Response) (wait time.Duration, ok bool) {
	if resp != nil {
		if after, asked := RetryAfter(resp.Header, r.Clock.Now()); asked {
			if r.MaxAfter > 0 {
				after = min(after, r.MaxAfter)
			}
			return after, r.Patience <= 0 || after <= r.Patience
		}
	}
	if r.Wait == nil {
		return 0, true
	}
	return r.Wait(n), true
}

func repeatable(r Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodDelete:
		return r.Body == nil
	}
	return false
}

// isTransient reports whether a failure may be over soon.
func isTransient(resp *Response, err error) bool {
	if err == nil {
		return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
	}
	timedOut := errors.As(err, new(*TimeoutError)) // whatever its cause says
	return !timedOut && Broken(err)
}

// Broken reports whether an error comes from a connection that broke.
func Broken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "EOF") || strings.Contains(text, "connection reset by peer") || strings.Contains(text, "PROTOCOL_ERROR")
}

// RetryAfter reads the header Retry-After, a number of seconds or a date. A
// date counts from the answer's own Date, if it has one, so that a clock that
// is wrong on either side does not matter; else from now. One in the past is 0.
// It is false where the header is absent or neither.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(math.MaxInt64/time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(at.Sub(now), 0), true
}
