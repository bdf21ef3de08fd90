package signature

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
)

// The limits on texts, in bytes: they end up in conditions and events, and much
// of them comes from stores and servers.
const (
	// maxText bounds the text of an [*Error].
	maxText = 2 << 10
	// maxCause bounds each cause in the text of several.
	maxCause = 1 << 10
	// maxChain bounds what [Chain] returns, and the text of several causes.
	maxChain = 32 << 10
)

// What [*Error] wraps if no store has been asked.
var (
	// ErrMisconfigured reports that a verifier has no keyring or no store.
	ErrMisconfigured = errors.New("the release verifier is incorrectly configured, unable to verify digests")
	// ErrNoDigest reports that the image is not named by digest.
	ErrNoDigest = errors.New("release images that are not accessed via digest cannot be verified")
	// ErrNotPossible is the cause of every failure of [NotPossible].
	ErrNotPossible = errors.New("verification is not possible")
)

// Error explains why a digest could not be verified.
type Error struct {
	Digest string
	// Keyrings names the keyrings that no signature satisfied, sorted.
	Keyrings []string
	// Attempts are the failures in the order in which they occurred, "nothing
	// found" included. Of more than 1024 the most informative ones
	// are kept, and Omitted is how many are missing.
	Attempts []Attempt
	Omitted  int
	// Err is the reason why no store was asked, and what a verifier without
	// keyrings says in place of the usual text; else nil.
	Err error
}

// Attempt is one signature that was refused by one keyring, or one failure to
// retrieve a signature.
type Attempt struct {
	// Store describes the store, Location (URL, path or key) and Number the
	// place within it. Location may be empty and Number 0 if the failure
	// concerns the store as a whole.
	Store    string
	Location string
	Number   int
	// Keyring is the name of the keyring; empty for failures to retrieve.
	Keyring string
	Time    time.Time
	// Err is the cause: a [*Rejection] for a signature, else an error for which
	// errors.Is(err, ErrNotFound) distinguishes "nothing there" from a fault.
	Err error
}

// Error returns one line: the text that the cluster-version operator reports,
// and behind it what failed, as in Summary; where Err is set, its text alone.
// It has at most 2 KiB. All causes are in Attempts and in what Unwrap returns.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.words()
	}
	return e.Summary()
}

// words are what comes before the cause.
func (e *Error) words() string {
	if e.Err != nil {
		return bounded.Text(e.Err.Error(), maxText)
	}
	return fmt.Sprintf("unable to verify %s against keyrings: %s", bounded.Text(e.Digest, 256), bounded.Join(e.Keyrings, ", ", maxCause/2))
}

// Unwrap returns Err, else the causes of all attempts as one error, whose text
// is "[a, b]" without repetitions; nil without attempts.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	if len(e.Attempts) == 0 {
		return nil
	}
	errs := make([]error, len(e.Attempts))
	for i, a := range e.Attempts {
		errs[i] = a.Err
	}
	return &aggregate{errs, e.Omitted}
}

// Summary names the most telling cause in one line: a refused signature of a
// known key before one of an unknown key, that before an unreachable store, and
// that before "no signature found". A refusal counts only where its keyring was
// not satisfied by another signature.
func (e *Error) Summary() string {
	text := e.words()
	if cause := e.cause(); cause != "" {
		text += ": " + cause
	}
	return bounded.Text(text, maxText)
}

// cause is the most telling attempt, or "".
func (e *Error) cause() string {
	best, rank := Attempt{}, 0
	for _, a := range e.Attempts {
		if a.Keyring != "" && len(e.Keyrings) > 0 && !slices.Contains(e.Keyrings, a.Keyring) {
			continue // satisfied by another signature
		}
		if r := a.rank(); r > rank {
			best, rank = a, r
		}
	}
	var text string
	switch {
	case rank == 0:
		return ""
	case rank == rankNothing:
		text = "no signature found"
	case rank == rankFailure:
		text = best.failure()
	default:
		text = best.refusal()
	}
	return bounded.Text(text, maxCause)
}

// How telling an attempt is.
const (
	rankNothing = 1 + iota
	rankFailure
	rankUnknownKey
	rankRefused
)

func (a Attempt) rank() int {
	if rej, ok := errors.AsType[*Rejection](a.Err); ok {
		if rej.Reason == InvalidKey {
			return rankUnknownKey
		}
		return rankRefused
	}
	if errors.Is(a.Err, ErrNotFound) {
		return rankNothing
	}
	return rankFailure
}

// failure words a failure to retrieve a signature. It names the store, unless
// the cause does so, or is the end of the search's context.
func (a Attempt) failure() string {
	text := a.Err.Error()
	where := a.where()
	if where == "" || strings.Contains(text, where) || errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, context.DeadlineExceeded) {
		return text
	}
	return bounded.Text(where, maxCause/2) + ": " + text
}

// refusal words a signature that was refused.
func (a Attempt) refusal() string {
	text := a.Err.Error()
	if rej, ok := errors.AsType[*Rejection](a.Err); ok && rej.SignedDigest != "" {
		text += fmt.Sprintf(" (signature is for %s)", bounded.Text(rej.SignedDigest, 256))
	}
	if where := a.where(); where != "" {
		return fmt.Sprintf("%s refused by %s: %s", bounded.Text(where, maxCause/2), a.Keyring, text)
	}
	return text
}

func (a Attempt) where() string {
	switch {
	case a.Location != "":
		return a.Location
	case a.Store != "" && a.Number > 0:
		return fmt.Sprintf("%s, signature %d", a.Store, a.Number)
	}
	return a.Store
}

// Chain returns the text of an error and, each on a line of its own, the texts of
// the errors that it wraps, unless they show already. That is how the
// cluster-version operator records why an update was forced, and what exposes the
// failures of single stores, which the text of an [*Error] leaves out. Several
// errors that are wrapped together are one text. Nil gives ""; there are at most 32
// KiB.
func Chain(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for {
		single, ok := err.(interface{ Unwrap() error })
		if !ok {
			return bounded.Text(text, maxChain)
		}
		err = single.Unwrap()
		if err == nil || len(text) > maxChain {
			return bounded.Text(text, maxChain)
		}
		if next := err.Error(); !strings.Contains(text, next) {
			text += "\n" + next
		}
	}
}

// aggregate prints like the aggregate of k8s.io/apimachinery, whose text users
// know, and unlike that one serves errors.As and has a bound. That a composite
// has come to its end is left out where its stores have said so themselves.
type aggregate struct {
	errs    []error
	omitted int // how many are missing
}

func (a *aggregate) Error() string {
	var texts []string
	seen := map[string]bool{}
	for _, err := range a.errs {
		if _, ok := err.(*exhaustedError); ok && slices.ContainsFunc(a.errs, notExhausted) {
			continue
		}
		if t := bounded.Text(err.Error(), maxCause); !seen[t] {
			seen[t] = true
			texts = append(texts, t)
		}
	}
	if a.omitted > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", a.omitted))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + bounded.Join(texts, ", ", maxChain-2) + "]"
}

func (a *aggregate) Unwrap() []error { return a.errs }

func notExhausted(err error) bool {
	_, ok := err.(*exhaustedError)
	return !ok
}

// exhaustedError reports that a composite has come to its end.
type exhaustedError struct{ store string }

func (e *exhaustedError) Error() string { return e.store + ": " + ErrNotFound.Error() }

func (e *exhaustedError) Unwrap() error { return ErrNotFound }

// Reason says at which step a signature was refused.
type Reason string

// The reasons of a [Rejection], in the order in which they are looked for.
const (
	Unreadable   Reason = "Unreadable"   // not the one accepted shape of message
	NotSigned    Reason = "NotSigned"    // the message carries no signature before its text
	BadSignature Reason = "BadSignature" // weak, altered, or made outside of the key's validity
	InvalidKey   Reason = "InvalidKey"   // no key of the keyring may have made it
	Expired      Reason = "Expired"      // past its own expiry
	NotJSON      Reason = "NotJSON"      // authentic, but not a statement
	WrongType    Reason = "WrongType"    // authentic, of another type
	NoIdentity   Reason = "NoIdentity"   // authentic, without a reference
	WrongDigest  Reason = "WrongDigest"  // authentic, for another digest
	// WrongIdentity is for verifiers that compare names.
	WrongIdentity Reason = "WrongIdentity" // authentic, under a name that does not count
)

// Rejection explains why one signature was refused. Its text follows the
// cluster-version operator.
type Rejection struct {
	Reason Reason
	// Err is the detail; nil if absent.
	Err error
	// Expiry is when the signature expired, for Expired.
	Expiry time.Time
	// SignedDigest is what the statement is about, for WrongDigest.
	SignedDigest string
}

func reject(r Reason, err error) *Rejection { return &Rejection{Reason: r, Err: err} }

func rejectf(r Reason, format string, args ...any) *Rejection {
	return reject(r, fmt.Errorf(format, args...))
}

// Error implements error.
func (r *Rejection) Error() string {
	switch r.Reason {
	case Unreadable:
		return fmt.Sprintf("could not read the message: %v", r.Err)
	case NotSigned:
		return "not signed"
	case BadSignature:
		return fmt.Sprintf("signature error: %v", r.Err)
	case InvalidKey:
		if r.Err != nil {
			return fmt.Sprintf("invalid signature: %v", r.Err)
		}
		return "invalid signature"
	case Expired:
		return fmt.Sprintf("signature expired on %s", r.Expiry)
	case NotJSON:
		return fmt.Sprintf("the signature is not valid JSON: %v", r.Err)
	case WrongType:
		return "the signature is not the correct type"
	case NoIdentity:
		return "signature must have an identity"
	case WrongIdentity:
		return fmt.Sprintf("Signature for identity %v is not accepted", r.Err)
	case WrongDigest:
		return "signature digest does not match"
	}
	return fmt.Sprintf("signature refused: %s", r.Reason)
}

// Unwrap returns Err.
func (r *Rejection) Unwrap() error { return r.Err }
