package signature

import (
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 only to check self-certifications of old keys
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/fips140"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"time"
)

// Public-key algorithms (RFC 9580, section 9.1).
const (
	algoRSA         = 1
	algoRSAEncrypt  = 2
	algoRSASign     = 3
	algoElGamalOnly = 16
	algoDSA         = 17
	algoECDH        = 18
	algoECDSA       = 19
	algoElGamal     = 20
	algoEdDSA       = 22
	algoX25519      = 25
	algoX448        = 26
	algoEd25519     = 27
	algoEd448       = 28
)

// minRSABits is the least size of an RSA key whose signatures count.
const minRSABits = 2048

// maxRSABits bounds the time that one verification can take.
const maxRSABits = 16384

// publicKey is the material of a public key packet of version 4.
type publicKey struct {
	hashed      []byte // the packet as signatures over the key cover it
	fingerprint [fingerprintSize]byte
	printed     string // the fingerprint for people
	id          uint64
	created     time.Time
	algo        byte
	// material is a *rsa.PublicKey, *dsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey; nil for a key that only encrypts.
	material crypto.PublicKey
}

// parsePublicKey reads the body of a public key packet. With an error, the key
// may be non-nil: then its id is known, and it cannot be used.
func parsePublicKey(body []byte) (*publicKey, error) {
	if len(body) < 6 {
		return nil, errors.New("public key packet is too short")
	}
	if v := body[0]; v != 4 {
		return foreignKey(body), fmt.Errorf("unsupported key version %d", v)
	}
	if len(body) > 0xffff {
		return nil, errors.New("public key packet is too long")
	}
	k := &publicKey{hashed: hashedKey(body), created: unix(body[1:5]), algo: body[5]}
	// A name for the key, which secures nothing: what a message is checked
	// against are the keys of the keyring themselves.
	fips140.WithoutEnforcement(func() { k.fingerprint = sha1.Sum(k.hashed) })
	k.printed = fmt.Sprintf("%X", k.fingerprint)
	k.id = binary.BigEndian.Uint64(k.fingerprint[12:])
	var err error
	switch k.algo {
	case algoRSA, algoRSASign:
		k.material, err = parseRSA(body[6:])
	case algoDSA:
		if fips140.Enforced() {
			return k, errors.New("DSA is forbidden in FIPS 140-only mode")
		}
		k.material, err = parseDSA(body[6:])
	case algoECDSA:
		k.material, err = parseECDSA(body[6:])
	case algoEdDSA:
		k.material, err = parseEdDSA(body[6:])
	case algoEd25519:
		if len(body) != 6+ed25519.PublicKeySize {
			return k, errors.New("malformed Ed25519 key")
		}
		k.material = ed25519.PublicKey(body[6:])
	case algoRSAEncrypt, algoElGamalOnly, algoElGamal, algoECDH, algoX25519, algoX448:
		// These do not sign.
	default:
		err = fmt.Errorf("unsupported public key algorithm %d", k.algo)
	}
	return k, err
}

// foreignKey returns the id of a key whose version is not supported, so that
// it can be named.
func foreignKey(body []byte) *publicKey {
	if v := body[0]; v == 5 || v == 6 {
		prefix := binary.BigEndian.AppendUint32([]byte{0x95 + v}, uint32(len(body)))
		sum := sha256.Sum256(append(prefix, body...))
		return &publicKey{id: binary.BigEndian.Uint64(sum[:8])}
	}
	if len(body) > 8 { // versions 2 and 3: the end of the modulus
		if n, _, err := mpi(body[8:]); err == nil && len(n) >= 8 {
			return &publicKey{id: binary.BigEndian.Uint64(n[len(n)-8:])}
		}
	}
	return nil
}

// hashedKey is the form in which signatures over a key cover its packet.
func hashedKey(body []byte) []byte {
	out := make([]byte, 0, 3+len(body))
	out = append(out, 0x99)
	out = binary.BigEndian.AppendUint16(out, uint16(len(body)))
	return append(out, body...)
}

func (k *publicKey) print() string { return k.printed }

// bits returns the size of the key, 0 for one that only encrypts.
func (k *publicKey) bits() int {
	switch m := k.material.(type) {
	case *rsa.PublicKey:
		return m.N.BitLen()
	case *dsa.PublicKey:
		return m.P.BitLen()
	case *ecdsa.PublicKey:
		return m.Params().BitSize
	case ed25519.PublicKey:
		return 256
	}
	return 0
}

// algorithm names the key's algorithm for people.
func (k *publicKey) algorithm() string {
	switch m := k.material.(type) {
	case *rsa.PublicKey:
		return "RSA"
	case *dsa.PublicKey:
		return "DSA"
	case *ecdsa.PublicKey:
		return "ECDSA " + m.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return fmt.Sprintf("algorithm %d", k.algo)
}

func parseRSA(data []byte) (*rsa.PublicKey, error) {
	v, err := mpis(data, 2)
	if err != nil {
		return nil, fmt.Errorf("malformed RSA key: %w", err)
	}
	n, e := new(big.Int).SetBytes(v[0]), new(big.Int).SetBytes(v[1])
	if e.BitLen() < 2 || e.BitLen() > 31 || e.Bit(0) == 0 {
		return nil, errors.New("malformed RSA key: unsupported exponent")
	}
	if n.Bit(0) == 0 || n.BitLen() > maxRSABits {
		return nil, fmt.Errorf("malformed RSA key: modulus is even or larger than %d bits", maxRSABits)
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

func parseDSA(data []byte) (*dsa.PublicKey, error) {
	v, err := mpis(data, 4)
	if err != nil {
		return nil, fmt.Errorf("malformed DSA key: %w", err)
	}
	var n [4]*big.Int
	for i := range v {
		n[i] = new(big.Int).SetBytes(v[i])
	}
	if n[0].BitLen() > 4096 || n[1].BitLen() > 512 || n[0].Sign() == 0 || n[1].Sign() == 0 {
		return nil, errors.New("malformed DSA key: parameters out of range")
	}
	return &dsa.PublicKey{Parameters: dsa.Parameters{P: n[0], Q: n[1], G: n[2]}, Y: n[3]}, nil
}

// Curves by their DER object identifiers, without tag and length.
const (
	oidP256    = "\x2a\x86\x48\xce\x3d\x03\x01\x07"
	oidP384    = "\x2b\x81\x04\x00\x22"
	oidP521    = "\x2b\x81\x04\x00\x23"
	oidEd25519 = "\x2b\x06\x01\x04\x01\xda\x47\x0f\x01"
)

// curvePoint reads an object identifier and a point.
func curvePoint(data []byte) (oid string, point []byte, err error) {
	if len(data) == 0 {
		return "", nil, errors.New("no curve")
	}
	id, rest, err := split(data[1:], uint64(data[0]))
	if err != nil {
		return "", nil, err
	}
	v, err := mpis(rest, 1)
	if err != nil {
		return "", nil, err
	}
	return string(id), v[0], nil
}

func parseECDSA(data []byte) (*ecdsa.PublicKey, error) {
	oid, point, err := curvePoint(data)
	if err != nil {
		return nil, fmt.Errorf("malformed ECDSA key: %w", err)
	}
	curves := map[string]elliptic.Curve{oidP256: elliptic.P256(), oidP384: elliptic.P384(), oidP521: elliptic.P521()}
	curve := curves[oid]
	if curve == nil {
		return nil, fmt.Errorf("unsupported curve %x", oid)
	}
	k, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, fmt.Errorf("malformed ECDSA key: %w", err)
	}
	return k, nil
}

func parseEdDSA(data []byte) (ed25519.PublicKey, error) {
	oid, point, err := curvePoint(data)
	if err != nil {
		return nil, fmt.Errorf("malformed EdDSA key: %w", err)
	}
	if oid != oidEd25519 {
		return nil, fmt.Errorf("unsupported curve %x", oid)
	}
	if len(point) != 1+ed25519.PublicKeySize || point[0] != 0x40 {
		return nil, errors.New("malformed EdDSA key: not a native point")
	}
	return ed25519.PublicKey(point[1:]), nil
}

// verify checks the arithmetic of s over sum, and nothing else.
func (k *publicKey) verify(s *sigPacket, h crypto.Hash, sum []byte) error {
	if !k.suits(s) {
		return fmt.Errorf("public key algorithm %d of the signature differs from %d of the key", s.algo, k.algo)
	}
	if s.tag != [2]byte(sum) {
		return errors.New("hash tag does not match")
	}
	bad := errors.New("verification failure")
	switch m := k.material.(type) {
	case *rsa.PublicKey:
		v, err := mpis(s.values, 1)
		if err != nil {
			return err
		}
		// The integer may have lost zeros in front.
		sig := leftPad(v[0], m.Size())
		if sig == nil {
			return errors.New("RSA signature is longer than the modulus")
		}
		if rsa.VerifyPKCS1v15(m, h, sum, sig) != nil {
			return bad
		}
		return nil
	case *ecdsa.PublicKey:
		r, t, err := twoIntegers(s.values, (m.Params().BitSize+7)/8)
		if err != nil {
			return err
		}
		if !ecdsa.Verify(m, sum, new(big.Int).SetBytes(r), new(big.Int).SetBytes(t)) {
			return bad
		}
		return nil
	case ed25519.PublicKey:
		sig := s.values
		if k.algo == algoEdDSA {
			r, t, err := twoIntegers(s.values, 32)
			if err != nil {
				return err
			}
			sig = append(leftPad(r, 32)[:32:32], leftPad(t, 32)...)
		}
		if len(sig) != ed25519.SignatureSize || !ed25519.Verify(m, sum, sig) {
			return bad
		}
		return nil
	case *dsa.PublicKey:
		size := (m.Q.BitLen() + 7) / 8
		r, t, err := twoIntegers(s.values, size)
		if err != nil {
			return err
		}
		sum = sum[:min(len(sum), size)]
		if !dsa.Verify(m, sum, new(big.Int).SetBytes(r), new(big.Int).SetBytes(t)) {
			return bad
		}
		return nil
	}
	return errors.New("the key cannot sign")
}

// cost is about how long the check of a signature takes, in those of an RSA key
// of 2048 bits with the usual exponent.
func (k *publicKey) cost() int {
	// products counts multiplications of numbers of that many bits; the usual
	// exponent takes 18.
	products := func(n, bits int) int { return 1 + n*bits*bits/(18*2048*2048) }
	switch m := k.material.(type) {
	case *rsa.PublicKey:
		return products(bits.Len(uint(m.E))+bits.OnesCount(uint(m.E)), m.N.BitLen())
	case *dsa.PublicKey:
		return products(3*m.Q.BitLen(), m.P.BitLen())
	case *ecdsa.PublicKey:
		switch m.Curve {
		case elliptic.P384():
			return 12
		case elliptic.P521():
			return 30
		}
	}
	return 2
}

// suits reports whether s is of the key's algorithm.
func (k *publicKey) suits(s *sigPacket) bool {
	return s.algo == k.algo || isRSA(s.algo) && isRSA(k.algo)
}

func isRSA(algo byte) bool { return algo == algoRSA || algo == algoRSASign }

// twoIntegers reads two integers of at most size octets each.
func twoIntegers(data []byte, size int) (r, s []byte, err error) {
	v, err := mpis(data, 2)
	if err != nil {
		return nil, nil, err
	}
	if len(v[0]) > size || len(v[1]) > size {
		return nil, nil, fmt.Errorf("integer of the signature is longer than %d octets", size)
	}
	return v[0], v[1], nil
}
