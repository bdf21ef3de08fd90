package httpclient

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// The reasons for which a redirect is refused, other than its number.
var (
	ErrInsecureRedirect = errors.New("redirect from https to another scheme refused")
	ErrOtherHost        = errors.New("redirect to another host refused")
	ErrOtherOrigin      = errors.New("redirect to another scheme, host or port refused")
	ErrOtherMethod      = errors.New("redirect that turns the request into another method refused")
)

// followHeaders are the headers that another host may see: they say which
// representation is wanted, nothing about who asks.
var followHeaders = [...]string{"Accept", "Accept-Encoding", "Accept-Language", "If-Modified-Since", "If-None-Match", "User-Agent"}

// checkRedirect is an http.Client's CheckRedirect. It changes the request that
// is about to follow.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > c.o.MaxRedirects {
		return &limit.LimitError{Limit: "MaxRedirects", Max: int64(c.o.MaxRedirects), What: "redirects"}
	}
	// The page before, with its query.
	req.Header.Del("Referer")

	if c.o.SameOrigin {
		switch {
		case !sameOrigin(via[0].URL, req.URL):
			return ErrOtherOrigin
		case req.Method != via[0].Method:
			return ErrOtherMethod
		}
		return nil
	}
	first, elsewhere := via[0].URL, !sameHost(via[0].URL, req.URL)
	for _, hop := range via {
		if hop.URL.Scheme == "https" && req.URL.Scheme != "https" {
			return ErrInsecureRedirect
		}
		// A detour over another host and back stays suspect: that host chose
		// where it goes.
		elsewhere = elsewhere || !sameHost(first, hop.URL)
	}
	if !elsewhere {
		return nil
	}
	if req.Body != nil && req.Body != http.NoBody {
		return ErrOtherHost
	}
	kept := http.Header{}
	for _, k := range followHeaders {
		if v := req.Header[k]; v != nil {
			kept[k] = v
		}
	}
	req.Header = kept
	req.URL.RawQuery = dropQuery(req.URL.RawQuery, c.o.DropQuery)
	return nil
}

// sameHost reports whether two URLs lead to the same server. Going from a scheme's
// default port to the other's (http to https) stays on it.
func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// sameOrigin reports whether two URLs have the same scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && sameHost(a, b)
}

// port returns a URL's port, empty for the scheme's default.
func port(u *url.URL) string {
	p := u.Port()
	if (u.Scheme == "https" && p == "443") || (u.Scheme == "http" && p == "80") {
		return ""
	}
	return p
}

// dropQuery removes the named parameters and leaves the rest as it was written.
// What cannot be unescaped is removed too: its meaning is unknown. Some servers
// take ; for a separator, like &.
func dropQuery(query string, names []string) string {
	if len(names) == 0 {
		return query
	}
	var kept strings.Builder
	separator := "" // the one after what was kept last
	for rest := query; ; {
		pair, after := rest, ""
		end := strings.IndexAny(rest, "&;")
		if end >= 0 {
			pair, after = rest[:end], rest[end:end+1]
		}
		key, _, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err == nil && !slices.Contains(names, key) {
			kept.WriteString(separator)
			kept.WriteString(pair)
			separator = after
		}
		if end < 0 {
			return kept.String()
		}
		rest = rest[end+1:]
	}
}
