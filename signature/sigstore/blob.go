package sigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
)

// newBlobVerifier returns the verifier for a key whose type and size have been
// checked.
func newBlobVerifier(public crypto.PublicKey) (BlobVerifier, error) {
	switch public.(type) {
	case *ecdsa.PublicKey, *rsa.PublicKey, ed25519.PublicKey:
		return standard{public}, nil
	}
	return nil, fmt.Errorf("unsupported public key of type %T", public)
}

// standard verifies by the standard library.
type standard struct{ public crypto.PublicKey }

func (s standard) VerifyBlob(blob, signature []byte) error {
	sum := sha256.Sum256(blob)
	ok := false
	switch p := s.public.(type) {
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(p, sum[:], signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(p, crypto.SHA256, sum[:], signature) == nil
	case ed25519.PublicKey:
		ok = ed25519.Verify(p, blob, signature)
	}
	if !ok {
		return errors.New("invalid signature")
	}
	return nil
}
