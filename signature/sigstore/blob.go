package sigstore

import (
	"bytes"
	"crypto"
	"errors"

	"github.com/sigstore/sigstore/pkg/signature"
)

// newBlobVerifier returns the verifier for a key whose type and size have been
// checked: SHA-256 for RSA (PKCS #1 v1.5) and ECDSA, pure Ed25519.
func newBlobVerifier(public crypto.PublicKey) (BlobVerifier, error) {
	v, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return library{v}, nil
}

// library verifies by github.com/sigstore/sigstore.
type library struct{ verifier signature.Verifier }

func (l library) VerifyBlob(blob, sig []byte) error {
	if l.verifier.VerifySignature(bytes.NewReader(sig), bytes.NewReader(blob)) != nil {
		return errors.New("invalid signature")
	}
	return nil
}
