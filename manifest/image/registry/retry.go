package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/httpclient"
)

// maxWait is the longest wait before a request is sent again.
const maxWait = 2 * time.Minute

// retryable returns the wait before a request is sent again, the first time with try 0. It
// is false if the failure will last.
func retryable(err error, try int) (wait time.Duration, ok bool) {
	wait = min(time.Second<<min(try, 10), maxWait)
	answer, ok := errors.AsType[*StatusError](err)
	if !ok {
		return wait, httpclient.Broken(err)
	}
	switch answer.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if answer.after > 0 {
			wait = answer.after
		}
		return wait, true
	}
	return 0, false
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// continued returns the body of an answer, from the offset on.
func (r request) continued(resp *http.Response) (io.ReadCloser, error) {
	var err error
	switch {
	case r.offset == 0:
	case resp.StatusCode == http.StatusOK: // the registry knows no ranges
		_, err = io.CopyN(io.Discard, resp.Body, r.offset)
	case !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", r.offset)):
		err = fmt.Errorf("asked for the bytes from %d on, got another part", r.offset)
	}
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp.Body, nil
}

// body is a blob that continues when its connection breaks.
type body struct {
	ctx        context.Context
	store      *Store
	repository string
	request    request
	from       io.ReadCloser
	breaks     int
}

// Read implements io.Reader. The registry is asked for the rest as often as for a
// request that fails.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.request.offset += int64(n)
	if err == nil || err == io.EOF || !httpclient.Broken(err) || b.breaks == b.store.retries || b.ctx.Err() != nil {
		return n, err
	}
	b.breaks++
	_ = b.from.Close() // it is broken
	rest, err := b.store.open(b.ctx, b.repository, b.request)
	if err != nil {
		b.from = http.NoBody
		b.breaks = b.store.retries
		return n, err
	}
	b.from = rest
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error { return b.from.Close() }
