package registry

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxGreeting bounds, in bytes, the body of the answer that a registry gives
// first, which is read to its end.
const maxGreeting = 1 << 20

// guard lets only those requests out that are allowed: by https, unless http is,
// and to where a redirect may lead. It sees those of logins and for tokens too.
type guard struct {
	inner        http.RoundTripper
	plain        bool // http
	private      bool // redirects to private addresses
	maxRedirects int
}

var errPlainHTTP = errors.New("http is not allowed, only https: see Options.PlainHTTP")

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	first, err := g.check(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	resp, err := g.inner.RoundTrip(req)
	if err == nil && strings.HasSuffix(first.URL.Path, "/v2/") {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxGreeting), resp.Body}
	}
	return resp, err
}

// check reports whether a request may be sent, and returns the one that redirects
// have made it of; itself if none has.
func (g *guard) check(req *http.Request) (first *http.Request, err error) {
	first = req
	redirects := 0
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
		redirects++
	}
	away := !strings.EqualFold(first.URL.Host, req.URL.Host)
	switch {
	case redirects > g.maxRedirects:
		return nil, fmt.Errorf("more than %d redirects", g.maxRedirects)
	case redirects > 0 && req.Response.Request.URL.Scheme == "https" && req.URL.Scheme != "https":
		return nil, errors.New("redirect from https to another scheme refused")
	case req.URL.Scheme != "https" && !g.plain:
		return nil, errPlainHTTP
	case away && !g.private && isPrivate(req.URL.Hostname()):
		return nil, fmt.Errorf("redirect to the private address %s refused", req.URL.Hostname())
	case away && req.Body != nil && req.Body != http.NoBody:
		return nil, errors.New("redirect to another host of a request that has credentials refused")
	}
	return first, nil
}

// checkRedirect is an http.Client's CheckRedirect. The guard judges redirects.
// Authorization is added for the registry's own host only, when the request is
// sent.
func checkRedirect(req *http.Request, _ []*http.Request) error {
	req.Header.Del("Referer")
	return nil
}

// isPrivate reports whether a host is an address that only this machine or its
// network has, such as a cloud's metadata service's.
func isPrivate(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	local := ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()
	return local || ip.IsLoopback() || ip.IsPrivate() || ip.IsUnspecified()
}
