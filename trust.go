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
func (c *core) payloadVerifier(ctx context.Context, r *loadRequest) (signature.Verifier, error) {
	payload, err := c.runningPayload(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("the running release's signature keys: %w", err)
	}
	// Which of the payload's manifests count depends on the feature gates.
	key, err := c.trustKey(ctx, payload.Release.Image+" "+r.gates.key())
	if err != nil {
		return nil, err
	}
	if v := c.trust.made(key); v != nil {
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
	o := cluster.ConfigOptions{Options: signature.Options{Clock: c.o.Clock, Identity: c.o.Identity}, Reader: c.o.API}
	if o.HTTP, err = cluster.ClusterHTTP(ctx, c.o.API); err != nil {
		return nil, err
	}
	v, err := cluster.FromManifests(sources, o)
	if err != nil {
		return nil, err
	}
	if _, none := v.(signature.NotPossible); none {
		c.o.Logger.Warn("No release authenticity verification is configured, all releases are considered unverified")
	}
	c.trust.mu.Lock()
	defer c.trust.mu.Unlock()
	if c.trust.unsaved {
		if r, ok := c.trust.verifier.(remembers); ok { // nobody else can save them
			c.trust.earlier = r.Signatures()
		}
	}
	c.trust.key, c.trust.verifier = key, v
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
func (c *core) trustKey(ctx context.Context, payload string) (string, error) {
	key := payload
	for _, o := range []struct {
		gvk schema.GroupVersionKind
		key types.NamespacedName
	}{
		{configv1.GroupVersion.WithKind("Proxy"), clusterapi.Key("", "cluster")},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), clusterapi.Key(cluster.ConfigMapNamespace, "trusted-ca-bundle")},
	} {
		read, cancel := context.WithTimeout(ctx, trustRead)
		obj, err := c.o.API.Get(read, o.gvk, o.key)
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
