package signature_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"
)

// bare is the arithmetic of a verification, and nothing else.
func bare(k *pgpKey) func() bool {
	sum := sha256.Sum256([]byte("x"))
	switch k := k.signer.(type) {
	case *rsa.PrivateKey:
		sig := must(rsa.SignPKCS1v15(nil, k, crypto.SHA256, sum[:]))
		return func() bool { return rsa.VerifyPKCS1v15(&k.PublicKey, crypto.SHA256, sum[:], sig) == nil }
	case *ecdsa.PrivateKey:
		r, s := must2(ecdsa.Sign(nil, k, sum[:]))
		return func() bool { return ecdsa.Verify(&k.PublicKey, sum[:], r, s) }
	case ed25519.PrivateKey:
		sig, pub := ed25519.Sign(k, sum[:]), k.Public().(ed25519.PublicKey)
		return func() bool { return ed25519.Verify(pub, sum[:], sig) }
	}
	panic("unknown key")
}

// What a verification costs beside its arithmetic. The two alternate, and the
// fastest twentieth of each is compared, so that other load on the machine hardly
// shows: metrics overhead-ns and overhead-%.
func BenchmarkOverhead(b *testing.B) {
	for _, kind := range []struct {
		name string
		key  *pgpKey
	}{
		{"RSA-4096", rsa4096()}, {"RSA-2048", rsa2048()}, {"ECDSA-P256", newECDSA(elliptic.P256())}, {"Ed25519", newEd25519(keyTime)},
	} {
		for _, shape := range []struct {
			name string
			wrap func([]byte) []byte
		}{{"plain", func(m []byte) []byte { return m }}, {"compressed", compressed}} {
			b.Run(kind.name+"/"+shape.name, func(b *testing.B) {
				v := newVerifier(signature.Options{
					Keyrings: []*signature.Keyring{ring(b, kind.key.public(cert{}))},
					Stores:   []signature.Store{signature.MemoryStore{digestA: {shape.wrap(kind.key.message(msg{}))}}},
					NoCache:  true,
				})
				arithmetic := bare(kind.key)
				var without, with []time.Duration
				b.ReportAllocs()
				for b.Loop() {
					t0 := time.Now()
					ok := arithmetic()
					t1 := time.Now()
					_, err := v.Verify(context.Background(), digestA)
					t2 := time.Now()
					if !ok || err != nil {
						b.Fatal(ok, err)
					}
					without, with = append(without, t1.Sub(t0)), append(with, t2.Sub(t1))
				}
				slices.Sort(without)
				slices.Sort(with)
				x, y := without[len(without)/20], with[len(with)/20]
				b.ReportMetric(float64(y-x), "overhead-ns")
				b.ReportMetric(100*float64(y-x)/float64(x), "overhead-%")
			})
		}
	}
}
