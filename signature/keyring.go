package signature

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// maxKeyring is the largest value, in bytes, that [ParseKeyring] reads.
const maxKeyring = 1 << 20

// Limits, in bytes, on what texts show of a keyring.
const (
	maxErrorText  = 1 << 10
	maxUserIDText = 256
	maxRingText   = 4 << 10
)

// Keyring is a set of public keys any of which may vouch for a release. It is
// immutable and safe for concurrent use.
type Keyring struct {
	name    string
	keys    []*key // primaries and subkeys, in the order of the value
	byID    map[uint64][]*key
	skipped []SkippedKey
}

// SkippedKey is a key, or a subkey, of a keyring's value that is not used, or
// that is used with a warning; or somebody else's key that has withdrawn what it
// once certified here.
type SkippedKey struct {
	// ID is the key's fingerprint or 64-bit id in upper-case hexadecimal; empty
	// if it could not even be computed.
	ID string
	// Used is true if the key is used nevertheless: Reason is a warning.
	Used   bool
	Reason string
}

// Use returns "used" or "not used".
func (s SkippedKey) Use() string {
	if s.Used {
		return "used"
	}
	return "not used"
}

// KeyInfo describes a primary key of a [Keyring].
type KeyInfo struct {
	Fingerprint string   // upper-case hexadecimal
	UserIDs     []string // those with a valid self-signature, cut at 256 bytes
	Algorithm   string   // RSA, ECDSA P-256, Ed25519, DSA
	Bits        int
	Created     time.Time
	Expires     time.Time // zero: never
	Revoked     bool
	// Subkeys are the fingerprints of the subkeys that can sign, expired ones
	// included: not those that are revoked, by themselves or with their key.
	Subkeys []string
}

// printID is how a 64-bit id is written.
func printID(id uint64) string { return fmt.Sprintf("%016X", id) }

// key is a primary key or a subkey with what its owner says about it.
type key struct {
	pub     *publicKey
	primary *key     // nil for a primary
	userIDs []string // of a primary
	revoked bool
	order   int
	// claims are the valid self-signatures by what they are over: the key itself,
	// and each of its user ids. Those of a subkey are its bindings.
	claims [][]claim
}

// claim is what one self-signature says.
type claim struct {
	sig   *sigPacket
	cross bool // a binding that the subkey has signed, too
	weak  bool // it, or what the subkey has signed, is over MD5 or SHA-1
}

// ParseKeyring reads public keys: one or more armored blocks, with any text
// around them, or one binary keyring. name is what errors and results call the
// keyring, e.g. "verifier-public-key-redhat".
//
// The order of packets behind a primary key, and which of them share an armored block, do
// not matter: a signature belongs to what it verifies over. Keys that are malformed or
// unsupported, and those with a self-signature that states a time twice, are left out and
// listed by [Keyring.Skipped]. A value without a usable key, with a broken block, with a
// private key, or with a revocation that cannot be read or matches nothing in it, is an
// error; the error about a revocation names the key that made it. The certifications that
// keys outside of the keyring have withdrawn are not such revocations: they are skipped. So
// is a value beyond one of the limits in the package's table. Revoked and expired keys
// load: they are refused when they sign.
func ParseKeyring(name string, data []byte) (k *Keyring, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			k, err = nil, fmt.Errorf("unable to read keyring: %v", fault)
		}
	}()
	if len(data) > maxKeyring {
		return nil, fmt.Errorf("keyring is larger than the limit of %d bytes", maxKeyring)
	}
	found, err := collect(data)
	if err != nil {
		return nil, err
	}
	if err := found.weigh(); err != nil {
		return nil, err
	}
	k = found.keyring(name)
	if len(k.keys) == 0 {
		var why []string
		for _, s := range k.skipped {
			why = append(why, strings.TrimSpace(s.ID+" "+s.Reason))
		}
		return nil, fmt.Errorf("keyring holds no usable key: %s", bounded.Join(why, "; ", maxErrorText))
	}
	return k, nil
}

// collect reads the packets of data, armored or not.
func collect(data []byte) (*collection, error) {
	c := newCollection()
	blocks, armorErr := armorBlocks(data)
	for _, b := range blocks {
		armorErr = c.read(b)
		if armorErr != nil {
			break
		}
	}
	if armorErr == nil {
		return c, nil
	}
	if final(armorErr) {
		return nil, armorErr
	}
	c = newCollection()
	if err := c.read(data); err != nil {
		if final(err) {
			return nil, err
		}
		return nil, fmt.Errorf("unable to read keyring with armor (%w) or without armor (%w)", armorErr, err)
	}
	return c, nil
}

// final reports whether an error says all there is to say, whichever way the
// value is read.
func final(err error) bool {
	return errors.As(err, new(*limit.LimitError)) || errors.Is(err, errPrivateKey)
}

// keyring makes the keyring of a collection whose signatures have been weighed.
func (c *collection) keyring(name string) *Keyring {
	k := &Keyring{name: name, byID: map[uint64][]*key{}}
	var skipped []skippedAt
	used := map[*certificate]*key{}
	bound := map[*subkey]bool{}
	for _, cert := range c.primaries {
		primary, err := c.primary(cert)
		if err != nil {
			skipped = append(skipped, skip(cert.order, cert.pub, err))
		} else {
			used[cert] = primary
			k.hold(primary, cert.order)
		}
		for _, s := range c.subkeys {
			b := cert.bindings[s]
			if b == nil {
				continue
			}
			bound[s] = true
			if primary == nil {
				continue // it is left out with its primary
			}
			sub, err := cert.bind(primary, s, b)
			if err != nil {
				skipped = append(skipped, skip(s.order, s.pub, fmt.Errorf("subkey of %s: %w", primary.pub.print(), err)))
				continue
			}
			k.hold(sub, s.order)
		}
	}
	for _, s := range c.subkeys {
		switch {
		case bound[s]:
		case s.near == nil:
			c.strays = append(c.strays, stray{tagPublicSubkey, s.order})
		case used[s.near] != nil:
			err := s.err
			if err == nil {
				err = s.near.lacks("no valid binding signature")
			}
			skipped = append(skipped, skip(s.order, s.pub, fmt.Errorf("subkey of %s: %w", used[s.near].pub.print(), err)))
		}
	}
	for _, u := range c.users {
		if u.early && !slices.ContainsFunc(c.primaries, func(cert *certificate) bool { return cert.names[u] != nil }) {
			tag := byte(tagUserID)
			if u.attribute {
				tag = tagUserAttribute
			}
			c.strays = append(c.strays, stray{tag, u.order})
		}
	}
	for _, s := range c.strays {
		skipped = append(skipped, skip(s.order, nil, fmt.Errorf("packet of type %d before the first public key", s.tag)))
	}
	for _, r := range c.withdrawn {
		skipped = append(skipped, r.skipped())
	}
	c.shareRevocations(k)
	for _, p := range k.keys {
		if err := p.restsOnWeak(); err != nil {
			skipped = append(skipped, skippedAt{p.order, SkippedKey{ID: p.pub.print(), Used: true, Reason: err.Error()}})
		}
	}
	slices.SortStableFunc(skipped, func(a, b skippedAt) int { return cmp.Compare(a.order, b.order) })
	for _, s := range skipped {
		k.skipped = append(k.skipped, s.key)
	}
	return k
}

// hold adds a key that is used; order is its place in the value.
func (k *Keyring) hold(p *key, order int) {
	p.order = order
	k.keys = append(k.keys, p)
	k.byID[p.pub.id] = append(k.byID[p.pub.id], p)
}

// shareRevocations makes a key that is revoked unusable wherever it occurs: as
// a primary key, and as a subkey of others.
func (c *collection) shareRevocations(k *Keyring) {
	revoked := map[string]bool{}
	for _, cert := range c.primaries {
		if cert.revoked {
			revoked[string(cert.hashed())] = true
		}
	}
	for _, p := range k.keys {
		if p.revoked {
			revoked[string(p.pub.hashed)] = true
		}
	}
	for _, p := range k.keys {
		p.revoked = p.revoked || revoked[string(p.pub.hashed)]
	}
}

// skippedAt is a key that is left out, with its place in the value.
type skippedAt struct {
	order int
	key   SkippedKey
}

func skip(order int, p *publicKey, err error) skippedAt {
	s := skippedAt{order, SkippedKey{Reason: err.Error()}}
	if p != nil {
		s.key.ID = printID(p.id)
		if p.hashed != nil {
			s.key.ID = p.print()
		}
	}
	return s
}

// Name returns the name that was given to ParseKeyring.
func (k *Keyring) Name() string { return k.name }

// Skipped lists the keys that were left out, in the order of the value. In
// between it lists those that are used with a warning, because only
// self-signatures over MD5 or SHA-1 let them sign, or let them live so long; and
// the keys outside of the keyring that have withdrawn a certification, which is
// ignored as the certification is.
func (k *Keyring) Skipped() []SkippedKey { return slices.Clone(k.skipped) }

// Keys describes the primary keys, in the order of the value.
func (k *Keyring) Keys() []KeyInfo {
	var out []KeyInfo
	for _, p := range k.keys {
		if p.primary != nil {
			if p.usable(time.Time{}) == nil {
				last := &out[len(out)-1]
				last.Subkeys = append(last.Subkeys, p.pub.print())
			}
			continue
		}
		info := KeyInfo{
			Fingerprint: p.pub.print(), UserIDs: slices.Clone(p.userIDs),
			Algorithm: p.pub.algorithm(), Bits: p.pub.bits(), Created: p.pub.created, Revoked: p.revoked,
		}
		info.Expires, _ = p.end(time.Time{})
		out = append(out, info)
	}
	return out
}

// String is how descriptions of a verifier show the keyring: its name, and the
// fingerprint and user ids of each key.
func (k *Keyring) String() string {
	var keys []string
	for _, info := range k.Keys() {
		keys = append(keys, info.Fingerprint+": "+bounded.Join(info.UserIDs, ", ", maxErrorText))
	}
	return fmt.Sprintf("%s (%s)", k.name, bounded.Join(keys, ", ", maxRingText))
}

var errPrivateKey = errors.New("the keyring holds a private key: export the public key and remove the private one from here")

var (
	armorBegin = []byte("-----BEGIN ")
	armorEnd   = []byte("-----END ")
)

// armorBlocks decodes all armored blocks of data. Text around the blocks is ignored, on
// the line of an end mark, too, unless a block begins there: that is what remains of two
// files of which the first lacks its last line end. No block gives io.EOF.
func armorBlocks(data []byte) ([][]byte, error) {
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
		case bytes.HasPrefix(line, armorEnd):
			if start < 0 {
				return nil, fmt.Errorf("armor block %d has no beginning", len(blocks)+1)
			}
			if next := bytes.Index(data[pos:end], armorBegin); next >= 0 {
				end = pos + next
			}
			raw, err := dearmor(data[start:end])
			if err != nil {
				return nil, fmt.Errorf("armor block %d: %w", len(blocks)+1, err)
			}
			blocks = append(blocks, raw)
			if err := armorLimit.Check(int64(len(blocks))); err != nil {
				return nil, err
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
