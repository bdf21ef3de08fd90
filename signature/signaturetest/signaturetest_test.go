package signaturetest_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
	"github.com/clusterupdate/clusterupdate/signature/sigstore"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var now = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func verify(t *testing.T, public, message []byte) error {
	t.Helper()
	ring := checktest.Must(signature.ParseKeyring("ring", public))
	v, err := signature.New(signature.Options{
		Keyrings: []*signature.Keyring{ring}, Stores: []signature.Store{signature.MemoryStore{digest: {message}}}, Clock: clocktesting.NewFakePassiveClock(now),
	})
	checktest.OK(t, err)
	_, err = v.Verify(context.Background(), digest)
	return err
}

func TestEveryShapeVerifies(t *testing.T) {
	for _, o := range []signaturetest.KeyOptions{{}, {RSABits: 2048, UserID: "Someone", Lifetime: 48 * time.Hour}} {
		k := checktest.Must(signaturetest.NewKey(o))
		armored := checktest.Must(k.Armored())
		ring := checktest.Get(signature.ParseKeyring("ring", armored))(t)
		checktest.Equal(t, k.Fingerprint(), ring.Keys()[0].Fingerprint, "ring.Keys()[0].Fingerprint of %v", ring)
		for i := range 48 {
			s := signaturetest.Shape{
				Version: 3 + i%2, Compressed: i/2%2 == 1, Text: i/4%2 == 1, Partial: i/8%2 == 1,
				Hash: []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}[i/16],
			}
			m, err := k.SignRelease(digest, "quay.io/a/b:1", s)
			if s.Version == 3 && o.RSABits == 0 {
				checktest.Fails(t, err, "an Ed25519 key signed in version 3")
				continue
			}
			checktest.OK(t, err)
			for _, public := range [][]byte{k.Public(), armored} {
				if err := verify(t, public, m); err != nil {
					t.Errorf("%+v %+v: %v", o, s, err)
				}
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	k := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{}))
	short := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{Lifetime: time.Hour}))
	revoked := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{Revoked: true}))
	for _, tt := range []struct {
		key   *signaturetest.Key
		shape signaturetest.Shape
		want  string
	}{
		{k, signaturetest.Shape{Expires: time.Hour}, "signature expired on"},
		{k, signaturetest.Shape{Created: now.AddDate(-10, 0, 0)}, "older than its key"},
		{short, signaturetest.Shape{}, "expired on"},
		{revoked, signaturetest.Shape{}, "is revoked"},
	} {
		m := checktest.Must(tt.key.SignRelease(digest, "quay.io/a/b:1", tt.shape))
		if err := verify(t, tt.key.Public(), m); err == nil || !strings.Contains(signature.Chain(err), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.shape, err, tt.want)
		}
	}
	for _, s := range []signaturetest.Shape{{Version: 5}, {Version: 3}, {Hash: crypto.SHA1}} {
		checktest.Fails(t, checktest.Err(k.Sign(nil, s)), "%+v: no error", s)
	}
	checktest.Fails(t, checktest.Err(k.SignRelease("", "", signaturetest.Shape{})), "nothing to sign: no error")
}

// Each of these is refused, and only for what it is.
func TestShapesThatNobodyPublishes(t *testing.T) {
	k := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{}))
	for _, tt := range []struct {
		shape signaturetest.Shape
		want  string
	}{
		{signaturetest.Shape{Announcements: 2}, "nested signatures"},
		{signaturetest.Shape{Literals: 2}, "LiteralData not followed by signature"},
		{signaturetest.Shape{Trailing: []byte("x")}, "1 octets after the signature"},
		{signaturetest.Shape{Trailing: []byte("x"), Compressed: true}, "1 octets after the signature"},
		{signaturetest.Shape{Levels: 1}, ""},
		{signaturetest.Shape{Levels: 1, Compressed: true}, ""},
		{signaturetest.Shape{Levels: 2}, "more than one level of compression"},
	} {
		m := checktest.Must(k.SignRelease(digest, "quay.io/a/b:1", tt.shape))
		if err := verify(t, k.Public(), m); (err == nil) != (tt.want == "") || !strings.Contains(signature.Chain(err), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.shape, signature.Chain(err), tt.want)
		}
	}
}

func TestSubkey(t *testing.T) {
	for _, o := range []signaturetest.KeyOptions{{Subkey: true}, {Subkey: true, RSABits: 2048}} {
		k := checktest.Must(signaturetest.NewKey(o))
		ring := checktest.Must(signature.ParseKeyring("ring", k.Public()))
		m := checktest.Must(k.SignRelease(digest, "quay.io/a/b:1", signaturetest.Shape{}))
		v, err := signature.NewVerifier([]*signature.Keyring{ring}, signature.MemoryStore{digest: {m}}).Verify(t.Context(), digest)
		if err != nil || v.Signers[0].Fingerprint != k.SignerFingerprint() || k.SignerFingerprint() == k.Fingerprint() {
			t.Errorf("%v %v", v, err)
		}
	}
}

func TestServer(t *testing.T) {
	k := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{}))
	m := checktest.Must(k.SignRelease(digest, "quay.io/a/b:1", signaturetest.Shape{}))
	ring := checktest.Must(signature.ParseKeyring("ring", k.Public()))
	try := func(base string, o signature.HTTPOptions) error {
		store, err := signature.NewHTTPStore(base, o)
		checktest.OK(t, err)
		defer store.CloseIdleConnections()
		_, err = signature.NewVerifier([]*signature.Keyring{ring}, store).Verify(t.Context(), digest)
		return err
	}
	all := map[string][][]byte{digest: {[]byte("rubbish"), m}}
	for _, tt := range []struct {
		server signaturetest.Server
		want   string
	}{
		{signaturetest.Server{Signatures: all}, ""},
		{signaturetest.Server{Signatures: all, Status: map[int]int{1: 500}}, ""},
		{signaturetest.Server{Signatures: all, Status: map[int]int{1: 404}}, "no more signatures to check"},
		{signaturetest.Server{}, "no more signatures to check"},
		{signaturetest.Server{Endless: true}, "signature is too large"},
		{signaturetest.Server{Loop: true}, "more than 3 redirects"},
	} {
		server := httptest.NewServer(&tt.server)
		for base, o := range map[string]signature.HTTPOptions{server.URL + "/sigs": {}, "http://h.example/sigs": {Transport: &tt.server}} {
			if err := try(base, o); (err == nil) != (tt.want == "") || !strings.Contains(signature.Chain(err), tt.want) {
				t.Errorf("%s, %+v: %v, want %s", base, tt.server, signature.Chain(err), tt.want)
			}
		}
		server.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		slow := &signaturetest.Server{Signatures: all, Delay: 20 * time.Second}
		if err := try("http://h.example", signature.HTTPOptions{Transport: slow}); err != nil || time.Since(start) != 40*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		slow.Delay = 40 * time.Second
		if err := try("http://h.example", signature.HTTPOptions{Transport: slow}); err == nil || !strings.Contains(signature.Chain(err), "time-out of 30s") {
			t.Error(err)
		}
	})
}

func TestCosignLayout(t *testing.T) {
	rsaKey := checktest.Must(rsa.GenerateKey(rand.Reader, 2048))
	ecKey := checktest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	for _, signer := range []crypto.Signer{rsaKey, ecKey, ed25519.NewKeyFromSeed(make([]byte, 32))} {
		files, err := signaturetest.CosignLayout(signer, digest, "quay.io/other/name:1", "quay.io/a/b:1")
		checktest.OK(t, err)
		der := checktest.Must(x509.MarshalPKIXPublicKey(signer.Public()))
		key := checktest.Must(sigstore.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
		source := checktest.Must(sigstore.OpenFS(files, "layout", sigstore.Limits{}))
		policy := &sigstore.Policy{Name: "p", Keys: []*sigstore.Key{key}}
		v, err := policy.Verify(t.Context(), "quay.io/a/b@"+digest, source)
		if err != nil || v.Signers[0].Number != 2 || v.Signers[0].Reference != "quay.io/a/b:1" {
			t.Errorf("%v %v", v, err)
		}
	}
}

func Example() {
	key, err := signaturetest.NewKey(signaturetest.KeyOptions{})
	if err != nil {
		panic(err)
	}
	message, err := key.SignRelease(digest, "quay.io/example/release:1", signaturetest.Shape{Compressed: true})
	if err != nil {
		panic(err)
	}
	ring, err := signature.ParseKeyring("test", key.Public())
	if err != nil {
		panic(err)
	}
	v, err := signature.NewVerifier([]*signature.Keyring{ring}, signature.MemoryStore{digest: {message}}).Verify(context.Background(), digest)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Signers[0].Reference)
	// Output: quay.io/example/release:1
}

func TestPublish(t *testing.T) {
	key := checktest.Must(signaturetest.NewKey(signaturetest.KeyOptions{}))
	digest := "sha256:" + strings.Repeat("a", 64)
	ring, store, err := key.Publish("keys", map[string]string{digest: "quay.io/a/b:1"})
	checktest.OK(t, err)
	who, err := signature.NewVerifier([]*signature.Keyring{ring}, store).Verify(t.Context(), digest)
	if err != nil || who.Signers[0].Reference != "quay.io/a/b:1" || who.Signers[0].Keyring != "keys" {
		t.Errorf("%+v %v", who, err)
	}
	if _, _, err := key.Publish("keys", map[string]string{"x": "quay.io/a/b:1"}); err == nil {
		t.Error("x passes for a digest")
	}
}
