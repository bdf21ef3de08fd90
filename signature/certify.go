package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// subkeyPackets is a subkey with the signatures that follow it.
type subkeyPackets struct {
	pub  *publicKey
	err  error // of the key packet
	sigs [][]byte
}

// userID is a user id with the owner's statements about it.
type userID struct {
	bytes   []byte
	claims  []claim
	revoked time.Time // newest revocation by the owner
}

// certify checks what the owner of a primary key says about it. packets are
// those that follow the key's. The self-signatures may use any hash: the
// keyring is trusted as it is, only messages must be signed with a strong one.
func certify(pub *publicKey, packets []packet) (*key, []*subkeyPackets, error) {
	if pub.material == nil {
		return nil, nil, errors.New("the primary key cannot sign")
	}
	k := &key{publicKey: pub}
	var users []*userID
	var subkeys []*subkeyPackets
	// What the next signature is about: a subkey, a user id, an attribute, or
	// the key itself.
	var sub *subkeyPackets
	var user *userID
	attribute := false
	for _, p := range packets {
		switch p.tag {
		case tagUserID:
			user = &userID{bytes: p.body}
			users = append(users, user)
			sub, attribute = nil, false
		case tagUserAttribute:
			sub, user, attribute = nil, nil, true
		case tagPublicSubkey:
			sub = &subkeyPackets{}
			sub.pub, sub.err = parsePublicKey(p.body)
			subkeys = append(subkeys, sub)
		case tagSignature:
			switch {
			case sub != nil:
				sub.sigs = append(sub.sigs, p.body)
			case attribute:
				// Nothing that a picture's certification says is used.
			default:
				if err := k.selfSignature(user, p.body); err != nil {
					return nil, nil, err
				}
			}
		}
	}

	for _, u := range users {
		valid := false
		for _, c := range u.claims {
			if c.sig.created.After(u.revoked) {
				k.claims = append(k.claims, c)
				valid = true
			}
		}
		if valid {
			k.userIDs = append(k.userIDs, strings.ToValidUTF8(string(u.bytes), "\uFFFD"))
		}
	}
	if len(k.userIDs) == 0 {
		return nil, nil, errors.New("no user id with a valid self-signature")
	}
	return k, subkeys, nil
}

// selfSignature takes one signature over the primary key, or over user, into
// account. Those of others, and broken ones, say nothing; but a revocation that
// is not the owner's makes the key unusable, as it may be a designated
// revoker's.
func (k *key) selfSignature(user *userID, body []byte) error {
	s, err := parseSignature(body, certificateSubs)
	if err != nil {
		if revokes(body, typeKeyRevocation) {
			return fmt.Errorf("unreadable revocation: %w", err)
		}
		return nil
	}
	switch {
	case s.typ == typeKeyRevocation:
		if err := k.signed(s, k.hashed()); err != nil {
			return errors.New("revocation by another key")
		}
		k.revoked = true
	case s.typ == typeDirectKey:
		if k.signed(s, k.hashed()) == nil {
			k.claims = append(k.claims, claim{sig: s})
		}
	case user != nil && s.typ >= typeCertFirst && s.typ <= typeCertLast:
		if k.signed(s, user.hashed(k, s)...) == nil {
			user.claims = append(user.claims, claim{sig: s})
		}
	case user != nil && s.typ == typeCertRevocation:
		if k.signed(s, user.hashed(k, s)...) == nil && s.created.After(user.revoked) {
			user.revoked = s.created
		}
	}
	return nil
}

// revokes reports whether a signature packet that could not be read is of a
// type that revokes.
func revokes(body []byte, typ byte) bool {
	return len(body) > 2 && (body[0] == 3 && body[2] == typ || body[0] != 3 && body[1] == typ)
}

// bind checks what the owner of primary says about a subkey.
func bind(primary *key, s *subkeyPackets) (*key, error) {
	if s.err != nil {
		return nil, s.err
	}
	k := &key{publicKey: s.pub, primary: primary}
	for _, body := range s.sigs {
		sig, err := parseSignature(body, certificateSubs)
		if err != nil {
			if revokes(body, typeSubkeyRevocation) {
				return nil, fmt.Errorf("unreadable revocation: %w", err)
			}
			continue
		}
		switch sig.typ {
		case typeSubkeyRevocation:
			if err := primary.signed(sig, primary.hashed(), k.hashed()); err != nil {
				return nil, errors.New("revocation by another key")
			}
			k.revoked = true
		case typeSubkeyBinding:
			if primary.signed(sig, primary.hashed(), k.hashed()) == nil {
				k.claims = append(k.claims, claim{sig: sig, cross: k.crossSigned(sig)})
			}
		}
	}
	if len(k.claims) == 0 {
		return nil, errors.New("no valid binding signature")
	}
	if c := k.newest(k.created); c != nil && !c.cross && c.sig.flags != nil && c.mayUse(flagSign) {
		return nil, errors.New("signing subkey without a valid cross-signature")
	}
	return k, nil
}

// crossSigned reports whether a binding holds the subkey's own signature over
// the pair. Without it, anybody could claim another's key as a subkey.
func (k *key) crossSigned(binding *sigPacket) bool {
	for _, body := range binding.embedded {
		s, err := parseSignature(body, certificateSubs)
		if err == nil && s.typ == typePrimaryBinding && k.signed(s, k.primary.hashed(), k.hashed()) == nil {
			return true
		}
	}
	return false
}

// signed reports whether the key made s over parts.
func (k *key) signed(s *sigPacket, parts ...[]byte) error {
	for _, id := range s.issuers {
		if id != k.id {
			return errors.New("made by another key")
		}
	}
	h, _ := hashFunc(s.hash)
	if h == 0 {
		return fmt.Errorf("hash not available: %d", s.hash)
	}
	return k.verify(s, h, s.sum(h, parts...))
}

// hashed is the form in which certifications cover a key and the user id.
func (u *userID) hashed(k *key, s *sigPacket) [][]byte {
	if s.version == 3 {
		return [][]byte{k.publicKey.hashed(), u.bytes}
	}
	prefix := binary.BigEndian.AppendUint32([]byte{0xb4}, uint32(len(u.bytes)))
	return [][]byte{k.publicKey.hashed(), prefix, u.bytes}
}
