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

	"github.com/clusterupdate/clusterupdate/signature"
)

const testUID = "Test Key <test@example.com>"

func armoredBlock(kind string, packets ...[]byte) []byte {
	var b bytes.Buffer
	w := must(armor.Encode(&b, kind, nil))
	must(w.Write(cat(packets...)))
	w.Close()
	b.WriteByte('\n')
	return b.Bytes()
}

// blocks armors each value as a block of its own.
func blocks(t testing.TB, values ...[]byte) []byte {
	var out []byte
	for _, v := range values {
		out = cat(out, armored(t, publicBlock, v))
	}
	return out
}

// over returns a signature packet by k over parts.
func (k *pgpKey) over(typ byte, created time.Time, subs []byte, parts ...[]byte) []byte {
	return pkt(2, k.sign(sig{typ: typ, created: created, hashed: subs}, parts...))
}

// A revocation that is about nothing in the ring might be about a key that was
// altered, or be altered itself: the whole value is refused.
func TestRevocationsThatMatchNothing(t *testing.T) {
	k, s, other, unknown := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	public := cat(k.public(cert{}), other.public(cert{uid: "Other"}))
	id := func(k *pgpKey) string { return fmt.Sprintf("%016X", k.id) }
	altered := k.over(0x20, sigTime, nil, k.hashed())
	altered[len(altered)-1] ^= 1
	unsupported := pkt(6, []byte{4}, stamp(keyTime), []byte{28}, make([]byte, 57))
	for _, tt := range []struct {
		name string
		ring []byte
		want string
	}{
		{"another key's", cat(public, other.over(0x20, sigTime, nil, k.hashed())), "revocation of a key by key " + id(other) + " matches nothing in the keyring"},
		{"an unknown key's", cat(public, unknown.over(0x20, sigTime, nil, k.hashed())), "by key " + id(unknown)},
		{"of a key that is not there", cat(public, unknown.over(0x20, sigTime, nil, unknown.hashed())), "by key " + id(unknown)},
		{"in a block of its own", blocks(t, public, unknown.over(0x20, sigTime, nil, unknown.hashed())), "by key " + id(unknown)},
		{"altered", cat(public, altered), "by key " + id(k) + " matches nothing"},
		{"version 3, another's", cat(public, pkt(2, rsa2048().sign(sig{version: 3, typ: 0x20}, k.hashed()))), "by key " + id(rsa2048())},
		{"of a subkey that is not there", cat(public, k.over(0x28, sigTime, nil, k.hashed(), s.hashed())), "revocation of a subkey by key " + id(k) + " matches nothing"},
		{"of a subkey by another", cat(public, k.subkey(s, nil, 0, true), other.over(0x28, sigTime, nil, k.hashed(), s.hashed())), "by key " + id(other)},
		{"of a user id that is not there", cat(public, k.over(0x30, sigTime, nil, uidParts(k, "Gone")...)), "revocation of a user id by key " + id(k) + " matches nothing"},
		{"of a user id by a revoker that is not there", cat(public, k.over(0x1f, keyTime, revoker(0x80, unknown.print), k.hashed()), unknown.over(0x30, sigTime, nil, uidParts(k, testUID)...)), "revocation of a user id by key " + id(unknown)},
		{"of a user id, no issuer, by a revoker that is not there", cat(public, k.over(0x1f, keyTime, revoker(0x80, unknown.print), k.hashed()), pkt(2, unknown.sign(sig{typ: 0x30, noIssuer: true}, uidParts(k, testUID)...))), "that names no issuer"},
		{"of a user id by an unknown key and one of the ring", cat(public, pkt(2, unknown.sign(sig{typ: 0x30, unhashed: sub(16, u64(k.id))}, uidParts(k, testUID)...))), "revocation of a user id by key"},
		{"unknown critical subpacket", cat(public, k.over(0x20, sigTime, sub(0x80|100, []byte("x")), k.hashed())), "revocation of a key by key " + id(k) + " cannot be read"},
		{"cut", cat(public, pkt(2, []byte{4, 0x20, 22})), "revocation of a key that names no issuer, behind key " + id(other) + ", cannot be read"},
		{"version 2", cat(public, pkt(2, rsa2048().sign(sig{version: 2, typ: 0x20}, k.hashed()))), "revocation of a key by key " + id(rsa2048()) + " cannot be read"},
		{"version 6", cat(public, pkt(2, []byte{6, 0x28, 22, 8}, make([]byte, 40))), "revocation of a subkey that names no issuer"},
		{"no issuer", cat(public, pkt(2, unknown.sign(sig{typ: 0x20, noIssuer: true}, k.hashed()))), "that names no issuer, behind key " + id(other)},
		{"unknown hash", cat(public, k.over3(k.hashed())), "(hash not available: RIPEMD-160)"},
		{"of an unsupported key that another names as its revoker", cat(unsupported, public, k.over(0x1f, keyTime, revoker(0x80, fingerprint(unsupported)), k.hashed()), revocationBy(unsupported)), "revocation of a key by key " + fmt.Sprintf("%016X", fingerprint(unsupported)[12:])},
		{"two of them", cat(public, other.over(0x20, sigTime, nil, k.hashed()), unknown.over(0x20, sigTime, nil, k.hashed())), "; "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := signature.ParseKeyring("ring", tt.ring)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ring %v, error %v, want %s", r, err, tt.want)
			}
		})
	}

	var many []byte
	for range 100 {
		many = cat(many, pkt(2, unknown.sign(sig{typ: 0x20, issuer: uint64(len(many) + 1)}, unknown.hashed())))
	}
	if _, err := signature.ParseKeyring("ring", cat(public, many)); err == nil || len(err.Error()) > 1200 || !strings.Contains(err.Error(), "more") {
		t.Error(err)
	}
	// What an unsupported key says about itself does not matter: it is not used.
	if _, err := verify(t, ring(t, unsupported, revocationBy(unsupported), public), k.message(msg{}), signature.Options{}); err != nil {
		t.Error(cause(err))
	}
}

// What a stranger certified counts for nothing, nor does it if the stranger
// takes it back: gpg calls such a key's signature good.
func TestWithdrawnByStrangers(t *testing.T) {
	k, stranger := newEd25519(keyTime), newEd25519(keyTime)
	public := k.public(cert{})
	v6 := bytes.Clone(k.body)
	v6[0] = 6
	for _, tt := range []struct {
		name string
		ring []byte
		id   string // of what is skipped; empty: the issuer is not named
		want string
	}{
		{"of a user id", cat(public, stranger.over(0x30, sigTime, nil, uidParts(k, testUID)...)), fmt.Sprintf("%016X", stranger.id), "withdraws a certification"},
		{"in front of the key", cat(stranger.over(0x30, sigTime, nil, uidParts(k, testUID)...), public), fmt.Sprintf("%016X", stranger.id), "withdraws a certification"},
		{"version 3", cat(public, pkt(2, rsa2048().sign(sig{version: 3, typ: 0x30}, k.hashed(), []byte(testUID)))), fmt.Sprintf("%016X", rsa2048().id), "withdraws a certification"},
		{"that cannot be read", cat(public, stranger.over(0x30, sigTime, sub(0x80|100, []byte("x")), uidParts(k, testUID)...)), fmt.Sprintf("%016X", stranger.id), "withdraws a certification"},
		{"without an issuer", cat(public, pkt(2, stranger.sign(sig{typ: 0x30, noIssuer: true}, uidParts(k, testUID)...))), "", "withdraws a certification"},
		{"a key of version 6 with its own revocation", cat(public, pkt(6, v6), pkt(2, []byte{6, 0x20, 22, 8}, make([]byte, 40))), "", "unsupported key version 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ring(t, tt.ring)
			skipped := r.Skipped()
			if len(skipped) != 1 || tt.id != "" && skipped[0].ID != tt.id || skipped[0].Used || !strings.Contains(skipped[0].Reason, tt.want) {
				t.Errorf("skipped %+v", skipped)
			}
			if _, err := verify(t, r, k.message(msg{}), signature.Options{}); err != nil {
				t.Error(cause(err))
			}
		})
	}
}

// over3 revokes by a hash that the program does not have.
func (k *pgpKey) over3(parts ...[]byte) []byte {
	return pkt(2, k.sign(sig{typ: 0x20, hash: 3}, parts...))
}

// fingerprint returns that of a public key packet with a short length.
func fingerprint(packet []byte) []byte { return newKey(packet[7], keyTime, packet[8:], nil).print }

// revocationBy returns what looks like a revocation by a key that cannot be
// used.
func revocationBy(packet []byte) []byte {
	print := fingerprint(packet)
	return pkt(2, []byte{4, 0x20, 28, 8}, u16(6), sub(2, stamp(sigTime)), u16(10), sub(16, print[12:]), []byte{1, 2}, make([]byte, 114))
}

func revoker(class byte, print []byte) []byte { return sub(12, []byte{class, 22}, print) }

// A key that another one names as its revoker revokes it if it is in the ring.
func TestDesignatedRevokers(t *testing.T) {
	k, s, r := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	names := func(class byte) []byte { return k.over(0x1f, keyTime, revoker(class, r.print), k.hashed()) }
	public := cat(k.public(cert{}), k.subkey(s, nil, 0, true))
	revokes := r.over(0x20, sigTime, nil, k.hashed())
	revokers := r.public(cert{uid: "Revoker"})
	noUser := pkt(6, r.body) // not used itself, but it can revoke
	refused := fmt.Sprintf("revocation of a key by key %016X matches nothing", r.id)
	for _, tt := range []struct {
		name string
		ring []byte
		by   *pgpKey
		want string // of the refusal, or of the ring's error
	}{
		{"named", cat(public, names(0x80), revokers, revokes), k, "is revoked"},
		{"named, subkey", cat(public, names(0x80), revokers, revokes), s, "primary key"},
		{"named, in another order", cat(revokes, revokers, names(0x80), public), k, "is revoked"},
		{"the revoker itself", cat(public, names(0x80), revokers, revokes), r, ""},
		{"named as sensitive", cat(public, names(0xc0), revokers, revokes), k, "is revoked"},
		{"named by a user id's self-signature that is no longer the newest", cat(public, k.over(0x13, keyTime.Add(-time.Hour), revoker(0x80, r.print), uidParts(k, testUID)...), revokers, revokes), k, "is revoked"},
		{"not named", cat(public, revokers, revokes), k, refused},
		{"named with a void class", cat(public, names(0), revokers, revokes), k, refused},
		{"named outside of what is signed", cat(public, pkt(2, k.sign(sig{typ: 0x1f, unhashed: revoker(0x80, r.print)}, k.hashed())), revokers, revokes), k, refused},
		{"named by another", cat(public, s.over(0x1f, keyTime, revoker(0x80, r.print), k.hashed()), revokers, revokes), k, refused},
		{"named, but not in the ring", cat(public, names(0x80), revokes), k, refused},
		{"named, without a user id", cat(public, names(0x80), noUser, revokes), k, "is revoked"},
		{"its revocation of a subkey", cat(public, names(0x80), revokers, r.over(0x28, sigTime, nil, k.hashed(), s.hashed())), s, "is revoked"},
		{"its revocation of a subkey leaves the primary", cat(public, names(0x80), revokers, r.over(0x28, sigTime, nil, k.hashed(), s.hashed())), k, ""},
		{"its revocation of the only user id", cat(public, names(0x80), revokers, r.over(0x30, sigTime, nil, uidParts(k, testUID)...)), k, "no key"},
		{"a third party's revocation of its own certification", cat(public, revokers, r.over(0x30, sigTime, nil, uidParts(k, testUID)...)), k, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parsed, err := signature.ParseKeyring("ring", tt.ring)
			if err == nil {
				if _, err = verify(t, parsed, tt.by.message(msg{}), signature.Options{}); err != nil {
					err = cause(err)
				}
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A self-signature that states a time or a use twice leaves its key out, even
// where an older one would do.
func TestStatedTwice(t *testing.T) {
	k, s, good := newEd25519(keyTime), newEd25519(keyTime), newEd25519(keyTime)
	use := sub(27, []byte{3})
	lifetimes := cat(use, sub(9, u32(10*365*day)), sub(9, u32(0)))
	expiries := cat(use, sub(3, u32(10*365*day)), sub(3, u32(0)))
	binding := func(subs []byte) []byte {
		return cat(pkt(14, s.body), k.over(0x18, keyTime, cat(subs, sub(32, s.sign(sig{typ: 0x19}, k.hashed(), s.hashed()))), k.hashed(), s.hashed()))
	}
	ofKey, ofSubkey := fmt.Sprintf("%X", k.print), fmt.Sprintf("%X", s.print)
	for _, tt := range []struct {
		name, id, want string
		key            []byte
	}{
		{"two expiries of the key", ofKey, "self-signature with more than one expiry of the key", k.public(cert{self: sig{hashed: lifetimes[3:]}})},
		{"two equal ones", ofKey, "more than one expiry of the key", k.public(cert{self: sig{hashed: cat(sub(9, u32(0)), sub(9, u32(0)))}})},
		{"two expiries of the signature", ofKey, "more than one expiry of the signature", k.public(cert{self: sig{hashed: expiries[3:]}})},
		{"two creation times", ofKey, "more than one creation time", k.public(cert{self: sig{hashed: sub(2, stamp(keyTime))}})},
		{"two uses", ofKey, "more than one statement of the key's use", k.public(cert{self: sig{hashed: sub(27, []byte{3})}})},
		{"beside an older self-signature", ofKey, "more than one expiry of the key", cat(k.public(cert{}), k.over(0x13, sigTime, lifetimes, uidParts(k, testUID)...))},
		{"in a direct-key signature", ofKey, "more than one expiry of the key", cat(k.public(cert{}), k.over(0x1f, sigTime, lifetimes, k.hashed()))},
		{"in a binding", ofSubkey, "binding signature with more than one expiry of the key", cat(k.public(cert{}), binding(lifetimes))},
		{"in a newer binding", ofSubkey, "binding signature with more than one expiry of the signature", cat(k.public(cert{}), k.subkey(s, nil, 0, true), binding(expiries))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ring(t, tt.key, good.public(cert{}))
			skipped := r.Skipped()
			if len(skipped) != 1 || !strings.HasPrefix(skipped[0].ID, tt.id) || !strings.Contains(skipped[0].Reason, tt.want) {
				t.Errorf("skipped %v, want %s", skipped, tt.want)
			}
			if _, err := verify(t, r, good.message(msg{}), signature.Options{}); err != nil {
				t.Error(cause(err))
			}
			by := k
			if tt.id == ofSubkey {
				by = s
			}
			_, err := verify(t, r, by.message(msg{}), signature.Options{})
			wantRefused(t, err, signature.InvalidKey, "no key")
		})
	}
	for name, tt := range map[string]struct{ key []byte }{
		"outside of what is signed": {k.public(cert{self: sig{unhashed: lifetimes}})},
		"by another":                {cat(k.public(cert{}), s.over(0x13, sigTime, lifetimes, uidParts(k, testUID)...))},
	} {
		if _, err := verify(t, ring(t, tt.key), k.message(msg{}), signature.Options{}); err != nil {
			t.Errorf("%s: %v", name, cause(err))
		}
	}
	_, err := verify(t, ring(t, good.public(cert{})), good.message(msg{sig: sig{hashed: cat(sub(3, u32(0)), sub(3, u32(day)))}}), signature.Options{})
	wantRefused(t, err, signature.Unreadable, "more than one expiry of the signature")
	_, err = verify(t, ring(t, good.public(cert{})), good.message(msg{sig: sig{hashed: cat(sub(3, u32(day)), sub(3, u32(0)))}}), signature.Options{})
	wantRefused(t, err, signature.Unreadable, "more than one expiry of the signature")
}

// Of two self-signatures of one second, the shorter lifetime counts.
func TestNewestOfOneSecond(t *testing.T) {
	k := newEd25519(keyTime)
	use := sub(27, []byte{3})
	short := k.over(0x13, sigTime, cat(use, sub(9, u32(day))), uidParts(k, testUID)...)
	long := k.over(0x13, sigTime, use, uidParts(k, testUID)...)
	for _, r := range [][]byte{cat(k.public(cert{}), short, long), cat(k.public(cert{}), long, short)} {
		_, err := verify(t, ring(t, r), k.message(msg{}), signature.Options{})
		wantRefused(t, err, signature.BadSignature, "expired on")
	}
}

// Two keys with one 64-bit id cannot be made; a key that is a primary, not for
// signing, and another's subkey, for signing, shows that each is tried.
func TestPrimaryThatIsAnothersSubkey(t *testing.T) {
	k, s := newEd25519(keyTime), newEd25519(keyTime)
	ofItself, ofK := s.public(cert{uid: "S", flags: []byte{1}}), k.public(cert{extra: k.subkey(s, nil, 0, true)})
	for _, r := range [][]byte{cat(ofItself, ofK), cat(ofK, ofItself)} {
		if _, err := verify(t, ring(t, r), s.message(msg{}), signature.Options{}); err != nil {
			t.Error(cause(err))
		}
	}
	// A revocation of one counts for both, even where the primary is not used.
	for _, revoked := range [][]byte{cat(ofItself, s.over(0x20, sigTime, nil, s.hashed())), cat(pkt(6, s.body), s.over(0x20, sigTime, nil, s.hashed()))} {
		_, err := verify(t, ring(t, revoked, ofK), s.message(msg{}), signature.Options{})
		wantRefused(t, err, signature.InvalidKey, "is revoked")
	}
}

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
		if got := verdict(value); got != want {
			t.Fatalf("in another order:\n%s\nwant\n%s", got, want)
		}
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
