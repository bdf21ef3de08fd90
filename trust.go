package clusterupdate

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

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

// noteVerified takes note of a signature that was found.
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
