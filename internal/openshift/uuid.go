package openshift

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// UUID is one of any version.
type UUID [16]byte

var errFormat = errors.New("invalid UUID format")

// ParseUUID reads a UUID in the forms that OpenShift accepts for the ID of a cluster:
// it accepts 36 characters with hyphens, alone, in braces or after
// urn:uuid:, and 32 hexadecimal digits.
func ParseUUID(s string) (u UUID, err error) {
	const urn = "urn:uuid:"
	switch len(s) {
	case 36, 32:
	case 36 + len(urn):
		if !strings.EqualFold(s[:len(urn)], urn) {
			return u, fmt.Errorf("invalid urn prefix: %q", s[:len(urn)])
		}
		s = s[len(urn):]
	case 36 + 2:
		if s[0] != '{' || s[37] != '}' {
			return u, errFormat
		}
		s = s[1:37]
	default:
		return u, fmt.Errorf("invalid UUID length: %d", len(s))
	}
	if len(s) == 36 {
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return u, errFormat
		}
		s = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if _, err := hex.Decode(u[:], []byte(s)); err != nil {
		return u, errFormat
	}
	return u, nil
}

// String is the form of 36 characters, in lower case.
func (u UUID) String() string {
	t := hex.EncodeToString(u[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// Version is the number of the version.
func (u UUID) Version() int { return int(u[6] >> 4) }

// RFC4122 reports whether the UUID is of the variant of RFC 4122.
func (u UUID) RFC4122() bool { return u[8]&0xc0 == 0x80 }
