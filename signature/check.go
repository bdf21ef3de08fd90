package signature

import (
	"bytes"
	"errors"
	"time"
)

// policy is what [Options] say about a single signature.
type policy struct {
	validity Validity
	skew     *time.Duration
	now      time.Time
}

// check returns the key of the ring that made m, or a *Rejection.
func (k *Keyring) check(m *message, p policy) (*key, error) {
	candidates := k.byID[m.keyID]
	if len(candidates) == 0 {
		return nil, rejectf(InvalidKey, "no key %016X in the keyring", m.keyID)
	}
	// Ids may collide: try each key, and report the failure of the one that got
	// furthest.
	var best error
	rank := -1
	for _, c := range candidates {
		r, err := c.check(m, p)
		if err == nil {
			return c, nil
		}
		if r > rank {
			best, rank = err, r
		}
	}
	return nil, best
}

// check reports whether the key made m; rank is how far m got.
func (k *key) check(m *message, p policy) (rank int, err error) {
	for _, print := range m.sig.fingerprints {
		if !bytes.Equal(print, k.pub.fingerprint[:]) {
			return 0, rejectf(InvalidKey, "signature names the key %X, not %s", print, k.pub.print())
		}
	}
	if err := k.usable(p.now); err != nil {
		return 1, reject(InvalidKey, err)
	}
	if err := k.strong(); err != nil {
		return 2, reject(BadSignature, err)
	}
	if err := k.pub.verify(m.sig, m.hash, m.sum); err != nil {
		return 3, reject(BadSignature, err)
	}
	created := m.sig.created
	if err := k.validFor(created, p.now, p.validity); err != nil {
		return 4, reject(BadSignature, err)
	}
	if p.skew != nil && created.After(p.now.Add(*p.skew)) {
		return 4, reject(BadSignature, errors.New("signature was made in the future, on "+created.Format(time.RFC3339)))
	}
	if m.sig.expiredAt(p.now) {
		t, _ := m.sig.expiresAt()
		return 5, &Rejection{Reason: Expired, Expiry: t}
	}
	return 6, nil
}

// owner returns the key that carries the user ids.
func (k *key) owner() *key {
	if k.primary != nil {
		return k.primary
	}
	return k
}
