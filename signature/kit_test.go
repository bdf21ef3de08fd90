package signature_test

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"crypto"
	"crypto/dsa" //lint:ignore SA1019 made to be refused
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// This file builds keys and messages packet by packet, independently of the
// code under test, so that every shape can be made, the refused ones too.

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// The limits of the package's doc.
const (
	maxAttempts   = 1024
	maxKeyring    = 1 << 20
	maxMessage    = 1 << 20
	maxSignature  = 50 << 10
	maxSignatures = 9
)

var (
	keyTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	sigTime = time.Date(2022, 6, 1, 12, 0, 0, 0, time.UTC)
	now     = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
)

const day = 24 * 60 * 60 // seconds

// The RSA keys are slow to make and shared by all tests of the binary.
var (
	rsa1024 = sync.OnceValue(func() *pgpKey { return newRSA(1024) })
	rsa2048 = sync.OnceValue(func() *pgpKey { return newRSA(2048) })
	rsa4096 = sync.OnceValue(func() *pgpKey { return newRSA(4096) })
)

type pgpKey struct {
	algo   byte
	body   []byte // of the public key packet
	id     uint64
	print  []byte
	signer any
}

func must[T any](v T, err error) T { return checktest.Must(v, err) }

func u16(n int) []byte           { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func u32(n uint32) []byte        { return binary.BigEndian.AppendUint32(nil, n) }
func u64(n uint64) []byte        { return binary.BigEndian.AppendUint64(nil, n) }
func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
func stamp(t time.Time) []byte   { return u32(uint32(t.Unix())) }

func mpi(b []byte) []byte {
	n := new(big.Int).SetBytes(b)
	return cat(u16(n.BitLen()), n.Bytes())
}

func newKey(algo byte, created time.Time, material []byte, signer any) *pgpKey {
	k := &pgpKey{algo: algo, signer: signer}
	k.body = cat([]byte{4}, stamp(created), []byte{algo}, material)
	sum := sha1.Sum(k.hashed())
	k.print = sum[:]
	k.id = binary.BigEndian.Uint64(sum[12:])
	return k
}

func (k *pgpKey) hashed() []byte { return cat([]byte{0x99}, u16(len(k.body)), k.body) }

func newRSA(bits int) *pgpKey {
	p := must(rsa.GenerateKey(rand.Reader, bits))
	return newKey(1, keyTime, cat(mpi(p.N.Bytes()), mpi(big.NewInt(int64(p.E)).Bytes())), p)
}

func newEd25519(created time.Time) *pgpKey {
	pub, priv := must2(ed25519.GenerateKey(rand.Reader))
	oid := []byte{9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1}
	return newKey(22, created, cat(oid, u16(263), []byte{0x40}, pub), priv)
}

func newEd25519v2() *pgpKey { // algorithm 27
	pub, priv := must2(ed25519.GenerateKey(rand.Reader))
	return newKey(27, keyTime, pub, priv)
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

func newECDSA(curve elliptic.Curve) *pgpKey {
	oids := map[string][]byte{
		"P-256": {8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7},
		"P-384": {5, 0x2b, 0x81, 4, 0, 0x22},
		"P-521": {5, 0x2b, 0x81, 4, 0, 0x23},
	}
	p := must(ecdsa.GenerateKey(curve, rand.Reader))
	point := must(p.PublicKey.Bytes())
	return newKey(19, keyTime, cat(oids[curve.Params().Name], mpi(point)), p)
}

var dsaKey = sync.OnceValue(func() *pgpKey {
	p := new(dsa.PrivateKey)
	if err := dsa.GenerateParameters(&p.Parameters, rand.Reader, dsa.L1024N160); err != nil {
		panic(err)
	}
	if err := dsa.GenerateKey(p, rand.Reader); err != nil {
		panic(err)
	}
	return newKey(17, keyTime, cat(mpi(p.P.Bytes()), mpi(p.Q.Bytes()), mpi(p.G.Bytes()), mpi(p.Y.Bytes())), p)
})

// raw signs a hash and returns the algorithm-specific part of the signature.
func (k *pgpKey) raw(h crypto.Hash, sum []byte) []byte {
	switch s := k.signer.(type) {
	case *rsa.PrivateKey:
		return mpi(must(rsa.SignPKCS1v15(nil, s, h, sum)))
	case *ecdsa.PrivateKey:
		r, t := must2(ecdsa.Sign(rand.Reader, s, sum))
		return cat(mpi(r.Bytes()), mpi(t.Bytes()))
	case ed25519.PrivateKey:
		sig := ed25519.Sign(s, sum)
		if k.algo == 27 {
			return sig
		}
		return cat(mpi(sig[:32]), mpi(sig[32:]))
	case *dsa.PrivateKey:
		r, t := must2(dsa.Sign(rand.Reader, s, sum[:20]))
		return cat(mpi(r.Bytes()), mpi(t.Bytes()))
	}
	panic("unknown key")
}

// sub is a signature subpacket; with the high bit of typ it is critical.
func sub(typ byte, value ...[]byte) []byte {
	v := cat(value...)
	if len(v)+1 < 192 {
		return cat([]byte{byte(len(v) + 1), typ}, v)
	}
	return cat([]byte{255}, u32(uint32(len(v)+1)), []byte{typ}, v)
}

// sig describes a signature; the zero values are those of a proper one.
type sig struct {
	version  byte // 4
	typ      byte
	hash     byte // 8
	algo     byte // the key's
	issuer   uint64
	created  time.Time
	noTime   bool
	hashed   []byte // more subpackets
	unhashed []byte
	noIssuer bool
	v3len    byte // 5
	badTag   bool
	after    []byte // after the integers
	values   func([]byte) []byte
}

var hashes = map[byte]crypto.Hash{1: crypto.MD5, 2: crypto.SHA1, 8: crypto.SHA256, 9: crypto.SHA384, 10: crypto.SHA512, 11: crypto.SHA224}

// sign returns the body of a signature packet over parts.
func (k *pgpKey) sign(s sig, parts ...[]byte) []byte {
	s.version = cmp.Or(s.version, 4)
	s.hash = cmp.Or(s.hash, 8)
	s.algo = cmp.Or(s.algo, k.algo)
	s.issuer = cmp.Or(s.issuer, k.id)
	if s.created.IsZero() {
		s.created = sigTime
	}
	h := hashes[s.hash]
	h = cmp.Or(h, crypto.SHA256)
	w := h.New()
	w.Write(cat(parts...))
	var head, unhashed []byte
	if s.version == 3 || s.version == 2 {
		core := cat([]byte{s.typ}, stamp(s.created))
		w.Write(core)
		s.v3len = cmp.Or(s.v3len, 5)
		head = cat([]byte{s.version, s.v3len}, core, u64(s.issuer), []byte{s.algo, s.hash})
	} else {
		hashed := s.hashed
		if !s.noTime {
			hashed = cat(sub(2, stamp(s.created)), hashed)
		}
		head = cat([]byte{s.version, s.typ, s.algo, s.hash}, u16(len(hashed)), hashed)
		w.Write(cat(head, []byte{4, 0xff}, u32(uint32(len(head)))))
		unhashed = s.unhashed
		if !s.noIssuer {
			unhashed = cat(sub(16, u64(s.issuer)), unhashed)
		}
		unhashed = cat(u16(len(unhashed)), unhashed)
	}
	sum := w.Sum(nil)
	tag := bytes.Clone(sum[:2])
	if s.badTag {
		tag[0] ^= 1
	}
	values := k.raw(h, sum)
	if s.values != nil {
		values = s.values(values)
	}
	return cat(head, unhashed, tag, values, s.after)
}

// pkt frames a packet with a header of the newer format.
func pkt(tag byte, body ...[]byte) []byte {
	b := cat(body...)
	return cat([]byte{0xc0 | tag}, length(len(b)), b)
}

func length(n int) []byte {
	switch {
	case n < 192:
		return []byte{byte(n)}
	case n < 8384:
		return []byte{byte((n-192)>>8) + 192, byte(n - 192)}
	}
	return cat([]byte{255}, u32(uint32(n)))
}

// partialPkt frames a packet in chunks of 2^exp octets.
func partialPkt(tag byte, exp byte, body []byte) []byte {
	out := []byte{0xc0 | tag}
	for len(body) > 1<<exp {
		out = cat(out, []byte{224 + exp}, body[:1<<exp])
		body = body[1<<exp:]
	}
	return cat(out, length(len(body)), body)
}

func literalBody(format byte, name string, body []byte) []byte {
	return cat([]byte{format, byte(len(name))}, []byte(name), u32(0), body)
}

// msg describes a message; the zero values are those of a proper one.
type msg struct {
	sig
	opsHash, opsAlgo byte
	opsType          *byte
	opsID            uint64
	notLast          bool
	name             string
	format           byte // b
	body             []byte
}

func onePass(typ, hash, algo byte, id uint64, last byte) []byte {
	return pkt(4, []byte{3, typ, hash, algo}, u64(id), []byte{last})
}

// parts returns the three packets of a message.
func (k *pgpKey) parts(m msg) (ops, lit, sigPacket []byte) {
	if m.body == nil {
		m.body = statement(digestA)
	}
	hash, algo, typ, id, last := m.opsHash, m.opsAlgo, m.typ, m.opsID, byte(1)
	if hash == 0 {
		hash = max(m.hash, 8)
		if m.hash != 0 {
			hash = m.hash
		}
	}
	if algo == 0 {
		algo = k.algo
		if m.algo != 0 {
			algo = m.algo
		}
	}
	if m.opsType != nil {
		typ = *m.opsType
	}
	id = cmp.Or(id, k.id)
	if m.notLast {
		last = 0
	}
	format := m.format
	format = cmp.Or(format, 'b')
	signed := m.body
	if m.typ == 1 {
		signed = bytes.ReplaceAll(bytes.ReplaceAll(signed, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	return onePass(typ, hash, algo, id, last), pkt(11, literalBody(format, m.name, m.body)), pkt(2, k.sign(m.sig, signed))
}

func (k *pgpKey) message(m msg) []byte {
	ops, lit, s := k.parts(m)
	return cat(ops, lit, s)
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := must(flate.NewWriter(&out, flate.BestCompression))
	must(w.Write(b))
	w.Close()
	return out.Bytes()
}

// compressed wraps packets as the published signatures do: algorithm 1, header
// of the older format, indeterminate length.
func compressed(b []byte) []byte { return cat([]byte{0xa3, 1}, deflated(b)) }

func statement(digest string) []byte {
	return must(signature.Body(digest, "quay.io/openshift-release-dev/ocp-release:4.18.15-x86_64", "test", sigTime))
}

// cert describes a transferable public key.
type cert struct {
	uid      string
	self     sig    // self-signature
	flags    []byte // nil: sign and certify; empty: no flags subpacket
	lifetime uint32 // seconds
	more     []byte // packets between the key and its user id
	extra    []byte // packets at the end
	noUserID bool
}

func (c cert) subs() []byte {
	var out []byte
	switch {
	case c.flags == nil:
		out = sub(27, []byte{3})
	case len(c.flags) > 0:
		out = sub(27, c.flags)
	}
	if c.lifetime > 0 {
		out = cat(out, sub(9, u32(c.lifetime)))
	}
	return out
}

func uidParts(k *pgpKey, uid string) [][]byte {
	return [][]byte{k.hashed(), {0xb4}, u32(uint32(len(uid))), []byte(uid)}
}

// public returns the key as a binary keyring.
func (k *pgpKey) public(c cert) []byte {
	c.uid = cmp.Or(c.uid, "Test Key <test@example.com>")
	c.self.typ = cmp.Or(c.self.typ, 0x13)
	if c.self.created.IsZero() {
		c.self.created = keyTime
	}
	c.self.hashed = cat(c.subs(), c.self.hashed)
	out := cat(pkt(6, k.body), c.more)
	if !c.noUserID {
		out = cat(out, pkt(13, []byte(c.uid)), pkt(2, k.sign(c.self, uidParts(k, c.uid)...)))
	}
	return cat(out, c.extra)
}

// subkey returns the packets of a subkey. A nil flags means "sign"; an empty
// one means none; without cross there is no cross-signature.
func (k *pgpKey) subkey(s *pgpKey, flags []byte, lifetime uint32, cross bool) []byte {
	subs := cert{flags: flags, lifetime: lifetime}.subs()
	if flags == nil {
		subs = cat(sub(27, []byte{2}), subs[3:])
	}
	if cross {
		embedded := s.sign(sig{typ: 0x19, created: keyTime}, k.hashed(), s.hashed())
		subs = cat(subs, sub(32, embedded))
	}
	return cat(pkt(14, s.body), pkt(2, k.sign(sig{typ: 0x18, created: keyTime, hashed: subs}, k.hashed(), s.hashed())))
}

func ring(t testing.TB, data ...[]byte) *signature.Keyring {
	t.Helper()
	r := must(signature.ParseKeyring("ring", cat(data...)))
	return r
}

// verify tries one message against one keyring, with the time at now.
func verify(t testing.TB, r *signature.Keyring, message []byte, o signature.Options) (*signature.Verification, error) {
	t.Helper()
	o.Keyrings = []*signature.Keyring{r}
	o.Stores = []signature.Store{signature.MemoryStore{digestA: {message}}}
	if o.Clock == nil {
		o.Clock = clocktesting.NewFakePassiveClock(now)
	}
	return newVerifier(o).Verify(context.Background(), digestA)
}

// cause returns the first attempt's error of a failed verification.
func cause(err error) error {
	var e *signature.Error
	if errors.As(err, &e) && len(e.Attempts) > 0 {
		return e.Attempts[0].Err
	}
	return err
}

// wantRefused checks that err is a refusal of a message for reason, whose text
// contains text.
func wantRefused(t testing.TB, err error, reason signature.Reason, text string) {
	t.Helper()
	if err == nil {
		t.Fatal("verified")
	}
	var e *signature.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T", err)
	}
	if want := fmt.Sprintf("unable to verify %s against keyrings: ring: ", digestA); !strings.HasPrefix(e.Error(), want) {
		t.Errorf("error %q, want %q", e, want)
	}
	var r *signature.Rejection
	if !errors.As(cause(err), &r) {
		t.Fatalf("cause %v is no rejection", cause(err))
	}
	if r.Reason != reason || !strings.Contains(r.Error(), text) {
		t.Errorf("refused for %s: %v; want %s: %s", r.Reason, r, reason, text)
	}
}

// newVerifier fails the test where the options cannot work.
func newVerifier(o signature.Options) *signature.OpenPGP {
	v, err := signature.New(o)
	if err != nil {
		panic(err)
	}
	return v
}

// unplaced are candidates that say nothing of their origin.
func unplaced(seq iter.Seq2[[]byte, error]) iter.Seq2[signature.Candidate, error] {
	return func(yield func(signature.Candidate, error) bool) {
		for sig, err := range seq {
			if !yield(signature.Candidate{Signature: sig}, err) {
				return
			}
		}
	}
}

// signatures leaves out where candidates come from.
func signatures(seq iter.Seq2[signature.Candidate, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for c, err := range seq {
			if !yield(c.Signature, err) {
				return
			}
		}
	}
}

// fitOf is the fit of a name with a version.
func fitOf(reference, version string) signature.Fit {
	v := &signature.Verification{Signers: []signature.Signer{{Reference: reference}}}
	return v.For(version).Signers[0].Fit
}

func dirStore(dir string) *signature.FileStore {
	return &signature.FileStore{FS: os.DirFS(dir), Name: dir}
}

// newPersister fails the test where the options cannot work.
func newPersister(o cluster.PersistOptions) *cluster.Persister {
	p, err := cluster.NewPersister(o)
	if err != nil {
		panic(err)
	}
	return p
}
