package signature_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// The stores that a ClusterVersion names trust the proxy's authorities and the
// system's.
func TestClusterVersionStoreTrustsTheProxysAuthorities(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "custom") }))
	defer secure.Close()
	api := memory.NewOpenShift(memory.Options{})
	u := object(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: trusted-ca-bundle, namespace: openshift-config-managed}\n")
	u.Object["data"] = map[string]any{"ca-bundle.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))}
	cv := object(t, "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x, signatureStores: [{url: '"+secure.URL+"'}]}\n")
	checktest.OK(t, api.Load(u, cv))
	e := must(clusterapi.ReadEgress(t.Context(), api))
	o := signature.HTTPOptions{Proxy: e.Proxy, RootCAs: e.RootCAs, Bundle: e.Bundle}
	got := collect(t.Context(), &cluster.ClusterVersionStore{Reader: api, HTTP: o}, digestA)
	checktest.Equal(t, "custom", got[0], "got[0] (%v)", got)
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
	checktest.Good(t, checktest.Err(
		signature.NewVerifier([]*signature.Keyring{ring(t, k.public(cert{}))}, s).Verify(t.Context(), digestA)))
	if got := collect(t.Context(), s, digestB); len(got) != 1 || !strings.Contains(got[0], "no more signatures") {
		t.Error(got)
	}
	if got := collect(t.Context(), s, "md5:abc"); len(got) != 10 || !strings.Contains(got[0], "response status 400") {
		t.Error(got)
	}
}
