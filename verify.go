package clusterupdate

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/signature"
)

// verify checks the signature of a release image. An update that is forced
// goes on without one; why that is a risk is returned.
func (l *loader) verify(ctx context.Context, r *loadRequest, out *loaded) (risk string, err error) {
	verifier := l.process.o.Verifier
	if verifier == nil {
		verifier, err = l.payloadVerifier(ctx, r)
	}
	if err == nil {
		half, cancel := reconcile.WithTimeout(ctx, l.process.o.RetrieveTimeout/2)
		defer cancel()
		out.verification, err = l.verifySigner(half, verifier, r.release)
		if err == nil {
			out.verified = true
			l.trust.noteVerified()
			l.process.emit(clusterapi.Event{Type: EventSignatureVerified, Message: out.verification.String()}, EventData{Release: r.release, Verification: out.verification})
			return "", nil
		}
	}
	if r.force && ctx.Err() == nil {
		return forcedRisk(r.release, err), nil
	}
	return "", err
}

// forcedRisk is why it is a risk to go on with a release that is not verified.
func forcedRisk(r configv1.Release, err error) string {
	return signature.Chain(fmt.Errorf("Target release %s cannot be verified, but continuing anyway because the update was forced: %w", quoted(r), err))
}

// verifySigner verifies a release, and that it was signed under a name that
// counts. Without a version, the version in that name plays no part.
func (l *loader) verifySigner(ctx context.Context, verifier signature.Verifier, r configv1.Release) (*signature.Verification, error) {
	identity := l.process.o.Identity
	if r.Version == "" && identity.Version {
		identity.Version = false
		if v, ok := verifier.(*signature.OpenPGP); ok && l.process.o.Verifier == nil {
			verifier = v.WithIdentity(identity)
		}
	}
	digest := signature.Digest(r.Image)
	var v *signature.Verification
	err := panics.Isolate(func() (err error) {
		if of, ok := verifier.(signature.ReleaseVerifier); ok {
			v, err = of.VerifyRelease(ctx, digest, r.Version)
		} else {
			v, err = verifier.Verify(ctx, digest)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, &signature.Error{Digest: digest, Err: fmt.Errorf("verifier %T returned neither a proof nor an error", verifier)}
	case v.Digest != "" && v.Digest != digest:
		return nil, &signature.Error{Digest: digest, Err: fmt.Errorf("verifier %T vouches for %s instead", verifier, v.Digest)}
	}
	if err := identity.CheckAll(v, r.Version); err != nil {
		return nil, &signature.Error{Digest: digest, Err: err}
	}
	return v.For(r.Version), nil
}

// checkVersion compares the names under which a release was signed with its
// version, where that was not known before its contents were read.
func (l *loader) checkVersion(r *loadRequest, out *loaded) (risk string, err error) {
	if out.verification == nil || r.release.Version != "" {
		return "", nil
	}
	v := out.verification.For(out.release.Version)
	err = l.process.o.Identity.CheckAll(v, v.Version)
	switch {
	case err == nil && slices.ContainsFunc(v.Signers, func(s signature.Signer) bool { return s.Fit == signature.FitOther }):
		l.process.emit(clusterapi.Event{Type: EventSignatureVerified, Message: v.String()}, EventData{Release: out.release, Verification: v})
	case err != nil && r.force:
		out.verified = false
		risk = forcedRisk(out.release, err)
		l.process.emit(clusterapi.Event{Type: EventRetrievePayload, Message: risk}, EventData{Release: out.release})
		return risk, nil
	}
	return "", err
}
