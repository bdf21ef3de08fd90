package signature_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

func TestClusterHTTP(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	load := func(t *testing.T, proxy, bundle string) *memory.Cluster {
		api := memory.NewOpenShift(memory.Options{})
		if proxy != "" {
			if err := api.Load(object(t, "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\nstatus: {"+proxy+"}\n")); err != nil {
				t.Fatal(err)
			}
		}
		if bundle != "" {
			u := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trusted-ca-bundle, namespace: openshift-config-managed}\n")
			u.Object["data"] = map[string]any{"ca-bundle.crt": bundle}
			if err := api.Load(u); err != nil {
				t.Fatal(err)
			}
		}
		return api
	}
	for _, tt := range []struct {
		name, proxy, bundle string
		err                 string
		proxied, trusted    bool
	}{
		{"nothing", "", "", "", false, false},
		{"empty objects", "httpProxy: ''", "", "", false, false},
		{"proxy", "httpsProxy: 'http://proxy.example:3128', noProxy: .internal", "", "", true, false},
		{"bad proxy", "httpProxy: '://user:secret@x'", "", "the cluster's proxy: httpProxy is not a proxy URL", false, false},
		{"authorities", "", ca, "", false, true},
		{"bad authorities", "", "x", "unable to add ca-bundle.crt certificates", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HTTPS_PROXY", "http://environment.example:1")
			o, err := cluster.ClusterHTTP(t.Context(), load(t, tt.proxy, tt.bundle))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || (o.Proxy != nil) != tt.proxied || (o.RootCAs != nil) != tt.trusted {
				t.Errorf("%+v %v", o, err)
			}
			if tt.proxied {
				for host, want := range map[string]string{"https://a.example/": "http://proxy.example:3128", "https://a.internal/": "<nil>", "http://a.example/": "<nil>"} {
					if got := must(o.Proxy(httptest.NewRequest(http.MethodGet, host, nil))); fmt.Sprint(got) != want {
						t.Errorf("%s: %v", host, got)
					}
				}
			}
			if tt.trusted {
				s := must(signature.NewHTTPStore(secure.URL, o))
				defer s.CloseIdleConnections()
				if got := collect(t.Context(), s, digestA); len(got) != 1 || !strings.Contains(got[0], "no more signatures") {
					t.Error(got)
				}
			}
		})
	}
	down := memory.NewOpenShift(memory.Options{Intercept: func(context.Context, memory.Call, func(context.Context) error) error { return errors.New("down") }})
	if _, err := cluster.ClusterHTTP(t.Context(), down); err == nil {
		t.Error("no error")
	}
}

// The stores that a ClusterVersion names trust the proxy's authorities and the
// system's.
func TestClusterVersionStoreTrustsTheProxysAuthorities(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "custom") }))
	defer secure.Close()
	api := memory.NewOpenShift(memory.Options{})
	u := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trusted-ca-bundle, namespace: openshift-config-managed}\n")
	u.Object["data"] = map[string]any{"ca-bundle.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))}
	cv := object(t, "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x, signatureStores: [{url: '"+secure.URL+"'}]}\n")
	if err := api.Load(u, cv); err != nil {
		t.Fatal(err)
	}
	o, err := cluster.ClusterHTTP(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(t.Context(), &cluster.ClusterVersionStore{Reader: api, HTTP: o}, digestA)
	if got[0] != "custom" {
		t.Error(got)
	}
}

// The update service serves signatures below /signatures, with its own words
// for what it does not have.
func TestUpdateServiceServesAStore(t *testing.T) {
	k := newEd25519(keyTime)
	service := func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, "/api/upgrades_info/signatures/")
		parts := strings.Split(path, "/")
		fail := func(status int, kind string) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind":%q}`, kind)
		}
		switch {
		case !ok || len(parts) != 2 || strings.Count(parts[0], "=") != 1:
			fail(http.StatusBadRequest, "invalid_params")
		case !strings.HasPrefix(parts[0], "sha256="):
			fail(http.StatusBadRequest, "invalid_params")
		case parts[0] == "sha256="+digestA[7:] && parts[1] == "signature-1":
			w.Write(k.message(msg{}))
		default:
			fail(http.StatusNotFound, "does_not_exist")
		}
	}
	s := must(signature.NewHTTPStore("http://updates.example/api/upgrades_info/signatures", serve(service)))
	if _, err := signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, s).Verify(t.Context(), digestA); err != nil {
		t.Error(err)
	}
	if got := collect(t.Context(), s, digestB); len(got) != 1 || !strings.Contains(got[0], "no more signatures") {
		t.Error(got)
	}
	if got := collect(t.Context(), s, "md5:abc"); len(got) != 10 || !strings.Contains(got[0], "response status 400") {
		t.Error(got)
	}
}
