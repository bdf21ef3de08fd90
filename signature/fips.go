package signature

import (
	"crypto"
	"crypto/fips140"
	"fmt"
)

// availableHash returns the hash of an OpenPGP id if the program has it; weak ones
// serve signatures over keys. Where the system allows FIPS 140-3 alone
// (GODEBUG=fips140=only), MD5 and SHA-1 are not available.
func availableHash(id byte) (crypto.Hash, error) {
	h, name := hashFunc(id)
	switch {
	case name == "":
		return 0, fmt.Errorf("hash not available: %d", id)
	case h == 0:
		return 0, fmt.Errorf("hash not available: %s", name)
	case (h == crypto.MD5 || h == crypto.SHA1) && fips140.Enforced():
		return 0, fmt.Errorf("hash %s is forbidden in FIPS 140-only mode", name)
	}
	return h, nil
}
