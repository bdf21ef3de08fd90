package olm

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
)

// Snapshot is everything that a resolution of one namespace looks at. It is
// not changed, and may be used for any number of resolutions at once.
type Snapshot struct {
	// Namespace is the namespace to be resolved.
	Namespace string

	// GlobalNamespace is the namespace whose catalogs are visible everywhere,
	// unless the OperatorGroup excludes them. Empty if absent.
	GlobalNamespace string

	Subscriptions  []olmapi.Subscription          // of the namespace, in any order
	Installed      []olmapi.ClusterServiceVersion // of the namespace, in any order; copies are ignored
	OperatorGroups []olmapi.OperatorGroup         // of the namespace

	// Catalogs are the catalogs of the cluster, in any order; those that the
	// namespace does not see are ignored.
	Catalogs []SnapshotCatalog
}

// SnapshotCatalog is one catalog of a [Snapshot].
type SnapshotCatalog struct {
	Key      types.NamespacedName // of its CatalogSource
	Priority int                  // higher is preferred; may be negative
	Contents *Contents            // nil with Err, else whole
	Err      error                // why the catalog cannot be read, nil if it can
}

// Options change how [Resolve] decides. The zero value holds back what cannot
// be satisfied and updates the rest, with the complete search.
type Options struct {
	// AllOrNothing makes any Subscription or installed operator that cannot be
	// satisfied the failure of the whole namespace, as OLM does today.
	AllOrNothing bool

	// TolerateUnusedCatalogs makes an unreadable catalog a warning where no
	// Subscription refers to it. Otherwise it fails the resolution.
	TolerateUnusedCatalogs bool

	// MaxConflicts bounds the search for each Subscription and each requirement:
	// how many contradictions it may meet. If it meets more, it gives up on what it
	// looked for, takes the best that it found before and continues; the [HeldBack]
	// has a *LimitError. With AllOrNothing the resolution fails with the
	// *LimitError. 0 means 10,000; a negative number is an error.
	MaxConflicts int

	// CEL evaluates cel constraints. Nil: a bundle that has one cannot be read.
	CEL CELEvaluator
}

// defaultMaxConflicts is the number of contradictions after which a search gives
// up on a Subscription or a requirement unless [Options.MaxConflicts] says
// otherwise. Most take none at all; this many take a fraction of a second.
const defaultMaxConflicts = 10_000

// Resolve decides the next generation of a namespace: what stays, what is
// updated, what is added, and what is held back. It depends on its arguments
// alone; the same arguments give the same generation.
//
// Errors: one that wraps [ErrSnapshot]; one about a negative option; a
// [*Prevented] if the question could not be answered; with AllOrNothing, a
// [*NotSatisfiable] or a [*LimitError]; the context's error. With any of them
// nothing is to be changed.
func Resolve(ctx context.Context, s Snapshot, o Options) (*Generation, error) {
	p, err := newProblem(s, o)
	if err != nil {
		return nil, err
	}
	found := &search{} // if nobody asks for anything
	if len(p.requests) > 0 {
		var ok bool
		found, ok, err = runSearch(ctx, p)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, p.conflict(ctx)
		}
	}
	g := p.generation(found)
	if err := g.check(); err != nil {
		return nil, err
	}
	return g, nil
}
