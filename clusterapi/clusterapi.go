package clusterapi

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterAPI is a whole cluster, as an embedder supplies it. Packages of this
// module ask for the smallest part that they use.
//
// A backend must be safe for concurrent use. Objects that it returns belong to
// the caller; objects passed to it are neither kept nor changed. Every verb
// returns promptly with the context's error when its context ends.
//
// Three answers to "is it there?" must stay apart, since decisions hang on
// them: an object that does not exist is an error that apierrors.IsNotFound
// recognises; a kind that the cluster does not serve is one that
// meta.IsNoMatchError recognises; a kind that a recording does not contain is
// [ErrNotCollected]. Other failures keep their apierrors type; context may be
// added with %w only.
//
// Numbers in objects are int64 where they have no fraction, else float64, as
// k8s.io/apimachinery/pkg/util/json decodes them: with encoding/json alone they
// would all be float64, which typed access and server-side apply refuse.
type ClusterAPI interface {
	Reader
	Writer
	Evictor
}

// Reader reads objects. It is safe for concurrent use.
type Reader interface {
	// Get returns the object, or an error that apierrors.IsNotFound
	// recognises. A backend that answers with a nil object and no error makes
	// callers panic.
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)

	// List returns all matching objects, sorted by namespace, then name. A backend
	// that pages does so internally: a truncated list would make callers act on
	// objects that are merely on the next page. A recording that has some of the
	// objects, or none, and knows that it lacks others, returns those together with
	// [ErrNotCollected]; all other errors are returned alone.
	List(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) (*unstructured.UnstructuredList, error)
}

// Writer changes objects. Each verb returns the object as stored. An object that
// does not exist is an error that apierrors.IsNotFound recognises; one that the
// server refuses has the type that apierrors gives it (Invalid, Forbidden, ...).
// A Writer is safe for concurrent use.
type Writer interface {
	// Create stores a new object. It fails with an error that
	// apierrors.IsAlreadyExists recognises if there is one.
	Create(ctx context.Context, obj *unstructured.Unstructured, opts CreateOptions) (*unstructured.Unstructured, error)

	// Apply makes the fields that obj names true and leaves the others alone:
	// a forced server-side apply in the name of opts.FieldManager, which is
	// required. Fields that an earlier Apply of the same manager set, and that
	// obj no longer names, are given up. An Apply that changes nothing must
	// not move the resourceVersion, or every reconciliation becomes a write. A
	// value of another type than the field of the kind has is an error.
	Apply(ctx context.Context, obj *unstructured.Unstructured, opts ApplyOptions) (*unstructured.Unstructured, error)

	// Update replaces an object and leaves its status alone where the kind has
	// that subresource. obj without a resourceVersion is an error in every
	// backend; a stale one is an error that apierrors.IsConflict recognises. A
	// backend that accepted either would lose other writers' changes.
	Update(ctx context.Context, obj *unstructured.Unstructured, opts UpdateOptions) (*unstructured.Unstructured, error)

	// UpdateStatus replaces the status and leaves all else alone. The rules
	// and errors for the resourceVersion are those of Update.
	UpdateStatus(ctx context.Context, obj *unstructured.Unstructured, opts UpdateOptions) (*unstructured.Unstructured, error)

	// Delete removes an object, or only marks it with a deletionTimestamp
	// while it has finalizers, as the API server does. A precondition in opts
	// that does not hold is an error that apierrors.IsConflict recognises.
	Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts DeleteOptions) error
}

// Evictor asks a pod to leave its node. It is safe for concurrent use.
type Evictor interface {
	// Evict honours PodDisruptionBudgets. An error that apierrors.IsTooManyRequests
	// recognises means "not now, try again"; a backend that deletes the pod anyway
	// breaks workloads.
	Evict(ctx context.Context, pod types.NamespacedName, opts EvictOptions) error
}

// Watcher is optional: a [ClusterAPI] that has it drives waits by events
// instead of polls. Find it by type assertion. It is safe for concurrent use.
type Watcher interface {
	// Watch yields the matching objects that exist (Added), then one Synced
	// mark, then every change in order. Resuming after an expired watch is the
	// backend's business: it lists again and yields the differences. The
	// sequence ends without an error when ctx ends or the consumer stops, else
	// with the error that ended it, as its last pair.
	Watch(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) iter.Seq2[WatchEvent, error]
}

// WatchEvent is one change that a [Watcher] reports.
type WatchEvent struct {
	Type WatchEventType
	// Object is the object after the change; for Deleted its last known state;
	// nil for Synced.
	Object *unstructured.Unstructured
}

// WatchEventType describes what happened to an object.
type WatchEventType string

// The types of a [WatchEvent].
const (
	Added    WatchEventType = "Added"
	Modified WatchEventType = "Modified"
	Deleted  WatchEventType = "Deleted"
	// Synced comes once, when all objects that existed have been yielded.
	Synced WatchEventType = "Synced"
)

// ListOptions restricts List and Watch. The zero value selects everything.
type ListOptions struct {
	// Namespace restricts to one namespace; empty means all.
	Namespace string
	// Labels selects by labels; nil means all.
	Labels labels.Selector
	// NodeName selects pods by spec.nodeName; empty means all.
	NodeName string
	// Limit is the largest number of objects to accept; more are a
	// [*LimitError]. Zero means no limit. Watch ignores it.
	Limit int
}

// Selects reports whether the options select an object of the right kind. Limit
// does not matter, and labels that are not strings are not there.
func (o ListOptions) Selects(u *unstructured.Unstructured) bool {
	m, _ := u.Object["metadata"].(map[string]any)
	if o.Namespace != "" && m["namespace"] != o.Namespace {
		return false
	}
	if o.Labels != nil && !o.Labels.Matches(labelsOf(m)) {
		return false
	}
	spec, _ := u.Object["spec"].(map[string]any)
	return o.NodeName == "" || spec["nodeName"] == o.NodeName
}

// labelsOf presents the labels in metadata without copying them.
type labelsOf map[string]any

func (l labelsOf) Lookup(label string) (string, bool) {
	all, _ := l["labels"].(map[string]any)
	v, ok := all[label].(string)
	return v, ok
}

func (l labelsOf) Has(label string) bool {
	_, ok := l.Lookup(label)
	return ok
}

func (l labelsOf) Get(label string) string {
	v, _ := l.Lookup(label)
	return v
}

// CreateOptions are the options of Create.
type CreateOptions struct {
	// FieldManager owns the fields; empty means [ManagerDefault].
	FieldManager string
}

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	// FieldManager owns the fields; required. A second Apply by the same
	// manager that names fewer fields gives the others up, so two features
	// never share one: use the constants of this package.
	FieldManager string
}

// UpdateOptions are the options of Update and UpdateStatus.
type UpdateOptions struct {
	// FieldManager owns the changed fields; empty means [ManagerDefault].
	FieldManager string
}

// DeleteOptions are the options of Delete. A UID or ResourceVersion that the
// stored object does not have is an error that apierrors.IsConflict
// recognises.
type DeleteOptions struct {
	UID             types.UID
	ResourceVersion string
	// Propagation describes what becomes of dependents; empty means background.
	Propagation metav1.DeletionPropagation
	// GracePeriodSeconds overrides a pod's own; nil leaves it. With 0 the object is
	// gone at once, even if its containers still run.
	GracePeriodSeconds *int64
}

// EvictOptions are the options of Evict.
type EvictOptions struct {
	// UID makes the eviction conditional on the pod's identity; empty means
	// any pod of that name.
	UID types.UID
	// GracePeriodSeconds overrides the pod's own; nil leaves it.
	GracePeriodSeconds *int64
}

// Constants of all packages.
const (
	// Field managers, one per purpose: see [ApplyOptions.FieldManager].
	ManagerDefault = "clusterupdate"
	ManagerPayload = "clusterupdate-payload" // manifests of a release
	ManagerStatus  = "clusterupdate-status"  // status of ClusterVersion
	ManagerRollout = "clusterupdate-rollout" // nodes and machine config pools
	ManagerPolicy  = "clusterupdate-policy"  // UpgradeConfigs
	ManagerOLM     = "clusterupdate-olm"     // subscriptions and their results

	// AnnotationPrefix starts every annotation and label of this module.
	AnnotationPrefix = "clusterupdate.github.io/"

	// DefaultRetries is the number of retries of [Modify].
	DefaultRetries = 5
)
