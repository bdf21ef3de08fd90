package signature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Verifier decides whether a release may be trusted. Implementations must be
// safe for concurrent use.
type Verifier interface {
	// Verify reports who vouches for a digest ("sha256:…"). The error is an
	// [*Error] with every attempt. A Verifier that returns neither an error nor
	// a true proof makes a cluster run whatever it is offered.
	Verify(ctx context.Context, digest string) (*Verification, error)
}

// ReleaseVerifier is optional: a [Verifier] that has it takes the version of the
// release into account. Find it by type assertion.
// Like a Verifier it is safe for concurrent use.
type ReleaseVerifier interface {
	// VerifyRelease is Verify for a release of which the version is known as
	// well: the name under which it was signed is compared with it, for
	// [Signer.Fit] and, if the verifier wants that, to refuse. An empty
	// version is not known. Errors are those of Verify.
	VerifyRelease(ctx context.Context, digest, version string) (*Verification, error)
}

// Verification is a success: every keyring has vouched for the digest.
type Verification struct {
	Digest string `json:"digest,omitempty"`
	// Version is the release's, if it was known.
	Version string `json:"version,omitempty"`
	// Signers has one entry for each keyring, sorted by its name.
	Signers []Signer `json:"signers,omitempty"`
	// Cached is true when no store was asked, since the digest had been
	// verified before.
	Cached bool `json:"cached,omitempty"`
}

// The systems by which a release can be vouched for.
const (
	SystemOpenPGP  = "OpenPGP"
	SystemSigstore = "sigstore"
)

// Signer is whose signature satisfied a keyring.
type Signer struct {
	// System is SystemOpenPGP or SystemSigstore.
	System  string `json:"system,omitempty"`
	Keyring string `json:"keyring,omitempty"` // name of the keyring, or of the policy
	// Fingerprint is the fingerprint of the key that signed, a subkey's own if it
	// was one: upper-case hexadecimal.
	Fingerprint string    `json:"fingerprint,omitempty"`
	UserID      string    `json:"userID,omitempty"` // first valid user id of the key's owner; empty for sigstore
	Created     time.Time `json:"created,omitzero"` // when the signature was made, by its own words; may be zero for sigstore
	// Reference is the name under which the signer published the image. Unless
	// [Options.Identity] asks for it, nobody compared it with
	// anything: it may name another image, or another version.
	Reference string `json:"reference,omitempty"`
	// Fit reports whether Reference fits the version of the release, if that is
	// known.
	Fit Fit `json:"fit,omitempty"`
	// Store, Location and Number say where the signature was found.
	Store    string `json:"store,omitempty"`
	Location string `json:"location,omitempty"`
	Number   int    `json:"number,omitempty"`
}

// For returns v for a release of this version, in which Version and each
// signer's Fit are set. v is not changed.
func (v *Verification) For(version string) *Verification {
	if version == v.Version {
		return v
	}
	out := *v
	out.Version = version
	out.Signers = slices.Clone(v.Signers)
	for i := range out.Signers {
		out.Signers[i].Fit = fitOf(out.Signers[i].Reference, version)
	}
	return &out
}

// String says who signed, under which name, and if that was found. It has at most 4
// KiB.
func (v *Verification) String() string {
	var signers []string
	for _, s := range v.Signers {
		where := cmp.Or(s.Location, s.Store)
		text := fmt.Sprintf("%s: %s key %s", s.Keyring, s.System, s.Fingerprint)
		if s.UserID != "" {
			text += " (" + bounded.Text(s.UserID, maxReference) + ")"
		}
		text += ", signed"
		if !s.Created.IsZero() {
			text += " " + s.Created.Format(time.RFC3339)
		}
		text += " as " + bounded.Text(s.Reference, maxReference)
		if s.Fit == FitOther {
			text += " (which does not fit version " + bounded.Text(v.Version, maxReference) + ")"
		}
		signers = append(signers, text+", found in "+bounded.Text(where, maxCause/2))
	}
	return fmt.Sprintf("%s verified by %s", v.Digest, bounded.Join(signers, "; ", 2*maxText-512))
}

// maxAttempts is how many failures an [*Error] lists.
const maxAttempts = 1024

// Options configure an [OpenPGP] verifier. Only Keyrings and Stores are
// required.
type Options struct {
	// Keyrings must all be satisfied, each by any of its keys.
	Keyrings []*Keyring
	// Stores are asked in order, as in [Serial].
	Stores []Store

	// Identity says under which names a release must have been signed. Zero
	// means that any will do.
	Identity Identity
	// Validity says when a key must have been valid; zero means
	// AtSignatureTime.
	Validity Validity
	// FutureSkew refuses signatures that were made later than now plus this;
	// nil accepts them, since the clock of a cluster may be behind.
	FutureSkew *time.Duration
	// IgnoreUnknownOptional accepts unknown keys within "optional" of a
	// statement.
	IgnoreUnknownOptional bool
	// StrictDigest accepts sha256, sha384 and sha512 of the right length alone.
	StrictDigest bool
	// MaxMessage is the limit, in bytes, on a message as received and on what
	// it decompresses to. Zero means 1 MiB.
	MaxMessage int

	// NoCache remembers no verified digest; by default 64 are remembered, and the least
	// recently used goes first.
	NoCache bool
	// CacheMaxAge is how long a verified digest is remembered; zero means until
	// it is displaced. It is never remembered for longer than signature,
	// self-signatures and key are valid.
	CacheMaxAge time.Duration

	// Clock is the source of the time; nil means the real one.
	Clock clock.PassiveClock
}

// OpenPGP verifies release images by signed statements in the format of
// containers/image ("simple signing"). It is safe for concurrent use. Make one
// with [New].
type OpenPGP struct {
	o         Options
	store     Store // nil: none
	cache     *cache
	inflaters inflaters
}

// New returns a verifier, or an error that names the numbers of o that are
// negative. One without keyrings or stores fails every verification with
// [ErrMisconfigured].
func New(o Options) (*OpenPGP, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	return newVerifier(o), nil
}

func newVerifier(o Options) *OpenPGP {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.Keyrings = slices.Clone(o.Keyrings)
	slices.SortStableFunc(o.Keyrings, func(a, b *Keyring) int { return strings.Compare(a.name, b.name) })
	v := &OpenPGP{o: o, cache: newCache(o)}
	switch len(o.Stores) {
	case 0:
	case 1:
		v.store = o.Stores[0]
	default:
		v.store = Serial(slices.Clone(o.Stores)...)
	}
	return v
}

// NewVerifier is [New] with default options.
func NewVerifier(keyrings []*Keyring, stores ...Store) *OpenPGP {
	return newVerifier(Options{Keyrings: keyrings, Stores: stores})
}

// WithIdentity returns a verifier that wants other signed names, and is v in all
// else. It shares what v remembers.
func (v *OpenPGP) WithIdentity(i Identity) *OpenPGP {
	o := v.o
	o.Identity = i
	w := newVerifier(o)
	w.store, w.cache = v.store, v.cache
	return w
}

// Keyrings returns the keyrings, sorted by name.
func (v *OpenPGP) Keyrings() []*Keyring { return slices.Clone(v.o.Keyrings) }

// Recent returns the remembered digests, the one that succeeded last first, in
// the order in which a Persister of package cluster keeps them.
func (v *OpenPGP) Recent() []string { return v.cache.recent(v.o.Clock.Now()) }

// Signatures returns the signatures that verified the remembered digests. They
// are the caller's.
func (v *OpenPGP) Signatures() map[string][][]byte { return v.cache.signatures(v.o.Clock.Now()) }

// String says, for people, what is required and where signatures are looked for.
func (v *OpenPGP) String() string {
	rings, store := "<ERROR: no verifiers>", "<ERROR: no store>"
	if len(v.o.Keyrings) > 0 {
		texts := make([]string, len(v.o.Keyrings))
		for i, k := range v.o.Keyrings {
			texts[i] = k.String()
		}
		rings = strings.Join(texts, ", ")
	}
	if v.store != nil {
		store = describe(v.store)
	}
	return fmt.Sprintf("All release image digests must have GPG signatures from %s - will check for signatures in containers/image format at %s", rings, store)
}

func (v *OpenPGP) maxMessage() int {
	if v.o.MaxMessage > 0 {
		return v.o.MaxMessage
	}
	return maxMessage
}

// precheck looks at what needs no store.
func (v *OpenPGP) precheck(digest string) error {
	switch {
	case len(v.o.Keyrings) == 0 || v.store == nil:
		return ErrMisconfigured
	case digest == "":
		return ErrNoDigest
	}
	if err := v.o.Identity.validate(); err != nil {
		return err
	}
	if v.o.StrictDigest {
		return ValidateDigestStrict(digest)
	}
	return validateDigest(digest)
}

// Verify implements [Verifier]. Signatures are taken one by one until every
// keyring is satisfied; one may satisfy several.
func (v *OpenPGP) Verify(ctx context.Context, digest string) (*Verification, error) {
	return v.verify(ctx, digest, "")
}

// VerifyRelease implements [ReleaseVerifier].
func (v *OpenPGP) VerifyRelease(ctx context.Context, digest, version string) (*Verification, error) {
	return v.verify(ctx, digest, version)
}

func (v *OpenPGP) verify(ctx context.Context, digest, version string) (*Verification, error) {
	if err := v.precheck(digest); err != nil {
		return nil, &Error{Digest: digest, Err: err}
	}
	// What was remembered may have been signed under a name that does not count
	// for this version: then another signature is looked for.
	if found := v.cache.get(digest, v.o.Clock.Now()); found != nil && v.o.Identity.CheckAll(found, version) == nil {
		return found.For(version), nil
	}

	s := &search{v: v, digest: digest, version: version, open: slices.Clone(v.o.Keyrings)}
	for c, err := range candidates(ctx, v.store, digest) {
		if err != nil {
			s.failed(c, "", err)
			if isStoreError(err) {
				break
			}
		} else if len(c.Signature) > 0 && s.try(c) {
			break
		}
		if ctx.Err() != nil {
			break // the store may not care
		}
	}
	if len(s.open) > 0 {
		if err := ctx.Err(); err != nil && !s.reported(err) {
			s.failed(Candidate{Store: describe(v.store)}, "", err)
		}
		return nil, s.err()
	}

	slices.SortStableFunc(s.signers, func(a, b Signer) int { return strings.Compare(a.Keyring, b.Keyring) })
	result := &Verification{Digest: digest, Signers: s.signers}
	v.cache.put(result, s.accepted, v.o.Clock.Now(), s.until)
	return result.For(version), nil
}

// search is the state of one Verify.
type search struct {
	v        *OpenPGP
	digest   string
	version  string     // of the release; empty if not known
	open     []*Keyring // not satisfied yet
	signers  []Signer
	accepted [][]byte
	until    time.Time // when the result may come out otherwise; zero: never
	attempts []Attempt
	omitted  int
}

// try offers a signature to every open keyring, and reports whether none is
// left open.
func (s *search) try(c Candidate) (done bool) {
	m, err := s.v.openMessage(c.Signature)
	now := s.v.o.Clock.Now()
	p := policy{validity: s.v.o.Validity, skew: s.v.o.FutureSkew, now: now}
	var signed *statement
	var bodyErr error
	used := false
	open := s.open[:0:0]
	for _, ring := range s.open {
		err, signer := err, (*key)(nil)
		if err == nil {
			signer, err = ring.check(m, p)
		}
		// The body is looked at only once it is known to be authentic.
		if err == nil {
			if signed == nil && bodyErr == nil {
				signed, bodyErr = s.v.parseBody(m.body, s.digest)
				if bodyErr == nil {
					bodyErr = s.v.o.Identity.Check(signed.Critical.Identity.Reference, s.version)
				}
			}
			err = bodyErr
		}
		if err != nil {
			s.failed(c, ring.name, err)
			open = append(open, ring)
			continue
		}
		used = true
		s.until = earlier(s.until, signer.trustedUntil(m, now))
		s.signers = append(s.signers, Signer{
			System: SystemOpenPGP, Keyring: ring.name, Fingerprint: signer.pub.print(), UserID: signer.owner().userIDs[0],
			Created: m.sig.created, Reference: signed.Critical.Identity.Reference,
			Store: c.Store, Location: c.Location, Number: c.Number,
		})
	}
	s.open = open
	if used {
		s.accepted = append(s.accepted, c.Signature)
	}
	return len(open) == 0
}

// failed records a failure. One past the limit replaces the last that is less
// informative.
func (s *search) failed(c Candidate, ring string, err error) {
	a := Attempt{
		Store: c.Store, Location: c.Location, Number: c.Number,
		Keyring: ring, Time: s.v.o.Clock.Now(), Err: err,
	}
	if len(s.attempts) < maxAttempts {
		s.attempts = append(s.attempts, a)
		return
	}
	s.omitted++
	for i := len(s.attempts) - 1; i >= 0; i-- {
		if s.attempts[i].rank() < a.rank() {
			s.attempts = append(slices.Delete(s.attempts, i, i+1), a)
			return
		}
	}
}

func (s *search) reported(err error) bool {
	return slices.ContainsFunc(s.attempts, func(a Attempt) bool { return errors.Is(a.Err, err) })
}

func (s *search) err() error {
	names := make([]string, len(s.open))
	for i, k := range s.open {
		names[i] = k.name
	}
	return &Error{Digest: s.digest, Keyrings: names, Attempts: s.attempts, Omitted: s.omitted}
}

// NotPossible refuses every digest. It is what a cluster without any
// verification configuration uses, so that nothing unverified passes unnoticed.
type NotPossible struct{}

// Verify implements [Verifier]: it always fails with ErrNotPossible.
func (NotPossible) Verify(_ context.Context, digest string) (*Verification, error) {
	return nil, &Error{Digest: digest, Err: ErrNotPossible}
}

// Insecure returns a verifier that vouches for every release without looking at
// any signature: for tests and demonstrations, where the releases are made on
// the spot. A cluster that uses it runs whatever it is offered.
func Insecure() Verifier { return insecure{} }

type insecure struct{}

// Verify implements [Verifier]. It fails for a digest that is not one.
func (insecure) Verify(_ context.Context, digest string) (*Verification, error) {
	if err := validateDigest(digest); err != nil {
		return nil, &Error{Digest: digest, Err: err}
	}
	return &Verification{Digest: digest}, nil
}

func (insecure) String() string { return "insecure: every release is trusted" }
