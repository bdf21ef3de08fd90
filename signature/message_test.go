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

	"github.com/clusterupdate/clusterupdate/signature"
)

// Every published shape of a message, and every kind of key.
func TestAcceptedMessages(t *testing.T) {
	ed := newEd25519(keyTime)
	edRing := ring(t, ed.public(cert{}))
	rsaRing := ring(t, rsa2048().public(cert{}))
	text := bytes.ReplaceAll(statement(digestA), []byte("}\n"), []byte("}\r\n")) // mixed line ends
	parts := func(k *pgpKey, m msg, join func(ops, lit, s []byte) []byte) []byte { return join(k.parts(m)) }
	v3 := sig{version: 3}

	for _, tt := range []struct {
		name string
		ring *signature.Keyring
		msg  []byte
	}{
		{"v4 plain", edRing, ed.message(msg{})},
		{"v4 RSA", rsaRing, rsa2048().message(msg{})},
		{"v4 compressed", rsaRing, compressed(rsa2048().message(msg{name: "_rpmsig-req-XXXXXX.bin"}))},
		{"v3 compressed, as published 2019 to 2022", rsaRing, compressed(rsa2048().message(msg{sig: v3, name: "_rpmsig-req-XXXXXX.bin"}))},
		{"v3 plain SHA-512", rsaRing, rsa2048().message(msg{sig: sig{version: 3, hash: 10}})},
		{"v3 over text", rsaRing, rsa2048().message(msg{sig: sig{version: 3, typ: 1}, body: text})},
		{"text, partial lengths, first chunk of 2, as the CI signs", edRing, parts(ed, msg{sig: sig{typ: 1}, format: 't', body: text}, func(ops, _, s []byte) []byte {
			lit := literalBody('t', "", text)
			return cat(ops, []byte{0xc0 | 11, 224 + 1}, lit[:2], []byte{224 + 8}, lit[2:258], length(len(lit)-258), lit[258:], s)
		})},
		{"partial lengths of one octet", edRing, parts(ed, msg{}, func(ops, _, s []byte) []byte {
			return cat(ops, partialPkt(11, 0, literalBody('b', "", statement(digestA))), s)
		})},
		{"partial lengths with an empty end", edRing, parts(ed, msg{body: make128()}, func(ops, _, s []byte) []byte {
			lit := literalBody('u', "", make128())
			return cat(ops, []byte{0xc0 | 11}, chunks(lit), []byte{0}, s)
		})},
		{"old headers", edRing, parts(ed, msg{}, func(ops, lit, s []byte) []byte {
			return cat(oldPkt(4, ops[2:]), oldPkt(11, literalBody('b', "x", statement(digestA))), oldPkt(2, s[2:]))
		})},
		{"compressed with zlib", edRing, pkt(8, []byte{2}, zlibbed(ed.message(msg{})))},
		{"compressed in parts", edRing, partialPkt(8, 5, cat([]byte{1}, deflated(ed.message(msg{}))))},
		{"SHA-384", edRing, ed.message(msg{sig: sig{hash: 9}})},
		{"SHA-512", rsaRing, rsa2048().message(msg{sig: sig{hash: 10}})},
		{"RSA sign-only", rsaRing, rsa2048().message(msg{sig: sig{algo: 3}})},
		{"v3 RSA sign-only", rsaRing, rsa2048().message(msg{sig: sig{version: 3, algo: 3}})},
		{"no issuer at all", edRing, ed.message(msg{sig: sig{noIssuer: true}})},
		{"issuer fingerprint", edRing, ed.message(msg{sig: sig{noIssuer: true, hashed: sub(33, []byte{4}, ed.print)}})},
		{"known critical subpackets", edRing, ed.message(msg{sig: sig{noTime: true, hashed: cat(sub(0x80|2, stamp(sigTime)), sub(0x80|3, u32(0)), sub(0x80|26, []byte("x")), sub(0x80|28, []byte("x")))}})},
		{"notation that is not critical", edRing, ed.message(msg{sig: sig{hashed: sub(20, []byte{0, 0, 0, 0, 0, 1, 0, 1, 'a', 'b'})}})},
		{"expiry of zero means never", edRing, ed.message(msg{sig: sig{hashed: sub(3, u32(0))}})},
		{"expiry in the future", edRing, ed.message(msg{sig: sig{hashed: sub(3, u32(uint32(now.Sub(sigTime).Seconds())+1))}})},
		{"expiry outside of the hashed area says nothing", edRing, ed.message(msg{sig: sig{unhashed: sub(3, u32(1))}})},
		{"made in the future", edRing, ed.message(msg{sig: sig{created: now.AddDate(1, 0, 0)}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := verify(t, tt.ring, tt.msg, signature.Options{})
			if err != nil && strings.HasPrefix(tt.name, "partial lengths with an empty end") {
				wantRefused(t, err, signature.NotJSON, "") // authentic; its body is none
				return
			}
			if err != nil {
				t.Fatalf("%v: %v", err, cause(err))
			}
			if got, want := v.Signers[0].Fingerprint, tt.ring.Keys()[0].Fingerprint; got != want {
				t.Errorf("signed by %s, want %s", got, want)
			}
		})
	}

	for name, k := range map[string]*pgpKey{
		"P-256": newECDSA(elliptic.P256()), "P-384": newECDSA(elliptic.P384()), "P-521": newECDSA(elliptic.P521()),
		"algorithm 22": ed, "algorithm 27": newEd25519v2(), "RSA": rsa2048(),
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

// make128 is a body whose literal packet has 128 octets.
func make128() []byte { return bytes.Repeat([]byte("x"), 122) }

func chunks(b []byte) []byte {
	if len(b) != 128 {
		panic("128 octets wanted")
	}
	return cat([]byte{224 + 6}, b[:64], []byte{224 + 6}, b[64:])
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
			e, err := openpgp.NewEntity("Signer", "", "signer@example.com", config)
			if err != nil {
				t.Fatal(err)
			}
			var public bytes.Buffer
			if err := e.Serialize(&public); err != nil {
				t.Fatal(err)
			}
			m, err := signature.Sign(e, statement(digestA), sigTime)
			if err != nil {
				t.Fatal(err)
			}
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
	if _, err := signature.Sign(nil, nil, now); err == nil {
		t.Error("signed without a key")
	}
}

func TestRefusedMessages(t *testing.T) {
	ed := newEd25519(keyTime)
	other := newEd25519(keyTime)
	edRing := ring(t, ed.public(cert{}))
	rsaRing := ring(t, rsa2048().public(cert{}))
	ops, lit, s := ed.parts(msg{})
	good := cat(ops, lit, s)
	_, litB, sB := other.parts(msg{})
	text := byte(1)
	plain := func(m msg) []byte { return ed.message(m) }
	bitFlip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	litBody := literalBody('b', "", statement(digestA))

	const (
		unreadable = signature.Unreadable
		bad        = signature.BadSignature
	)
	for _, tt := range []struct {
		name   string
		ring   *signature.Keyring
		msg    []byte
		reason signature.Reason
		text   string
	}{
		{"a bare start", edRing, []byte{0xc4}, unreadable, "could not read the message: unexpected EOF"},
		{"b armored", edRing, []byte("-----BEGIN PGP MESSAGE-----\n"), unreadable, "could not read the message: openpgp: invalid data: tag byte does not have MSB set"},
		{"b clear-signed", edRing, []byte("-----BEGIN PGP SIGNED MESSAGE-----\n"), unreadable, "tag byte does not have MSB set"},
		{"c detached", edRing, s, signature.NotSigned, "not signed"},
		{"d literal only", edRing, lit, signature.NotSigned, "not signed"},
		{"d signature before literal", edRing, cat(s, lit), signature.NotSigned, "not signed"},
		{"d compressed literal only", edRing, compressed(lit), signature.NotSigned, "not signed"},
		{"e unknown key", ring(t, other.public(cert{})), good, signature.InvalidKey, "invalid signature: no key " + fmt.Sprintf("%016X", ed.id)},
		{"f body altered", edRing, bitFlip(len(ops) + 40), bad, "signature error: hash tag does not match"},
		{"f signature altered", edRing, bitFlip(len(good) - 3), bad, "signature error: verification failure"},
		{"f body of another", edRing, cat(ops, pkt(11, literalBody('b', "", statement(digestB))), s), bad, "hash tag"},
		{"f time altered", edRing, bytes.Replace(good, stamp(sigTime), stamp(sigTime.Add(time.Second)), 1), bad, "hash tag"},
		{"g cut after one-pass", edRing, ops, unreadable, "no literal data"},
		{"g cut in literal", edRing, cat(ops, lit[:20]), unreadable, "unexpected EOF"},
		{"g cut after literal", edRing, cat(ops, lit), unreadable, "LiteralData not followed by signature"},
		{"g cut in signature", edRing, good[:len(good)-1], unreadable, "unexpected EOF"},
		{"g cut compressed", edRing, compressed(good)[:60], unreadable, "unexpected EOF"},
		{"h encrypted to a key", edRing, cat(pkt(1, make([]byte, 30)), pkt(18, make([]byte, 40))), unreadable, "encrypted message"},
		{"h encrypted by passphrase", edRing, cat(pkt(3, make([]byte, 30)), pkt(18, make([]byte, 40))), unreadable, "encrypted message"},
		{"i nested, first not last", edRing, cat(onePass(0, 8, 22, other.id, 0), ops, lit, s, sB), unreadable, "nested signatures"},
		{"i two one-pass, both last", edRing, cat(onePass(0, 8, 22, other.id, 1), ops, lit, s, sB), unreadable, "nested signatures"},
		{"i one-pass not last", edRing, plain(msg{notLast: true}), unreadable, "nested signatures"},
		{"i2 marker first", edRing, cat(pkt(10, []byte("PGP")), good), unreadable, "unexpected packet of type 10"},
		{"i2 user id first", edRing, cat(pkt(13, []byte("a")), good), unreadable, "unexpected packet of type 13"},
		{"i2 key first", edRing, cat(pkt(6, ed.body), good), unreadable, "unexpected packet of type 6"},
		{"i2 marker before literal", edRing, cat(ops, pkt(10, []byte("PGP")), lit, s), unreadable, "unexpected packet of type 10 before the literal data"},
		{"i2 stray signature before literal", edRing, cat(ops, s, lit, s), unreadable, "unexpected packet of type 2 before"},
		{"i3 issuer differs", edRing, plain(msg{sig: sig{issuer: other.id}}), unreadable, "differs from"},
		{"i3 hashed issuer differs", edRing, plain(msg{sig: sig{noIssuer: true, hashed: sub(16, u64(other.id))}}), unreadable, "differs from"},
		{"i3 one issuer of two differs", edRing, plain(msg{sig: sig{unhashed: sub(16, u64(other.id))}}), unreadable, "differs from"},
		{"i3 fingerprint differs", edRing, plain(msg{sig: sig{unhashed: sub(33, []byte{4}, other.print)}}), unreadable, "differs from"},
		{"i3 fingerprint of a key with the same id", edRing, plain(msg{sig: sig{hashed: sub(33, []byte{4}, make([]byte, 12), u64(ed.id))}}), signature.InvalidKey, "signature names the key"},
		{"i3 one-pass of another key", ring(t, ed.public(cert{}), other.public(cert{})), plain(msg{opsID: other.id}), unreadable, "differs from"},
		{"i3 v3 issuer differs", rsaRing, rsa2048().message(msg{sig: sig{version: 3, issuer: 1}}), unreadable, "differs from"},
		{"j two literals", edRing, cat(ops, lit, litB, s), unreadable, "LiteralData not followed by signature"},
		{"k trailing octet", edRing, cat(good, []byte{0}), unreadable, "after the signature"},
		{"k trailing newline", edRing, cat(good, []byte("\n")), unreadable, "after the signature"},
		{"k second message", edRing, cat(good, good), unreadable, "after the signature"},
		{"k marker at the end", edRing, cat(good, pkt(10, []byte("PGP"))), unreadable, "after the signature"},
		{"k in the compressed stream", edRing, compressed(cat(good, []byte{0})), unreadable, "after the signature"},
		{"k after the compressed stream", edRing, cat(compressed(good), []byte{0}), unreadable, "after the end of the compressed stream"},
		{"k after zlib", edRing, cat([]byte{0xa3, 2}, zlibbed(good), []byte{0}), unreadable, "after the end of the compressed stream"},
		{"k after the compressed packet", edRing, cat(pkt(8, []byte{1}, deflated(good)), good), unreadable, "after the compressed packet"},
		{"l nested compression", edRing, compressed(compressed(good)), unreadable, "more than one level of compression"},
		{"m message too large", edRing, cat(good, make([]byte, 1<<20)), unreadable, "larger than the limit of 1048576 bytes"},
		{"m compression bomb", edRing, compressed(plain(msg{body: make([]byte, 8<<20)})), unreadable, "decompressed message is larger than the limit of 1048576 bytes"},
		{"n MD5", rsaRing, rsa2048().message(msg{sig: sig{hash: 1}}), bad, "signature error: hash MD5 is too weak"},
		{"n SHA-1", rsaRing, rsa2048().message(msg{sig: sig{hash: 2}}), bad, "signature error: hash SHA-1 is too weak"},
		{"n v3 SHA-1", rsaRing, rsa2048().message(msg{sig: sig{version: 3, hash: 2}}), bad, "hash SHA-1 is too weak"},
		{"n SHA-224", rsaRing, rsa2048().message(msg{sig: sig{hash: 11}}), bad, "hash SHA-224 is too weak"},
		{"n RIPEMD-160", edRing, plain(msg{sig: sig{hash: 3}}), bad, "hash RIPEMD-160 is too weak"},
		{"o expired", edRing, plain(msg{sig: sig{hashed: sub(3, u32(day))}}), signature.Expired, "signature expired on " + sigTime.Add(24*time.Hour).String()},
		{"o expires this second", edRing, plain(msg{sig: sig{hashed: sub(3, u32(uint32(now.Sub(sigTime).Seconds())))}}), signature.Expired, "signature expired on " + now.String()},
		{"t RSA 1024", ring(t, rsa1024().public(cert{})), rsa1024().message(msg{}), bad, "signature error: key"},
		{"t DSA", ring(t, dsaKey().public(cert{})), dsaKey().message(msg{}), bad, "signature error: public key algorithm 17 is not accepted"},
		{"v Ed448", edRing, plain(msg{sig: sig{algo: 28}}), bad, "algorithm 28 is not accepted"},
		{"w unknown critical subpacket", edRing, plain(msg{sig: sig{hashed: sub(0x80|100, []byte("x"))}}), unreadable, "unknown critical signature subpacket type 100"},
		{"w unknown critical subpacket unhashed", edRing, plain(msg{sig: sig{unhashed: sub(0x80|101, []byte("x"))}}), unreadable, "type 101"},
		{"w critical notation", edRing, plain(msg{sig: sig{hashed: sub(0x80|20, []byte{0, 0, 0, 0, 0, 1, 0, 1, 'a', 'b'})}}), unreadable, "type 20"},
		{"w critical key flags", edRing, plain(msg{sig: sig{hashed: sub(0x80|27, []byte{2})}}), unreadable, "type 27"},
		{"x signature type", edRing, plain(msg{sig: sig{typ: 0x13}}), unreadable, "could not read the message: openpgp: unsupported feature: unsupported signature type: 19"},
		{"y unknown hash", edRing, plain(msg{sig: sig{hash: 99}}), unreadable, "could not read the message: openpgp: unsupported feature: hash not available: 99"},
		{"y unknown hash announced", edRing, plain(msg{opsHash: 99}), unreadable, "could not read the message: openpgp: unsupported feature: hash not available: 99"},
		{"z v2", rsaRing, rsa2048().message(msg{sig: sig{version: 2}}), unreadable, "version 2"},
		{"z v5", edRing, plain(msg{sig: sig{version: 5}}), unreadable, "version 5"},
		{"v3 hashed length", rsaRing, rsa2048().message(msg{sig: sig{version: 3, v3len: 6}}), unreadable, "hashes 6 octets"},
		{"v3 tag", rsaRing, rsa2048().message(msg{sig: sig{version: 3, badTag: true}}), bad, "signature error: hash tag does not match"},
		{"v4 tag", edRing, plain(msg{sig: sig{badTag: true}}), bad, "signature error: hash tag does not match"},
		{"v3 of an EdDSA key", edRing, plain(msg{sig: sig{version: 3}}), bad, "not accepted in version 3"},
		{"v3 octets after the integer", rsaRing, rsa2048().message(msg{sig: sig{version: 3, after: []byte{0}}}), bad, "after the last"},
		{"v4 octets after the integer", rsaRing, rsa2048().message(msg{sig: sig{after: []byte{0}}}), bad, "after the last"},
		{"EdDSA octets after the integers", edRing, plain(msg{sig: sig{after: []byte{0}}}), bad, "after the last"},
		{"RSA integer longer than the modulus", rsaRing, rsa2048().message(msg{sig: sig{values: func(v []byte) []byte { return cat(u16(257*8), []byte{0}, v[2:]) }}}), bad, "longer than the modulus"},
		{"hash differs from one-pass", edRing, plain(msg{opsHash: 10}), unreadable, "signature hash 8 differs from 10"},
		{"algorithm differs from one-pass", edRing, plain(msg{opsAlgo: 1}), unreadable, "signature algorithm 22 differs from 1"},
		{"type differs from one-pass", edRing, plain(msg{opsType: &text}), unreadable, "signature type 0 differs from 1"},
		{"v3 type differs from one-pass", rsaRing, rsa2048().message(msg{sig: sig{version: 3}, opsType: &text}), unreadable, "signature type 0 differs"},
		{"v3 hash differs from one-pass", rsaRing, rsa2048().message(msg{sig: sig{version: 3}, opsHash: 10}), unreadable, "signature hash 8 differs"},
		{"algorithm of another kind than the key", rsaRing, rsa2048().message(msg{sig: sig{algo: 19}}), bad, "public key algorithm 19 of the signature"},
		{"no creation time", edRing, plain(msg{sig: sig{noTime: true}}), unreadable, "without a creation time"},
		{"two creation times", edRing, plain(msg{sig: sig{hashed: sub(2, stamp(sigTime))}}), unreadable, "more than one creation time"},
		{"creation time unhashed", edRing, plain(msg{sig: sig{unhashed: sub(2, stamp(sigTime))}}), unreadable, "outside of the hashed area"},
		{"creation time of five octets", edRing, plain(msg{sig: sig{noTime: true, hashed: sub(2, stamp(sigTime), []byte{0})}}), unreadable, "unexpected length"},
		{"empty subpacket", edRing, plain(msg{sig: sig{hashed: []byte{0}}}), unreadable, "malformed signature subpacket"},
		{"older than its key", edRing, plain(msg{sig: sig{created: keyTime.Add(-time.Second)}}), bad, "signature error: signature is older than its key"},
		{"one-pass version", edRing, cat(pkt(4, []byte{6}, ops[3:]), lit, s), unreadable, "one-pass signature version 6"},
		{"one-pass length", edRing, cat(pkt(4, ops[2:], []byte{1}), lit, s), unreadable, "14 octets, not 13"},
		{"one-pass partial", edRing, cat(partialPkt(4, 3, ops[2:]), lit, s), unreadable, "without a definite length"},
		{"signature partial", edRing, cat(ops, lit, partialPkt(2, 3, s[2:])), unreadable, "without a definite length"},
		{"signature indeterminate", edRing, cat(ops, lit, []byte{0x80 | 2<<2 | 3}, s[2:]), unreadable, "without a definite length"},
		{"literal indeterminate", edRing, cat(ops, []byte{0x80 | 11<<2 | 3}, litBody, s), unreadable, "indeterminate"},
		{"literal format", edRing, plain(msg{format: 'l'}), unreadable, "literal data format"},
		{"literal header cut", edRing, cat(ops, pkt(11, []byte{'b', 200, 'a'}), s), unreadable, "header of the literal data"},
		{"compression 0", edRing, pkt(8, []byte{0}, good), unreadable, "compression algorithm 0"},
		{"compression 4", edRing, pkt(8, []byte{4}, good), unreadable, "compression algorithm 4"},
		{"empty compressed", edRing, pkt(8), unreadable, "unexpected EOF"},
		{"nothing compressed", edRing, compressed(nil), unreadable, "could not read the message: EOF"},
		{"huge length", edRing, cat([]byte{0xc4, 255, 255, 255, 255, 255}, good), unreadable, "unexpected EOF"},
		{"huge partial length", edRing, cat(ops, []byte{0xc0 | 11, 254}, lit, s), unreadable, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := verify(t, tt.ring, tt.msg, signature.Options{})
			wantRefused(t, err, tt.reason, tt.text)
		})
	}
}

// bzip2 cannot be written in Go; this stream holds 'not signed' data: a literal
// packet made with the bzip2 program.
func TestBzip2(t *testing.T) {
	// printf '\xcb\x0bb\x00\x00\x00\x00\x00hello' | bzip2 -9 | xxd -p
	const stream = "425a6839314159265359f7a5d9c00000064104600812448008200021280d3420c988b9078b570fc5dc914e14243de9767000"
	data, err := hex.DecodeString(stream)
	if err != nil {
		t.Fatal(err)
	}
	r := ring(t, newEd25519(keyTime).public(cert{}))
	_, err = verify(t, r, pkt(8, []byte{3}, data), signature.Options{})
	wantRefused(t, err, signature.NotSigned, "not signed") // it was read
	_, err = verify(t, r, pkt(8, []byte{3}, data, data), signature.Options{})
	wantRefused(t, err, signature.Unreadable, "after the end of the compressed stream")
	for _, more := range [][]byte{{0}, []byte("BZh9"), data[:10], data} {
		_, err = verify(t, r, pkt(8, []byte{3}, data, more), signature.Options{})
		wantRefused(t, err, signature.Unreadable, fmt.Sprintf("%d octets after the end of the compressed stream", len(more)))
		_, err = verify(t, r, pkt(8, []byte{3}, data, more), signature.Options{Rules: signature.CompatRules{TrailingData: true}})
		wantRefused(t, err, signature.NotSigned, "not signed")
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

// A bomb of 8 MiB costs less than 2 MiB to refuse, all allocations counted.
func TestCompressionBombMemory(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	bomb := compressed(k.message(msg{body: make([]byte, 8<<20)}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err := verify(t, r, bomb, signature.Options{})
	runtime.ReadMemStats(&after)
	wantRefused(t, err, signature.Unreadable, "larger than the limit")
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes allocated", n)
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
