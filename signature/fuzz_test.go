package signature_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
)

// fuzzKey is the same in every process, so that corpora stay meaningful.
func fuzzKey() *pgpKey {
	priv := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	oid := []byte{9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1}
	return newKey(22, keyTime, cat(oid, u16(263), []byte{0x40}, priv.Public().(ed25519.PublicKey)), priv)
}

func fuzzVerify(r *signature.Keyring, message []byte) error {
	_, err := signature.New(signature.Options{
		Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.MemoryStore{digestA: {message}}},
		Clock: clocktesting.NewFakePassiveClock(now), CacheSize: -1,
	}).Verify(context.Background(), digestA)
	return err
}

// No input may verify that was not made with the key, or panic.
func FuzzMessage(f *testing.F) {
	k := fuzzKey()
	r := ring(f, k.public(cert{}))
	for _, m := range [][]byte{k.message(msg{}), compressed(k.message(msg{})), k.message(msg{sig: sig{version: 3}}), k.message(msg{sig: sig{typ: 1}, body: statement(digestB)})} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if err := fuzzVerify(r, message); err == nil && !bytes.Contains(message, []byte("docker-manifest-digest")) && message[0] != 0xa3 {
			t.Error("verified, but the statement cannot be seen")
		}
	})
}

// A valid message that was altered verifies for no other digest, and only if it
// still holds the very same statement: a few bits of the framing are not signed.
func FuzzAlteredMessage(f *testing.F) {
	k := fuzzKey()
	r := ring(f, k.public(cert{}))
	body := statement(digestB)
	forB := k.message(msg{body: body})
	good := k.message(msg{})
	f.Add(uint16(3), byte(1), false)
	f.Add(uint16(40), byte(0x80), true)
	f.Add(uint16(200), byte(0xff), false)
	f.Fuzz(func(t *testing.T, at uint16, bits byte, other bool) {
		src := good
		if other {
			src = forB
		}
		altered := bytes.Clone(src)
		altered[int(at)%len(altered)] ^= bits
		err := fuzzVerify(r, altered)
		if other && err == nil {
			t.Fatal("a signature for another digest verified")
		}
		if err == nil && !bytes.Contains(altered, statement(digestA)) {
			t.Fatal("verified with another statement")
		}
	})
}

func FuzzStatement(f *testing.F) {
	k := fuzzKey()
	r := ring(f, k.public(cert{}))
	f.Add(statement(digestA))
	f.Add([]byte(`{"critical":{"type":"atomic container signature"}}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := fuzzVerify(r, k.message(msg{body: append([]byte{}, body...)})); err == nil && !bytes.Contains(body, []byte("aaaa")) && !bytes.ContainsRune(body, '\\') {
			t.Error("verified without naming the digest")
		}
	})
}

func FuzzKeyring(f *testing.F) {
	k := fuzzKey()
	s := newEd25519(keyTime)
	f.Add(k.public(cert{}))
	f.Add(armored(f, publicBlock, k.public(cert{extra: k.subkey(s, nil, 0, true)})))
	f.Add(cat(k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))}), pkt(6, []byte{4})))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := signature.ParseKeyring("ring", data)
		if (err == nil) == (r == nil) {
			t.Fatal(r, err)
		}
		if err == nil && (len(r.Keys()) == 0 || r.Keys()[0].Fingerprint == "" || len(r.Keys()[0].UserIDs) == 0) {
			t.Errorf("%+v", r.Keys())
		}
	})
}

func FuzzDigest(f *testing.F) {
	f.Add(digestA)
	f.Add("sha256:../../x")
	f.Fuzz(func(t *testing.T, digest string) {
		if signature.ValidateDigest(digest) == nil && (bytes.ContainsAny([]byte(digest), "/\\%\x00\n") || bytes.Contains([]byte(digest), []byte(".."))) {
			t.Errorf("%q can leave its directory", digest)
		}
	})
}
