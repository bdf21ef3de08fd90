package signature_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
)

func armored(t testing.TB, kind string, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := must(armor.Encode(&b, kind, map[string]string{"Version": "test"}))
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
				checktest.ErrorHas(t, tt.err, err)
				return
			}
			checktest.OK(t, err)
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
		checktest.Equal(t, tt.ok, err == nil, "%s ahead: %v", tt.ahead, cause(err))
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
		checktest.Equal(t, 0, len(ring(t, public, revocation).Keys()[0].Subkeys), "%s is revoked", name)
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
