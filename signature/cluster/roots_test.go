package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	configv1 "github.com/openshift/api/config/v1"
)

// Authorities of a bundle come on top of the system's.
func TestSystemRoots(t *testing.T) {
	key := checktest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	own := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "own"}, IsCA: true, BasicConstraintsValid: true}
	der := checktest.Must(x509.CreateCertificate(rand.Reader, own, own, key.Public(), key))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Skipf("needs a system with certificate authorities: %v", err)
	}
	alone := x509.NewCertPool()
	alone.AppendCertsFromPEM(bundle)
	store := ClusterVersionStore{HTTP: signature.HTTPOptions{RootCAs: alone, Bundle: bundle}}
	o := checktest.Must(store.trust(t.Context(), configv1.SignatureStore{URL: "https://h.example"}))
	want.AppendCertsFromPEM(bundle)
	if !o.RootCAs.Equal(want) {
		t.Error("not the authorities of the bundle and of the system")
	}
	if !store.HTTP.RootCAs.Equal(alone) {
		t.Error("the store's own options have changed")
	}
}
