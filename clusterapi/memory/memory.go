package memory

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Options are the options of [New]. The zero value works.
type Options struct {
	// Clock gives creation times and those in managedFields; nil means the real
	// one. Nothing waits on it. If it is also a clock.WithDelayedExecution (as the
	// real one and a virtual driver's are), EstablishAfter takes effect by its
	// AfterFunc, else with the next verb.
	Clock clock.PassiveClock

	// Lenient accepts what an API server refuses: kinds that neither
	// Kubernetes has nor a stored CustomResourceDefinition serves, and objects
	// that break the rules of their kind. By default the former are an error
	// that meta.IsNoMatchError recognises, and the latter an Invalid or a
	// BadRequest one; see the package documentation for both.
	Lenient bool

	// EstablishAfter is the time from storing a CustomResourceDefinition until it
	// is Established and its kind is served. Zero means at once. A kind of which
	// objects are stored already stays served in the meantime.
	EstablishAfter time.Duration

	// CheckNamespaces refuses to create objects in a namespace that is not
	// stored, with an error that apierrors.IsNotFound recognises, and objects
	// of a namespaced kind that name none. By default namespaces need not
	// exist, and an empty one is as good as any.
	CheckNamespaces bool

	// GracefulPods makes the deletion of a pod that is on a node only set its
	// deletionTimestamp, as an API server does, until [Cluster.Remove] plays
	// the kubelet that ends it. By default pods end at once.
	GracefulPods bool

	// Base makes the cluster a fork: a copy of a live cluster, a recording, another
	// cluster in memory. Nil means an empty cluster. Nothing is ever written to Base.
	//
	// The first verb that touches a kind (Evict touches pods and budgets) reads it
	// whole from Base, with one List, as [Cluster.Load] would store it: UIDs stay,
	// resourceVersions are new. CustomResourceDefinitions and Namespaces are read
	// before any other kind. An error of that read is the verb's error, and the next
	// verb tries again. Watch and [Cluster.Follow] do not report what is read.
	//
	// If the read returns [clusterapi.ErrNotCollected] with a list, these objects
	// exist, and for others Get, List, Watch, Update, Delete and Evict return that
	// error; Create and Apply store an object as new. A kind that Base does not serve
	// has no objects. What went with a namespace, a definition or an owner that was
	// deleted in the fork goes when its kind is read; an owner of a kind that has not
	// been read counts as there.
	Base clusterapi.Reader

	// CheckShared makes [Cluster.CheckShared] find a caller that changes an object that
	// is shared. It keeps a copy of every state that was stored: it is for tests.
	CheckShared bool

	// Validate is called before a new state of an object is stored, with old
	// nil for a new object; an error refuses the write and is returned as it
	// is. It must not change or keep its arguments, and may be called several
	// times for one write. Nil enforces the rules that the definition of ClusterVersion
	// states over several fields, or those of the newest one if it is not stored.
	Validate func(old, new *unstructured.Unstructured) error

	// Intercept is called around each verb, when not nil. do carries the verb
	// out; Intercept may call it later, or not at all, or replace its error.
	// It is how tests inject faults, such as a third Apply of a Deployment that
	// times out. It may be called from several goroutines
	// at once.
	Intercept func(ctx context.Context, call Call, do func(context.Context) error) error
}

// Call is one call of a verb, as [Options].Intercept sees it.
type Call struct {
	// Verb is the name of the method: "Get", "List", "Create", "Apply",
	// "Update", "UpdateStatus", "Delete", "Evict" or "Watch".
	Verb string
	GVK  schema.GroupVersionKind
	// Key is the object; for List and Watch only the namespace, if one is
	// selected.
	Key types.NamespacedName
	// Object is what the caller passed, nil for verbs without one. It must not
	// be changed.
	Object *unstructured.Unstructured
}

// Cluster is an in-memory [clusterapi.ClusterAPI] and [clusterapi.Watcher]. It
// is safe for concurrent use.
type Cluster struct {
	o       Options
	clock   clock.PassiveClock
	waiting atomic.Int64 // definitions that may not be Established yet
	checks  checks
	fork    *fork // nil without a base

	// mu guards all below. What an entry holds never changes once it is in a
	// table, so entries are used without the lock.
	mu         sync.RWMutex
	revision   int64
	uids       int64
	tables     map[schema.GroupKind]*table
	crds       map[schema.GroupKind]*definition
	kinds      map[schema.GroupVersionKind]*kind // of CRDs and others
	uidIndex   map[types.UID]ref
	dependents map[types.UID]map[ref]bool // by UID of the owner
	ending     map[ref]bool               // namespaces that wait until they are empty
	cursors    []*cursor
}

var (
	_ clusterapi.ClusterAPI = (*Cluster)(nil)
	_ clusterapi.Watcher    = (*Cluster)(nil)
	_ clusterapi.Shared     = (*Cluster)(nil)
	_ clusterapi.Follower   = (*Cluster)(nil)
)

// New returns an empty cluster. It costs nothing: the schemas of the built-in
// kinds are read at their first use, once per process.
func New(o Options) *Cluster {
	c := &Cluster{
		o:          o,
		clock:      o.Clock,
		tables:     make(map[schema.GroupKind]*table),
		crds:       make(map[schema.GroupKind]*definition),
		kinds:      make(map[schema.GroupVersionKind]*kind),
		uidIndex:   make(map[types.UID]ref),
		dependents: make(map[types.UID]map[ref]bool),
		ending:     make(map[ref]bool),
	}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	if o.Base != nil {
		c.fork = newFork(o.Base)
	}
	if c.o.Validate == nil {
		c.o.Validate = c.validateClusterVersion
	}
	return c
}

// call runs one verb: the context first, then the interceptor around it.
func (c *Cluster) call(ctx context.Context, call Call, do func(context.Context) error) error {
	verb := func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.establish()
		return do(ctx)
	}
	if c.o.Intercept == nil {
		return verb(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.o.Intercept(ctx, call, verb)
}

// nextRevision returns a new resourceVersion. The lock is held.
func (c *Cluster) nextRevision() string {
	c.revision++
	return strconv.FormatInt(c.revision, 10)
}
