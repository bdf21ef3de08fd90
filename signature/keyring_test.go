package signature_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/clusterupdate/clusterupdate/signature"
)

func armored(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := armor.Encode(&b, kind, map[string]string{"Version": "test"})
	if err != nil {
		t.Fatal(err)
	}
	must(w.Write(raw))
	w.Close()
	b.WriteByte('\n')
	return b.Bytes()
}

const publicBlock = "PGP PUBLIC KEY BLOCK"

func TestParseKeyring(t *testing.T) {
	a, b := newEd25519(keyTime), newEd25519(keyTime)
	one := armored(t, publicBlock, a.public(cert{}))
	two := armored(t, publicBlock, b.public(cert{}))
	both := cat(a.public(cert{}), b.public(cert{}))
	prints := func(keys ...*pgpKey) string {
		var out []string
		for _, k := range keys {
			out = append(out, fmt.Sprintf("%X", k.print))
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string // fingerprints
		err  string
	}{
		{"armored", one, prints(a), ""},
		{"binary", both, prints(a, b), ""},
		{"two keys in a block", armored(t, publicBlock, both), prints(a, b), ""},
		{"two blocks", cat(one, two), prints(a, b), ""},
		{"text around", cat([]byte("pub  ed25519\nuid  x: y\n\n"), one, []byte("--\n"), two, []byte("end")), prints(a, b), ""},
		{"text after the end mark", bytes.Replace(one, []byte("BLOCK-----\n"), []byte("BLOCK-----\n"), 1)[:len(one)-1], prints(a), ""},
		{"quote on the end line", cat(bytes.TrimSpace(one), []byte("\"\n")), prints(a), ""},
		{"CRLF", bytes.ReplaceAll(one, []byte("\n"), []byte("\r\n")), prints(a), ""},
		{"empty", nil, "", "unable to read keyring with armor (EOF) or without armor (EOF)"},
		{"white space", []byte(" \n\t\n"), "", "unable to read keyring with armor (EOF) or without armor (openpgp: invalid data: tag byte does not have MSB set)"},
		{"text", []byte("no key"), "", "unable to read keyring with armor"},
		{"private block", armored(t, "PGP PRIVATE KEY BLOCK", a.public(cert{})), "", "private key"},
		{"private packet", cat(pkt(5, a.body)), "", "private key"},
		{"private packet in a public block", armored(t, publicBlock, pkt(5, a.body)), "", "private key"},
		{"private subkey", cat(a.public(cert{}), pkt(7, b.body)), "", "private key"},
		{"message block", armored(t, "PGP MESSAGE", a.public(cert{})), "", "expected a public key block, got \"PGP MESSAGE\""},
		{"second block broken", cat(one, bytes.Replace(two, []byte("\n\n"), []byte("\n\n!!!\n"), 1)), "", "armor block 2"},
		{"second block without end", cat(one, two[:80]), "", "armor block 2 has no end"},
		{"cut", both[:len(both)-3], "", "unexpected EOF"},
		{"too large", make([]byte, maxKeyring+1), "", "larger than the limit of 1048576 bytes"},
		{"no usable key", pkt(6, a.body), "", "no usable key: " + prints(a) + " no user id with a valid self-signature"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := signature.ParseKeyring("ring", tt.data)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range r.Keys() {
				got = append(got, k.Fingerprint)
			}
			if g := strings.Join(got, " "); g != tt.want || r.Name() != "ring" || len(r.Skipped()) != 0 {
				t.Errorf("keys %s, want %s; skipped %v", g, tt.want, r.Skipped())
			}
		})
	}
}

// A faulty key is left out and reported; its neighbours load.
func TestSkippedKeys(t *testing.T) {
	good, k, other := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	uid := "Test Key <test@example.com>"
	v6 := bytes.Clone(k.body)
	v6[0] = 6
	v3 := cat([]byte{3}, stamp(keyTime), []byte{0, 0, 1}, mpi(bytes.Repeat([]byte{0xab}, 64)), mpi([]byte{3}))
	for _, tt := range []struct {
		name   string
		key    []byte
		id     string
		reason string
	}{
		{"no user id", k.public(cert{noUserID: true}), fmt.Sprintf("%X", k.print), "no user id with a valid self-signature"},
		{"only a direct-key signature", k.public(cert{noUserID: true, more: pkt(2, k.sign(sig{typ: 0x1f}, k.hashed()))}), "", "no user id"},
		{"user id certified by another", k.public(cert{selfSigID: other}), "", "no user id"},
		{"user id certified by another in the key's name", k.public(cert{selfSigID: other, self: sig{issuer: k.id}}), "", "no user id"},
		{"user id revoked", k.public(cert{extra: pkt(2, k.sign(sig{typ: 0x30}, uidParts(k, uid)...))}), "", "no user id"},
		{"self-signature over a picture", cat(pkt(6, k.body), pkt(17, []byte("x")), pkt(2, k.sign(sig{typ: 0x13}, uidParts(k, uid)...))), "", "no user id"},
		{"unknown critical subpacket", k.public(cert{self: sig{hashed: sub(0x80|100, []byte("x"))}}), "", "no user id"},
		{"encryption primary", pkt(6, []byte{4}, stamp(keyTime), []byte{2}, k.body[6:]), "", "the primary key cannot sign"},
		{"unsupported algorithm", pkt(6, []byte{4}, stamp(keyTime), []byte{28}, make([]byte, 57)), "", "unsupported public key algorithm 28"},
		{"unsupported curve", pkt(6, []byte{4}, stamp(keyTime), []byte{19, 5, 0x2b, 0x81, 4, 0, 0x0a}, mpi([]byte{4, 1})), "", "unsupported curve 2b8104000a"},
		{"Ed448", pkt(6, []byte{4}, stamp(keyTime), []byte{22, 3, 0x2b, 0x65, 0x71}, mpi([]byte{0x40, 1})), "", "unsupported curve"},
		{"point not on the curve", pkt(6, []byte{4}, stamp(keyTime), []byte{19, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}, mpi(bytes.Repeat([]byte{4}, 65))), "", "malformed ECDSA key"},
		{"octets after the key", pkt(6, k.body, []byte{0}), "", "malformed EdDSA key"},
		{"RSA cut", pkt(6, rsa2048().body[:40]), "", "malformed RSA key"},
		{"too short", pkt(6, []byte{4, 0}), "", "too short"},
		{"version 6", pkt(6, v6), "", "unsupported key version 6"},
		{"version 3", pkt(6, v3), "ABABABABABABABAB", "unsupported key version 3"},
		{"stray packet first", pkt(13, []byte("x")), "", "packet of type 13 before the first public key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := signature.ParseKeyring("ring", cat(tt.key, good.public(cert{})))
			if err != nil {
				t.Fatal(err)
			}
			skipped := r.Skipped()
			if len(skipped) != 1 || !strings.Contains(skipped[0].Reason, tt.reason) || !strings.HasPrefix(skipped[0].ID, tt.id) {
				t.Errorf("skipped %v, want %s", skipped, tt.reason)
			}
			if n := len(r.Keys()); n != 1 {
				t.Errorf("%d keys", n)
			}
		})
	}
}

// A key that only weak self-signatures let sign, or live so long, is used with a
// warning.
func TestWeakSelfSignatures(t *testing.T) {
	k, s := rsa2048(), newEd25519(keyTime)
	uid := "Test Key <test@example.com>"
	by := func(hash byte, created time.Time, subs ...[]byte) []byte {
		return pkt(2, k.sign(sig{typ: 0x13, hash: hash, created: created, hashed: cat(subs...)}, uidParts(k, uid)...))
	}
	bind := func(hash, cross byte) []byte {
		embedded := sub(32, s.sign(sig{typ: 0x19, hash: cross}, k.hashed(), s.hashed()))
		return cat(pkt(14, s.body), pkt(2, k.sign(sig{typ: 0x18, hash: hash, hashed: cat(sub(27, []byte{2}), embedded)}, k.hashed(), s.hashed())))
	}
	canSign, certifyOnly := sub(27, []byte{3}), sub(27, []byte{1})
	year := sub(9, u32(365*day))
	for _, tt := range []struct {
		name string
		key  []byte
		id   []byte
		want string // empty: no warning
	}{
		{"the only one, SHA-1", k.public(cert{self: sig{hash: 2}}), k.print, "lets it sign"},
		{"the only one, MD5", k.public(cert{self: sig{hash: 1}}), k.print, "lets it sign"},
		{"SHA-1 gives the right to sign", k.public(cert{flags: []byte{1}, extra: by(2, sigTime, canSign)}), k.print, "lets it sign"},
		{"SHA-1 takes the end away", k.public(cert{lifetime: 365 * day, extra: by(2, sigTime, canSign)}), k.print, "live beyond 2020-12-31T00:00:00Z"},
		{"SHA-1 prolongs", k.public(cert{lifetime: 1, extra: by(2, sigTime, canSign, year)}), k.print, "live beyond 2020-01-01T00:00:01Z"},
		{"SHA-1 shortens", k.public(cert{extra: by(2, sigTime, canSign, year)}), nil, ""},
		{"SHA-1 takes the right to sign", k.public(cert{extra: by(2, sigTime, certifyOnly)}), nil, ""},
		{"an older SHA-1 that says the same", k.public(cert{self: sig{hash: 2}, extra: by(8, sigTime, canSign)}), nil, ""},
		{"revoked", k.public(cert{self: sig{hash: 2}, more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))}), nil, ""},
		{"binding of a subkey", k.public(cert{extra: bind(2, 8)}), s.print, "lets it sign"},
		{"cross-signature of a subkey", k.public(cert{extra: bind(8, 2)}), s.print, "lets it sign"},
		{"strong binding of a subkey", k.public(cert{extra: bind(8, 8)}), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			skipped := ring(t, tt.key).Skipped()
			if tt.want == "" {
				if len(skipped) != 0 {
					t.Errorf("skipped %+v", skipped)
				}
				return
			}
			if len(skipped) != 1 || !skipped[0].Used || skipped[0].ID != fmt.Sprintf("%X", tt.id) || !strings.Contains(skipped[0].Reason, tt.want) {
				t.Errorf("skipped %+v, want %s", skipped, tt.want)
			}
		})
	}
}

// Two keys with one 64-bit id cannot be made; the same key twice, once not for
// signing, shows that each entry is tried. A revocation counts for all copies.
func TestEachKeyOfAnIDIsTried(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{flags: []byte{1}}), k.public(cert{}))
	if _, err := verify(t, r, k.message(msg{}), signature.Options{}); err != nil {
		t.Fatal(cause(err))
	}
	// Of several failures, the one that came furthest is told.
	for _, r := range []*signature.Keyring{r, ring(t, k.public(cert{}), k.public(cert{flags: []byte{1}}))} {
		_, err := verify(t, r, k.message(msg{sig: sig{badTag: true}}), signature.Options{})
		wantRefused(t, err, signature.BadSignature, "hash tag does not match")
	}
	revoked := k.public(cert{more: pkt(2, k.sign(sig{typ: 0x20}, k.hashed()))})
	for _, r := range []*signature.Keyring{ring(t, revoked, k.public(cert{})), ring(t, k.public(cert{}), revoked)} {
		_, err := verify(t, r, k.message(msg{}), signature.Options{})
		wantRefused(t, err, signature.InvalidKey, "is revoked")
	}
}

func TestFutureSkew(t *testing.T) {
	k := newEd25519(keyTime)
	r := ring(t, k.public(cert{}))
	skew := time.Minute
	for _, tt := range []struct {
		ahead time.Duration
		skew  *time.Duration
		ok    bool
	}{{time.Minute, &skew, true}, {time.Minute + time.Second, &skew, false}, {time.Hour, nil, true}} {
		_, err := verify(t, r, k.message(msg{sig: sig{created: now.Add(tt.ahead)}}), signature.Options{FutureSkew: tt.skew})
		if (err == nil) != tt.ok {
			t.Errorf("%s ahead: %v", tt.ahead, cause(err))
		}
		if err != nil {
			wantRefused(t, err, signature.BadSignature, "in the future")
		}
	}
}

// A subkey that is revoked, or whose key is, is not among those that sign.
func TestRevokedSubkeysDoNotSign(t *testing.T) {
	k, s := newEd25519(keyTime), newEd25519(keyTime)
	public := k.public(cert{extra: k.subkey(s, nil, 0, true)})
	for name, revocation := range map[string][]byte{
		"the subkey": pkt(2, k.sign(sig{typ: 0x28}, k.hashed(), s.hashed())),
		"its key":    pkt(2, k.sign(sig{typ: 0x20}, k.hashed())),
	} {
		if info := ring(t, public, revocation).Keys()[0]; len(info.Subkeys) != 0 {
			t.Errorf("%s is revoked: %+v", name, info)
		}
	}
}

func TestKeyringDescription(t *testing.T) {
	k, s := newEd25519(keyTime), newEd25519(keyTime)
	r := ring(t, k.public(cert{lifetime: day, extra: k.subkey(s, nil, 0, true)}))
	if got, want := r.String(), fmt.Sprintf("ring (%X: Test Key <test@example.com>)", k.print); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	info := r.Keys()[0]
	if !info.Expires.Equal(keyTime.AddDate(0, 0, 1)) || info.Algorithm != "Ed25519" || len(info.Subkeys) != 1 || info.Subkeys[0] != fmt.Sprintf("%X", s.print) {
		t.Errorf("%+v", info)
	}
}
