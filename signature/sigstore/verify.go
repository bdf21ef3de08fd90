package sigstore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/signature"
)

// visit is the state of one verification.
type visit struct {
	policy   *Policy
	image    string
	digest   string
	version  string // of the release; empty where not known
	source   string
	now      time.Time // when the clock was last asked
	taken    int
	tried    int
	attempts []signature.Attempt
}

// run takes what the source yields until a signature counts; nil means none.
func (v *visit) run(ctx context.Context, src Source) (signer *signature.Signer, err error) {
	v.tick()
	v.source = src.String()
	for a, err := range src.Attachments(ctx, v.digest) {
		v.tick()
		v.taken++
		if v.tried == maxLayers && err == nil {
			v.attempt(a, &limit.LimitError{Max: maxLayers, What: "signatures in " + short(v.source)})
			break
		}
		if v.taken > maxAttempts {
			v.attempt(a, &limit.LimitError{Max: maxAttempts, What: "attempts with " + short(v.source)})
			break
		}
		signer = v.try(a, err)
		if signer != nil {
			return signer, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, ctx.Err()
}

// tick asks the policy's clock.
func (v *visit) tick() {
	var c clock.PassiveClock = clock.RealClock{}
	if v.policy.Clock != nil {
		c = v.policy.Clock
	}
	v.now = c.Now()
}

// attempt records a signature that the policy refuses, or a failure to read one.
func (v *visit) attempt(a Attachment, err error) {
	made := signature.Attempt{Store: v.source, Location: a.Location, Number: a.Number, Time: v.now, Err: err}
	if _, refused := errors.AsType[*signature.Rejection](err); refused {
		made.Keyring = v.policy.Name
	}
	v.attempts = append(v.attempts, made)
}

// try checks one attachment, or records the failure to read one.
func (v *visit) try(a Attachment, err error) *signature.Signer {
	if err != nil {
		v.attempt(a, err)
		return nil
	}
	v.tried++
	by, payload, err := v.check(a)
	if err != nil {
		v.attempt(a, err)
		return nil
	}
	created := by.logged
	if created.IsZero() {
		created = payload.Timestamp
	}
	return &signature.Signer{
		System: signature.SystemSigstore, Keyring: v.policy.Name,
		Fingerprint: by.key.fingerprint, UserID: by.name, Created: created,
		Reference: payload.Reference, Store: v.source, Location: a.Location, Number: a.Number,
	}
}

// check takes the steps in the order in which the container runtime takes them.
// Nothing of the payload is looked at before the arithmetic.
func (v *visit) check(a Attachment) (by *signer, p *statement, err error) {
	err = panics.Catch(func() error {
		by, p, err = v.steps(a)
		return err
	})
	if _, ok := errors.AsType[*panics.Error](err); ok {
		err = &signature.Rejection{Reason: signature.Unreadable, Err: err}
	}
	if err != nil {
		return nil, nil, err
	}
	return by, p, nil
}

func (v *visit) steps(a Attachment) (by *signer, p *statement, err error) {
	refuse := func(r signature.Reason, err error) (*signer, *statement, error) {
		return nil, nil, &signature.Rejection{Reason: r, Err: err}
	}
	sig, err := decodeBase64(a)
	if err != nil {
		return refuse(signature.Unreadable, err)
	}
	if len(a.Payload) > maxPayload {
		return refuse(signature.Unreadable, fmt.Errorf("payload is larger than the limit of %d bytes", maxPayload))
	}
	by, err = v.policy.authentic(a, sig, v.now)
	if err != nil {
		return refuse(signature.BadSignature, fmt.Errorf("cryptographic signature verification failed: %w", err))
	}
	p, err = parsePayload(a.Payload)
	if err != nil {
		return refuse(signature.NotJSON, err)
	}
	if p.Digest != v.digest {
		return nil, nil, &signature.Rejection{Reason: signature.WrongDigest, SignedDigest: p.Digest}
	}
	if !v.policy.Identity.Matches(v.image, p.Reference) {
		return refuse(signature.WrongIdentity, errors.New(short(fmt.Sprintf("%q", p.Reference))))
	}
	if err := v.policy.Release.Check(p.Reference, v.version); err != nil {
		return nil, nil, err
	}
	return by, p, nil
}

// signer is who made a signature.
type signer struct {
	key    *Key
	name   string    // of a certificate
	logged time.Time // by a transparency log; may be zero
}

// authentic reports who made sig over the payload, by the root of trust.
func (p *Policy) authentic(a Attachment, sig []byte, now time.Time) (*signer, error) {
	switch {
	case p.Fulcio != nil:
		key, at, err := p.Fulcio.check(a, sig)
		return &signer{key, p.Fulcio.Email, at}, err
	case p.PKI != nil:
		key, err := p.PKI.check(a, sig, now)
		return &signer{key: key, name: strings.TrimSpace(p.PKI.Email + " " + p.PKI.Hostname)}, err
	}
	for _, k := range p.Keys {
		if !k.signed(a.Payload, sig) {
			continue
		}
		if p.Log == nil {
			return &signer{key: k}, nil
		}
		der, err := x509.MarshalPKIXPublicKey(k.public)
		if err != nil {
			return nil, err
		}
		at, err := logged(p.Log, a, sig, der)
		return &signer{key: k, logged: at}, err
	}
	return nil, errors.New("made with none of the keys, or altered")
}

// err words the failure as the container runtime does.
func (v *visit) err() error {
	var refused, others int
	var reasons, failures []string
	var passed *limit.LimitError // what ended the search
	for _, a := range v.attempts {
		var r *signature.Rejection
		var other *OtherError
		switch {
		case errors.As(a.Err, &r):
			refused++
			reasons = append(reasons, bounded.Text(r.Error(), maxReason))
		case errors.As(a.Err, &other):
			others++
		case !errors.Is(a.Err, signature.ErrNotFound):
			if passed == nil {
				passed, _ = errors.AsType[*limit.LimitError](a.Err)
			}
			failures = append(failures, bounded.Text(a.Err.Error(), maxReason))
		}
	}
	var text string
	switch refused {
	case 0:
		text = "A signature was required, but no signature exists"
		if others > 0 {
			text += fmt.Sprintf(" (%d attachments of other types)", others)
		}
		if len(failures) > 0 {
			text += ": " + bounded.Join(failures, "; ", maxReasons)
		}
	case 1:
		text = reasons[0]
	default:
		text = "None of the signatures were accepted, reasons: " + bounded.Join(reasons, "; ", maxReasons)
	}
	if refused > 0 && passed != nil {
		text += "; " + passed.Error()
	}
	refusal := &Refusal{Policy: v.policy.Name, Image: short(v.image), Text: text, attempts: v.attempts}
	return &signature.Error{Digest: v.digest, Keyrings: []string{v.policy.Name}, Attempts: v.attempts, Err: refusal}
}

// Refusal is the cause of a [signature.Error] of this package when signatures
// were looked for. It wraps the cause of each attempt.
type Refusal struct {
	Policy string
	Image  string
	Text   string

	attempts []signature.Attempt
}

func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the causes of all attempts.
func (r *Refusal) Unwrap() []error {
	errs := make([]error, len(r.attempts))
	for i, a := range r.attempts {
		errs[i] = a.Err
	}
	return errs
}
