package clusterupdate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/internal/panics"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

// verify checks the signature of a release image. An update that is forced
// continues without one; why that is a risk is returned.
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

// forcedRisk is why it is a risk to continue with a release that is not verified.
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
// version, if that was not known before its contents were read.
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
		l.process.report(EventRetrievePayload, out.release, risk)
		return risk, nil
	}
	return "", err
}

// trust keeps the verifier that the running payload configures: it remembers
// what it verified, and so does the cluster. It is safe for concurrent use.
type trust struct {
	mu       sync.Mutex
	key      string // what the verifier was made of
	verifier signature.Verifier
	unsaved  bool                // something was verified that the cluster may not remember
	earlier  map[string][][]byte // signatures of verifiers that were replaced
}

// payloadVerifier returns the verifier that the running payload configures:
// trust comes from what the cluster runs, never from what it is to run. It is
// made again when that payload changes, or the way out of the cluster.
func (l *loader) payloadVerifier(ctx context.Context, r *loadRequest) (signature.Verifier, error) {
	payload, err := l.runningPayload(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("the running release's signature keys: %w", err)
	}
	egress, err := clusterapi.ReadEgress(ctx, l.process.o.API)
	if err != nil {
		return nil, err
	}
	// Which of the payload's manifests count depends on the feature gates.
	key := payload.Release.Image + " " + r.gates.key() + " " + egress.Revision
	if v := l.trust.made(key); v != nil {
		return v, nil
	}
	// Nobody waits for these reads: of two verifiers that are made at the same
	// time the later one is kept.
	sources := make([]cluster.ConfigSource, 0, len(payload.Manifests))
	for _, m := range payload.Manifests {
		if m.Identity().Kind != "ConfigMap" {
			continue // holds no keys, and need not be decoded
		}
		sources = append(sources, cluster.ConfigSource{Name: m.Filename, Object: m.Object()})
	}
	o := cluster.ConfigOptions{Options: signature.Options{Clock: l.process.o.Clock, Identity: l.process.o.Identity}, Reader: l.process.o.API}
	o.HTTP = signature.HTTPOptions{Proxy: egress.Proxy, RootCAs: egress.RootCAs, Bundle: egress.Bundle}
	v, err := cluster.FromManifests(sources, o)
	if err != nil {
		return nil, err
	}
	if _, none := v.(signature.NotPossible); none {
		l.process.o.Logger.Warn("No release authenticity verification is configured, all releases are considered unverified")
	}
	l.trust.mu.Lock()
	defer l.trust.mu.Unlock()
	if l.trust.unsaved {
		if r, ok := l.trust.verifier.(remembers); ok { // nobody else can save them
			l.trust.earlier = r.Signatures()
		}
	}
	l.trust.key, l.trust.verifier = key, v
	return v, nil
}

// forget makes the next use build the verifier from the payload that the cluster runs
// then. Signatures that are not saved yet stay until that.
func (t *trust) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key = ""
}

// made returns the verifier that was made of key, or nil.
func (t *trust) made(key string) signature.Verifier {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.key != key {
		return nil
	}
	return t.verifier
}

// noteVerified records that a signature was found.
func (t *trust) noteVerified() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsaved = true
}

// remembers is a verifier that keeps the signatures that it verified, by
// digest.
type remembers interface {
	Signatures() map[string][][]byte
}

// saver keeps in the cluster the signatures that verified a release: as soon
// as one did, and at intervals.
type saver struct {
	loader    *loader
	persister *cluster.Persister // nil: the verifier remembers nothing
	next      time.Time
}

const saverName = "signatures"

// Name implements [reconcile.Reconciler].
func (s *saver) Name() string { return saverName }

// signaturesKey is the one key.
var signaturesKey = reconcile.Key{Kind: "ConfigMap", Namespace: cluster.ConfigMapNamespace, Name: cluster.PersistedName}

// Keys implements [reconcile.Lister].
func (s *saver) Keys() []reconcile.Key { return []reconcile.Key{signaturesKey} }

// Watches implements [reconcile.Reconciler].
func (s *saver) Watches() []reconcile.Watch { return nil }

// Reconcile implements [reconcile.Reconciler]. Failures are logged: the
// signatures can be found again.
func (s *saver) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	if s.persister == nil {
		if _, ok := s.loader.process.o.Verifier.(remembers); s.loader.process.o.Verifier != nil && !ok {
			return reconcile.Result{}, nil
		}
		p, err := cluster.NewPersister(cluster.PersistOptions{API: s.loader.process.o.API, Signatures: s.loader.signatures, Recent: s.loader.recent, Once: true})
		if err != nil {
			return reconcile.Result{}, err
		}
		s.persister = p
	}
	interval := 2 * s.loader.process.interval(q)
	if wait := s.next.Sub(q.Now); !s.loader.trust.hasNews() && wait > 0 && wait <= interval {
		return reconcile.Result{At: s.next}, nil
	}
	done := s.loader.trust.saving()
	err := s.persister.Save(ctx)
	done(err)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	s.loader.process.log("Unable to save signatures", err)
	s.next = q.Now.Add(interval)
	return reconcile.Result{At: s.next}, nil
}

// hasNews reports whether something was verified that may not be kept yet.
func (t *trust) hasNews() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsaved
}

// saving starts to keep what was verified until now; done is how that ended.
func (t *trust) saving() (done func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsaved = false
	return func(err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err != nil {
			t.unsaved = true
		} else if !t.unsaved {
			t.earlier = nil
		}
	}
}

// signatures are those that verified something, by digest.
func (l *loader) signatures() map[string][][]byte {
	r, ok := l.verifier().(remembers)
	if !ok {
		return nil
	}
	found := maps.Clone(r.Signatures())
	l.trust.mu.Lock()
	defer l.trust.mu.Unlock()
	for digest, signatures := range l.trust.earlier {
		if found == nil {
			found = make(map[string][][]byte)
		}
		if _, known := found[digest]; !known {
			found[digest] = signatures
		}
	}
	return found
}

// recent are the digests of signatures, the last success first, where the
// verifier tells their order.
func (l *loader) recent() []string {
	if r, ok := l.verifier().(interface{ Recent() []string }); ok {
		return r.Recent()
	}
	return nil
}

// verifier is the one in use, nil before there is any.
func (l *loader) verifier() signature.Verifier {
	if l.process.o.Verifier != nil {
		return l.process.o.Verifier
	}
	l.trust.mu.Lock()
	defer l.trust.mu.Unlock()
	return l.trust.verifier
}
