package ocmtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Transport returns a transport that calls a handler in place of a network, so
// that it works in the virtual time of testing/synctest. Bodies flow while they
// are written. A handler that panics breaks the connection: the client gets EOF,
// or an unexpected EOF in the middle of a body. A client that goes ends the
// context of the handler's request, and a handler that does not heed that
// outlives it.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	served := r.Clone(ctx)
	served.RequestURI, served.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234"
	served.Host = cmp.Or(served.Host, r.URL.Host)
	if served.Body == nil {
		served.Body = http.NoBody
	}

	body, out := io.Pipe()
	w := &writer{header: http.Header{}, out: out, started: make(chan struct{}), bodiless: r.Method == http.MethodHead}
	stop := context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	failed := make(chan error, 1)
	go func() {
		err := t.serve(w, served)
		stop()
		switch {
		case ctx.Err() != nil: // the client went, and the handler noticed
			failed <- ctx.Err()
			out.CloseWithError(ctx.Err())
		case err == nil:
			w.WriteHeader(http.StatusOK) // unless there was another
			out.Close()
		default:
			failed <- err // before the header, if it broke there
			out.CloseWithError(io.ErrUnexpectedEOF)
		}
	}()
	select {
	case <-w.started:
	case err := <-failed:
		select {
		case <-w.started: // the header went out before
		default:
			cancel()
			return nil, err
		}
	case <-ctx.Done():
		cancel()
		body.Close()
		return nil, ctx.Err()
	}
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &closer{body, cancel}, ContentLength: -1, Request: r,
	}
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		resp.ContentLength = n
	}
	return resp, nil
}

// serve calls the handler; an error reports that it broke the connection.
func (t transport) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch fault := recover(); fault {
		case nil:
		case http.ErrAbortHandler:
			err = io.EOF
		default:
			err = fmt.Errorf("the handler panicked: %v: %w", fault, io.EOF)
		}
	}()
	t.handler.ServeHTTP(w, r)
	return nil
}

// writer is an http.ResponseWriter whose body is a pipe.
type writer struct {
	header, sent http.Header
	status       int
	out          *io.PipeWriter
	once         sync.Once
	started      chan struct{}
	bodiless     bool
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		w.bodiless = w.bodiless || status == http.StatusNoContent || status == http.StatusNotModified
		close(w.started)
	})
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodiless {
		return 0, http.ErrBodyNotAllowed
	}
	return w.out.Write(p)
}

// Flush implements [http.Flusher]; nothing is held back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// closer ends the handler's request when the client is done with the answer.
type closer struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closer) Close() error {
	err := c.ReadCloser.Close()
	c.cancel()
	return err
}
