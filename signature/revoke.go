package signature

import (
	"encoding/binary"
	"fmt"
	"slices"
)

type foundRevocation struct {
	found foundSignature
	sig   *sigPacket // its type and issuers alone if it cannot be read
	err   error      // why it cannot be read
}

// revokes reports whether signatures of a type revoke something.
func revokes(typ byte) bool {
	return typ == typeKeyRevocation || typ == typeSubkeyRevocation || typ == typeCertRevocation
}

// revoke applies a revocation to what it verifies over, and reports whether
// there is such a thing. Its owner is looked for among the keys that it names
// first, then among all: what names the issuer is usually not signed. A key that
// a self-signature names as a revoker may revoke, too, if it is in the keyring:
// key, subkeys and user ids alike.
func (c *collection) revoke(r foundRevocation) bool {
	named := c.issuers(r.sig)
	for _, by := range named {
		if c.revokeAs(by, by, r) {
			return true
		}
		for _, of := range c.primaries {
			if of != by && by.mayRevoke(of) && c.revokeAs(by, of, r) {
				return true
			}
		}
	}
	for _, by := range c.primaries {
		if !slices.Contains(named, by) && c.revokeAs(by, by, r) {
			return true
		}
	}
	// Others may take back what they have certified themselves, which was not
	// used in the first place.
	if r.sig.typ == typeCertRevocation {
		for _, by := range named {
			for _, of := range c.primaries {
				if of != by && of.pub != nil && c.takesBack(by, of, r) {
					return true
				}
			}
		}
	}
	return false
}

// revokeAs applies a revocation by one key to what belongs to another, or to
// itself.
func (c *collection) revokeAs(by, of *certificate, r foundRevocation) bool {
	if of.pub == nil {
		return false
	}
	s := r.sig
	switch s.typ {
	case typeKeyRevocation:
		if !c.budget.made(by.pub, s, of.hashed()) {
			return false
		}
		of.revoked = true
		return true
	case typeSubkeyRevocation:
		for sub := range nearest(c.subkeys, r.found.subkey) {
			if c.budget.made(by.pub, s, of.hashed(), sub.hashed) {
				of.binding(sub).revoked = true
				return true
			}
		}
	case typeCertRevocation:
		for u := range nearest(c.users, r.found.user) {
			if c.budget.made(by.pub, s, u.hashed(of.pub, s)...) {
				n := of.name(u)
				n.revoked = later(n.revoked, s.created)
				return true
			}
		}
		if c.budget.made(by.pub, s, of.hashed()) {
			of.claimsRevoked = later(of.claimsRevoked, s.created)
			return true
		}
	}
	return false
}

// takesBack reports whether r is by's revocation of a certification over of.
func (c *collection) takesBack(by, of *certificate, r foundRevocation) bool {
	for u := range nearest(c.users, r.found.user) {
		if c.budget.made(by.pub, r.sig, u.hashed(of.pub, r.sig)...) {
			return true
		}
	}
	return c.budget.made(by.pub, r.sig, of.hashed())
}

// mayRevoke reports whether the owner of another key has named c as its
// revoker, ever.
func (c *certificate) mayRevoke(of *certificate) bool {
	return c.pub != nil && slices.Contains(of.revokers, c.pub.fingerprint)
}

// concernsUnusable reports whether a revocation can only be about a key that is
// left out because its signatures cannot be checked: such a key can have revoked
// only itself, unless a key names it as its revoker.
func (c *collection) concernsUnusable(r foundRevocation) bool {
	if r.err != nil {
		// A key of a later version signs in that version, which others do not.
		return r.found.body[0] > 4 && r.found.near != nil && r.found.near.pub != nil && r.found.near.pub.hashed == nil && r.found.near.version == r.found.body[0]
	}
	by := c.issuers(r.sig)
	if len(r.sig.issuers) == 0 || len(by) == 0 {
		return false
	}
	for _, k := range by {
		if k.pub.material != nil {
			return false
		}
	}
	return !c.namesRevoker(func(id uint64) bool { return id == r.sig.issuers[0] })
}

// strangers reports whether a revocation withdraws a certification that is not
// used in the first place: no key of the keyring has made it, and none names its
// issuer as a revoker. If it names no issuer, none may name a revoker that is
// not in the keyring. Servers of keys hold many such.
func (c *collection) strangers(r foundRevocation) bool {
	if r.sig.typ != typeCertRevocation {
		return false
	}
	if len(r.sig.issuers) > 0 {
		return !slices.ContainsFunc(r.sig.issuers, func(id uint64) bool {
			return len(c.byID[id]) > 0 || c.namesRevoker(func(named uint64) bool { return named == id })
		})
	}
	if r.err != nil {
		return false
	}
	if _, err := availableHash(r.sig.hash); err != nil {
		return false // nothing was compared
	}
	return !c.namesRevoker(func(named uint64) bool { return len(c.byID[named]) == 0 })
}

// namesRevoker reports whether a key of the keyring names a revoker whose id
// matches.
func (c *collection) namesRevoker(matches func(id uint64) bool) bool {
	return slices.ContainsFunc(c.primaries, func(of *certificate) bool {
		return slices.ContainsFunc(of.revokers, func(print [fingerprintSize]byte) bool {
			return matches(binary.BigEndian.Uint64(print[12:]))
		})
	})
}

// matchesNothing describes a revocation that is refused.
func (r foundRevocation) matchesNothing() string {
	text := revocationText(r.sig.typ, r.sig.issuers, r.found.near)
	if r.err != nil {
		return fmt.Sprintf("%s cannot be read (%v)", text, r.err)
	}
	text += " matches nothing in the keyring"
	if _, err := availableHash(r.sig.hash); err != nil {
		text += fmt.Sprintf(" (%v)", err)
	}
	return text
}

// skipped is how the keyring lists a certification that a stranger withdrew.
func (r foundRevocation) skipped() skippedAt {
	out := skippedAt{r.found.order, SkippedKey{Reason: "it withdraws a certification, and is no key of the keyring"}}
	if len(r.sig.issuers) > 0 {
		out.key.ID = printID(r.sig.issuers[0])
	}
	return out
}

// revocationText names a revocation by its issuers; if it has none, by the
// key that it follows.
func revocationText(typ byte, issuers []uint64, near *certificate) string {
	what := map[byte]string{typeKeyRevocation: "revocation of a key", typeSubkeyRevocation: "revocation of a subkey", typeCertRevocation: "revocation of a user id"}[typ]
	if len(issuers) == 0 {
		what += " that names no issuer"
		if near != nil && near.pub != nil {
			what += fmt.Sprintf(", behind key %016X,", near.pub.id)
		}
		return what
	}
	issuers = slices.Compact(slices.Sorted(slices.Values(issuers)))
	for i, id := range issuers[:min(len(issuers), 4)] {
		sep := ", "
		if i == 0 {
			sep = " by key "
		}
		what += fmt.Sprintf("%s%016X", sep, id)
	}
	return what
}

// typeOf returns the type of a signature packet, whether or not the rest of it
// can be read.
func typeOf(body []byte) (typ byte, ok bool) {
	if len(body) < 3 {
		return 0, false
	}
	if body[0] <= 3 {
		return body[2], true
	}
	return body[1], true
}

// claimedIssuer returns whom a signature packet that cannot be read names as its
// issuer, as far as that can be found out.
func claimedIssuer(body []byte) []uint64 {
	if body[0] <= 3 {
		if len(body) < 15 {
			return nil
		}
		return []uint64{binary.BigEndian.Uint64(body[7:])}
	}
	if body[0] != 4 || len(body) < 4 {
		return nil
	}
	var ids []uint64
	rest := body[4:]
	for range 2 { // the hashed area and the other
		if len(rest) < 2 {
			break
		}
		area, after, err := split(rest[2:], uint64(binary.BigEndian.Uint16(rest)))
		if err != nil {
			area, after = rest[2:], nil
		}
		rest = after
		for len(area) > 0 {
			n, _, value, err := subLength(area)
			if err != nil {
				break
			}
			sub, next, err := split(value, n)
			if err != nil || len(sub) == 0 {
				break
			}
			area = next
			if id, ok := issuerOf(sub[0]&0x7f, sub[1:]); ok && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func issuerOf(typ byte, value []byte) (uint64, bool) {
	switch {
	case typ == subIssuer && len(value) == 8:
		return binary.BigEndian.Uint64(value), true
	case typ == subIssuerPrint && len(value) > 0:
		id, err := idOfFingerprint(value[0], value[1:])
		return id, err == nil
	}
	return 0, false
}
