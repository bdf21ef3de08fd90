package signature

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// weigh finds out what each signature of the collection is about, by its type
// and by what it verifies over. Self-signatures may use any hash: the keyring is
// trusted as it is, only messages must be signed with a strong one. Signatures
// of others, and broken ones, say nothing. Revocations are different: one that
// matches nothing might be about a key that is used, so the value is refused,
// unless it is a stranger's.
func (c *collection) weigh() error {
	var revocations []foundRevocation
	for _, found := range c.sigs {
		s, err := parseSignature(found.body, certificateSubs)
		if err != nil {
			if typ, ok := typeOf(found.body); ok && revokes(typ) {
				revocations = append(revocations, foundRevocation{found, &sigPacket{typ: typ, issuers: claimedIssuer(found.body)}, err})
			}
			continue
		}
		if revokes(s.typ) {
			revocations = append(revocations, foundRevocation{found, s, nil})
			continue
		}
		if !c.claim(s, found) && found.early {
			c.strays = append(c.strays, stray{tagSignature, found.order})
		}
		if c.budget.err != nil {
			return c.budget.err
		}
	}
	// Only now is it known whom the keys allow to revoke them.
	var strange []string
	for _, r := range revocations {
		if r.err == nil && c.revoke(r) {
			continue
		}
		if c.budget.err != nil {
			return c.budget.err
		}
		switch {
		case c.concernsUnusable(r):
		case c.strangers(r):
			c.withdrawn = append(c.withdrawn, r)
		default:
			strange = append(strange, r.matchesNothing())
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	return errors.New(bounded.Join(slices.Compact(strange), "; ", maxErrorText))
}

// claim takes a signature into account that says something about a key: a
// direct-key signature, a certification of a user id, or the binding of a
// subkey. It reports whether the signature is the owner's.
func (c *collection) claim(s *sigPacket, found foundSignature) bool {
	issuers := c.issuers(s)
	if _, err := availableHash(s.hash); err != nil {
		for _, by := range issuers {
			by.unreadable = err
		}
		return false
	}
	for _, by := range issuers {
		switch {
		case s.typ == typeDirectKey:
			if !c.budget.made(by.pub, s, by.hashed()) {
				continue
			}
			by.claims = append(by.claims, claim{sig: s, weak: s.weak()})
		case s.typ >= typeCertFirst && s.typ <= typeCertLast:
			u := c.certified(by, s, found.user)
			if u == nil {
				continue
			}
			if u.attribute {
				return true // nothing that is said about a picture is used
			}
			n := by.name(u)
			n.claims = append(n.claims, claim{sig: s, weak: s.weak()})
		case s.typ == typeSubkeyBinding:
			sub := c.bound(by, s, found.subkey)
			if sub == nil {
				continue
			}
			b := by.binding(sub)
			made := claim{sig: s, weak: s.weak()}
			if cross := c.crossSigned(by, sub, s); cross != nil {
				made.cross = true
				made.weak = made.weak || cross.weak()
			}
			b.claims = append(b.claims, made)
			if s.twice != nil {
				b.err = fmt.Errorf("binding signature with %w", s.twice)
			}
			return true
		default:
			return false
		}
		if s.twice != nil && by.err == nil {
			by.err = fmt.Errorf("self-signature with %w", s.twice)
		}
		by.revokers = append(by.revokers, s.revokers...)
		return true
	}
	return false
}

// certified returns the user id or attribute that by certifies in s.
func (c *collection) certified(by *certificate, s *sigPacket, near int) *userID {
	for u := range nearest(c.users, near) {
		if c.budget.made(by.pub, s, u.hashed(by.pub, s)...) {
			return u
		}
	}
	return nil
}

// bound returns the subkey of by that s is about.
func (c *collection) bound(by *certificate, s *sigPacket, near int) *subkey {
	for sub := range nearest(c.subkeys, near) {
		if c.budget.made(by.pub, s, by.hashed(), sub.hashed) {
			return sub
		}
	}
	return nil
}

// crossSigned returns the subkey's own signature over the pair that a binding
// holds, or nil. Without it, anybody could claim another's key as a subkey.
func (c *collection) crossSigned(by *certificate, sub *subkey, binding *sigPacket) *sigPacket {
	if sub.err != nil {
		return nil
	}
	for _, body := range binding.embedded {
		s, err := parseSignature(body, certificateSubs)
		if err != nil || s.twice != nil || s.typ != typePrimaryBinding || slices.ContainsFunc(s.issuers, func(id uint64) bool { return id != sub.pub.id }) {
			continue
		}
		if c.budget.made(sub.pub, s, by.hashed(), sub.hashed) {
			return s
		}
	}
	return nil
}

// hashed is the form in which signatures over the key cover it; nil if it
// has none.
func (c *certificate) hashed() []byte {
	if c.pub == nil {
		return nil
	}
	return c.pub.hashed
}

func (c *certificate) name(u *userID) *name {
	n := c.names[u]
	if n == nil {
		n = &name{}
		c.names[u] = n
	}
	return n
}

func (c *certificate) binding(s *subkey) *binding {
	b := c.bindings[s]
	if b == nil {
		b = &binding{}
		c.bindings[s] = b
	}
	return b
}

// primary returns the key of a certificate for use, or an error that explains why
// it is not used.
func (c *collection) primary(cert *certificate) (*key, error) {
	if cert.err != nil {
		return nil, cert.err
	}
	k := &key{pub: cert.pub, revoked: cert.revoked}
	k.claims = append(k.claims, since(cert.claims, cert.claimsRevoked))
	for _, u := range c.users {
		n := cert.names[u]
		if n == nil || !c.owns(cert, u) {
			continue
		}
		if valid := since(n.claims, n.revoked); len(valid) > 0 {
			k.claims = append(k.claims, valid)
			k.userIDs = append(k.userIDs, bounded.Text(strings.ToValidUTF8(string(u.body), "\uFFFD"), maxUserIDText))
		}
	}
	if len(k.userIDs) == 0 {
		return nil, cert.lacks("no user id with a valid self-signature")
	}
	return k, nil
}

// lacks reports that nothing valid was found, and what could not be looked at.
func (c *certificate) lacks(text string) error {
	if c.unreadable != nil {
		return fmt.Errorf("%s: %w", text, c.unreadable)
	}
	return errors.New(text)
}

// owns reports whether a user id that cert certifies is its own: a user id packet
// is one key's. Where more keys certify it than there are packets, it is of the
// packets that it follows.
func (c *collection) owns(cert *certificate, u *userID) bool {
	certify := 0
	for _, other := range c.primaries {
		if n := other.names[u]; n != nil && len(n.claims) > 0 {
			certify++
		}
	}
	return certify <= u.packets || slices.Contains(u.near, cert)
}

// since returns the claims that were made after they were last revoked.
func since(claims []claim, revoked time.Time) []claim {
	var out []claim
	for _, c := range claims {
		if c.sig.created.After(revoked) {
			out = append(out, c)
		}
	}
	return out
}

// bind returns a subkey for use, or an error that explains why it is not used.
func (c *certificate) bind(primary *key, s *subkey, b *binding) (*key, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case b.err != nil:
		return nil, b.err
	case len(b.claims) == 0:
		return nil, c.lacks("no valid binding signature")
	}
	k := &key{pub: s.pub, primary: primary, revoked: b.revoked, claims: [][]claim{b.claims}}
	if s := k.at(time.Time{}); s.use != nil && s.use.signs() && !s.use.cross {
		return nil, errors.New("signing subkey without a valid cross-signature")
	}
	return k, nil
}
