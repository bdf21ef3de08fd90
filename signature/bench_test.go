package signature_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Each kind of key, beside a bare verification with the same key.
func BenchmarkVerify(b *testing.B) {
	for _, kind := range []struct {
		name string
		key  *pgpKey
	}{
		{"RSA-4096", rsa4096()}, {"RSA-2048", rsa2048()}, {"ECDSA-P256", newECDSA(elliptic.P256())}, {"Ed25519", newEd25519(keyTime)},
	} {
		b.Run(kind.name+"/bare", func(b *testing.B) {
			b.ReportAllocs()
			arithmetic := bare(kind.key)
			for b.Loop() {
				if !arithmetic() {
					b.Fatal("refused")
				}
			}
		})
		plain := kind.key.message(msg{})
		for i, message := range [][]byte{plain, compressed(plain)} {
			b.Run(kind.name+"/"+[]string{"plain", "compressed"}[i], func(b *testing.B) {
				v := newVerifier(signature.Options{
					Keyrings: []*signature.Keyring{ring(b, kind.key.public(cert{}))},
					Stores:   []signature.Store{signature.MemoryStore{digestA: {message}}},
					NoCache:  true,
				})
				b.ReportAllocs()
				for b.Loop() {
					must(v.Verify(context.Background(), digestA))
				}
			})
		}
	}
}

// slowStore answers after a time, as a server far away does.
type slowStore struct {
	signature.MemoryStore
	latency time.Duration
}

func (s slowStore) Candidates(ctx context.Context, digest string) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		select {
		case <-time.After(s.latency):
		case <-ctx.Done():
			yield(signature.Candidate{}, &signature.StoreError{Store: s.String(), Err: ctx.Err()})
			return
		}
		s.MemoryStore.Candidates(ctx, digest)(yield)
	}
}

// Ten digests at a time over stores of 20 ms latency: near 20 ms each, however
// many stores there are.
func BenchmarkStores(b *testing.B) {
	k := newEd25519(keyTime)
	r := ring(b, k.public(cert{}))
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var stores []signature.Store
			for range n {
				stores = append(stores, slowStore{signature.MemoryStore{digestA: {k.message(msg{})}}, 20 * time.Millisecond})
			}
			v := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.Parallel(stores...)}, NoCache: true})
			b.ReportAllocs()
			b.SetParallelism(10)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					checktest.Good(b, checktest.Err(v.Verify(context.Background(), digestA)))
				}
			})
		})
	}
}

// Digests by the hundred over stores of 20 ms latency, all at once: the time is
// that of the latency and the arithmetic, not their product.
func BenchmarkDigests(b *testing.B) {
	k := newEd25519(keyTime)
	r := ring(b, k.public(cert{}))
	for _, digests := range []int{1, 10, 100} {
		all := signature.MemoryStore{}
		names := make([]string, digests)
		for i := range names {
			names[i] = fmt.Sprintf("sha256:%064x", i)
			all[names[i]] = [][]byte{k.message(msg{body: statement(names[i])})}
		}
		for _, n := range []int{1, 10} {
			b.Run(fmt.Sprintf("%d×%d", digests, n), func(b *testing.B) {
				stores := make([]signature.Store, n)
				for i := range stores {
					stores[i] = slowStore{all, 20 * time.Millisecond}
				}
				v := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.Parallel(stores...)}, NoCache: true})
				b.ReportAllocs()
				for b.Loop() {
					var group errgroup.Group
					for _, digest := range names {
						group.Go(func() error {
							_, err := v.Verify(context.Background(), digest)
							return err
						})
					}
					checktest.OK(b, group.Wait())
				}
			})
		}
	}
}

// Keyrings of growing numbers of keys.
func BenchmarkParseKeyring(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var data []byte
			for range n {
				data = cat(data, newEd25519(keyTime).public(cert{}))
			}
			b.ReportAllocs()
			for b.Loop() {
				must(signature.ParseKeyring("ring", data))
			}
		})
	}
}

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
