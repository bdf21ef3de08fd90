package clusterupdate

import (
	"context"
	"fmt"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/signature"
)

// trust keeps the verifier that the running payload configures: it remembers
// what it verified, and so does the cluster. It is safe for concurrent use.
type trust struct {
	mu       sync.Mutex
	key      string // what the verifier was made of
	verifier signature.Verifier
	unsaved  bool // something was verified that the cluster may not remember
}

// payloadVerifier returns the verifier that the running payload configures:
// trust comes from what the cluster runs, never from what it is to run. It is
// made again when that payload changes, or the way out of the cluster.
func (u *Updater) payloadVerifier(ctx context.Context, r *loadRequest) (signature.Verifier, error) {
	payload, err := u.current(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("the running release's signature keys: %w", err)
	}
	// Which of the payload's manifests count depends on the feature gates.
	key, err := u.trustKey(ctx, payload.Release.Image+" "+r.gates.key())
	if err != nil {
		return nil, err
	}
	if v := u.trust.made(key); v != nil {
		return v, nil
	}
	// Nobody waits for these reads: of two verifiers that are made at the same
	// time the later one is kept.
	sources := make([]signature.ConfigSource, 0, len(payload.Manifests))
	for _, m := range payload.Manifests {
		sources = append(sources, signature.ConfigSource{Name: m.Filename, Object: m.Object})
	}
	o := signature.ConfigOptions{Options: signature.Options{Clock: u.o.Clock, Identity: u.o.Identity}, Reader: u.o.API}
	if o.HTTP, err = signature.ClusterHTTP(ctx, u.o.API); err != nil {
		return nil, err
	}
	v, err := signature.FromManifests(sources, o)
	if err != nil {
		return nil, err
	}
	if _, none := v.(signature.NotPossible); none {
		u.o.Logger.Warn("No release authenticity verification is configured, all releases are considered unverified")
	}
	u.trust.mu.Lock()
	defer u.trust.mu.Unlock()
	u.trust.key, u.trust.verifier = key, v
	return v, nil
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

// trustRead bounds each read of what a verifier is made of.
const trustRead = 30 * time.Second

// trustKey tells verifiers apart: by the payload that has the keys, and by the
// objects that say how to get out of the cluster.
func (u *Updater) trustKey(ctx context.Context, payload string) (string, error) {
	key := payload
	for _, o := range []struct {
		gvk schema.GroupVersionKind
		key types.NamespacedName
	}{
		{configv1.GroupVersion.WithKind("Proxy"), clusterapi.Key("", "cluster")},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterapi.Key(signature.ConfigMapNamespace, "trusted-ca-bundle")},
	} {
		read, cancel := context.WithTimeout(ctx, trustRead)
		obj, err := u.o.API.Get(read, o.gvk, o.key)
		cancel()
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			key += " none"
		case err != nil:
			return "", err
		default:
			key += " " + string(obj.GetUID()) + "/" + obj.GetResourceVersion()
		}
	}
	return key, nil
}

// remembers is a verifier that keeps the signatures that it verified, by
// digest.
type remembers interface {
	Signatures() map[string][][]byte
}

// persister keeps in the cluster the signatures that verified a release; nil
// where the verifier does not remember them.
func (u *Updater) persister() *signature.Persister {
	if _, ok := u.o.Verifier.(remembers); u.o.Verifier != nil && !ok {
		return nil
	}
	return signature.NewPersister(signature.PersistOptions{
		API: u.o.API, Signatures: u.signatures, Recent: u.recent, Interval: 2 * u.o.Interval, FlushTimeout: lastWrite, Clock: u.o.Clock, Logger: u.o.Logger,
	})
}

func (u *Updater) signatures() map[string][][]byte {
	if r, ok := u.verifier().(remembers); ok {
		return r.Signatures()
	}
	return nil
}

// recent are the digests of signatures, the last success first, where the
// verifier tells their order.
func (u *Updater) recent() []string {
	if r, ok := u.verifier().(interface{ Recent() []string }); ok {
		return r.Recent()
	}
	return nil
}

// verifier is the one in use, nil before there is any.
func (u *Updater) verifier() signature.Verifier {
	if u.o.Verifier != nil {
		return u.o.Verifier
	}
	u.trust.mu.Lock()
	defer u.trust.mu.Unlock()
	return u.trust.verifier
}

// noteVerified takes note of a signature that was found.
func (u *Updater) noteVerified() {
	u.trust.mu.Lock()
	defer u.trust.mu.Unlock()
	u.trust.unsaved = true
}

// saveSignatures keeps in the cluster what a Sync verified. Failures are
// logged: the signatures can be found again.
func (u *Updater) saveSignatures(ctx context.Context) {
	u.trust.mu.Lock()
	unsaved := u.trust.unsaved
	u.trust.unsaved = false
	u.trust.mu.Unlock()
	if !unsaved {
		return
	}
	p := u.persister()
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	u.log("Unable to save signatures", p.Save(ctx))
}

// lastWrite is how long a write may take for which a caller that has ended
// everything waits.
const lastWrite = 2 * time.Second
