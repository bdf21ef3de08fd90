package signature_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"pgregory.net/rapid"

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
		{"files joined without a line end", cat(bytes.TrimSpace(one), two), prints(a, b), ""},
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
		{"second block without begin", cat(one, two[10:]), "", "armor block 2 has no beginning"},
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

const testUID = "Test Key <test@example.com>"

func armoredBlock(kind string, packets ...[]byte) []byte {
	var b bytes.Buffer
	w := must(armor.Encode(&b, kind, nil))
	must(w.Write(cat(packets...)))
	w.Close()
	b.WriteByte('\n')
	return b.Bytes()
}

// over returns a signature packet by k over parts.
func (k *pgpKey) over(typ byte, created time.Time, subs []byte, parts ...[]byte) []byte {
	return pkt(2, k.sign(sig{typ: typ, created: created, hashed: subs}, parts...))
}

// The text of a keyring's error is bounded.
func TestManyRevocationsThatMatchNothing(t *testing.T) {
	k, unknown := newEd25519(keyTime), newEd25519(keyTime)
	many := k.public(cert{})
	for i := range 100 {
		many = cat(many, pkt(2, unknown.sign(sig{typ: 0x20, issuer: uint64(i + 1)}, unknown.hashed())))
	}
	if _, err := signature.ParseKeyring("ring", many); err == nil || len(err.Error()) > 1200 || !strings.Contains(err.Error(), "more") {
		t.Error(err)
	}
}

// A message that states its expiry twice is refused, whichever is longer.
func TestExpiryStatedTwice(t *testing.T) {
	k := newEd25519(keyTime)
	never, soon := sub(3, u32(0)), sub(3, u32(day))
	for _, subs := range [][]byte{cat(never, soon), cat(soon, never)} {
		_, err := verify(t, ring(t, k.public(cert{})), k.message(msg{sig: sig{hashed: subs}}), signature.Options{})
		wantRefused(t, err, signature.Unreadable, "more than one expiry of the signature")
	}
}

func revoker(class byte, print []byte) []byte { return sub(12, []byte{class, 22}, print) }

// The order of packets after the primary key and the armored blocks that they
// stand in play no part in the verdict.
func TestOrderPlaysNoPart(t *testing.T) {
	k, other, r := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	subs := []*pgpKey{newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)}
	later := func(n int) time.Time { return keyTime.Add(time.Duration(n) * time.Hour) }
	use := func(flags byte) []byte { return sub(27, []byte{flags}) }
	cross := func(s *pgpKey) []byte {
		return sub(32, s.sign(sig{typ: 0x19, created: keyTime}, k.hashed(), s.hashed()))
	}

	packets := [][]byte{
		pkt(13, []byte(testUID)), pkt(13, []byte("b")), pkt(17, []byte("picture")),
		k.over(0x13, later(0), use(3), uidParts(k, testUID)...),
		k.over(0x13, later(1), cat(use(3), sub(9, u32(4*365*day))), uidParts(k, "b")...),
		k.over(0x13, later(1), use(1), uidParts(k, "b")...),
		k.over(0x13, later(3), sub(9, u32(day)), uidParts(k, testUID)...),
		k.over(0x13, later(2), use(1), k.hashed(), []byte{0xd1}, u32(7), []byte("picture")),
		k.over(0x1f, later(2), cat(use(3), revoker(0x80, r.print)), k.hashed()),
		k.over(0x1f, later(4), sub(9, u32(day)), k.hashed()),
		k.over(0x30, later(5), nil, uidParts(k, testUID)...),
		k.over(0x30, later(5), nil, uidParts(k, "b")...),
		k.over(0x30, later(5), nil, k.hashed()),
		k.over(0x20, later(6), nil, k.hashed()),
		r.over(0x20, later(6), nil, k.hashed()),
		r.over(0x13, later(6), use(3), uidParts(k, testUID)...),
		r.over(0x30, later(7), nil, uidParts(k, testUID)...),
		pkt(6, other.body), pkt(13, []byte("Other")), other.over(0x13, later(0), use(3), uidParts(other, "Other")...),
		pkt(6, r.body), pkt(13, []byte("Revoker")), r.over(0x13, later(0), use(3), uidParts(r, "Revoker")...),
		pkt(12, []byte("trust")), pkt(2, []byte{4, 0x28, 22}), pkt(2, []byte{4, 0x13}),
	}
	for _, s := range subs {
		packets = append(packets, pkt(14, s.body),
			k.over(0x18, later(0), cat(use(2), cross(s)), k.hashed(), s.hashed()),
			k.over(0x18, later(1), cat(use(2), cross(s), sub(9, u32(day))), k.hashed(), s.hashed()),
			k.over(0x18, later(1), use(12), k.hashed(), s.hashed()),
			k.over(0x28, later(2), nil, k.hashed(), s.hashed()))
	}
	keys := append([]*pgpKey{k, other, r}, subs...)
	messages := make([][]byte, len(keys))
	for i, by := range keys {
		messages[i] = by.message(msg{})
	}
	verdict := func(value []byte) string {
		parsed, err := signature.ParseKeyring("ring", value)
		if err != nil {
			if text, _, ok := strings.Cut(err.Error(), ", behind key"); ok {
				return text // where a packet stands is part of the text
			}
			return strings.SplitN(err.Error(), ":", 2)[0]
		}
		var out []string
		for i := range keys {
			v, err := verify(t, parsed, messages[i], signature.Options{})
			if err != nil {
				out = append(out, cause(err).Error())
			} else {
				out = append(out, v.Signers[0].Fingerprint)
			}
		}
		return strings.Join(out, "\n")
	}
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		chosen := slices.Clone(packets[:4]) // a ring that loads, most of the time
		for _, p := range packets[4:] {
			if rapid.IntRange(0, 2).Draw(t, "take") == 0 {
				chosen = append(chosen, p)
			}
		}
		want := verdict(cat(pkt(6, k.body), cat(chosen...)))
		seen[want]++
		shuffled := rapid.Permutation(chosen).Draw(t, "order")
		value := armoredIn(t, append([][]byte{pkt(6, k.body)}, shuffled...))
		checktest.Equal(t, want, verdict(value), "in another order")
	})
	if len(seen) < 5 {
		t.Errorf("only %d verdicts: the cases are too much alike", len(seen))
	}
}

// armoredIn armors packets in blocks of random sizes.
func armoredIn(t *rapid.T, packets [][]byte) []byte {
	if rapid.Bool().Draw(t, "binary") {
		return bytes.Join(packets, nil)
	}
	var out []byte
	for len(packets) > 0 {
		n := rapid.IntRange(1, len(packets)).Draw(t, "block")
		out = cat(out, armoredBlock(publicBlock, packets[:n]...))
		packets = packets[n:]
	}
	return out
}
