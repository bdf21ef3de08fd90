package signature

import "time"

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
