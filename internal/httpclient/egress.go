package httpclient

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxy returns a proxy function for [Options.Proxy] from a cluster's settings:
// httpProxy serves http URLs alone and httpsProxy https ones; hosts that
// noProxy lists, localhost and loopback addresses are reached directly. All
// empty gives nil: no proxy at all. A proxy that does not parse is an error,
// since going around a proxy is worse than not going.
func Proxy(httpProxy, httpsProxy, noProxy string) (func(*http.Request) (*url.URL, error), error) {
	if httpProxy == "" && httpsProxy == "" {
		return nil, nil
	}
	var errs []error
	for _, p := range [...]struct{ name, value string }{{"httpProxy", httpProxy}, {"httpsProxy", httpsProxy}} {
		if p.value != "" && !validProxy(p.value) {
			errs = append(errs, fmt.Errorf("%s is not a proxy URL", p.name)) // its value may hold a password
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	proxyFor := (&httpproxy.Config{HTTPProxy: httpProxy, HTTPSProxy: httpsProxy, NoProxy: noProxy}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return proxyFor(r.URL) }, nil
}

// validProxy reports whether a value is a URL of a proxy, or a host and port, which
// stand for an http proxy.
func validProxy(value string) bool {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !strings.Contains(value, "://") {
		u, err = url.Parse("http://" + value)
		return err == nil && u.Hostname() != "" && !strings.Contains(value, "://")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u.Hostname() != ""
	}
	return false
}

// RootCAs returns the authorities of a PEM bundle, which replace those of the
// system. An empty bundle gives nil: the system's. A bundle without a single
// certificate that parses is an error.
func RootCAs(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("no certificate could be read from the bundle")
	}
	return pool, nil
}
