package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/memory"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/program/programtest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

const (
	digest    = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other     = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	reference = productRepository + ":4.21.1-x86_64"
)

func must[T any](v T, err error) T { return checktest.Must(v, err) }

// publish makes a key, a keyring file and a store directory with a signature.
func publish(t *testing.T) (ring, store string) {
	t.Helper()
	made := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	e := must(openpgp.NewEntity("Publisher", "", "p@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return made }}))
	var public bytes.Buffer
	w := must(armor.Encode(&public, "PGP PUBLIC KEY BLOCK", nil))
	checktest.OK(t, e.Serialize(w))
	w.Close()
	dir := t.TempDir()
	ring, store = filepath.Join(dir, "verifier-public-key-test"), filepath.Join(dir, "store")
	sigs := filepath.Join(store, strings.Replace(digest, ":", "=", 1))
	body := must(signature.Body(digest, reference, "test/1", made))
	for path, data := range map[string][]byte{ring: public.Bytes(), filepath.Join(sigs, "signature-1"): must(signaturetest.Sign(e, body, made))} {
		write(t, path, data)
	}
	return ring, store
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	checktest.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	checktest.OK(t, os.WriteFile(path, data, 0o644))
}

func verify(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := programtest.Run(t, command(), args...)
	if got != code {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

func TestOpenPGP(t *testing.T) {
	ring, dir := publish(t)
	served := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer served.Close()
	empty := t.TempDir()
	for _, store := range []string{dir, "file://" + dir, served.URL} {
		out, _ := verify(t, 0, "-digest", digest, "-store", empty, "-store", store, "-keyring", ring)
		checktest.Has(t, out, digest+" is verified", "verifier-public-key-test", "(Publisher <p@example.com>)", "signed as  "+reference, "signed on  2024-01-01T00:00:00Z", "signature-1")
	}
	out, _ := verify(t, 0, "-store", empty+","+dir, "-store", served.URL, "-keyring", ring+","+ring, "-digest", digest)
	checktest.Has(t, out, "is verified")
	out, _ = verify(t, 0, "--store="+empty+","+dir, "-keyring="+ring, "-digest="+digest, "-timeout", "1m")
	checktest.Has(t, out, "is verified")
	verify(t, 0, "-digest", "mirror.example.com/release@"+digest, "-store", dir, "-keyring", ring)

	_, errs := verify(t, 1, "-digest", other, "-store", dir, "-keyring", ring)
	place := "file://" + filepath.Join(dir, strings.Replace(other, ":", "=", 1), "signature-1")
	checktest.Equal(t, "verify: unable to verify "+other+" against keyrings: verifier-public-key-test: no signature found\n"+
		"  unable to retrieve signature from "+place+": no more signatures to check\n", errs, "errs")

	second, _ := publish(t)
	_, errs = verify(t, 1, "-digest", digest, "-store", dir, "-keyring", ring, "-keyring", second)
	checktest.Has(t, errs, "invalid signature: no key")

	data := must(os.ReadFile(filepath.Join(dir, strings.Replace(digest, ":", "=", 1), "signature-1")))
	data[len(data)-1] ^= 1
	write(t, filepath.Join(empty, strings.Replace(digest, ":", "=", 1), "signature-1"), data)
	_, errs = verify(t, 1, "-digest", digest, "-store", empty, "-keyring", ring)
	checktest.Has(t, errs, "signature error: verification failure")
}

func TestConfigMap(t *testing.T) {
	ring, dir := publish(t)
	out, errs := verify(t, 0, "-digest", digest, "-store", dir, "-keyring", ring, "-configmap", "-")
	checktest.Has(t, errs, "is verified")
	file := filepath.Join(t.TempDir(), "cm.json")
	verify(t, 0, "-digest", digest, "-store", dir, "-keyring", ring, "-configmap="+file)
	target := t.TempDir()
	verify(t, 0, "-digest", digest, "-store", dir, "-configmap", target, "-keyring", ring)
	for _, data := range [][]byte{[]byte(out), must(os.ReadFile(file)), must(os.ReadFile(filepath.Join(target, "signature-sha256-aaaaaaaaaaaaaaaa.json")))} {
		// The manifest, applied to a cluster without any store, is enough.
		cm := &corev1.ConfigMap{}
		checktest.OK(t, json.Unmarshal(data, cm))
		api := memory.NewOpenShift(memory.Options{})
		checktest.OK(t, checktest.Err(clusterapi.Create(t.Context(), api, cm, clusterapi.CreateOptions{})))
		keys := must(signature.ParseKeyring("k", must(os.ReadFile(ring))))
		v := checktest.Get(signature.NewVerifier([]*signature.Keyring{keys},
			&cluster.ConfigMapStore{Reader: api}).Verify(t.Context(), digest))(t)
		checktest.Has(t, v.Signers[0].Location, "key sha256-"+digest[7:]+"-1")
	}
	verify(t, 0, "-digest", digest, "-store", target, "-keyring", ring)
	// Nothing is written for what does not verify.
	out, _ = verify(t, 1, "-digest", other, "-store", dir, "-keyring", ring, "-configmap", "-")
	checktest.Equal(t, "", out, "out")
}

// layout writes an OCI layout with one cosign signature.
func layout(t *testing.T, key ed25519.PrivateKey, name string) string {
	t.Helper()
	dir := t.TempDir()
	checktest.OK(t, os.CopyFS(dir, must(signaturetest.CosignLayout(key, digest, name))))
	return dir
}

func TestCosign(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	file := filepath.Join(t.TempDir(), "key.pem")
	write(t, file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key.Public()))}))
	dir, foreign := layout(t, key, reference), layout(t, key, "quay.io/other/repository:1")

	for _, image := range []string{digest, productRepository + "@" + digest} {
		out, _ := verify(t, 0, "-digest", image, "-store", foreign, "-store", dir, "-key", file)
		checktest.Has(t, out, digest+" is verified", "signed as  "+reference, "at an unknown time")
	}
	_, errs := verify(t, 1, "-digest", digest, "-store", foreign, "-key", file)
	checktest.Has(t, errs, `Signature for identity "quay.io/other/repository:1" is not accepted`)
	_, errs = verify(t, 1, "-digest", other, "-store", dir, "-key", file)
	checktest.Has(t, errs, "A signature was required, but no signature exists")
	_, errs = verify(t, 3, "-digest", digest, "-store", "https://quay.io", "-key", file)
	checktest.Has(t, errs, "OCI image layout")
	write(t, file, []byte("no key"))
	_, errs = verify(t, 3, "-digest", digest, "-store", dir, "-key", file)
	checktest.Has(t, errs, "no PEM block")
}

func TestUsage(t *testing.T) { programtest.Usage(t, command) }

func TestUnreadable(t *testing.T) {
	ring, _ := publish(t)
	given := "-digest " + digest + " -keyring " + ring
	programtest.Test(t, command, []programtest.Case{
		{Args: given + " -store " + ring, Code: 3, Stderr: "is not a directory"},
		{Args: given + " -store ftp://x", Code: 3, Stderr: "scheme http, https or file"},
		{Args: given + " -store http://127.0.0.1:1", Code: 3, Stderr: "connection refused"},
		{Args: given + " -store " + t.TempDir(), Code: 1, Stderr: "no more signatures to check"},
	})
	key, file := ed25519.NewKeyFromSeed(make([]byte, 32)), filepath.Join(t.TempDir(), "key.pem")
	write(t, file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key.Public()))}))
	cut, empty := layout(t, key, reference), layout(t, key, "quay.io/other/repository:1")
	checktest.OK(t, os.RemoveAll(filepath.Join(cut, "blobs")))
	given = " -keyring " + ring + " -store " + t.TempDir()
	cosign := " -key " + file + " -store " + empty
	programtest.Test(t, command, []programtest.Case{
		{Args: "-digest foo" + given, Code: 2, Stderr: `-digest: the provided release image digest has an invalid format: "foo"`},
		{Args: "-digest sha256:abc" + given, Code: 2, Stderr: "does not have 64 lower-case hexadecimal digits"},
		{Args: "-digest quay.io/a/b:tag" + given, Code: 2, Stderr: "release images that are not accessed via digest cannot be verified"},
		{Args: "-digest quay.io/a/b:tag" + cosign, Code: 2, Stderr: "release images that are not accessed via digest cannot be verified"},
		{Args: "-digest quay.io/A/b@" + digest + cosign, Code: 2, Stderr: `image "quay.io/A/b@`},
		{Args: "-digest " + other + " -key " + file + " -store " + cut + "," + empty, Code: 1, Stderr: "no signature exists"},
		{Args: "-digest " + digest + " -key " + file + " -store " + cut + "," + empty, Code: 3, Stderr: "unable to read"},
	})
}
