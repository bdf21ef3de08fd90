package signature

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What [*Error] wraps where no store has been asked.
var (
	// ErrMisconfigured says that a verifier has no keyring or no store.
	ErrMisconfigured = errors.New("the release verifier is incorrectly configured, unable to verify digests")
	// ErrNoDigest says that the image is not named by digest.
	ErrNoDigest = errors.New("release images that are not accessed via digest cannot be verified")
	// ErrNotPossible is the cause of every failure of [NotPossible].
	ErrNotPossible = errors.New("verification is not possible")
)

// Error says why a digest could not be verified.
type Error struct {
	Digest string
	// Keyrings names the keyrings that no signature satisfied, sorted.
	Keyrings []string
	// Attempts are all failures in the order in which they came, "nothing
	// found" included.
	Attempts []Attempt
	// Err is the reason why no store was asked, and what a verifier without
	// keyrings says in place of the usual text; else nil.
	Err error
}

// Attempt is one signature that was refused by one keyring, or one failure to
// retrieve a signature.
type Attempt struct {
	// Store describes the store, Location (URL, path or key) and Number the
	// place within it. Location may be empty and Number 0 where the failure
	// concerns the store as a whole.
	Store    string
	Location string
	Number   int
	// Keyring is the name of the keyring; empty for failures to retrieve.
	Keyring string
	Time    time.Time
	// Err is the cause: a [*Rejection] for a signature, else an error for
	// which errors.Is(err, ErrNotFound) tells "nothing there" from a fault.
	Err error
}

// Error returns the one-line text that the cluster-version operator reports.
// The causes are in Attempts and in what Unwrap returns.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("unable to verify %s against keyrings: %s", e.Digest, strings.Join(e.Keyrings, ", "))
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
	return aggregate(errs)
}

// Summary names the most telling cause in one line: a refused signature of a
// known key before one of an unknown key, that before an unreachable store,
// and that before "nothing found".
func (e *Error) Summary() string {
	best, rank := Attempt{}, 0
	for _, a := range e.Attempts {
		r := 2
		if rej, ok := errors.AsType[*Rejection](a.Err); ok {
			r = 4
			if rej.Reason == InvalidKey {
				r = 3
			}
		} else if errors.Is(a.Err, ErrNotFound) {
			r = 1
		}
		if r > rank {
			best, rank = a, r
		}
	}
	switch rank {
	case 0:
		return e.Error()
	case 1:
		return fmt.Sprintf("%v: no signature found", e)
	case 2:
		return fmt.Sprintf("%v: %v", e, best.Err)
	}
	where := best.Location
	if where == "" {
		where = fmt.Sprintf("%s, signature %d", best.Store, best.Number)
	}
	text := best.Err.Error()
	if rej, ok := errors.AsType[*Rejection](best.Err); ok && rej.SignedDigest != "" {
		text += fmt.Sprintf(" (signature is for %s)", rej.SignedDigest)
	}
	return fmt.Sprintf("%v: %s refused by %s: %s", e, where, best.Keyring, text)
}

// Chain returns the text of an error and, each on a line of its own, the texts
// of those that it wraps, unless they show already. That is how the
// cluster-version operator records why an update was forced, and what exposes
// the failures of single stores, which the text of an [*Error] leaves out.
// Several errors that are wrapped together are one text. Nil gives "".
func Chain(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for {
		single, ok := err.(interface{ Unwrap() error })
		if !ok {
			return text
		}
		if err = single.Unwrap(); err == nil {
			return text
		}
		if next := err.Error(); !strings.Contains(text, next) {
			text += "\n" + next
		}
	}
}

// aggregate prints like the aggregate of k8s.io/apimachinery, whose text users
// know, and unlike that one serves errors.As.
type aggregate []error

func (a aggregate) Error() string {
	var texts []string
	seen := map[string]bool{}
	for _, err := range a {
		if t := err.Error(); !seen[t] {
			seen[t] = true
			texts = append(texts, t)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (a aggregate) Unwrap() []error { return a }

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

// Rejection says why one signature was refused. Its text follows the
// cluster-version operator.
type Rejection struct {
	Reason Reason
	// Err is the detail; nil where there is none.
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
