package signature_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/signature"
)

// This file holds the messages and keyrings that several tests try: ours alone,
// and ours against gpg.

// messageCase is a message, and a keyring for it.
type messageCase struct {
	name          string
	ring, message []byte
	reason        signature.Reason // empty: accepted
	text          string
}

func accepted(name string, ring, message []byte) messageCase {
	return messageCase{name: name, ring: ring, message: message}
}

// acceptedMessages are those of every published shape, and their like.
func acceptedMessages() []messageCase {
	ed := newEd25519(keyTime)
	edRing := cat(ed.public(cert{}))
	rsaRing := cat(rsa2048().public(cert{}))
	text := bytes.ReplaceAll(statement(digestA), []byte("}\n"), []byte("}\r\n")) // mixed line ends
	parts := func(k *pgpKey, m msg, join func(ops, lit, s []byte) []byte) []byte { return join(k.parts(m)) }
	v3 := sig{version: 3}

	return []messageCase{
		accepted("v4 plain", edRing, ed.message(msg{})),
		accepted("v4 RSA", rsaRing, rsa2048().message(msg{})),
		accepted("v4 compressed", rsaRing, compressed(rsa2048().message(msg{name: "_rpmsig-req-XXXXXX.bin"}))),
		accepted("v3 compressed, as published 2019 to 2022", rsaRing, compressed(rsa2048().message(msg{sig: v3, name: "_rpmsig-req-XXXXXX.bin"}))),
		accepted("v3 plain SHA-512", rsaRing, rsa2048().message(msg{sig: sig{version: 3, hash: 10}})),
		accepted("v3 over text", rsaRing, rsa2048().message(msg{sig: sig{version: 3, typ: 1}, body: text})),
		accepted("text, partial lengths, first chunk of 2, as the CI signs", edRing, parts(ed, msg{sig: sig{typ: 1}, format: 't', body: text}, func(ops, _, s []byte) []byte {
			lit := literalBody('t', "", text)
			return cat(ops, []byte{0xc0 | 11, 224 + 1}, lit[:2], []byte{224 + 8}, lit[2:258], length(len(lit)-258), lit[258:], s)
		})),
		accepted("partial lengths of one octet", edRing, parts(ed, msg{}, func(ops, _, s []byte) []byte {
			return cat(ops, partialPkt(11, 0, literalBody('b', "", statement(digestA))), s)
		})),
		accepted("partial lengths with an empty end", edRing, parts(ed, msg{body: make128()}, func(ops, _, s []byte) []byte {
			lit := literalBody('u', "", make128())
			return cat(ops, []byte{0xc0 | 11}, chunks(lit), []byte{0}, s)
		})),
		accepted("old headers", edRing, parts(ed, msg{}, func(ops, lit, s []byte) []byte {
			return cat(oldPkt(4, ops[2:]), oldPkt(11, literalBody('b', "x", statement(digestA))), oldPkt(2, s[2:]))
		})),
		accepted("compressed with zlib", edRing, pkt(8, []byte{2}, zlibbed(ed.message(msg{})))),
		accepted("compressed in parts", edRing, partialPkt(8, 5, cat([]byte{1}, deflated(ed.message(msg{}))))),
		accepted("SHA-384", edRing, ed.message(msg{sig: sig{hash: 9}})),
		accepted("SHA-512", rsaRing, rsa2048().message(msg{sig: sig{hash: 10}})),
		accepted("RSA sign-only", rsaRing, rsa2048().message(msg{sig: sig{algo: 3}})),
		accepted("v3 RSA sign-only", rsaRing, rsa2048().message(msg{sig: sig{version: 3, algo: 3}})),
		accepted("no issuer at all", edRing, ed.message(msg{sig: sig{noIssuer: true}})),
		accepted("issuer fingerprint", edRing, ed.message(msg{sig: sig{noIssuer: true, hashed: sub(33, []byte{4}, ed.print)}})),
		accepted("known critical subpackets", edRing, ed.message(msg{sig: sig{noTime: true, hashed: cat(sub(0x80|2, stamp(sigTime)), sub(0x80|3, u32(0)), sub(0x80|26, []byte("x")), sub(0x80|28, []byte("x")))}})),
		accepted("notation that is not critical", edRing, ed.message(msg{sig: sig{hashed: sub(20, []byte{0, 0, 0, 0, 0, 1, 0, 1, 'a', 'b'})}})),
		accepted("expiry of zero means never", edRing, ed.message(msg{sig: sig{hashed: sub(3, u32(0))}})),
		accepted("expiry in the future", edRing, ed.message(msg{sig: sig{hashed: sub(3, u32(uint32(now.Sub(sigTime).Seconds())+1))}})),
		accepted("expiry outside of the hashed area says nothing", edRing, ed.message(msg{sig: sig{unhashed: sub(3, u32(1))}})),
		accepted("made in the future", edRing, ed.message(msg{sig: sig{created: now.AddDate(1, 0, 0)}})),
	}
}

// refusedMessages are those that break one rule each.
func refusedMessages() []messageCase {
	ed := newEd25519(keyTime)
	other := newEd25519(keyTime)
	edRing := cat(ed.public(cert{}))
	rsaRing := cat(rsa2048().public(cert{}))
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
	return []messageCase{
		{"a bare start", edRing, []byte{0xc4}, unreadable, "could not read the message: unexpected EOF"},
		{"b armored", edRing, []byte("-----BEGIN PGP MESSAGE-----\n"), unreadable, "could not read the message: openpgp: invalid data: tag byte does not have MSB set"},
		{"b clear-signed", edRing, []byte("-----BEGIN PGP SIGNED MESSAGE-----\n"), unreadable, "tag byte does not have MSB set"},
		{"c detached", edRing, s, signature.NotSigned, "not signed"},
		{"d literal only", edRing, lit, signature.NotSigned, "not signed"},
		{"d signature before literal", edRing, cat(s, lit), signature.NotSigned, "not signed"},
		{"d compressed literal only", edRing, compressed(lit), signature.NotSigned, "not signed"},
		{"e unknown key", cat(other.public(cert{})), good, signature.InvalidKey, "invalid signature: no key " + fmt.Sprintf("%016X", ed.id)},
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
		{"i3 one-pass of another key", cat(ed.public(cert{}), other.public(cert{})), plain(msg{opsID: other.id}), unreadable, "differs from"},
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
		{"t RSA 1024", cat(rsa1024().public(cert{})), rsa1024().message(msg{}), bad, "signature error: key"},
		{"t DSA", cat(dsaKey().public(cert{})), dsaKey().message(msg{}), bad, "signature error: public key algorithm 17 is not accepted"},
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
	}
}

type attackCase struct {
	attack, name  string
	ring, message []byte
	reason        signature.Reason
	text          string
}

// attackMessages are those by which somebody may try to pass a release off as
// signed.
func attackMessages() []attackCase {
	k, other := newEd25519(keyTime), newEd25519(keyTime)
	r := cat(k.public(cert{}))
	ops, lit, s := k.parts(msg{})
	good := cat(ops, lit, s)
	_, otherLit, _ := k.parts(msg{body: statement(digestB)})
	body := string(statement(digestA))
	with := func(old, new string) []byte {
		if !strings.Contains(body, old) {
			panic(old + " is not in the statement")
		}
		return k.message(msg{body: []byte(strings.Replace(body, old, new, 1))})
	}
	weak := cat(rsa1024().public(cert{}))
	strong := cat(rsa2048().public(cert{}))
	encrypts := newEd25519(keyTime)
	nested := good
	for range 40 {
		nested = compressed(nested)
	}
	revocation := pkt(2, k.sign(sig{typ: 0x20, created: keyTime}, k.hashed()))
	const (
		unreadable = signature.Unreadable
		unsigned   = signature.NotSigned
		bad        = signature.BadSignature
		badKey     = signature.InvalidKey
		notJSON    = signature.NotJSON
	)
	return []attackCase{
		{"digest substitution", "the signature of another release", r, k.message(msg{body: statement(digestB)}), signature.WrongDigest, "signature digest does not match"},
		{"digest substitution", "the digest in capitals", r, with(digestA, strings.ToUpper(digestA)), signature.WrongDigest, "signature digest does not match"},
		{"digest substitution", "the digest with more behind it", r, with(digestA, digestA+"00"), signature.WrongDigest, "signature digest does not match"},
		{"digest substitution", "the digest in another field", r, with(`"docker-manifest-digest": "`+digestA, `"docker-manifest-digest": "`), signature.WrongDigest, "signature digest does not match"},
		{"digest substitution", "another statement under a signature", r, cat(ops, pkt(11, literalBody('b', "", statement(digestB))), s), bad, "hash tag does not match"},
		{"other product", "a package signed with the same key", r, k.message(msg{body: []byte("RPM header")}), notJSON, "the signature is not valid JSON"},
		{"other product", "a container of another repository", r, k.message(msg{body: must(signature.Body(digestB, "quay.io/other/image:1", "x", sigTime))}), signature.WrongDigest, "signature digest does not match"},
		{"other product", "a cosign payload", r, with("atomic container signature", "cosign container image signature"), signature.WrongType, "the signature is not the correct type"},
		{"other shapes", "clear-signed text", r, []byte("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + body), unreadable, "tag byte does not have MSB set"},
		{"other shapes", "an armored message", r, []byte("-----BEGIN PGP MESSAGE-----\n\n" + base64.StdEncoding.EncodeToString(good)), unreadable, "tag byte does not have MSB set"},
		{"other shapes", "a detached signature", r, s, unsigned, "not signed"},
		{"other shapes", "a signature in front of the data", r, cat(s, lit), unsigned, "not signed"},
		{"other shapes", "data alone", r, lit, unsigned, "not signed"},
		{"other shapes", "the statement itself", r, []byte(body), unreadable, "MSB"},
		{"other shapes", "an encrypted message", r, cat(pkt(1, make([]byte, 20)), pkt(18, good)), unreadable, "encrypted message"},
		{"data appended", "an octet after the message", r, cat(good, []byte{'\n'}), unreadable, "after the signature"},
		{"data appended", "a second message", r, cat(good, good), unreadable, "after the signature"},
		{"data appended", "an unknown packet at the end", r, cat(good, pkt(60, []byte("x"))), unreadable, "after the signature"},
		{"data appended", "octets after the compressed stream", r, cat(compressed(good), good), unreadable, "after the end of the compressed stream"},
		{"data appended", "a second statement in the body", r, k.message(msg{body: cat(statement(digestB), statement(digestA))}), notJSON, ""},
		{"data appended", "text after the statement", r, k.message(msg{body: []byte(body + " x")}), notJSON, ""},
		{"several literals", "two literals", r, cat(ops, otherLit, lit, s), unreadable, "LiteralData not followed by signature"},
		{"nested signatures", "one around the other", r, cat(onePass(0, 8, 22, other.id, 0), ops, lit, s, s), unreadable, "nested signatures"},
		{"nested signatures", "the second replaces the first", r, cat(onePass(0, 8, 22, other.id, 1), ops, lit, s), unreadable, "nested signatures"},
		{"nested signatures", "a packet that is skipped elsewhere", r, cat(ops, pkt(13, []byte("x")), lit, s), unreadable, "unexpected packet of type 13"},
		{"compression", "a bomb", r, compressed(k.message(msg{body: bytes.Repeat([]byte(" "), 64<<20)})), unreadable, "larger than the limit of 1048576"},
		{"compression", "deep nesting", r, nested, unreadable, "more than one level of compression"},
		{"critical fields", "an unknown one", r, with(`"type"`, `"x": 1, "type"`), notJSON, ""},
		{"critical fields", "one twice", r, with(`"type"`, `"type": "x", "type"`), notJSON, ""},
		{"critical fields", "the digest twice", r, with(`"docker-manifest-digest"`, `"docker-manifest-digest": "`+digestB+`", "docker-manifest-digest"`), notJSON, ""},
		{"critical fields", "one in capitals", r, with(`"identity"`, `"Identity"`), notJSON, ""},
		{"type and identity", "a wrong type", r, with("atomic", "Atomic"), signature.WrongType, "the signature is not the correct type"},
		{"type and identity", "no identity", r, with("quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64", ""), signature.NoIdentity, "signature must have an identity"},
		{"expiry", "an expired signature", r, k.message(msg{sig: sig{hashed: sub(3, u32(day))}}), signature.Expired, "signature expired on "},
		{"expiry", "an expired key", cat(k.public(cert{lifetime: day})), good, bad, "expired on"},
		{"expiry", "a signature older than its key", r, k.message(msg{sig: sig{created: keyTime.AddDate(-1, 0, 0)}}), bad, "older than its key"},
		{"expiry", "a life prolonged outside of what is signed", r, k.message(msg{sig: sig{hashed: sub(3, u32(day)), unhashed: sub(3, u32(0))}}), signature.Expired, "signature expired on "},
		{"revocation", "a revoked key", cat(k.public(cert{more: revocation})), good, badKey, "is revoked"},
		{"weak algorithms", "MD5", strong, rsa2048().message(msg{sig: sig{hash: 1}}), bad, "MD5 is too weak"},
		{"weak algorithms", "SHA-1", strong, rsa2048().message(msg{sig: sig{hash: 2}}), bad, "SHA-1 is too weak"},
		{"weak algorithms", "SHA-1 in version 3", strong, rsa2048().message(msg{sig: sig{version: 3, hash: 2}}), bad, "SHA-1 is too weak"},
		{"weak algorithms", "RSA 1024", weak, rsa1024().message(msg{}), bad, "1024 bits"},
		{"weak algorithms", "DSA", cat(dsaKey().public(cert{})), dsaKey().message(msg{}), bad, "algorithm 17 is not accepted"},
		{"foreign keys", "a key outside of the ring", r, other.message(msg{}), badKey, "no key"},
		{"foreign keys", "a subkey that only encrypts", cat(k.public(cert{extra: k.subkey(encrypts, []byte{0x0c}, 0, false)})), encrypts.message(msg{}), badKey, "is not for signing"},
		{"foreign keys", "another's key claimed as a subkey", cat(k.public(cert{extra: k.subkey(other, nil, 0, false)})), other.message(msg{}), badKey, "no key"},
		{"foreign keys", "the issuer of another", r, k.message(msg{sig: sig{issuer: other.id}}), unreadable, "differs from"},
		{"crafted packets", "a length beyond the end", r, []byte{0xc4, 0xff, 0xff, 0xff, 0xff, 0xff}, unreadable, "unexpected EOF"},
		{"crafted packets", "an endless partial length", r, cat(ops, []byte{0xcb}, bytes.Repeat([]byte{0xe0, 0}, 1000)), unreadable, "unexpected EOF"},
		{"crafted packets", "a signature without integers", r, k.message(msg{sig: sig{values: func([]byte) []byte { return nil }}}), bad, ""},
		{"crafted packets", "integers of zero", r, k.message(msg{sig: sig{values: func([]byte) []byte { return make([]byte, 4) }}}), bad, "verification failure"},
		{"crafted packets", "an integer of 8 kB", strong, rsa2048().message(msg{sig: sig{values: func([]byte) []byte { return cat(u16(65535), bytes.Repeat([]byte{255}, 8192)) }}}), bad, "longer than the modulus"},
		{"crafted packets", "one bit of the tag", r, k.message(msg{sig: sig{badTag: true}}), bad, "hash tag does not match"},
	}
}

// keyCase is a keyring, and who signs.
type keyCase struct {
	name   string
	public []byte
	by     *pgpKey
	policy signature.Validity
	reason signature.Reason // empty: accepted
	text   string
}

// keyCases are keyrings whose keys may, or may not, sign.
func keyCases() []keyCase {
	k, s, enc := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	later := newEd25519(sigTime) // made as late as the signature
	uid := "Test Key <test@example.com>"
	year := uint32(365 * day)
	life := uint32(sigTime.Sub(keyTime).Seconds())
	selfSig := func(created time.Time, typ byte, subs ...[]byte) []byte {
		if typ == 0x1f {
			return pkt(2, k.sign(sig{typ: typ, created: created, hashed: cat(subs...)}, k.hashed()))
		}
		return pkt(2, k.sign(sig{typ: typ, created: created, hashed: cat(subs...)}, uidParts(k, uid)...))
	}
	lifetime := func(n uint32) []byte { return sub(9, u32(n)) }
	canSign, certifyOnly := sub(27, []byte{3}), sub(27, []byte{1})
	revokeSub := func(subs []byte) []byte {
		return pkt(2, k.sign(sig{typ: 0x28, hashed: subs}, k.hashed(), s.hashed()))
	}
	reasonSub := sub(29, []byte{1}, []byte("superseded"))

	const (
		inv = signature.InvalidKey
		bad = signature.BadSignature
	)
	return []keyCase{
		{"key without anything unusual", k.public(cert{}), k, 0, "", ""},
		{"e no sign flag", k.public(cert{flags: []byte{1}}), k, 0, inv, "invalid signature: key"},
		{"e revoked", k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))}), k, 0, inv, "is revoked"},
		{"e revoked as superseded, after the signature", k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20, created: now, hashed: reasonSub}, k.hashed()))}), k, 0, inv, "is revoked"},
		{"revoked under the lax policy", k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))}), k, signature.IgnoreValidity, inv, "is revoked"},
		{"s signing subkey", k.public(cert{extra: k.subkey(s, nil, 0, true)}), s, 0, "", ""},
		{"s subkey of a revoked primary", k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed())), extra: k.subkey(s, nil, 0, true)}), s, 0, inv, "primary key"},
		{"subkey without cross-signature", k.public(cert{extra: k.subkey(s, nil, 0, false)}), s, 0, inv, "no key"},
		{"primary beside a subkey without cross-signature", k.public(cert{extra: k.subkey(s, nil, 0, false)}), k, 0, "", ""},
		{"encryption subkey", k.public(cert{extra: k.subkey(enc, []byte{0x0c}, 0, false)}), enc, 0, inv, "is not for signing"},
		{"encryption subkey with cross-signature", k.public(cert{extra: k.subkey(enc, []byte{0x0c}, 0, true)}), enc, 0, inv, "is not for signing"},
		{"z1 primary without flags", k.public(cert{flags: []byte{}}), k, 0, "", ""},
		{"z1 subkey without flags", k.public(cert{extra: k.subkey(s, []byte{}, 0, false)}), s, 0, inv, "no cross-signature"},
		{"z1 subkey without flags, cross-signed", k.public(cert{extra: k.subkey(s, []byte{}, 0, true)}), s, 0, "", ""},
		{"z3 subkey revoked without a reason", k.public(cert{extra: cat(k.subkey(s, nil, 0, true), revokeSub(nil))}), s, 0, inv, "is revoked"},
		{"z3 subkey revoked with a reason", k.public(cert{extra: cat(k.subkey(s, nil, 0, true), revokeSub(reasonSub))}), s, 0, inv, "is revoked"},
		{"subkey bound by another", k.public(cert{extra: newEd25519(keyTime).subkey(s, nil, 0, true)}), s, 0, inv, "no key"},

		{"q expired before the signature", k.public(cert{lifetime: life - 1}), k, 0, bad, "signature error: key"},
		{"q expires with the signature: the end does not count", k.public(cert{lifetime: life}), k, 0, bad, "expired on 2022-06-01T12:00:00Z"},
		{"q expires a second later", k.public(cert{lifetime: life + 1}), k, 0, "", ""},
		{"q expired now, strict", k.public(cert{lifetime: life + 1}), k, signature.AtNow, bad, "expired on"},
		{"q valid now, strict", k.public(cert{lifetime: 10 * year}), k, signature.AtNow, "", ""},
		{"q expired, lax", k.public(cert{lifetime: 1}), k, signature.IgnoreValidity, "", ""},
		{"the key's first second counts", later.public(cert{}), later, 0, "", ""},
		{"subkey expired", k.public(cert{extra: k.subkey(s, nil, life, true)}), s, 0, bad, "expired on"},
		{"subkey's primary expired", k.public(cert{lifetime: life, extra: k.subkey(s, nil, 0, true)}), s, 0, bad, "expired on"},
		{"subkey younger than the signature", k.public(cert{extra: k.subkey(newEd25519(now), nil, 0, true)}), k, 0, "", ""},

		{"expired key renewed after the signature", k.public(cert{lifetime: 1, extra: selfSig(now, 0x13, canSign)}), k, 0, "", ""},
		{"life shortened by the newest self-signature", k.public(cert{extra: selfSig(now, 0x10, canSign, lifetime(life))}), k, 0, bad, "expired on"},
		{"older self-signature does not matter", k.public(cert{self: sig{created: now}, extra: selfSig(keyTime, 0x13, certifyOnly, lifetime(1))}), k, 0, "", ""},
		{"flags outside of what is signed say nothing", k.public(cert{self: sig{unhashed: certifyOnly}}), k, 0, "", ""},
		{"direct-key signature is the newest", k.public(cert{more: selfSig(now, 0x1f, certifyOnly)}), k, 0, inv, "is not for signing"},
		{"newest self-signature takes the flag for signing away", k.public(cert{extra: selfSig(now, 0x13, certifyOnly)}), k, 0, inv, "is not for signing"},
		{"newest self-signature lies on a revoked user id", k.public(cert{extra: cat(pkt(13, []byte("b")), pkt(2, k.sign(sig{typ: 0x13, hashed: certifyOnly}, uidParts(k, "b")...)), pkt(2, k.sign(sig{typ: 0x30, created: now}, uidParts(k, "b")...)))}), k, 0, "", ""},
		{"user id certified again after its revocation", k.public(cert{extra: cat(pkt(2, k.sign(sig{typ: 0x30}, uidParts(k, uid)...)), selfSig(now, 0x13, canSign))}), k, 0, "", ""},
		{"newest self-signature has expired itself", k.public(cert{extra: selfSig(sigTime, 0x13, certifyOnly, sub(3, u32(1)))}), k, 0, "", ""},
		// What a self-signature does not state it does not change.
		{"a revoker is named after the key has expired", k.public(cert{lifetime: life - 1, more: selfSig(now, 0x1f, revoker(0x80, s.print))}), k, 0, bad, "expired on"},
		{"a revoker is named: the subkey of an expired key", k.public(cert{lifetime: life - 1, more: selfSig(now, 0x1f, revoker(0x80, s.print)), extra: k.subkey(s, nil, 0, true)}), s, 0, bad, "expired on"},
		{"a key that only certifies names a revoker", k.public(cert{flags: []byte{1}, more: selfSig(now, 0x1f, revoker(0x80, s.print))}), k, 0, inv, "is not for signing"},
		{"second user id without flags", k.public(cert{flags: []byte{1}, extra: cat(pkt(13, []byte("b")), k.over(0x13, sigTime, nil, uidParts(k, "b")...))}), k, 0, inv, "is not for signing"},
		{"second user id without an end", k.public(cert{lifetime: life - 1, extra: cat(pkt(13, []byte("b")), k.over(0x13, sigTime, canSign, uidParts(k, "b")...))}), k, 0, bad, "expired on"},
		{"second user id prolongs", k.public(cert{lifetime: 1, extra: cat(pkt(13, []byte("b")), k.over(0x13, sigTime, lifetime(10*year), uidParts(k, "b")...))}), k, 0, "", ""},
		{"second user id, revoked since, prolongs", k.public(cert{lifetime: 1, extra: cat(pkt(13, []byte("b")), k.over(0x13, sigTime, lifetime(10*year), uidParts(k, "b")...), k.over(0x30, now, nil, uidParts(k, "b")...))}), k, 0, bad, "expired on"},
		{"two statements of one second: the shorter life", k.public(cert{lifetime: 10 * year, extra: cat(pkt(13, []byte("b")), k.over(0x13, keyTime, lifetime(1), uidParts(k, "b")...))}), k, 0, bad, "expired on"},
		{"two statements of one second: not for signing", k.public(cert{lifetime: 1, extra: cat(pkt(13, []byte("b")), k.over(0x13, keyTime, certifyOnly, uidParts(k, "b")...))}), k, 0, inv, "is not for signing"},
		{"an expired binding does not fall back", k.public(cert{extra: cat(k.subkey(s, nil, 0, true), k.over(0x18, sigTime, cat(canSign, sub(3, u32(1)), sub(32, s.sign(sig{typ: 0x19}, k.hashed(), s.hashed()))), k.hashed(), s.hashed()))}), s, 0, inv, "no valid self-signature"},
		{"a binding that ends later", k.public(cert{extra: cat(k.subkey(s, nil, 0, true), k.over(0x18, sigTime, cat(canSign, sub(3, u32(10*year)), sub(32, s.sign(sig{typ: 0x19}, k.hashed(), s.hashed()))), k.hashed(), s.hashed()))}), s, 0, "", ""},
		{"SHA-1 self-signature", rsa2048().public(cert{self: sig{hash: 2}}), rsa2048(), 0, "", ""},
		{"v3 self-signature", rsa2048().public3(uid), rsa2048(), 0, "", ""},
		{"others' certifications say nothing", k.public(cert{extra: pkt(2, s.sign(sig{typ: 0x10, created: now, hashed: certifyOnly}, uidParts(k, uid)...))}), k, 0, "", ""},
	}
}
