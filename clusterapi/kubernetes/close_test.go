package kubernetes_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/panics"
)

// openConns counts the connections that a Dial has made and nobody has closed.
type openConns struct {
	n   atomic.Int64
	all atomic.Int64
}

type countedConn struct {
	net.Conn
	of     *openConns
	closed atomic.Bool
}

func (o *openConns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	o.n.Add(1)
	o.all.Add(1)
	return &countedConn{Conn: conn, of: o}, nil
}

func (c *countedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.of.n.Add(-1)
	}
	return c.Conn.Close()
}

// Close ends calls, watches and connections, and nothing of another cluster.
func TestClose(t *testing.T) {
	release := make(chan struct{})
	waiting := make(chan string, 10)
	s := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/nodes/hangs" || isWatch(r):
			w.(http.Flusher).Flush()
			waiting <- r.URL.Path
			<-release
		case r.URL.Path == "/api/v1/nodes/there":
			answers(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "there"}}`)(w, r)
		default:
			answers(list())(w, r)
		}
	})
	defer close(release)
	var conns, others openConns
	config := &rest.Config{Host: s.URL, Dial: conns.dial}
	api := checktest.Get(kubernetes.New(config, kubernetes.Options{}))(t)
	config.Dial = others.dial
	other := checktest.Get(kubernetes.New(config, kubernetes.Options{}))(t)
	defer other.Close()
	node := clusterapi.Key("", "there")
	for _, c := range []*kubernetes.Cluster{api, other} {
		checktest.OK(t, checktest.Err(c.Get(t.Context(), nodes, node)))
	}
	errs := make(chan error, 2)
	go func() {
		_, err := api.Get(t.Context(), nodes, clusterapi.Key("", "hangs"))
		errs <- err
	}()
	go func() {
		var last error
		for _, err := range api.Watch(t.Context(), configMaps, clusterapi.ListOptions{}) {
			last = err
		}
		errs <- last
	}()
	<-waiting
	<-waiting
	checktest.OK(t, api.Close())
	for range 2 {
		checktest.ErrorIs(t, kubernetes.ErrClosed, <-errs)
	}
	checktest.Good(t, api.Close())
	checktest.ErrorIs(t, kubernetes.ErrClosed, checktest.Err(api.Get(t.Context(), nodes, node)))
	checktest.ErrorIs(t, kubernetes.ErrClosed,
		api.Evict(t.Context(), clusterapi.Key("default", "pod"), clusterapi.EvictOptions{}))
	for _, err := range api.Watch(t.Context(), configMaps, clusterapi.ListOptions{}) {
		checktest.ErrorIs(t, kubernetes.ErrClosed, err)
	}
	if err := poll(t.Context(), 10*time.Second, func(context.Context) (bool, error) { return conns.n.Load() == 0, nil }); err != nil {
		t.Errorf("%d of %d connections are open", conns.n.Load(), conns.all.Load())
	}
	if _, err := other.Get(t.Context(), nodes, node); err != nil || others.all.Load() != 1 || others.n.Load() != 1 {
		t.Errorf("another cluster's client: %v, %d connections, %d open", err, others.all.Load(), others.n.Load())
	}
}

// A cluster that is closed while a connection is made ends that, too.
func TestCloseWhileDialing(t *testing.T) {
	dialing := make(chan struct{})
	ended := make(chan struct{})
	config := &rest.Config{Host: "http://127.0.0.1:1", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}}
	api := checktest.Get(kubernetes.New(config, kubernetes.Options{}))(t)
	errs := make(chan error, 1)
	go func() {
		_, err := api.Get(t.Context(), nodes, clusterapi.Key("", "a"))
		errs <- err
	}()
	<-dialing
	checktest.OK(t, api.Close())
	<-ended
	checktest.ErrorIs(t, kubernetes.ErrClosed, <-errs)
}

// A Transport of the configuration is its owner's.
func TestOwnTransport(t *testing.T) {
	s := fake(t, answers(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}`))
	var conns openConns
	transport := &http.Transport{DialContext: conns.dial}
	defer transport.CloseIdleConnections()
	api, err := kubernetes.New(&rest.Config{Host: s.URL, Transport: transport}, kubernetes.Options{})
	checktest.OK(t, err)
	checktest.OK(t, checktest.Err(api.Get(t.Context(), nodes, clusterapi.Key("", "a"))))
	checktest.OK(t, api.Close())
	checktest.Equal(t, 1, conns.n.Load(), "connections")
	_, err = kubernetes.New(&rest.Config{Host: s.URL, Transport: transport, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, kubernetes.Options{})
	checktest.Fails(t, err, "a Transport with options of TLS, and no error")
}

// A panic of what the configuration brings along is the error of a call, not
// the end of the process.
func TestPanics(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"dial":      {Host: "http://127.0.0.1:1", Dial: func(context.Context, string, string) (net.Conn, error) { panic("at the dial") }},
		"transport": {Host: "http://127.0.0.1:1", Transport: panicking{}},
	} {
		api, err := kubernetes.New(config, kubernetes.Options{})
		checktest.OK(t, err)
		defer api.Close()
		_, err = api.Get(t.Context(), nodes, clusterapi.Key("", "a"))
		var p *panics.Error
		checktest.FailIf(t, !errors.As(err, &p), "%s: got %v", name, err)
	}
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("at the round trip") }
