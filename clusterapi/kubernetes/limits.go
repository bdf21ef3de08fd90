package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Limits bound what is taken from an API server, in bytes after decompression.
// Zero means the default.
type Limits struct {
	// Object bounds the answer that is one object, and an event of a watch; 0
	// means 16 MiB. API servers store at most some 3 MiB in an object.
	Object int64
	// List bounds all pages of a list together, and the objects that a watch
	// keeps in order to tell what has changed; 0 means 1 GiB.
	List int64
	// Error bounds the body of an answer that is an error; 0 means 256 KiB. The
	// rest is cut off: the error then says no more than its HTTP code does.
	Error int64
}

const (
	defaultObject = 16 << 20
	defaultList   = 1 << 30
	defaultError  = 256 << 10
	// maxRetryAfter is the longest wait that a server may ask for before a
	// request is sent again. After that it is for the caller to decide.
	maxRetryAfter = time.Minute
)

func (l *Limits) complete() error {
	for _, f := range []struct {
		name  string
		value *int64
		or    int64
	}{{"Object", &l.Object, defaultObject}, {"List", &l.List, defaultList}, {"Error", &l.Error, defaultError}} {
		if *f.value < 0 {
			return fmt.Errorf("kubernetes: Options.Limits.%s is %d, which is negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	return nil
}

// budget is how many bytes more may be read, under the limit of that name.
type budget struct {
	name      string
	max, left int64
}

func newBudget(name string, limit int64) *budget { return &budget{name: name, max: limit, left: limit} }

func (b *budget) exceeded() error {
	return fmt.Errorf("%w: it exceeds Limits.%s, which is %d bytes", ErrTooLarge, b.name, b.max)
}

// budgetKey is the key of a request's budget in its context. Without one, an answer
// may have Limits.Object.
type budgetKey struct{}

// limiter bounds the bodies of answers.
type limiter struct {
	http.RoundTripper
	limits Limits
}

func (l *limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64); err == nil && seconds > int64(maxRetryAfter/time.Second) {
		resp.Header.Del("Retry-After")
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		resp.Body = &body{io.LimitReader(resp.Body, l.limits.Error), resp.Body}
		return resp, nil
	}
	b, ok := r.Context().Value(budgetKey{}).(*budget)
	if !ok {
		b = newBudget("Object", l.limits.Object)
	}
	if resp.ContentLength > b.left {
		_ = resp.Body.Close()
		return nil, b.exceeded()
	}
	resp.Body = &body{&budgetReader{resp.Body, b}, resp.Body}
	return resp, nil
}

type body struct {
	io.Reader
	io.Closer
}

// budgetReader reads no more than a budget has.
type budgetReader struct {
	r io.Reader
	b *budget
}

func (r *budgetReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if r.b.left == 0 {
		// The end is not one byte too many.
		var one [1]byte
		n, err := r.r.Read(one[:])
		if n > 0 {
			return 0, r.b.exceeded()
		}
		return 0, err
	}
	if int64(len(p)) > r.b.left {
		p = p[:r.b.left]
	}
	n, err := r.r.Read(p)
	r.b.left -= int64(n)
	return n, err
}

// within gives the answers to requests of a context a budget in common.
func within(ctx context.Context, b *budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}
