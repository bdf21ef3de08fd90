package signature

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/limit"
)

// Limits on what a keyring's value may hold. Real ones hold a few keys.
var (
	armorLimit     = limit.Limit{Max: 100, What: "armored blocks in the keyring"}
	keyLimit       = limit.Limit{Max: 1000, What: "keys and subkeys in the keyring"}
	userIDLimit    = limit.Limit{Max: 1000, What: "user ids and attributes in the keyring"}
	signatureLimit = limit.Limit{Max: 10_000, What: "signature packets in the keyring"}
	// checkLimit is on signatures whose arithmetic is checked: see publicKey.cost.
	checkLimit = limit.Limit{Max: 10_000, What: "checks of signatures in the keyring (one of RSA 2048 counts 1)"}
	// hashLimit is on what is hashed to find out what signatures are about.
	hashLimit = limit.Limit{Max: 64 << 20, What: "hashed bytes to classify the signatures in the keyring"}
)

// collection is what a keyring's value holds, by kind of packet. Where a packet
// stands, and in which armored block, says nothing about what it belongs to: a
// signature belongs to what it verifies over. Equal packets are one.
type collection struct {
	primaries []*certificate
	subkeys   []*subkey
	users     []*userID
	sigs      []foundSignature
	strays    []stray           // packets of other kinds before the first public key
	withdrawn []foundRevocation // revocations that count for nothing

	byBody map[string]any // the packets above, by tag and body
	byID   map[uint64][]*certificate
	order  int // of the next packet
	budget budget
}

// certificate is a primary key and what verified signatures say about it.
type certificate struct {
	pub   *publicKey // nil if not even an id is known
	err   error      // why the key is not used
	order int
	// version is the version of the key's packet.
	version byte
	// unreadable is why a signature that names the key as its issuer could not be
	// looked at, if there is such a one.
	unreadable error

	claims        []claim   // direct-key signatures
	claimsRevoked time.Time // newest of the revocations
	names         map[*userID]*name
	bindings      map[*subkey]*binding
	revokers      [][fingerprintSize]byte
	revoked       bool
}

// name is what the owner of a certificate says about one user id.
type name struct {
	claims  []claim
	revoked time.Time // newest revocation
}

// binding is what the owner of a certificate says about one subkey.
type binding struct {
	claims  []claim
	err     error // a statement that contradicts itself
	revoked bool
}

// subkey is a subkey packet.
type subkey struct {
	pub    *publicKey
	err    error
	hashed []byte // as signatures cover it
	order  int
	near   *certificate // the one that it follows, for texts alone
}

// userID is a user id or a user attribute.
type userID struct {
	body      []byte
	attribute bool
	order     int
	early     bool           // stands before the first public key
	packets   int            // how many equal ones there are
	near      []*certificate // those that these follow
}

// foundSignature is a signature packet. user and subkey are the packets that it
// follows, where most signatures belong: they are tried first.
type foundSignature struct {
	body         []byte
	user, subkey int // -1: none
	near         *certificate
	order        int
	early        bool
}

type stray struct {
	tag   byte
	order int
}

func newCollection() *collection {
	return &collection{byBody: map[string]any{}, byID: map[uint64][]*certificate{}}
}

// read adds the packets of data. What cannot be split into packets is an
// error, and so is a private key.
func (c *collection) read(data []byte) error {
	if len(data) == 0 {
		return io.EOF
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
		if err := c.add(p); err != nil {
			return err
		}
		c.order++
	}
	return nil
}

func (c *collection) add(p packet) error {
	early := len(c.primaries) == 0
	id := string(append([]byte{p.tag}, p.body...))
	_, known := c.byBody[id]
	if p.tag == tagSignature {
		if known {
			return nil
		}
		c.byBody[id] = nil
		if err := signatureLimit.Check(int64(len(c.sigs) + 1)); err != nil {
			return err
		}
		found := foundSignature{body: p.body, user: len(c.users) - 1, subkey: len(c.subkeys) - 1, order: c.order, early: early}
		if !early {
			found.near = c.primaries[len(c.primaries)-1]
		}
		c.sigs = append(c.sigs, found)
		return nil
	}
	switch p.tag {
	case tagSecretKey, tagSecretSubkey:
		return errPrivateKey
	case tagPublicKey:
		if known {
			return nil
		}
		cert := &certificate{order: c.order, names: map[*userID]*name{}, bindings: map[*subkey]*binding{}}
		if len(p.body) > 0 {
			cert.version = p.body[0]
		}
		cert.pub, cert.err = parsePublicKey(p.body)
		if cert.err == nil && cert.pub.material == nil {
			cert.err = errors.New("the primary key cannot sign")
		}
		c.primaries = append(c.primaries, cert)
		if cert.pub != nil {
			c.byID[cert.pub.id] = append(c.byID[cert.pub.id], cert)
		}
		c.byBody[id] = cert
	case tagPublicSubkey:
		if known {
			return nil
		}
		sub := &subkey{order: c.order, hashed: hashedKey(p.body)}
		sub.pub, sub.err = parsePublicKey(p.body)
		if !early {
			sub.near = c.primaries[len(c.primaries)-1]
		}
		c.subkeys = append(c.subkeys, sub)
		c.byBody[id] = sub
	case tagUserID, tagUserAttribute:
		u, _ := c.byBody[id].(*userID)
		if u == nil {
			u = &userID{body: p.body, attribute: p.tag == tagUserAttribute, order: c.order, early: early}
			c.users = append(c.users, u)
			c.byBody[id] = u
		}
		u.packets++
		if !early {
			u.near = append(u.near, c.primaries[len(c.primaries)-1])
		}
	default:
		if early && int64(len(c.strays)) < keyLimit.Max {
			c.strays = append(c.strays, stray{p.tag, c.order})
		}
		return nil
	}
	if err := keyLimit.Check(int64(len(c.primaries) + len(c.subkeys))); err != nil {
		return err
	}
	return userIDLimit.Check(int64(len(c.users)))
}

// issuers returns the primary keys that may have made s, by what it says. The
// issuers of a signature are hints: only revocations are tried with every key.
func (c *collection) issuers(s *sigPacket) []*certificate {
	if len(s.issuers) == 0 {
		return c.primaries
	}
	for _, id := range s.issuers[1:] {
		if id != s.issuers[0] {
			return nil
		}
	}
	return c.byID[s.issuers[0]]
}

// nearest yields all items, the one at index first (if it is not negative) before
// the others.
func nearest[T any](all []T, first int) iter.Seq[T] {
	return func(yield func(T) bool) {
		if first >= 0 && !yield(all[first]) {
			return
		}
		for i, item := range all {
			if i != first && !yield(item) {
				return
			}
		}
	}
}

// hashed is the form in which certifications cover a key and the user id.
func (u *userID) hashed(k *publicKey, s *sigPacket) [][]byte {
	if s.version == 3 {
		return [][]byte{k.hashed, u.body}
	}
	prefix := []byte{0xb4}
	if u.attribute {
		prefix[0] = 0xd1
	}
	return [][]byte{k.hashed, binary.BigEndian.AppendUint32(prefix, uint32(len(u.body))), u.body}
}

// budget bounds what classifying the signatures of a value may take.
type budget struct {
	checks, hashed int
	err            error // once a limit has been reached
}

// made reports whether k made s over parts.
func (w *budget) made(k *publicKey, s *sigPacket, parts ...[]byte) bool {
	if w.err != nil || k == nil || k.material == nil || !k.suits(s) {
		return false
	}
	h, err := availableHash(s.hash)
	if err != nil {
		return false
	}
	for _, p := range parts {
		w.hashed += len(p)
	}
	w.hashed += len(s.suffix)
	w.err = hashLimit.Check(int64(w.hashed))
	if w.err != nil {
		return false
	}
	sum := s.sum(h, parts...)
	if !bytes.Equal(s.tag[:], sum[:2]) {
		return false
	}
	w.checks += k.cost()
	w.err = checkLimit.Check(int64(w.checks))
	if w.err != nil {
		return false
	}
	return k.verify(s, h, sum) == nil
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
