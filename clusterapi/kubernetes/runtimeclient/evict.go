package runtimeclient

import (
	"net/http"
	"strings"
)

// RefuseAtOnce returns a transport that leaves out the time to wait with which
// a server refuses an eviction. With it, Evict returns the refusal at once;
// without it, client-go waits and tries again by itself, up to ten times. Give
// it to rest.Config.Wrap before the client is made.
func RefuseAtOnce(rt http.RoundTripper) http.RoundTripper { return &refusing{rt} }

type refusing struct{ http.RoundTripper }

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests && req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/eviction") {
		resp.Header.Del("Retry-After")
	}
	return resp, err
}

// WrappedRoundTripper lets client-go reach the transport below.
func (r *refusing) WrappedRoundTripper() http.RoundTripper { return r.RoundTripper }
