package signaturetest

import (
	"bytes"
	"crypto"
	"errors"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Sign returns body as a message signed by signer, whose private key must be
// decrypted: version 4, SHA-256, neither compressed nor armored. t is when the
// signature is said to be made; zero means now. Publishers of releases store the
// result as signature-1. A signer without a private key is an error.
func Sign(signer *openpgp.Entity, body []byte, t time.Time) ([]byte, error) {
	if signer == nil || signer.PrivateKey == nil {
		return nil, errors.New("signing needs an entity with a private key")
	}
	now := time.Now
	if !t.IsZero() {
		now = func() time.Time { return t }
	}
	var out bytes.Buffer
	w, err := openpgp.Sign(&out, signer, &openpgp.FileHints{IsBinary: true}, &pgppacket.Config{DefaultHash: crypto.SHA256, Time: now})
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, bytes.NewReader(body)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
