package signature

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
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

// newest returns the claim that decides about the key: the newest that has not
// expired itself; nil where there is none.
func (k *key) newest(now time.Time) *claim {
	var best *claim
	for i := range k.claims {
		c := &k.claims[i]
		if !c.sig.expiredAt(now) && (best == nil || c.overrides(best)) {
			best = c
		}
	}
	return best
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

// mayUse reports whether a claim that has key flags includes flag.
func (c *claim) mayUse(flag byte) bool {
	return len(c.sig.flags) > 0 && c.sig.flags[0]&flag != 0
}

// maySign reports whether the key may sign messages by its claim c: a primary
// unless its flags say otherwise, a subkey only with a cross-signature.
func (k *key) maySign(c *claim) error {
	switch {
	case k.material == nil:
		return fmt.Errorf("key %s only encrypts", k.print())
	case c.sig.flags != nil && !c.mayUse(flagSign):
		return fmt.Errorf("key %s is not for signing", k.print())
	case k.primary != nil && !c.cross:
		return fmt.Errorf("subkey %s has no cross-signature", k.print())
	}
	return nil
}

// usable reports whether the key may sign messages at all.
func (k *key) usable(now time.Time) error {
	if k.revoked {
		return fmt.Errorf("key %s is revoked", k.print())
	}
	c := k.newest(now)
	if c == nil {
		return fmt.Errorf("key %s has no valid self-signature", k.print())
	}
	if err := k.maySign(c); err != nil {
		return err
	}
	if p := k.primary; p != nil {
		if p.revoked {
			return fmt.Errorf("primary key %s is revoked", p.print())
		}
		if p.newest(now) == nil {
			return fmt.Errorf("primary key %s has no valid self-signature", p.print())
		}
	}
	return nil
}

// strong reports whether signatures of the key are worth anything.
func (k *key) strong() error {
	if m, ok := k.material.(*rsa.PublicKey); ok && m.N.BitLen() < minRSABits {
		return fmt.Errorf("key %s has %d bits, less than %d", k.print(), m.N.BitLen(), minRSABits)
	}
	return nil
}

// validFor reports whether a signature that was made at created lies within
// the lifetime of the key, and of its primary.
func (k *key) validFor(created, now time.Time, policy Validity) error {
	if created.Before(k.created) {
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
		if at.Before(o.created) {
			return fmt.Errorf("key %s was made later, on %s", o.print(), o.created.Format(time.RFC3339))
		}
		c := o.newest(now)
		if c == nil || c.sig.lifetime == 0 {
			continue
		}
		if end := o.created.Add(time.Duration(c.sig.lifetime) * time.Second); !at.Before(end) {
			return fmt.Errorf("key %s expired on %s", o.print(), end.Format(time.RFC3339))
		}
	}
	return nil
}
