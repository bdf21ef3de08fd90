package signaturetest

import (
	"bytes"
	"cmp"
	"compress/flate"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	_ "crypto/sha256" // for crypto.SHA256
	_ "crypto/sha512" // for crypto.SHA384 and crypto.SHA512
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/clusterupdate/clusterupdate/signature"
)

// KeyOptions describe a key. The zero value is an Ed25519 key that does not
// expire.
type KeyOptions struct {
	// RSABits asks for an RSA key of this size, 1024 or more; zero means
	// Ed25519. Only RSA keys sign in version 3.
	RSABits int
	// UserID is whose key it is; empty means "Test <test@example.com>".
	UserID string
	// Created is when the key was made; zero means 2020-01-01.
	Created time.Time
	// Lifetime is how long the key is valid; zero means without end.
	Lifetime time.Duration
	// Revoked adds a revocation by the key itself.
	Revoked bool
	// Subkey signs messages with a subkey of the same kind, which the key has
	// bound.
	Subkey bool
}

// Key is a key pair. It is safe for concurrent use.
type Key struct {
	o      KeyOptions
	algo   byte
	body   []byte
	print  [sha1.Size]byte
	signer crypto.Signer
	sub    *Key // signs messages; may be nil
}

// NewKey makes a key. RSA keys take a second or so; one of fewer than 1024 bits is
// an error.
func NewKey(o KeyOptions) (*Key, error) {
	o.UserID = cmp.Or(o.UserID, "Test <test@example.com>")
	if o.Created.IsZero() {
		o.Created = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	k := &Key{o: o}
	if o.Subkey {
		var err error
		k.sub, err = NewKey(KeyOptions{RSABits: o.RSABits, Created: o.Created})
		if err != nil {
			return nil, err
		}
	}
	var material []byte
	if o.RSABits > 0 {
		private, err := rsa.GenerateKey(rand.Reader, o.RSABits)
		if err != nil {
			return nil, err
		}
		k.algo, k.signer = 1, private
		material = join(integer(private.N.Bytes()), integer(big.NewInt(int64(private.E)).Bytes()))
	} else {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		k.algo, k.signer = 22, private
		curve := []byte{9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1}
		material = join(curve, u16(263), []byte{0x40}, public)
	}
	k.body = join([]byte{4}, stamp(o.Created), []byte{k.algo}, material)
	k.print = sha1.Sum(k.hashed())
	return k, nil
}

// Fingerprint returns the key's fingerprint in upper-case hexadecimal.
func (k *Key) Fingerprint() string { return fmt.Sprintf("%X", k.print) }

// SignerFingerprint returns the fingerprint of the key that signs messages: the
// subkey's if there is one.
func (k *Key) SignerFingerprint() string { return k.messageKey().Fingerprint() }

func (k *Key) messageKey() *Key {
	if k.sub != nil {
		return k.sub
	}
	return k
}

// Public returns the public key as a binary keyring.
func (k *Key) Public() []byte {
	out := packet(6, k.body)
	if k.o.Revoked {
		out = join(out, packet(2, k.sign(4, 0x20, crypto.SHA256, k.o.Created, nil, k.hashed())))
	}
	subs := subpacket(27, []byte{3})
	if k.o.Lifetime > 0 {
		subs = join(subs, subpacket(9, u32(uint32(k.o.Lifetime/time.Second))))
	}
	id := []byte(k.o.UserID)
	self := k.sign(4, 0x13, crypto.SHA256, k.o.Created, subs, k.hashed(), []byte{0xb4}, u32(uint32(len(id))), id)
	out = join(out, packet(13, id), packet(2, self))
	if k.sub != nil {
		cross := k.sub.sign(4, 0x19, crypto.SHA256, k.o.Created, nil, k.hashed(), k.sub.hashed())
		subs := join(subpacket(27, []byte{2}), subpacket(32, cross))
		out = join(out, packet(14, k.sub.body), packet(2, k.sign(4, 0x18, crypto.SHA256, k.o.Created, subs, k.hashed(), k.sub.hashed())))
	}
	return out
}

// Armored returns the public key as a text, for a ConfigMap or a file. Its error
// is one of encoding.
func (k *Key) Armored() ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, "PGP PUBLIC KEY BLOCK", nil)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(k.Public()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Shape is how a message is built. The zero value is one of version 4 over
// binary data with SHA-256, in one piece, made a day after the key.
type Shape struct {
	// Version of the signature packet, 3 or 4; zero means 4.
	Version int
	// Compressed wraps the message as Red Hat's releases are.
	Compressed bool
	// Levels is how many compressions lie around each other; zero means one if
	// Compressed, else none.
	Levels int
	// Text signs lines of text, and marks the data as such.
	Text bool
	// Partial sends the data in parts of two octets, as the CI's first part.
	Partial bool
	// Hash is SHA-256, SHA-384 or SHA-512; zero means SHA-256.
	Hash crypto.Hash
	// Created is when the signature reports that it was made.
	Created time.Time
	// Expires is how long after Created the signature is valid; zero means for
	// ever. Version 3 knows no expiry.
	Expires time.Duration

	// What nobody publishes, and no verifier should take:

	// Announcements is how often the signature is announced in front of the
	// data, and Literals how often the data comes; zero means once.
	Announcements, Literals int
	// Trailing is put behind the message, inside of a compression.
	Trailing []byte
}

// SignRelease signs the statement that the release with this digest was
// published as reference. Errors are those of [Key.Sign] and signature.Body.
func (k *Key) SignRelease(digest, reference string, s Shape) ([]byte, error) {
	body, err := signature.Body(digest, reference, "signaturetest", k.created(s))
	if err != nil {
		return nil, err
	}
	return k.Sign(body, s)
}

// Publish signs releases, each by its digest under the name that references has
// for it, and returns a keyring of this name that holds the key, and a store of
// the signatures. Errors are those of [Key.SignRelease].
func (k *Key) Publish(name string, references map[string]string) (*signature.Keyring, signature.MemoryStore, error) {
	ring, err := signature.ParseKeyring(name, k.Public())
	if err != nil {
		return nil, nil, err
	}
	store := signature.MemoryStore{}
	for digest, reference := range references {
		message, err := k.SignRelease(digest, reference, Shape{})
		if err != nil {
			return nil, nil, err
		}
		store[digest] = [][]byte{message}
	}
	return ring, store, nil
}

func (k *Key) created(s Shape) time.Time {
	if s.Created.IsZero() {
		return k.o.Created.AddDate(0, 0, 1)
	}
	return s.Created
}

var hashIDs = map[crypto.Hash]byte{crypto.SHA256: 8, crypto.SHA384: 9, crypto.SHA512: 10}

// Sign signs any body. A shape that the key cannot sign is an error.
func (k *Key) Sign(body []byte, s Shape) ([]byte, error) {
	s.Version = cmp.Or(s.Version, 4)
	s.Hash = cmp.Or(s.Hash, crypto.SHA256)
	id := hashIDs[s.Hash]
	switch {
	case id == 0:
		return nil, fmt.Errorf("hash %v is none of SHA-256, SHA-384, SHA-512", s.Hash)
	case s.Version != 3 && s.Version != 4:
		return nil, fmt.Errorf("signature version %d is neither 3 nor 4", s.Version)
	case s.Version == 3 && (k.algo != 1 || s.Expires != 0):
		return nil, errors.New("version 3 is for RSA keys, and has no expiry")
	}
	typ, format, signed := byte(0), byte('b'), body
	if s.Text {
		typ, format = 1, 't'
		signed = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	var subs []byte
	if s.Expires > 0 {
		subs = subpacket(3, u32(uint32(s.Expires/time.Second)))
	}
	literal := join([]byte{format, 0}, u32(0), body)
	data := packet(11, literal)
	if s.Partial {
		data = []byte{0xc0 | 11}
		for ; len(literal) > 2; literal = literal[2:] {
			data = append(data, 224+1, literal[0], literal[1])
		}
		data = join(data, []byte{byte(len(literal))}, literal)
	}
	by := k.messageKey()
	announcement := packet(4, []byte{3, typ, id, by.algo}, by.id(), []byte{1})
	message := join(
		bytes.Repeat(announcement, max(s.Announcements, 1)), bytes.Repeat(data, max(s.Literals, 1)),
		packet(2, by.sign(s.Version, typ, s.Hash, k.created(s), subs, signed)), s.Trailing,
	)
	levels := s.Levels
	if s.Compressed {
		levels = max(levels, 1)
	}
	for range levels {
		var err error
		message, err = compress(message)
		if err != nil {
			return nil, err
		}
	}
	return message, nil
}

func compress(message []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Write([]byte{0xa3, 1}) // an old header of indeterminate length, algorithm ZIP
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(message); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (k *Key) id() []byte     { return k.print[12:] }
func (k *Key) hashed() []byte { return join([]byte{0x99}, u16(len(k.body)), k.body) }

// sign returns the body of a signature packet over parts.
func (k *Key) sign(version int, typ byte, h crypto.Hash, at time.Time, subs []byte, parts ...[]byte) []byte {
	w := h.New()
	w.Write(join(parts...))
	var head, tail []byte
	if version == 3 {
		core := join([]byte{typ}, stamp(at))
		w.Write(core)
		head = join([]byte{3, 5}, core, k.id(), []byte{k.algo, hashIDs[h]})
	} else {
		hashed := join(subpacket(2, stamp(at)), subs)
		head = join([]byte{4, typ, k.algo, hashIDs[h]}, u16(len(hashed)), hashed)
		w.Write(join(head, []byte{4, 0xff}, u32(uint32(len(head)))))
		issuer := subpacket(16, k.id())
		tail = join(u16(len(issuer)), issuer)
	}
	sum := w.Sum(nil)
	var values []byte
	switch s := k.signer.(type) {
	case ed25519.PrivateKey:
		raw := ed25519.Sign(s, sum)
		values = join(integer(raw[:32]), integer(raw[32:]))
	case *rsa.PrivateKey:
		raw, err := rsa.SignPKCS1v15(nil, s, h, sum)
		if err != nil {
			panic(err) // a key of 1024 bits or more signs any hash below
		}
		values = integer(raw)
	}
	return join(head, tail, sum[:2], values)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
func u16(n int) []byte            { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func u32(n uint32) []byte         { return binary.BigEndian.AppendUint32(nil, n) }
func stamp(t time.Time) []byte    { return u32(uint32(t.Unix())) }

// integer writes a multiprecision integer, which loses its zeros in front.
func integer(b []byte) []byte {
	n := new(big.Int).SetBytes(b)
	return join(u16(n.BitLen()), n.Bytes())
}

func subpacket(typ byte, value []byte) []byte {
	if n := len(value) + 1; n >= 192 {
		return join([]byte{255}, u32(uint32(n)), []byte{typ}, value)
	}
	return join([]byte{byte(len(value) + 1), typ}, value)
}

// packet frames a packet of definite length.
func packet(tag byte, parts ...[]byte) []byte {
	b := join(parts...)
	return join([]byte{0xc0 | tag, 255}, u32(uint32(len(b))), b)
}
