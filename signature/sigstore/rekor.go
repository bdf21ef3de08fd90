package sigstore

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// maxBundle bounds each annotation that is decoded.
const maxBundle = 64 << 10

// maxExact is the largest integer that canonical JSON writes as it is.
const maxExact = 1 << 53

// logged checks the bundle of an attachment, a promise of the transparency log
// whose key is log: this signature of this payload, by the key or certificate
// with this DER form, has been entered. It returns when. Nothing is asked on a
// network, and no proof of inclusion is checked.
func logged(log *Key, a Attachment, sig, der []byte) (time.Time, error) {
	var none time.Time
	text, ok := a.Annotations[bundleAnnotation]
	switch {
	case !ok:
		return none, fmt.Errorf("missing %s annotation", bundleAnnotation)
	case len(text) > maxBundle || !utf8.ValidString(text):
		return none, fmt.Errorf("annotation %s is larger than %d bytes or no text", bundleAnnotation, maxBundle)
	}
	bundle, err := exactly([]byte(text), "SignedEntryTimestamp", "Payload")
	if err != nil {
		return none, fmt.Errorf("bundle: %w", err)
	}
	promise, err := octets(bundle["SignedEntryTimestamp"])
	if err != nil {
		return none, fmt.Errorf("bundle: SignedEntryTimestamp: %w", err)
	}
	canonical, body, integrated, err := bundlePayload(bundle["Payload"])
	if err != nil {
		return none, fmt.Errorf("bundle: Payload: %w", err)
	}
	public, ok := log.public.(*ecdsa.PublicKey)
	if !ok {
		return none, errors.New("the key of a transparency log must be ECDSA")
	}
	if sum := sha256.Sum256(canonical); !ecdsa.VerifyASN1(public, sum[:], promise) {
		return none, errors.New("bundle: the log's signature does not verify")
	}
	if err := entry(body, a.Payload, sig, der); err != nil {
		return none, fmt.Errorf("bundle: entry: %w", err)
	}
	return integrated, nil
}

// bundlePayload returns the payload in canonical form (RFC 8785), and its parts.
func bundlePayload(raw []byte) (canonical, body []byte, integrated time.Time, err error) {
	m, err := exactly(raw, "body", "integratedTime", "logIndex", "logID")
	if err != nil {
		return nil, nil, integrated, err
	}
	body, err = octets(m["body"])
	if err != nil {
		return nil, nil, integrated, fmt.Errorf("body: %w", err)
	}
	id, err := text(m["logID"])
	if _, hexErr := hex.DecodeString(id); err != nil || hexErr != nil {
		return nil, nil, integrated, errors.New("logID: not a hexadecimal text")
	}
	numbers := map[string]int64{}
	for _, name := range []string{"integratedTime", "logIndex"} {
		n, err := integral(m[name])
		if err != nil {
			return nil, nil, integrated, fmt.Errorf("%s: %w", name, err)
		}
		if n > maxExact || n < -maxExact {
			return nil, nil, integrated, fmt.Errorf("%s: too large", name)
		}
		numbers[name] = n
	}
	// The texts hold nothing that JSON would escape, the numbers are integers,
	// and the keys are in order.
	canonical = fmt.Appendf(nil, `{"body":%q,"integratedTime":%d,"logID":%q,"logIndex":%d}`,
		base64.StdEncoding.EncodeToString(body), numbers["integratedTime"], id, numbers["logIndex"])
	return canonical, body, time.Unix(numbers["integratedTime"], 0).UTC(), nil
}

// entry reports whether a log entry is about this signature.
func entry(body, payload, sig, der []byte) error {
	if !utf8.Valid(body) {
		return errors.New("invalid UTF-8")
	}
	e, err := object(body)
	if err != nil {
		return err
	}
	for key, want := range map[string]string{"kind": "hashedrekord", "apiVersion": "0.0.1"} {
		if got, err := text(e[key]); err != nil || got != want {
			return fmt.Errorf("%s is not %q", key, want)
		}
	}
	at := func(raw json.RawMessage, path ...string) json.RawMessage {
		for _, key := range path {
			m, err := object(raw)
			if err != nil {
				return nil
			}
			raw = m[key]
		}
		return raw
	}
	if got, err := octets(at(e["spec"], "signature", "content")); err != nil || !bytes.Equal(got, sig) {
		return errors.New("another signature")
	}
	key, err := octets(at(e["spec"], "signature", "publicKey", "content"))
	if err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	block, rest := pem.Decode(key)
	if block == nil || len(bytes.TrimSpace(rest)) != 0 || !bytes.Equal(block.Bytes, der) {
		return errors.New("another public key or certificate")
	}
	if algo, err := text(at(e["spec"], "data", "hash", "algorithm")); err != nil || algo != "sha256" {
		return errors.New("hash algorithm is not sha256")
	}
	sum := sha256.Sum256(payload)
	if value, err := text(at(e["spec"], "data", "hash", "value")); err != nil || value != hex.EncodeToString(sum[:]) {
		return errors.New("another payload")
	}
	return nil
}

// octets reads a JSON text in base64.
func octets(raw json.RawMessage) ([]byte, error) {
	if raw == nil {
		return nil, errors.New("missing")
	}
	s, err := text(raw)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || base64.StdEncoding.EncodeToString(data) != s {
		return nil, errors.New("not base64")
	}
	return data, nil
}
