package install

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterupdate/clusterupdate/olm"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// resolved is the last resolution of a namespace with what explains it. A pass in which the
// resolver would look at the same things takes it over. The zero value is ready to use, and
// safe for concurrent use.
type resolved struct {
	mu       sync.Mutex
	snapshot *olm.Snapshot // nil before the first
	g        *olm.Generation
	err      error // why the resolution failed
	heldBack map[string]heldBack
}

// resolve resolves a snapshot and explains what is held back, unless that is done already. A
// nil r keeps nothing.
func (r *resolved) resolve(
	ctx context.Context, s *olm.Snapshot, o olm.Options,
) (*olm.Generation, map[string]heldBack, error) {
	if r == nil {
		r = &resolved{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snapshot != nil && sameInput(r.snapshot, s) {
		return r.g, r.heldBack, r.err
	}
	g, err := olm.Resolve(ctx, *s, o)
	var held map[string]heldBack
	if err == nil {
		held = heldBackBy(ctx, g)
	}
	if ctx.Err() == nil {
		r.snapshot = s
		r.g = g
		r.err = err
		r.heldBack = held
	}
	return g, held, err
}

// sameInput reports whether a resolver would find two snapshots the same.
func sameInput(a, b *olm.Snapshot) bool {
	return a.Namespace == b.Namespace && a.GlobalNamespace == b.GlobalNamespace &&
		slices.EqualFunc(a.Catalogs, b.Catalogs, sameCatalog) &&
		slices.EqualFunc(a.Subscriptions, b.Subscriptions, sameSubscription) &&
		equality.Semantic.DeepEqual(a.Installed, b.Installed) &&
		equality.Semantic.DeepEqual(a.OperatorGroups, b.OperatorGroups)
}

func sameCatalog(a, b olm.SnapshotCatalog) bool {
	sameErr := a.Err == nil && b.Err == nil || a.Err != nil && b.Err != nil && a.Err.Error() == b.Err.Error()
	return a.Key == b.Key && a.Priority == b.Priority && a.Contents == b.Contents && sameErr
}

// sameSubscription compares all but what passes write without a resolver's looking at it.
func sameSubscription(a, b olmapi.Subscription) bool {
	for _, s := range []*olmapi.Subscription{&a, &b} {
		s.ResourceVersion = ""
		s.Status.Conditions = nil
		s.Status.CatalogHealth = nil
		s.Status.LastUpdated = metav1.Time{}
	}
	return equality.Semantic.DeepEqual(&a, &b)
}
