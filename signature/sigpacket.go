package signature

import (
	"crypto"
	_ "crypto/md5"  // self-certifications of old keys
	_ "crypto/sha1" // the same
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Signature types (RFC 9580, section 5.2.1).
const (
	typeBinary           = 0x00
	typeText             = 0x01
	typeCertFirst        = 0x10
	typeCertLast         = 0x13
	typeSubkeyBinding    = 0x18
	typePrimaryBinding   = 0x19
	typeDirectKey        = 0x1f
	typeKeyRevocation    = 0x20
	typeSubkeyRevocation = 0x28
	typeCertRevocation   = 0x30
)

// Subpacket types (RFC 9580, section 5.2.3.7).
const (
	subCreation     = 2
	subExpiry       = 3
	subKeyLifetime  = 9
	subRevoker      = 12
	subIssuer       = 16
	subNotation     = 20
	subKeyFlags     = 27
	subEmbedded     = 32
	subIssuerPrint  = 33
	flagSign        = 0x02
	fingerprintSize = 20
	messageSubs     = 1<<2 | 1<<3 | 1<<16 | 1<<26 | 1<<28 | 1<<33 | 1<<35
	certificateSubs = messageSubs | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<9 | 1<<11 | 1<<12 | 1<<21 | 1<<22 | 1<<23 | 1<<24 | 1<<25 | 1<<27 | 1<<29 | 1<<30 | 1<<31 | 1<<32 | 1<<34
)

// sigPacket is a signature packet of version 3 or 4.
type sigPacket struct {
	version byte
	typ     byte
	algo    byte
	hash    byte
	// suffix is what is hashed after the signed material.
	suffix []byte
	tag    [2]byte
	values []byte // algorithm-specific: the integers

	created  time.Time
	expiry   uint32 // seconds after created; 0 = never
	lifetime uint32 // of the key, seconds after its creation; 0 = never ends
	flags    []byte // key flags; nil if absent

	issuers      []uint64 // key ids, also those of fingerprints
	fingerprints [][]byte
	embedded     [][]byte                // embedded signature packets
	revokers     [][fingerprintSize]byte // keys that may revoke the signer's

	// twice is an error if the signature states a time or the key's use more
	// than once: nobody can know which one is meant.
	twice error
	seen  uint64 // the subpackets of the hashed area
}

// parseSignature reads the body of a signature packet. critical is the set of
// subpackets that may be marked critical.
func parseSignature(body []byte, critical uint64) (*sigPacket, error) {
	if len(body) == 0 {
		return nil, errors.New("empty signature packet")
	}
	switch body[0] {
	case 3:
		return parseV3(body)
	case 4:
		return parseV4(body, critical)
	}
	return nil, fmt.Errorf("openpgp: unsupported feature: signature packet version %d", body[0])
}

// parseV3 reads the older form, which OpenPGP libraries no longer support and
// which most published release signatures have.
func parseV3(body []byte) (*sigPacket, error) {
	const fixed = 19
	if len(body) < fixed {
		return nil, errors.New("signature packet of version 3 is too short")
	}
	if body[1] != 5 {
		return nil, fmt.Errorf("signature packet of version 3 hashes %d octets, not 5", body[1])
	}
	return &sigPacket{
		version: 3,
		typ:     body[2],
		algo:    body[15],
		hash:    body[16],
		suffix:  body[2:7],
		tag:     [2]byte(body[17:19]),
		values:  body[fixed:],
		created: unix(body[3:7]),
		issuers: []uint64{binary.BigEndian.Uint64(body[7:15])},
	}, nil
}

var errShortSignature = errors.New("signature packet of version 4 is too short")

func parseV4(body []byte, critical uint64) (*sigPacket, error) {
	if len(body) < 6 {
		return nil, errShortSignature
	}
	s := &sigPacket{version: 4, typ: body[1], algo: body[2], hash: body[3]}
	hashed, rest, err := split(body[6:], uint64(binary.BigEndian.Uint16(body[4:])))
	if err != nil || len(rest) < 2 {
		return nil, errShortSignature
	}
	unhashed, rest, err := split(rest[2:], uint64(binary.BigEndian.Uint16(rest)))
	if err != nil || len(rest) < 2 {
		return nil, errShortSignature
	}
	s.tag, s.values = [2]byte(rest), rest[2:]

	end := 6 + len(hashed)
	s.suffix = make([]byte, 0, end+6)
	s.suffix = append(s.suffix, body[:end]...)
	s.suffix = append(s.suffix, 4, 0xff)
	s.suffix = binary.BigEndian.AppendUint32(s.suffix, uint32(end))

	if err := s.subpackets(hashed, true, critical); err != nil {
		return nil, err
	}
	if err := s.subpackets(unhashed, false, critical); err != nil {
		return nil, err
	}
	if s.created.IsZero() {
		return nil, errors.New("signature without a creation time")
	}
	return s, nil
}

// subpackets reads one of the two areas. Only the hashed one is authentic:
// times and key properties count there alone.
func (s *sigPacket) subpackets(area []byte, hashed bool, critical uint64) error {
	for len(area) > 0 {
		n, more, rest, err := subLength(area)
		if err != nil || more {
			return errors.New("malformed signature subpacket")
		}
		sub, rest, err := split(rest, n)
		if err != nil || len(sub) == 0 {
			return errors.New("malformed signature subpacket")
		}
		area = rest
		typ, value := sub[0]&0x7f, sub[1:]
		if sub[0]&0x80 != 0 && (typ > 63 || critical&(1<<typ) == 0) {
			return fmt.Errorf("openpgp: unsupported feature: unknown critical signature subpacket type %d", typ)
		}
		if err := s.subpacket(typ, value, hashed); err != nil {
			return fmt.Errorf("signature subpacket type %d: %w", typ, err)
		}
	}
	return nil
}

var errSubpacketLength = errors.New("unexpected length")

func (s *sigPacket) subpacket(typ byte, value []byte, hashed bool) error {
	if name := statedOnce(typ); name != "" && hashed {
		if s.seen&(1<<typ) != 0 && s.twice == nil {
			s.twice = fmt.Errorf("more than one %s", name)
		}
		s.seen |= 1 << typ
	}
	switch typ {
	case subCreation:
		if !hashed {
			return errors.New("creation time outside of the hashed area")
		}
		if len(value) != 4 {
			return errSubpacketLength
		}
		s.created = unix(value)
	case subExpiry, subKeyLifetime:
		if !hashed {
			return nil
		}
		if len(value) != 4 {
			return errSubpacketLength
		}
		if typ == subExpiry {
			s.expiry = binary.BigEndian.Uint32(value)
		} else {
			s.lifetime = binary.BigEndian.Uint32(value)
		}
	case subKeyFlags:
		if hashed {
			s.flags = append([]byte{}, value...)
		}
	case subIssuer:
		if len(value) != 8 {
			return errSubpacketLength
		}
		s.issuers = append(s.issuers, binary.BigEndian.Uint64(value))
	case subIssuerPrint:
		if len(value) == 0 {
			return errSubpacketLength
		}
		id, err := idOfFingerprint(value[0], value[1:])
		if err != nil {
			return err
		}
		s.issuers = append(s.issuers, id)
		s.fingerprints = append(s.fingerprints, value[1:])
	case subEmbedded:
		s.embedded = append(s.embedded, value)
	case subRevoker:
		// A class without the high bit is void; the algorithm is not needed.
		if hashed && len(value) == 2+fingerprintSize && value[0]&0x80 != 0 {
			s.revokers = append(s.revokers, [fingerprintSize]byte(value[2:]))
		}
	}
	return nil
}

// states reports whether the signature has a subpacket in its hashed area.
func (s *sigPacket) states(typ byte) bool { return s.seen&(1<<typ) != 0 }

// statedOnce names a subpacket that a signature may have once only.
func statedOnce(typ byte) string {
	switch typ {
	case subCreation:
		return "creation time"
	case subExpiry:
		return "expiry of the signature"
	case subKeyLifetime:
		return "expiry of the key"
	case subKeyFlags:
		return "statement of the key's use"
	}
	return ""
}

// idOfFingerprint derives the key id; its place depends on the version.
func idOfFingerprint(version byte, print []byte) (uint64, error) {
	switch {
	case version == 4 && len(print) == fingerprintSize:
		return binary.BigEndian.Uint64(print[12:]), nil
	case version > 4 && len(print) == 32:
		return binary.BigEndian.Uint64(print), nil
	}
	return 0, fmt.Errorf("fingerprint of version %d with %d octets", version, len(print))
}

// subLength is like newLength, but what is a partial length there is a
// two-octet one here.
func subLength(data []byte) (n uint64, more bool, rest []byte, err error) {
	if len(data) > 1 && data[0] >= 192 && data[0] < 255 {
		return uint64(data[0]-192)<<8 + uint64(data[1]) + 192, false, data[2:], nil
	}
	return newLength(data)
}

func unix(be []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(be)), 0).UTC()
}

// sum hashes parts and what the signature adds to them.
func (s *sigPacket) sum(h crypto.Hash, parts ...[]byte) []byte {
	w := h.New()
	for _, p := range parts {
		w.Write(p)
	}
	w.Write(s.suffix)
	return w.Sum(nil)
}

// expiresAt returns the end of the signature's own validity; ok is false if it has
// none.
func (s *sigPacket) expiresAt() (t time.Time, ok bool) {
	if s.expiry == 0 {
		return time.Time{}, false
	}
	return s.created.Add(time.Duration(s.expiry) * time.Second), true
}

// expiredAt reports whether the signature's own validity has ended: its first
// second is valid, the second at its end is not.
func (s *sigPacket) expiredAt(now time.Time) bool {
	t, ok := s.expiresAt()
	return ok && !now.Before(t)
}

// hashFunc returns the hash of an OpenPGP id, and its name. It is 0 with a name
// for those that exist but are not available here.
func hashFunc(id byte) (h crypto.Hash, name string) {
	switch id {
	case 1:
		return crypto.MD5, "MD5"
	case 2:
		return crypto.SHA1, "SHA-1"
	case 3:
		return 0, "RIPEMD-160"
	case 8:
		return crypto.SHA256, "SHA-256"
	case 9:
		return crypto.SHA384, "SHA-384"
	case 10:
		return crypto.SHA512, "SHA-512"
	case 11:
		return crypto.SHA224, "SHA-224"
	}
	return 0, ""
}

// weak reports whether the signature is over a hash that no longer keeps an attacker
// from making what it signs.
func (s *sigPacket) weak() bool {
	h, _ := hashFunc(s.hash)
	return h == crypto.MD5 || h == crypto.SHA1
}

// strongHash reports whether a message may be signed with this hash.
func strongHash(h crypto.Hash) bool {
	return h == crypto.SHA256 || h == crypto.SHA384 || h == crypto.SHA512
}
