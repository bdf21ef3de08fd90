package sigstore

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature"
)

// maxKey is the largest PEM text, in bytes, that [ParseKey] reads.
const maxKey = 64 << 10

// The sizes of RSA keys whose signatures count.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// Key is a public key that may vouch for images. It is immutable and safe for
// concurrent use. Make one with [ParseKey].
type Key struct {
	public      crypto.PublicKey
	verifier    signature.Verifier
	fingerprint string
	algorithm   string
}

// ParseKey reads one public key in PEM: "PUBLIC KEY" (PKIX), or "RSA PUBLIC
// KEY" (PKCS #1). Only white space may follow it. Keys are ECDSA over P-256,
// P-384 or P-521, RSA of 2048 to 8192 bits, or Ed25519. Signatures of RSA
// (PKCS #1 v1.5) and ECDSA keys are over SHA-256, whatever the curve. Anything
// else is an error.
func ParseKey(text []byte) (*Key, error) {
	if len(text) > maxKey {
		return nil, fmt.Errorf("public key is larger than the limit of %d bytes", maxKey)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block with a public key")
	case len(bytes.TrimSpace(rest)) != 0:
		return nil, fmt.Errorf("%d bytes after the first PEM block: one key is expected", len(bytes.TrimSpace(rest)))
	case len(block.Headers) != 0:
		return nil, errors.New("a public key in PEM has no headers")
	}
	var public crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY",
		"ENCRYPTED PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY", "ENCRYPTED SIGSTORE PRIVATE KEY":
		return nil, fmt.Errorf("a private key (%s): export the public key and remove the private one from here", block.Type)
	default:
		return nil, fmt.Errorf("PEM block of type %q is not a public key", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("malformed public key: %w", err)
	}
	return newKey(public)
}

// newKey is [ParseKey] for a key that has been read: *ecdsa.PublicKey,
// *rsa.PublicKey or ed25519.PublicKey. Other kinds are errors.
func newKey(public crypto.PublicKey) (*Key, error) {
	k := &Key{public: public}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve.Params().Name {
		case "P-256", "P-384", "P-521":
		default:
			return nil, fmt.Errorf("unsupported curve %s", p.Curve.Params().Name)
		}
		k.algorithm = "ECDSA " + p.Curve.Params().Name
	case *rsa.PublicKey:
		if n := p.N.BitLen(); n < minRSABits || n > maxRSABits {
			return nil, fmt.Errorf("RSA key of %d bits: %d to %d are accepted", n, minRSABits, maxRSABits)
		}
		k.algorithm = fmt.Sprintf("RSA %d", p.N.BitLen())
	case ed25519.PublicKey:
		k.algorithm = "Ed25519"
	default:
		return nil, fmt.Errorf("unsupported public key of type %T", public)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("malformed public key: %w", err)
	}
	k.fingerprint = fmt.Sprintf("%X", sha256.Sum256(der))
	// SHA-256 for RSA (PKCS #1 v1.5) and ECDSA, pure Ed25519.
	k.verifier, err = signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Fingerprint is the SHA-256 of the key in PKIX form, in upper-case
// hexadecimal.
func (k *Key) Fingerprint() string { return k.fingerprint }

// Algorithm names the key's algorithm and size for people.
func (k *Key) Algorithm() string { return k.algorithm }

// signed reports whether the key made a signature over exactly this payload.
func (k *Key) signed(payload, sig []byte) bool {
	return k.verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(payload)) == nil
}

func (k *Key) String() string { return k.algorithm + " key " + k.fingerprint }
