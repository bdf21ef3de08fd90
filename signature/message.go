package signature

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
)

// maxMessage is the default limit, in bytes, on a signed message as received
// and on what it decompresses to. Real ones have less than 1 kB.
const maxMessage = 1 << 20

// message is a signed message that has the one accepted shape. Nothing about
// it is authentic yet.
type message struct {
	body  []byte
	sig   *sigPacket
	keyID uint64 // of the one-pass signature; equal to the issuers
	hash  crypto.Hash
	sum   []byte // of the body and the signature's own data
}

// openMessage reads a binary message: an optional compression, then a one-pass
// signature, literal data and a signature, and nothing else. Every error is a
// *Rejection.
func (o *OpenPGP) openMessage(raw []byte) (m *message, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, rejectf(Unreadable, "unexpected fault: %v", r)
		}
	}()
	return readMessage(raw, o.maxMessage(), &o.inflaters)
}

func readMessage(raw []byte, limit int, pool *inflaters) (*message, error) {
	if len(raw) > limit {
		return nil, rejectf(Unreadable, "message is larger than the limit of %d bytes", limit)
	}
	p, rest, err := nextPacket(raw)
	if err != nil {
		return nil, reject(Unreadable, err)
	}
	if p.tag == tagCompressed {
		if len(rest) != 0 {
			return nil, rejectf(Unreadable, "%d octets after the compressed packet", len(rest))
		}
		data, err := pool.decompress(p.body, limit)
		if err != nil {
			return nil, reject(Unreadable, err)
		}
		p, rest, err = nextPacket(data)
		if err != nil {
			return nil, reject(Unreadable, err)
		}
	}

	switch p.tag {
	case tagOnePass:
	case tagCompressed:
		return nil, rejectf(Unreadable, "openpgp: unsupported feature: more than one level of compression")
	case tagLiteral, tagSignature:
		return nil, reject(NotSigned, nil)
	case 1, 3, 9, 18, 20:
		return nil, rejectf(Unreadable, "openpgp: unsupported feature: encrypted message")
	default:
		return nil, rejectf(Unreadable, "unexpected packet of type %d before the signed data", p.tag)
	}
	ops, err := parseOnePass(p)
	if err != nil {
		return nil, reject(Unreadable, err)
	}
	body, rest, err := literal(rest)
	if err != nil {
		return nil, reject(Unreadable, err)
	}
	sig, err := finalSignature(rest)
	if err != nil {
		return nil, reject(Unreadable, err)
	}
	if err := ops.matches(sig); err != nil {
		return nil, reject(Unreadable, err)
	}
	return check(ops, sig, body)
}

// check refuses what no key could make good, and hashes the body.
func check(ops *onePass, sig *sigPacket, body []byte) (*message, error) {
	h, name := hashFunc(sig.hash) // known, as the one-pass signature has it
	if !strongHash(h) {
		return nil, rejectf(BadSignature, "hash %s is too weak", name)
	}
	switch sig.algo {
	case algoRSA, algoRSASign:
	case algoECDSA, algoEdDSA, algoEd25519:
		if sig.version == 3 {
			return nil, rejectf(BadSignature, "public key algorithm %d is not accepted in version 3", sig.algo)
		}
	default:
		return nil, rejectf(BadSignature, "public key algorithm %d is not accepted", sig.algo)
	}
	m := &message{body: body, sig: sig, keyID: ops.keyID, hash: h}
	if sig.typ == typeText {
		body = canonicalText(body)
	}
	m.sum = sig.sum(h, body)
	return m, nil
}

// onePass announces the signature that follows the data.
type onePass struct {
	typ, hash, algo byte
	keyID           uint64
}

func parseOnePass(p packet) (*onePass, error) {
	b := p.body
	if p.framing != definite {
		return nil, errors.New("openpgp: invalid data: one-pass signature without a definite length")
	}
	if len(b) != 13 {
		return nil, fmt.Errorf("openpgp: invalid data: one-pass signature has %d octets, not 13", len(b))
	}
	if b[0] != 3 {
		return nil, fmt.Errorf("openpgp: unsupported feature: one-pass signature version %d", b[0])
	}
	ops := &onePass{typ: b[1], hash: b[2], algo: b[3]}
	for _, o := range b[4:12] {
		ops.keyID = ops.keyID<<8 | uint64(o)
	}
	if b[12] == 0 {
		return nil, errNested
	}
	if ops.typ != typeBinary && ops.typ != typeText {
		return nil, fmt.Errorf("openpgp: unsupported feature: unsupported signature type: %d", ops.typ)
	}
	if _, name := hashFunc(ops.hash); name == "" {
		return nil, fmt.Errorf("openpgp: unsupported feature: hash not available: %d", ops.hash)
	}
	return ops, nil
}

var errNested = errors.New("openpgp: unsupported feature: nested signatures")

// matches reports whether the signature is the one announced.
func (o *onePass) matches(s *sigPacket) error {
	switch {
	case o.typ != s.typ:
		return fmt.Errorf("signature type %d differs from %d in the one-pass signature", s.typ, o.typ)
	case o.hash != s.hash:
		return fmt.Errorf("signature hash %d differs from %d in the one-pass signature", s.hash, o.hash)
	case o.algo != s.algo:
		return fmt.Errorf("signature algorithm %d differs from %d in the one-pass signature", s.algo, o.algo)
	}
	for _, id := range s.issuers {
		if id != o.keyID {
			return fmt.Errorf("signature issuer %016X differs from %016X in the one-pass signature", id, o.keyID)
		}
	}
	return nil
}

// literal reads the literal packet at the start of data.
func literal(data []byte) (body, rest []byte, err error) {
	p, rest, err := nextPacket(data)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("no literal data after the one-pass signature: %w", err)
	case p.tag == tagOnePass:
		return nil, nil, errNested
	case p.tag != tagLiteral:
		return nil, nil, fmt.Errorf("unexpected packet of type %d before the literal data", p.tag)
	case p.framing == indeterminate:
		return nil, nil, errors.New("openpgp: invalid data: literal data of indeterminate length")
	}
	b := p.body
	if len(b) < 2 || len(b) < 2+int(b[1])+4 {
		return nil, nil, fmt.Errorf("header of the literal data: %w", io.ErrUnexpectedEOF)
	}
	if f := b[0]; f != 'b' && f != 't' && f != 'u' {
		return nil, nil, fmt.Errorf("openpgp: unsupported feature: literal data format %q", f)
	}
	return b[2+int(b[1])+4:], rest, nil
}

// finalSignature reads the signature packet that must be all of data.
func finalSignature(data []byte) (*sigPacket, error) {
	p, rest, err := nextPacket(data)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case err == io.EOF || p.tag != tagSignature:
		return nil, errors.New("openpgp: invalid data: LiteralData not followed by signature")
	case p.framing != definite:
		return nil, errors.New("openpgp: invalid data: signature without a definite length")
	case len(rest) != 0:
		return nil, fmt.Errorf("%d octets after the signature", len(rest))
	}
	s, err := parseSignature(p.body, messageSubs)
	if err == nil && s.twice != nil {
		err = fmt.Errorf("signature with %w", s.twice)
	}
	return s, err
}

// canonicalText ends every line with CR LF, as signatures over text are made.
func canonicalText(b []byte) []byte {
	out := make([]byte, 0, len(b)+bytes.Count(b, []byte{'\n'}))
	for i, c := range b {
		if c == '\n' && (i == 0 || b[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}
