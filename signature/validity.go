package signature

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Validity says when a key must have been valid for its signature to count.
// Keys that are revoked never count, and no signature counts that is older than
// its key.
type Validity int

const (
	// AtSignatureTime wants the key valid when the signature was made, so that
	// the signatures of old releases outlive their key. It is the default.
	AtSignatureTime Validity = iota
	// AtNow wants the key valid now.
	AtNow
	// IgnoreValidity takes expired keys, as the cluster-version operator does.
	IgnoreValidity
)

// standing is what the valid self-signatures of a key say at one time. Each
// statement is taken from the newest that makes it: one that says nothing of the
// key's use or its end leaves both as they are.
type standing struct {
	// self are the self-signatures that count: the newest over the key itself and
	// over each of its user ids; of a subkey, its newest binding.
	self []*claim
	use  *claim // states the key flags; nil: none does
	life *claim // states the end of the key; nil: none does
}

// at returns the standing of the key at a time; at the zero time, no self-signature
// has expired. A user id whose newest self-signature has expired is left with the
// newest of the others, as in GnuPG. A subkey is left with nothing: what its owner
// has bound for a while is not bound by an earlier signature.
func (k *key) at(now time.Time) standing {
	var s standing
	for _, claims := range k.claims {
		var best *claim
		for i := range claims {
			c := &claims[i]
			if k.primary == nil && c.sig.expiredAt(now) {
				continue
			}
			if best == nil || c.overrides(best) {
				best = c
			}
		}
		if best == nil || best.sig.expiredAt(now) {
			continue
		}
		s.self = append(s.self, best)
		if best.sig.flags != nil && (s.use == nil || best.newer(s.use, !best.signs())) {
			s.use = best
		}
		// 0 is without end, the longest.
		if best.sig.states(subKeyLifetime) && (s.life == nil || best.newer(s.life, best.sig.lifetime-1 < s.life.sig.lifetime-1)) {
			s.life = best
		}
	}
	return s
}

// newer reports whether c was made after o; of two that were made in one second,
// the one that allows less takes precedence.
func (c *claim) newer(o *claim, less bool) bool {
	n := c.sig.created.Compare(o.sig.created)
	return n > 0 || n == 0 && less
}

// overrides reports whether c decides in place of o: the newer one does. Of one
// second, that with the shorter lifetime, then the one whose signed octets sort
// last, so that the order in the keyring plays no part.
func (c *claim) overrides(o *claim) bool {
	if n := c.sig.created.Compare(o.sig.created); n != 0 {
		return n > 0
	}
	// 0 is without end, the longest.
	if n := cmp.Compare(c.sig.lifetime-1, o.sig.lifetime-1); n != 0 {
		return n < 0
	}
	if n := bytes.Compare(c.sig.suffix, o.sig.suffix); n != 0 {
		return n > 0
	}
	return c.cross && !o.cross
}

// signs reports whether the key flags of a claim, if it has any, include that
// for signing.
func (c *claim) signs() bool {
	return c.sig.flags == nil || len(c.sig.flags) > 0 && c.sig.flags[0]&flagSign != 0
}

// maySign reports whether the key may sign messages, revoked or not: a primary
// unless its flags exclude it, a subkey only with a cross-signature, and only if
// its primary key has a valid self-signature.
func (k *key) maySign(now time.Time) error {
	s := k.at(now)
	switch {
	case len(s.self) == 0:
		return fmt.Errorf("key %s has no valid self-signature", k.pub.print())
	case k.pub.material == nil:
		return fmt.Errorf("key %s only encrypts", k.pub.print())
	case s.use != nil && !s.use.signs():
		return fmt.Errorf("key %s is not for signing", k.pub.print())
	case k.primary == nil:
		return nil
	case !s.self[0].cross:
		return fmt.Errorf("subkey %s has no cross-signature", k.pub.print())
	case len(k.primary.at(now).self) == 0:
		return fmt.Errorf("primary key %s has no valid self-signature", k.primary.pub.print())
	}
	return nil
}

// revocation returns an error if the key or its primary is revoked.
func (k *key) revocation() error {
	if k.revoked {
		return fmt.Errorf("key %s is revoked", k.pub.print())
	}
	if p := k.primary; p != nil && p.revoked {
		return fmt.Errorf("primary key %s is revoked", p.pub.print())
	}
	return nil
}

// usable reports whether the key may sign messages at all.
func (k *key) usable(now time.Time) error {
	if err := k.revocation(); err != nil {
		return err
	}
	return k.maySign(now)
}

// end returns when the key expires by what its self-signatures say at now; ok is
// false if it never does.
func (k *key) end(now time.Time) (t time.Time, ok bool) {
	life := k.at(now).life
	if life == nil || life.sig.lifetime == 0 {
		return time.Time{}, false
	}
	return k.pub.created.Add(time.Duration(life.sig.lifetime) * time.Second), true
}

// restsOnWeak returns an error if only self-signatures over MD5 or SHA-1 let the
// key sign, or let it live as long as it does. They count: a keyring is trusted
// as it is.
func (k *key) restsOnWeak() error {
	never := time.Time{}
	if k.usable(never) != nil {
		return nil
	}
	strong := *k
	strong.claims = nil
	for _, claims := range k.claims {
		strong.claims = append(strong.claims, slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return c.weak }))
	}
	if strong.maySign(never) != nil {
		return errors.New("only a self-signature over MD5 or SHA-1, which others may have made, lets it sign")
	}
	with, ends := k.end(never)
	without, endsWithout := strong.end(never)
	if endsWithout && (!ends || with.After(without)) {
		return fmt.Errorf("only a self-signature over MD5 or SHA-1, which others may have made, lets it live beyond %s", without.Format(time.RFC3339))
	}
	return nil
}

// strong reports whether signatures of the key are worth anything.
func (k *key) strong() error {
	if m, ok := k.pub.material.(*rsa.PublicKey); ok && m.N.BitLen() < minRSABits {
		return fmt.Errorf("key %s has %d bits, less than %d", k.pub.print(), m.N.BitLen(), minRSABits)
	}
	return nil
}

// validFor reports whether a signature that was made at created lies within
// the lifetime of the key, and of its primary.
func (k *key) validFor(created, now time.Time, policy Validity) error {
	if created.Before(k.pub.created) {
		return errors.New("signature is older than its key")
	}
	at := created
	switch policy {
	case IgnoreValidity:
		return nil
	case AtNow:
		at = now
	}
	for _, o := range []*key{k, k.primary} {
		if o == nil {
			continue
		}
		if at.Before(o.pub.created) {
			return fmt.Errorf("key %s was made later, on %s", o.pub.print(), o.pub.created.Format(time.RFC3339))
		}
		if end, ok := o.end(now); ok && !at.Before(end) {
			return fmt.Errorf("key %s expired on %s", o.pub.print(), end.Format(time.RFC3339))
		}
	}
	return nil
}

// trustedUntil returns when the check that k made m may come out otherwise: the
// earliest time after now at which the signature expires, a self-signature of
// the key or its primary that counts, or one of the two keys. Zero: never. A
// key that expires ends nothing where only its validity at the time of the
// signature counts, but looking again then costs little.
func (k *key) trustedUntil(m *message, now time.Time) time.Time {
	var first time.Time
	note := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if t, ok := m.sig.expiresAt(); ok {
		note(t)
	}
	for _, o := range []*key{k, k.primary} {
		if o == nil {
			continue
		}
		for _, c := range o.at(now).self {
			if t, ok := c.sig.expiresAt(); ok {
				note(t)
			}
		}
		if t, ok := o.end(now); ok {
			note(t)
		}
	}
	return first
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
