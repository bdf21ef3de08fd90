package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// reloadAfter is how often files with certificates are looked at.
const reloadAfter = time.Minute

// newHTTPClient returns a client for a configuration, and what is to be called when
// it is needed no longer. client-go's own constructor shares connections between
// all clients of a process, keeps them for the process's life where a configuration
// has its own Dial, and starts goroutines that nobody can end if it names a
// certificate's file.
func newHTTPClient(config *rest.Config, o Options) (*http.Client, func(), error) {
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	base, end := settings.Transport, func() {}
	if base == nil {
		own, err := newConnections(config, settings, o.Clock)
		if err != nil {
			return nil, nil, err
		}
		base, end = own, own.close
	} else if settings.HasCA() || settings.HasCertAuth() || settings.HasCertCallback() || settings.TLS.Insecure {
		return nil, nil, errors.New("a configuration with a Transport must not have options of TLS")
	}
	wrapped, err := transport.HTTPWrappersForConfig(settings, base)
	if err != nil {
		end()
		return nil, nil, err
	}
	return &http.Client{
		Transport:     &limiter{wrapped, o.Limits},
		Timeout:       config.Timeout,
		CheckRedirect: sameHost,
	}, end, nil
}

// sameHost refuses redirects to other hosts: they would get the credentials.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return fmt.Errorf("%w: it redirects from %s to %s", ErrAnswer, first.Host, r.URL.Host)
	}
	if len(via) >= 10 {
		return fmt.Errorf("%w: it redirects more than 10 times", ErrAnswer)
	}
	return nil
}

// connections are those of one cluster, shared with nobody. Certificates that
// the configuration has in files are read again when the files have changed:
// requests in progress stay on their connections, new ones get new ones.
type connections struct {
	config *rest.Config
	clock  clock.Clock
	dialer *connrotation.Dialer // knows the connections
	life   context.Context
	end    context.CancelFunc

	mu      sync.Mutex
	current *http.Transport
	files   [][]byte // what was in them
	looked  time.Time
}

func newConnections(config *rest.Config, settings *transport.Config, c clock.Clock) (*connections, error) {
	dial := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	if settings.DialHolder != nil {
		dial = settings.DialHolder.Dial
	}
	out := &connections{config: config, clock: c, dialer: connrotation.NewDialer(connrotation.DialFunc(dial))}
	out.life, out.end = context.WithCancel(context.Background())
	out.files, out.looked = out.read(), c.Now()
	var err error
	out.current, err = out.transport(settings)
	return out, err
}

func (c *connections) transport(settings *transport.Config) (*http.Transport, error) {
	tls, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, err
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               settings.Proxy,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     tls,
		MaxIdleConnsPerHost: 25,
		DialContext:         c.dial,
		DisableCompression:  settings.DisableCompression,
	}), nil
}

// dial is called on goroutines of net/http, where nobody else would catch the
// panic of a configuration's own Dial.
func (c *connections) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	err = panics.Catch(func() error {
		conn, err = c.dialer.DialContext(ctx, network, address)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.life.Err() != nil {
		_ = conn.Close()
		return nil, ErrClosed
	}
	return conn, nil
}

// close ends all connections, also those of which there is only a beginning.
func (c *connections) close() {
	c.end()
	c.dialer.CloseAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.CloseIdleConnections()
}

func (c *connections) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.fresh().RoundTrip(r)
}

// fresh returns the transport, or a new one where files have changed. Where they
// cannot be used now, as one of them may be in the middle of a change, it continues
// with what there was.
func (c *connections) fresh() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clock.Since(c.looked) < reloadAfter {
		return c.current
	}
	c.looked = c.clock.Now()
	files := c.read()
	if slices.EqualFunc(files, c.files, bytes.Equal) {
		return c.current
	}
	settings, err := c.config.TransportConfig()
	if err != nil {
		return c.current
	}
	next, err := c.transport(settings)
	if err != nil {
		return c.current
	}
	c.current.CloseIdleConnections()
	c.current, c.files = next, files
	return next
}

// read returns the contents of the files of which the configuration has only
// the names; nil for one that cannot be read.
func (c *connections) read() [][]byte {
	tls := c.config.TLSClientConfig
	var names []string
	if len(tls.CAData) == 0 && tls.CAFile != "" {
		names = append(names, tls.CAFile)
	}
	if len(tls.CertData) == 0 && len(tls.KeyData) == 0 && tls.CertFile != "" && tls.KeyFile != "" {
		names = append(names, tls.CertFile, tls.KeyFile)
	}
	out := make([][]byte, len(names))
	for i, name := range names {
		out[i], _ = os.ReadFile(name)
	}
	return out
}
