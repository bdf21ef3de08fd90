package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
)

// MaxKeyring is the largest value, in bytes, that [ParseKeyring] reads.
const MaxKeyring = 1 << 20

// Keyring is a set of public keys any of which may vouch for a release. It is
// immutable and safe for concurrent use.
type Keyring struct {
	name    string
	keys    []*key // primaries and subkeys, in the order of the value
	byID    map[uint64][]*key
	skipped []SkippedKey
	rules   CompatRules
}

// SkippedKey is a key, or a subkey, of a keyring's value that is not used.
type SkippedKey struct {
	// ID is the key's fingerprint or 64-bit id in upper-case hexadecimal; empty
	// where it could not even be computed.
	ID     string
	Reason string
}

// KeyInfo describes a primary key of a [Keyring].
type KeyInfo struct {
	Fingerprint string   // upper-case hexadecimal
	UserIDs     []string // those with a valid self-signature
	Algorithm   string   // RSA, ECDSA P-256, Ed25519, DSA
	Bits        int
	Created     time.Time
	Expires     time.Time // zero: never
	Revoked     bool
	// Subkeys are the fingerprints of subkeys that can sign.
	Subkeys []string
}

// key is a primary key or a subkey with what its owner says about it.
type key struct {
	*publicKey
	primary *key     // nil for a primary
	userIDs []string // of a primary
	revoked bool
	// claims are the valid self-signatures (of a subkey: its bindings).
	claims []claim
}

// claim is what one self-signature says.
type claim struct {
	sig   *sigPacket
	cross bool // a binding that the subkey has signed, too
}

// ParseKeyring reads public keys: one or more armored blocks, with any text
// around them, or one binary keyring. name is what errors and results call the
// keyring, e.g. "verifier-public-key-redhat".
//
// Keys that are malformed, unsupported or revoked by a third party are left
// out and listed by [Keyring.Skipped]; a value without a usable key, with a
// broken block or with a private key is an error. Revoked and expired keys
// load: they are refused when they sign.
func ParseKeyring(name string, data []byte) (*Keyring, error) {
	return CompatRules{}.ParseKeyring(name, data)
}

// ParseKeyring is the function ParseKeyring under other rules.
func (r CompatRules) ParseKeyring(name string, data []byte) (k *Keyring, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			k, err = nil, fmt.Errorf("unable to read keyring: %v", fault)
		}
	}()
	if len(data) > MaxKeyring {
		return nil, fmt.Errorf("keyring is larger than the limit of %d bytes", MaxKeyring)
	}
	k = &Keyring{name: name, byID: map[uint64][]*key{}, rules: r}
	if len(data) == 0 && r.EmptyKeyrings {
		return k, nil
	}
	blocks, armorErr := armorBlocks(data, r.FirstBlock)
	if armorErr == nil {
		for _, b := range blocks {
			if armorErr = k.add(b); armorErr != nil {
				break
			}
		}
	}
	if armorErr != nil {
		if errors.Is(armorErr, errPrivateKey) {
			return nil, armorErr
		}
		k = &Keyring{name: name, byID: map[uint64][]*key{}, rules: r}
		if err := k.add(data); err != nil {
			if errors.Is(err, errPrivateKey) {
				return nil, err
			}
			return nil, fmt.Errorf("unable to read keyring with armor (%w) or without armor (%w)", armorErr, err)
		}
	}
	k.shareRevocations()
	if len(k.keys) == 0 {
		var why []string
		for _, s := range k.skipped {
			why = append(why, strings.TrimSpace(s.ID+" "+s.Reason))
		}
		return nil, fmt.Errorf("keyring holds no usable key: %s", strings.Join(why, "; "))
	}
	return k, nil
}

// shareRevocations makes a revoked key unusable in all its copies: a ring may
// hold an older one, too.
func (k *Keyring) shareRevocations() {
	for _, same := range k.byID {
		for _, a := range same {
			for _, b := range same {
				a.revoked = a.revoked || b.revoked && a.sameAs(b.publicKey)
			}
		}
	}
}

// Name returns the name that was given to ParseKeyring.
func (k *Keyring) Name() string { return k.name }

// Skipped lists the keys that were left out, in the order of the value.
func (k *Keyring) Skipped() []SkippedKey { return slices.Clone(k.skipped) }

// Keys describes the primary keys, in the order of the value.
func (k *Keyring) Keys() []KeyInfo {
	var out []KeyInfo
	for _, p := range k.keys {
		if p.primary != nil {
			if c := p.newest(p.created); c != nil && p.maySign(c) == nil {
				last := &out[len(out)-1]
				last.Subkeys = append(last.Subkeys, p.print())
			}
			continue
		}
		info := KeyInfo{
			Fingerprint: p.print(), UserIDs: slices.Clone(p.userIDs),
			Algorithm: p.algorithm(), Bits: p.bits(), Created: p.created, Revoked: p.revoked,
		}
		if c := p.newest(p.created); c != nil && c.sig.lifetime > 0 {
			info.Expires = p.created.Add(time.Duration(c.sig.lifetime) * time.Second)
		}
		out = append(out, info)
	}
	return out
}

// String is how descriptions of a verifier show the keyring: its name, and the
// fingerprint and user ids of each key.
func (k *Keyring) String() string {
	var keys []string
	for _, info := range k.Keys() {
		keys = append(keys, info.Fingerprint+": "+strings.Join(info.UserIDs, ", "))
	}
	return fmt.Sprintf("%s (%s)", k.name, strings.Join(keys, ", "))
}

var errPrivateKey = errors.New("the keyring holds a private key: export the public key and remove the private one from here")

var (
	armorBegin = []byte("-----BEGIN ")
	armorEnd   = []byte("-----END ")
)

// armorBlocks decodes all armored blocks of data. Text around the blocks is
// ignored, on the line of an end mark, too. No block gives io.EOF. With first,
// only the first block is read.
func armorBlocks(data []byte, first bool) ([][]byte, error) {
	var blocks [][]byte
	start := -1
	for pos := 0; pos < len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		line := bytes.TrimSpace(data[pos:end])
		switch {
		case bytes.HasPrefix(line, armorBegin):
			if start >= 0 {
				return nil, fmt.Errorf("armor block %d has no end", len(blocks)+1)
			}
			start = pos
		case bytes.HasPrefix(line, armorEnd) && start >= 0:
			raw, err := dearmor(data[start:end])
			if err != nil {
				return nil, fmt.Errorf("armor block %d: %w", len(blocks)+1, err)
			}
			blocks = append(blocks, raw)
			if first {
				return blocks, nil
			}
			start = -1
		}
		pos = end
	}
	if start >= 0 {
		return nil, fmt.Errorf("armor block %d has no end", len(blocks)+1)
	}
	if len(blocks) == 0 {
		return nil, io.EOF
	}
	return blocks, nil
}

func dearmor(text []byte) ([]byte, error) {
	b, err := armor.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(b.Type, "PRIVATE KEY"):
		return nil, errPrivateKey
	case b.Type != "PGP PUBLIC KEY BLOCK":
		return nil, fmt.Errorf("expected a public key block, got %q", b.Type)
	}
	raw, err := io.ReadAll(b.Body)
	if err == nil && len(raw) == 0 {
		err = errors.New("empty block")
	}
	return raw, err
}

// add reads a binary keyring. Faults within one key skip that key; what cannot
// be split into packets is an error.
func (k *Keyring) add(data []byte) error {
	if len(data) == 0 {
		return io.EOF
	}
	var group []packet // a primary key and what follows it
	flush := func() {
		if len(group) > 0 {
			k.addKey(group)
		}
		group = nil
	}
	for len(data) > 0 {
		p, rest, err := nextPacket(data)
		if err != nil {
			return err
		}
		if p.framing == indeterminate {
			return errors.New("packet of indeterminate length in a keyring")
		}
		data = rest
		switch p.tag {
		case tagSecretKey, tagSecretSubkey:
			return errPrivateKey
		case tagPublicKey:
			flush()
			group = append(group, p)
		default:
			if group == nil {
				k.skip(nil, fmt.Errorf("packet of type %d before the first public key", p.tag))
				continue
			}
			group = append(group, p)
		}
	}
	flush()
	return nil
}

func (k *Keyring) skip(p *publicKey, err error) {
	s := SkippedKey{Reason: err.Error()}
	if p != nil {
		s.ID = fmt.Sprintf("%016X", p.id)
		if p.body != nil {
			s.ID = p.print()
		}
	}
	k.skipped = append(k.skipped, s)
}

// addKey adds one primary key with its subkeys, or reports it as skipped.
func (k *Keyring) addKey(group []packet) {
	pub, err := k.parse(group[0].body)
	if err != nil {
		k.skip(pub, err)
		return
	}
	primary, subkeys, err := certify(pub, group[1:])
	if err != nil {
		k.skip(pub, err)
		return
	}
	k.keys = append(k.keys, primary)
	k.byID[primary.id] = append(k.byID[primary.id], primary)
	for _, s := range subkeys {
		if err := k.supported(s.pub); err != nil && s.err == nil {
			s.err = err
		}
		sub, err := bind(primary, s)
		if err != nil {
			k.skip(s.pub, fmt.Errorf("subkey of %s: %w", primary.print(), err))
			continue
		}
		k.keys = append(k.keys, sub)
		k.byID[sub.id] = append(k.byID[sub.id], sub)
	}
}

// parse reads a public key that the ring's rules support.
func (k *Keyring) parse(body []byte) (*publicKey, error) {
	pub, err := parsePublicKey(body)
	if err == nil {
		err = k.supported(pub)
	}
	return pub, err
}

func (k *Keyring) supported(pub *publicKey) error {
	if pub != nil && k.rules.NoEd25519 && (pub.algo == algoEdDSA || pub.algo == algoEd25519) {
		return fmt.Errorf("unsupported public key algorithm %d", pub.algo)
	}
	return nil
}
