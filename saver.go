package clusterupdate

import (
	"context"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
	"github.com/clusterupdate/clusterupdate/signature"
	"github.com/clusterupdate/clusterupdate/signature/cluster"
)

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

// saving begins to keep what was verified until now; done is how that ended.
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
