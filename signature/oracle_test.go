package signature_test

import (
	"bytes"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// operatorVerifies does what the cluster-version operator documents of its
// verifier: it reads a message packet by packet, skips those that it has no use
// for, stops behind the first signature, and checks the statement with
// encoding/json. It knows neither the limits of this package nor when keys
// expire. It is not for Ed25519 keys, which the operator does not read.
func operatorVerifies(ring, message []byte, digest string, now time.Time) error {
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(ring)) // the first block alone
	if err != nil {
		return err
	}
	packets := []*packet.OpaqueReader{packet.NewOpaqueReader(bytes.NewReader(message))}
	next := func() (*packet.OpaquePacket, error) {
		for {
			p, err := packets[len(packets)-1].Next()
			if err == io.EOF && len(packets) > 1 {
				packets = packets[:len(packets)-1]
				continue
			}
			return p, err
		}
	}
	var ops *packet.OnePassSignature
	var body []byte
	for body == nil {
		p, err := next()
		if err != nil {
			return err
		}
		parsed, err := p.Parse()
		switch found := parsed.(type) {
		case *packet.Compressed:
			if p.Contents[0] == 0 {
				return errors.New("unsupported compression")
			}
			inside, err := io.ReadAll(io.LimitReader(found.Body, 64<<20))
			if err != nil {
				return err
			}
			if packets = append(packets, packet.NewOpaqueReader(bytes.NewReader(inside))); len(packets) > 32 {
				return errors.New("too many layers of packets")
			}
		case *packet.OnePassSignature:
			if !found.IsLast {
				return errors.New("nested signatures")
			}
			if found.SigType != packet.SigTypeBinary && found.SigType != packet.SigTypeText {
				return errors.New("unsupported signature type")
			}
			ops = found
		case *packet.LiteralData:
			if body, err = io.ReadAll(found.Body); err != nil {
				return err
			}
		case *packet.EncryptedKey, *packet.SymmetricKeyEncrypted, *packet.SymmetricallyEncrypted:
			return errors.New("incorrect key")
		default:
			if err != nil && p.Tag == 4 {
				return err
			}
		}
	}
	if ops == nil {
		return errors.New("not signed")
	}
	signed, err := next()
	if err != nil || signed.Tag != 2 {
		return errors.New("LiteralData not followed by Signature")
	}
	candidates := keys.KeysByIdUsage(ops.KeyId, packet.KeyFlagSign)
	if len(candidates) == 0 {
		return errors.New("invalid signature")
	}
	if err := operatorChecks(candidates[0], ops, signed, body, now); err != nil {
		return fmt.Errorf("signature error: %w", err)
	}
	return operatorReads(body, digest)
}

// operatorChecks checks the first key that has the id, with the hash and the
// type of the one-pass signature.
func operatorChecks(by openpgp.Key, ops *packet.OnePassSignature, p *packet.OpaquePacket, body []byte, now time.Time) error {
	hash := ops.Hash.New()
	if ops.SigType == packet.SigTypeText {
		body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	hash.Write(body)
	if c := p.Contents; len(c) > 21 && (c[0] == 2 || c[0] == 3) && c[1] == 5 {
		key, ok := by.PublicKey.PublicKey.(*rsa.PublicKey)
		if !ok {
			return errors.New("not an RSA key")
		}
		hash.Write(p.Contents[2:7])
		return rsa.VerifyPKCS1v15(key, ops.Hash, hash.Sum(nil), append(make([]byte, max(0, key.Size()+21-len(p.Contents))), p.Contents[21:]...))
	}
	parsed, err := p.Parse()
	sig, ok := parsed.(*packet.Signature)
	if err != nil || !ok {
		return fmt.Errorf("unreadable: %w", err)
	}
	if sig.SigLifetimeSecs != nil && !now.Before(sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs)*time.Second)) {
		return errors.New("signature expired")
	}
	if by.PublicKey.PubKeyAlgo == packet.PubKeyAlgoRSA && sig.PubKeyAlgo == packet.PubKeyAlgoRSASignOnly {
		sig.PubKeyAlgo = packet.PubKeyAlgoRSA
	}
	return by.PublicKey.VerifySignature(hash, sig)
}

// operatorReads decodes a statement as encoding/json does.
func operatorReads(body []byte, digest string) error {
	var s struct {
		Critical struct {
			Type  string `json:"type"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
		} `json:"critical"`
		Optional struct {
			Creator   string `json:"creator"`
			Timestamp int64  `json:"timestamp"`
		} `json:"optional"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return err
	}
	if s.Critical.Type != "atomic container signature" || s.Critical.Identity.Reference == "" || s.Critical.Image.Digest != digest {
		return errors.New("another statement")
	}
	return nil
}
