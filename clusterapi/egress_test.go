package clusterapi_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/graph"
	"github.com/clusterupdate/clusterupdate/graph/risk"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/upgradeconfig/ocm"
)

// behind makes a cluster whose objects say how to get out.
func behind(t *testing.T, proxy *configv1.ProxyStatus, bundle string) *memory.Cluster {
	t.Helper()
	api := memory.NewOpenShift(memory.Options{})
	if proxy != nil {
		p := &configv1.Proxy{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: *proxy}
		u := checktest.Get(clusterapi.ToUnstructured(p))(t)
		checktest.OK(t, api.Load(u))
	}
	if bundle != "" {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"}, Data: map[string]string{"ca-bundle.crt": bundle}}
		checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, cm, clusterapi.CreateOptions{})))
	}
	return api
}

func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestReadEgress(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	t.Setenv("HTTPS_PROXY", "http://environment.example:1")
	for _, tt := range []struct {
		name    string
		proxy   *configv1.ProxyStatus
		bundle  string
		err     string
		proxied bool
		trusted bool
	}{
		{name: "nothing"},
		{name: "empty objects", proxy: &configv1.ProxyStatus{NoProxy: "x"}},
		{name: "proxy", proxy: &configv1.ProxyStatus{HTTPSProxy: "http://proxy.example:3128", NoProxy: ".internal"}, proxied: true},
		{name: "bad proxy", proxy: &configv1.ProxyStatus{HTTPProxy: "://user:secret@x"}, err: "the cluster's proxy: httpProxy is not a proxy URL"},
		{name: "bad secure proxy", proxy: &configv1.ProxyStatus{HTTPSProxy: "http://u:secret@[::"}, err: "the cluster's proxy: httpsProxy is not a proxy URL"},
		{name: "authorities", bundle: pemOf(secure), trusted: true},
		{name: "bad authorities", bundle: "x", err: "unable to add ca-bundle.crt certificates"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := clusterapi.ReadEgress(t.Context(), behind(t, tt.proxy, tt.bundle))
			if tt.err != "" {
				checktest.FailIf(t, err == nil || err.Error() != tt.err, "%v, want %s", err, tt.err)
				return
			}
			if err != nil || (e.Proxy != nil) != tt.proxied || (e.RootCAs != nil) != tt.trusted || string(e.Bundle) != tt.bundle {
				t.Errorf("%+v %v", e, err)
			}
			if !tt.proxied {
				return
			}
			for target, want := range map[string]string{
				"https://a.example/": "http://proxy.example:3128", "http://a.example/": "<nil>",
				"https://a.internal/": "<nil>", "https://localhost/": "<nil>", "https://127.0.0.1/": "<nil>",
			} {
				if u, err := e.Proxy(httptest.NewRequest(http.MethodGet, target, nil)); err != nil || fmt.Sprint(u) != want {
					t.Errorf("%s goes by %v (%v), want %s", target, u, err, want)
				}
			}
		})
	}
	down := memory.NewOpenShift(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return errors.New("down") }})
	if _, err := clusterapi.ReadEgress(t.Context(), down); err == nil || err.Error() != "unable to read the cluster's proxy: down" {
		t.Error(err)
	}
	checktest.ErrorHas(t, "down", checktest.Err(
		clusterapi.NewTransport(down).RoundTrip(httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/", nil))))
}

// tunnel is a proxy that leads every connection to one server.
func tunnel(t *testing.T, to string, connections *atomic.Int32) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "no way", http.StatusForbidden)
			return
		}
		connections.Add(1)
		out, err := net.Dial("tcp", to)
		if err != nil {
			t.Error(err)
			return
		}
		in, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(out, buffered); out.Close() }()
		go func() { io.Copy(in, out); in.Close() }()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Every client goes out by the cluster's proxy and trusts its authorities, and
// does so at once when they change.
func TestClientsGoOutAsTheClusterDoes(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/graph":
			fmt.Fprint(w, `{"nodes":[{"version":"4.1.0","payload":"a"}],"edges":[]}`)
		case strings.HasPrefix(r.URL.Path, "/api/v1/query"):
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer secure.Close()
	var proxied atomic.Int32
	proxy := &configv1.ProxyStatus{HTTPSProxy: tunnel(t, secure.Listener.Addr().String(), &proxied)}
	api := behind(t, proxy, pemOf(secure))
	egress := checktest.Get(clusterapi.ReadEgress(t.Context(), api))(t)
	transport := clusterapi.NewTransport(api)
	defer (&http.Client{Transport: transport}).CloseIdleConnections()

	ask := func(c *graph.Client) error {
		defer c.CloseIdleConnections()
		c.Upstream, c.DisableRetries = "https://example.com/graph", true
		_, err := c.Fetch(t.Context(), graph.Query{Channel: "c", Version: "4.1.0", Arch: "amd64", ClusterID: "3f1c52c4-0a55-4a1d-9c1b-2f6c1f1d7a10"})
		return err
	}
	search := func(o signature.HTTPOptions) error {
		s, err := signature.NewHTTPStore("https://example.com/signatures", o)
		if err != nil {
			return err
		}
		defer s.CloseIdleConnections()
		for _, err = range s.Candidates(t.Context(), digest) {
			if err != nil && strings.Contains(err.Error(), "no more signatures") {
				return nil
			}
		}
		return fmt.Errorf("unexpected end of the search: %w", err)
	}
	policies := func(o ocm.Options) error {
		cv := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "3f1c52c4-0a55-4a1d-9c1b-2f6c1f1d7a10"}}
		if _, err := clusterapi.Create(t.Context(), api, cv, clusterapi.CreateOptions{}); err != nil && !strings.Contains(err.Error(), "exists") {
			return err
		}
		o.URL, o.NoRetry = "https://example.com", true
		p, err := ocm.New(api, o)
		if err != nil {
			return err
		}
		if _, err = p.Policies(t.Context()); err != nil && strings.Contains(err.Error(), "404") {
			return nil
		}
		return err
	}
	for _, tt := range []struct {
		name string
		ask  func() error
	}{
		{"graph by transport", func() error { return ask(&graph.Client{Transport: transport}) }},
		{"graph by fields", func() error { return ask(&graph.Client{Proxy: egress.Proxy, RootCAs: egress.RootCAs}) }},
		{"signatures by transport", func() error { return search(signature.HTTPOptions{Transport: transport}) }},
		{"signatures by fields", func() error { return search(signature.HTTPOptions{Proxy: egress.Proxy, RootCAs: egress.RootCAs}) }},
		{"OCM by transport", func() error { return policies(ocm.Options{Transport: transport}) }},
		{"metrics and alerts by transport", func() error {
			_, err := (&risk.Prometheus{URL: "https://example.com", NoToken: true, Transport: transport}).Query(t.Context(), "up")
			return err
		}},
	} {
		proxied.Store(0)
		(&http.Client{Transport: transport}).CloseIdleConnections()
		if err := tt.ask(); err != nil || proxied.Load() == 0 {
			t.Errorf("%s: %v; %d connections by the proxy", tt.name, err, proxied.Load())
		}
	}

	// The bundle changes: what was trusted is not any more.
	checktest.OK(t, checktest.Err(
		clusterapi.Modify(t.Context(), api, clusterapi.Key("openshift-config-managed", "trusted-ca-bundle"),
			clusterapi.ModifyOptions{}, func(cm *corev1.ConfigMap) error {
				cm.Data["ca-bundle.crt"] = "x"
				return nil
			})))
	checktest.ErrorHas(t, "unable to add ca-bundle.crt certificates", ask(&graph.Client{Transport: transport}))
}
