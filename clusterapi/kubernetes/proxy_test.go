package kubernetes_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterupdate/clusterupdate/clusterapi/kubernetes/internal/testserver"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// fault is what a proxy does to a request.
type fault string

const (
	none       fault = ""
	conflict   fault = "409"
	expired    fault = "410"
	throttled  fault = "429 with Retry-After"
	broken     fault = "500"
	dropBefore fault = "connection dropped before the server saw the request"
	dropAfter  fault = "connection dropped before the client saw the answer"
)

// proxy stands between a client and a server, on loopback.
type proxy struct {
	url    string
	ca     []byte
	server *httputil.ReverseProxy
	front  *httptest.Server

	mu     sync.Mutex
	choose func(*http.Request) fault
	counts map[fault]int
}

// newProxy starts a proxy that passes everything on.
func newProxy(t testing.TB, s *testserver.Server) *proxy {
	t.Helper()
	target := checktest.Get(url.Parse(s.Config().Host))(t)
	transport := checktest.Get(rest.TransportFor(s.Config()))(t)
	p := &proxy{counts: map[fault]int{}, server: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	front := httptest.NewUnstartedServer(p)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	p.front, p.url = front, front.URL
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	return p
}

func (p *proxy) config() *rest.Config {
	return &rest.Config{Host: p.url, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}}
}

// disconnect drops all connections.
func (p *proxy) disconnect() { p.front.CloseClientConnections() }

// inject makes a function choose the fault of each request from now on.
func (p *proxy) inject(choose func(*http.Request) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.choose = choose
}

// count returns how often there was a fault.
func (p *proxy) count(f fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[f]
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	choose := p.choose
	p.mu.Unlock()
	f := none
	if choose != nil {
		f = choose(r)
	}
	p.mu.Lock()
	p.counts[f]++
	p.mu.Unlock()
	switch f {
	case none:
		p.server.ServeHTTP(w, r)
	case dropBefore:
		panic(http.ErrAbortHandler)
	case dropAfter:
		p.server.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case conflict:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
	case expired:
		refuse(w, http.StatusGone, metav1.StatusReasonExpired)
	case throttled:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	case broken:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	}
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf("%d by a test", code),
	})
}
