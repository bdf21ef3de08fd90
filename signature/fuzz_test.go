package signature_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// fuzzKey is the same in every process, so that corpora stay meaningful.
func fuzzKey() *pgpKey {
	priv := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	oid := []byte{9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1}
	return newKey(22, keyTime, cat(oid, u16(263), []byte{0x40}, priv.Public().(ed25519.PublicKey)), priv)
}

func fuzzVerify(r *signature.Keyring, message []byte) error {
	_, err := newVerifier(signature.Options{
		Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.MemoryStore{digestA: {message}}},
		Clock: clocktesting.NewFakePassiveClock(now), NoCache: true,
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

// A valid message that was altered, in any of its published shapes, verifies for
// no other digest, and only with the identical statement by the same key at the
// same time: a few bits of the framing are not signed.
func FuzzAlteredMessage(f *testing.F) {
	k := fuzzKey()
	r := ring(f, k.public(cert{}))
	var sources [][]byte
	var wants []string
	for _, body := range [][]byte{statement(digestA), statement(digestB)} {
		for _, m := range [][]byte{
			k.message(msg{body: body}), compressed(k.message(msg{body: body})), k.message(msg{sig: sig{typ: 1}, format: 't', body: body}),
			func() []byte {
				ops, _, s := k.parts(msg{body: body})
				return cat(ops, partialPkt(11, 1, literalBody('b', "", body)), s)
			}(),
		} {
			sources = append(sources, m)
			v, _ := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.MemoryStore{digestA: {m}}}, Clock: clocktesting.NewFakePassiveClock(now)}).Verify(context.Background(), digestA)
			wants = append(wants, fmt.Sprint(v))
		}
	}
	f.Add(byte(0), uint16(3), byte(1), uint16(0), []byte{})
	f.Add(byte(1), uint16(40), byte(0x80), uint16(3), []byte{1, 2})
	f.Add(byte(4), uint16(200), byte(0xff), uint16(100), []byte("x"))
	f.Fuzz(func(t *testing.T, which byte, at uint16, bits byte, insertAt uint16, insert []byte) {
		i := int(which) % len(sources)
		altered := bytes.Clone(sources[i])
		altered[int(at)%len(altered)] ^= bits
		p := int(insertAt) % (len(altered) + 1)
		altered = cat(altered[:p], insert, altered[p:])
		v, err := newVerifier(signature.Options{Keyrings: []*signature.Keyring{r}, Stores: []signature.Store{signature.MemoryStore{digestA: {altered}}}, Clock: clocktesting.NewFakePassiveClock(now)}).Verify(context.Background(), digestA)
		switch {
		case err != nil:
		case i >= len(sources)/2:
			t.Fatal("a signature for another digest verified")
		case fmt.Sprint(v) != wants[i]:
			t.Fatalf("verified as something else: %v", v)
		}
	})
}

// No ConfigMap makes the store panic, or yield more than its limit.
func FuzzConfigMap(f *testing.F) {
	prefix := "sha256-" + digestA[7:]
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"openshift-config-managed","labels":{"release.openshift.io/verification-signatures":""}},"binaryData":{"` + prefix + `-1":"QQ==","` + prefix + `-x":"QQ=="}}`))
	f.Add([]byte(`{"metadata":{"namespace":"openshift-config-managed","labels":{"release.openshift.io/verification-signatures":""}},"binaryData":[]}`))
	f.Add([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"annotations":{"release.openshift.io/verification-config-map":""}},"data":{"store-a":"https://a","verifier-public-key-a":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		obj := map[string]any{}
		if json.Unmarshal(data, &obj) != nil || obj == nil {
			return
		}
		n := 0
		store := &cluster.ConfigMapStore{Reader: fakeReader{"ConfigMap openshift-config-managed/x": obj}}
		for sig, err := range signatures(store.Candidates(context.Background(), digestA)) {
			if n++; err == nil && len(sig) == 0 || n > 64+2 {
				t.Fatalf("%d: %q %v", n, sig, err)
			}
		}
		// And as the configuration of a payload: keys and stores, or an error.
		c, err := cluster.ReadConfig([]cluster.ConfigSource{{Name: "f", Object: &unstructured.Unstructured{Object: obj}}}, signature.HTTPOptions{})
		if err == nil && (len(c.Keyrings) == 0 || len(c.Stores) == 0) {
			t.Fatalf("%+v", c)
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
	f.Add(cat(k.public(cert{}), k.subkey(s, nil, 0, true), pkt(17, []byte("x")), pkt(2, k.sign(sig{typ: 0x28}, k.hashed(), s.hashed())), pkt(2, k.sign(sig{typ: 0x30}, k.hashed()))))
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
		if _, err := signature.Insecure().Verify(t.Context(), digest); err == nil && (bytes.ContainsAny([]byte(digest), "/\\%\x00\n") || bytes.Contains([]byte(digest), []byte(".."))) {
			t.Errorf("%q can leave its directory", digest)
		}
	})
}
