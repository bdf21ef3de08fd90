package signaturetest_test

import (
	"context"
	"crypto"
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

var now = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func verify(t *testing.T, public, message []byte) error {
	t.Helper()
	ring, err := signature.ParseKeyring("ring", public)
	if err != nil {
		t.Fatal(err)
	}
	_, err = signature.New(signature.Options{
		Keyrings: []*signature.Keyring{ring}, Stores: []signature.Store{signature.MemoryStore{digest: {message}}}, Clock: clocktesting.NewFakePassiveClock(now),
	}).Verify(context.Background(), digest)
	return err
}

func TestEveryShapeVerifies(t *testing.T) {
	for _, o := range []signaturetest.KeyOptions{{}, {RSABits: 2048, UserID: "Someone", Lifetime: 48 * time.Hour}} {
		k, err := signaturetest.NewKey(o)
		if err != nil {
			t.Fatal(err)
		}
		armored, err := k.Armored()
		if err != nil {
			t.Fatal(err)
		}
		ring, err := signature.ParseKeyring("ring", armored)
		if err != nil || ring.Keys()[0].Fingerprint != k.Fingerprint() {
			t.Fatal(ring, err)
		}
		for i := range 48 {
			s := signaturetest.Shape{
				Version: 3 + i%2, Compressed: i/2%2 == 1, Text: i/4%2 == 1, Partial: i/8%2 == 1,
				Hash: []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}[i/16],
			}
			m, err := k.SignRelease(digest, "quay.io/a/b:1", s)
			if s.Version == 3 && o.RSABits == 0 {
				if err == nil {
					t.Error("an Ed25519 key signed in version 3")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, public := range [][]byte{k.Public(), armored} {
				if err := verify(t, public, m); err != nil {
					t.Errorf("%+v %+v: %v", o, s, err)
				}
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	k, err := signaturetest.NewKey(signaturetest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	short, err := signaturetest.NewKey(signaturetest.KeyOptions{Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := signaturetest.NewKey(signaturetest.KeyOptions{Revoked: true})
	if err != nil {
		t.Fatal(err)
	}
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
		m, err := tt.key.SignRelease(digest, "quay.io/a/b:1", tt.shape)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, tt.key.Public(), m); err == nil || !strings.Contains(signature.Chain(err), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.shape, err, tt.want)
		}
	}
	for _, s := range []signaturetest.Shape{{Version: 5}, {Version: 3}, {Hash: crypto.SHA1}} {
		if _, err := k.Sign(nil, s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
	if _, err := k.SignRelease("", "", signaturetest.Shape{}); err == nil {
		t.Error("nothing to sign: no error")
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
