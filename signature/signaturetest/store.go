package signaturetest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Server is a store on the web, with the faults that its fields name. It is
// an http.Handler for httptest, and a transport for signature.HTTPOptions that
// needs no network, as inside of testing/synctest. It is safe for concurrent
// use as long as it is not changed.
type Server struct {
	// Signatures are served by the digest of the release.
	Signatures map[string][][]byte
	// Delay is how long each answer takes.
	Delay time.Duration
	// Status is answered for the signatures with these numbers, from 1, in place of
	// the present ones.
	Status map[int]int
	// Endless serves bodies without an end for every number.
	Endless bool
	// Loop redirects every request to itself.
	Loop bool
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := s.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler) // who asked has left
	}
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	io.Copy(w, resp.Body)
}

// RoundTrip implements [http.RoundTripper].
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := wait(r.Context(), s.Delay); err != nil {
		return nil, err
	}
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, ContentLength: -1, Request: r,
	}
	data, number := s.find(r.URL.Path)
	switch {
	case s.Loop:
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", r.URL.Path)
	case s.Endless:
		resp.Body = io.NopCloser(zeros{r.Context()})
	case s.Status[number] != 0:
		resp.StatusCode = s.Status[number]
	case data == nil:
		resp.StatusCode = http.StatusNotFound
	default:
		resp.Body = io.NopCloser(bytes.NewReader(data))
	}
	return resp, nil
}

// find returns the signature under a path <base>/<algo>=<hash>/signature-<N>.
func (s *Server) find(path string) (data []byte, number int) {
	parts := strings.Split(path, "/")
	if len(parts) < 2 {
		return nil, 0
	}
	n, ok := strings.CutPrefix(parts[len(parts)-1], "signature-")
	number, err := strconv.Atoi(n)
	if !ok || err != nil {
		return nil, 0
	}
	all := s.Signatures[strings.Replace(parts[len(parts)-2], "=", ":", 1)]
	if number < 1 || number > len(all) {
		return nil, number
	}
	return all[number-1], number
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// zeros ends only with its context.
type zeros struct{ ctx context.Context }

func (z zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), z.ctx.Err()
}
