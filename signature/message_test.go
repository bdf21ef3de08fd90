package signature_test

import (
	"bytes"
	"crypto/elliptic"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/signaturetest"
)

// Every kind of key, besides those of the vectors.
func TestKeysOfAllKinds(t *testing.T) {
	for name, k := range map[string]*pgpKey{
		"P-256": newECDSA(elliptic.P256()), "P-384": newECDSA(elliptic.P384()), "P-521": newECDSA(elliptic.P521()),
		"algorithm 22": newEd25519(keyTime), "algorithm 27": newEd25519v2(), "RSA": rsa2048(),
	} {
		// Signatures of many lengths: integers lose zeros in front.
		t.Run(name, func(t *testing.T) {
			r := ring(t, k.public(cert{}))
			for i := range 40 {
				if _, err := verify(t, r, k.message(msg{sig: sig{created: sigTime.Add(time.Duration(i) * time.Second)}}), signature.Options{}); err != nil {
					t.Fatal(cause(err))
				}
			}
		})
	}
}

// A literal whose last partial chunk is followed by a length of zero is
// authentic; this body is no statement.
func TestPartialLengthsWithAnEmptyEnd(t *testing.T) {
	k := newEd25519(keyTime)
	body := bytes.Repeat([]byte("x"), 122)
	lit := literalBody('u', "", body) // 128 octets
	ops, _, s := k.parts(msg{body: body})
	chunk := []byte{224 + 6}
	_, err := verify(t, ring(t, k.public(cert{})), cat(ops, []byte{0xc0 | 11}, chunk, lit[:64], chunk, lit[64:], []byte{0}, s), signature.Options{})
	wantRefused(t, err, signature.NotJSON, "")
}

// A real signature's integer had 4088 of 4096 bits: the zeros in front are
// dropped in the packet and put back by the verifier. One signature in 256 or so
// is like that; they are made until one is.
func TestShortIntegers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		key     *pgpKey
		version byte
		full    int // octets of a signature that has lost nothing
	}{
		{"RSA, version 3", rsa2048(), 3, 2 + 256}, {"RSA, version 4", rsa2048(), 4, 2 + 256},
		{"ECDSA P-256", newECDSA(elliptic.P256()), 4, 2*2 + 64}, {"Ed25519", newEd25519(keyTime), 4, 2*2 + 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ring(t, tt.key.public(cert{}))
			const tries = 100_000
			for i := range tries {
				length := 0
				m := tt.key.message(msg{sig: sig{version: tt.version, created: sigTime.Add(time.Duration(i) * time.Second), values: func(v []byte) []byte {
					length = len(v)
					return v
				}}})
				if length == tt.full {
					continue
				}
				if _, err := verify(t, r, m, signature.Options{}); err != nil {
					t.Fatal(cause(err))
				}
				return
			}
			t.Fatalf("none of %d signatures has a short integer: signing is broken", tries)
		})
	}
}

// Messages that another implementation writes.
func TestSign(t *testing.T) {
	for name, config := range map[string]*pgppacket.Config{
		"EdDSA":   {Algorithm: pgppacket.PubKeyAlgoEdDSA, Curve: pgppacket.Curve25519},
		"Ed25519": {Algorithm: pgppacket.PubKeyAlgoEd25519},
		"ECDSA":   {Algorithm: pgppacket.PubKeyAlgoECDSA, Curve: pgppacket.CurveNistP256},
		"RSA":     {Algorithm: pgppacket.PubKeyAlgoRSA, RSABits: 2048},
	} {
		t.Run(name, func(t *testing.T) {
			config.Time = func() time.Time { return keyTime }
			e := must(openpgp.NewEntity("Signer", "", "signer@example.com", config))
			var public bytes.Buffer
			checktest.OK(t, e.Serialize(&public))
			m := must(signaturetest.Sign(e, statement(digestA), sigTime))
			v, err := verify(t, ring(t, public.Bytes()), m, signature.Options{})
			if err != nil {
				t.Fatal(cause(err))
			}
			s := v.Signers[0]
			if want := strings.ToUpper(hex.EncodeToString(e.PrimaryKey.Fingerprint)); s.Fingerprint != want || s.UserID != "Signer <signer@example.com>" || !s.Created.Equal(sigTime) || s.Reference != "quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64" || s.Number != 1 || s.Store != "in-memory signature store" {
				t.Errorf("signer %+v", s)
			}
		})
	}
	checktest.Fails(t, checktest.Err(signaturetest.Sign(nil, nil, now)), "signed without a key")
}

// bzip2 cannot be written in Go; this stream holds 'not signed' data: a literal
// packet made with the bzip2 program.
func TestBzip2(t *testing.T) {
	// printf '\xcb\x0bb\x00\x00\x00\x00\x00hello' | bzip2 -9 | xxd -p
	const stream = "425a6839314159265359f7a5d9c00000064104600812448008200021280d3420c988b9078b570fc5dc914e14243de9767000"
	data, err := hex.DecodeString(stream)
	checktest.OK(t, err)
	r := ring(t, newEd25519(keyTime).public(cert{}))
	_, err = verify(t, r, pkt(8, []byte{3}, data), signature.Options{})
	wantRefused(t, err, signature.NotSigned, "not signed") // it was read
	_, err = verify(t, r, pkt(8, []byte{3}, data, data), signature.Options{})
	wantRefused(t, err, signature.Unreadable, "after the end of the compressed stream")
	for _, more := range [][]byte{{0}, []byte("BZh9"), data[:10], data} {
		_, err = verify(t, r, pkt(8, []byte{3}, data, more), signature.Options{})
		wantRefused(t, err, signature.Unreadable, fmt.Sprintf("%d octets after the end of the compressed stream", len(more)))
	}
	for _, cut := range [][]byte{nil, data[:3], data[:4], data[:len(data)-1]} {
		_, err = verify(t, r, pkt(8, []byte{3}, cut), signature.Options{})
		wantRefused(t, err, signature.Unreadable, "")
	}
}

// A header that announces large blocks reserves no memory for them.
func TestBzip2Memory(t *testing.T) {
	r := ring(t, newEd25519(keyTime).public(cert{}))
	// Its level is 9, its end follows at once.
	empty := must(hex.DecodeString("425a6839" + "177245385090" + "00000000"))
	for _, stream := range [][]byte{empty, empty[:4], empty[:9], append(empty[:4:4], 0x31, 0x41, 0x59, 0x26, 0x53, 0x59)} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := verify(t, r, pkt(8, []byte{3}, stream), signature.Options{})
		runtime.ReadMemStats(&after)
		wantRefused(t, err, signature.Unreadable, "")
		if n := after.TotalAlloc - before.TotalAlloc; n > 600<<10 {
			t.Errorf("%x: %d bytes allocated", stream, n)
		}
	}
}

func TestMessageLimit(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	m := k.message(msg{})
	for _, tt := range []struct {
		limit int
		ok    bool
	}{{len(m), true}, {len(m) - 1, false}} {
		for name, message := range map[string][]byte{"plain": m, "compressed": compressed(m)} {
			if _, err := verify(t, r, message, signature.Options{MaxMessage: tt.limit}); (err == nil) != tt.ok {
				t.Errorf("%s message of %d with limit %d: %v", name, len(m), tt.limit, cause(err))
			}
		}
	}
}
