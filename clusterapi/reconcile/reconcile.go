package reconcile

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Key names one thing that a [Reconciler] looks at. Kind is the reconciler's own
// word and may be empty if there is only one kind of thing.
type Key struct{ Kind, Namespace, Name string }

// String is "Kind namespace/name", without the parts that are empty.
func (k Key) String() string {
	s := k.Kind
	if s != "" && (k.Namespace != "" || k.Name != "") {
		s += " "
	}
	if k.Namespace != "" {
		s += k.Namespace + "/"
	}
	return s + k.Name
}

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Wake asks for a look at a key, after a delay. Of several wakes of one key the
// earliest counts.
type Wake struct {
	// Reconciler is the name of a reconciler of the same process; empty means
	// the one that returns the wake. A name that the process does not have is
	// an error of the key.
	Reconciler string
	Key        Key
	After      time.Duration
}

// Reconciler makes one kind of thing true. It is level-triggered: Reconcile
// looks at what is, not at what happened, and what it keeps between calls is a
// cache that a new instance can do without.
//
// The driver never calls two of its methods and functions (Changed, Report,
// Done and Reconcile) at a time, unless it is [Concurrent].
type Reconciler interface {
	// Name distinguishes it in its process, and names it in events.
	Name() string
	// Watches are the objects that it depends on at all times. It is called
	// once. No key is looked at before all of them have been listed.
	Watches() []Watch
	// Reconcile does what is due for one key and returns. It may call the
	// cluster's API, and nothing else that takes time: it waits by returning.
	// An error is tried again with a growing delay; waits and retries that the
	// subject knows are results instead.
	Reconcile(ctx context.Context, r Request) (Result, error)
}

// Concurrent is optional: a [Reconciler] that has it is called for up to Workers
// different keys at a time, also while a Changed, Report or Done runs (those
// still come one at a time). One key is never looked at twice at a time.
type Concurrent interface {
	Workers() int
}

// Lister is optional: a [Reconciler] that has it is woken for all its keys when
// its watches have been listed, and again at each resync. Keys is called like
// Changed is: never twice at a time, so a Lister need not be safe for concurrent
// use.
type Lister interface {
	Keys() []Key
}

// Request is what a [Reconciler] is asked for.
type Request struct {
	Key Key
	// Now is the time. Reconcilers have no other clock.
	Now time.Time
	// Rand is for jitter. It is valid during the call only.
	Rand *rand.Rand
}

// Result says when and why to look at a key again. It replaces the key's
// earlier one as a whole. With an error it is ignored, and the earlier one
// stays in effect.
type Result struct {
	// At is when to look again. Zero: when woken; in the past: now. The
	// earlier of At and a wake counts.
	At time.Time
	// Wake are other keys to look at.
	Wake []Wake
	// Jobs is the work that takes time. A job runs while the key's latest
	// Result names it; it is cancelled when one does not.
	Jobs []Job
	// Watches are further ones, in effect while the key's latest Result names them.
	// Two are the same if kind and options are; the functions of the first stay.
	// They hold up no look: what they list arrives as changes.
	Watches []Watch
}

// Watch is an interest in objects.
type Watch struct {
	GVK schema.GroupVersionKind
	// Options select; Limit is ignored.
	Options clusterapi.ListOptions
	// Trim returns what is kept of an object, for kinds that are large. It
	// must not change its argument. nil keeps all. It is called once for each
	// state of an object and each Watch, but for those with the same Objects.
	Trim func(*unstructured.Unstructured) *unstructured.Unstructured
	// Objects is filled with what is kept of the objects; their names must be.
	// Watches that name the same one have the same kind, options and Trim. nil
	// fills nothing.
	Objects *Objects
	// Cache takes a change into a cache of one's own, for state that is derived
	// from objects and read by several reconcilers. Every Cache of a process sees a
	// change before any Changed does. It may run while reconcilers work, so the
	// cache needs its own lock; and it must be quick. nil caches nothing.
	Cache func(now time.Time, old, new *clusterapi.Object)
	// Changed describes what to look at after a change. old is nil for an object
	// that is new to the watch, new for one that was deleted. Both are shared and
	// must not be changed; they may be the same, and changes in quick succession
	// may arrive as one. nil wakes nothing.
	Changed func(now time.Time, old, new *clusterapi.Object) []Wake
}

// Job is work that runs while its reconciler makes other looks: downloads,
// signatures, HTTP, hooks. A job of the same key and ID is not started again while
// the key's Results name it, also after it has ended.
type Job struct {
	// ID distinguishes jobs of a key. It must be comparable.
	ID any
	// Limit is the time that the job may take; zero means no limit.
	Limit time.Duration
	// Run does the work. It must return soon when ctx ends. It waits with
	// [Sleep] and in no other way, or no driver could play it in virtual time.
	// report hands intermediate results to Report; it may be nil-safe called
	// any number of times. A panic is an error.
	Run func(ctx context.Context, report func(any)) (any, error)
	// Report and Done are called like Changed is: with what Run reported, and
	// with what it returned. Neither is called once the job is cancelled. A nil
	// Report drops reports; a nil Done wakes the key.
	Report func(any) []Wake
	Done   func(any, error) []Wake
}

// Process is a set of reconcilers that live and crash together. They may share
// state.
type Process struct {
	// Name distinguishes processes; it names them in events.
	Name string
	// New makes the reconcilers. All their calls must go through api, to which
	// the driver adds deadlines, or faults. A driver calls New once, and again
	// after a simulated crash; nothing of an earlier call may be kept.
	New func(api clusterapi.ClusterAPI) []Reconciler
}
