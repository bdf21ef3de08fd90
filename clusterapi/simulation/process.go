package simulation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// Process returns the behaviours of the cluster for a driver of package
// reconcile, such as [reconcile.NewVirtual] with c as its cluster. Use it or
// Run, not both at a time.
func (c *Cluster) Process() reconcile.Process {
	return reconcile.Process{Name: "cluster", New: func(api clusterapi.ClusterAPI) []reconcile.Reconciler {
		c.begun.Store(true)
		p := newProcess(c, api)
		var out []reconcile.Reconciler
		for _, b := range []*behaviour{
			p.operators(), p.rendering(), p.daemons(), p.deployments(), p.replicaSets(), p.daemonSets(),
			p.statefulSets(), p.jobs(), p.scheduler(), p.kubelets(), p.budgets(),
		} {
			out = append(out, b)
		}
		return out
	}}
}

// process is what the behaviours share from a start to the next one. It is a
// cache, but for when some waits began.
type process struct {
	c   *Cluster
	api clusterapi.ClusterAPI

	pods, nodes, budgetsKnown *reconcile.Objects

	podsOn    *reconcile.Index // by node; "" has those that wait for one
	podsOf    *reconcile.Index // by the UID of their controller
	podsIn    *reconcile.Index // by namespace, and by namespace and label
	load      *reconcile.Index // pods that take room, by node
	allNodes  *reconcile.Index // by ""
	budgetsIn *reconcile.Index // by namespace
}

func newProcess(c *Cluster, api clusterapi.ClusterAPI) *process {
	p := &process{
		c: c, api: api,
		pods: new(reconcile.Objects), nodes: new(reconcile.Objects), budgetsKnown: new(reconcile.Objects),
	}
	one := func(s string) []string { return []string{s} }
	p.podsOn = p.pods.Index(func(o *clusterapi.Object) []string { return one(nodeOf(o)) })
	p.podsOf = p.pods.Index(func(o *clusterapi.Object) []string {
		if owner := controllerOf(o); owner != nil {
			return one(string(owner.UID))
		}
		return nil
	})
	p.podsIn = p.pods.Index(placesOfPod)
	p.load = p.pods.Index(func(o *clusterapi.Object) []string {
		if node := nodeOf(o); node != "" && takesRoom(o) {
			return one(node)
		}
		return nil
	})
	p.allNodes = p.nodes.Index(func(*clusterapi.Object) []string { return one("") })
	p.budgetsIn = p.budgetsKnown.Index(func(o *clusterapi.Object) []string { return one(o.Key().Namespace) })
	return p
}

// behaviour is one part of the cluster as a reconciler. None keeps what it
// could not find out again from the objects, apart from when a wait began.
type behaviour struct {
	name    string
	watches []reconcile.Watch
	// onNotice describes what to look at when the program notified about a part;
	// nil: the part.
	onNotice func(part reconcile.Key) []reconcile.Wake
	// look does what is due for a key.
	look func(ctx context.Context, r reconcile.Request) (reconcile.Result, error)
}

// The names of the behaviours that the program can notify.
const (
	partOperators = "operators"
	partNodes     = "nodes"
	partPods      = "pods"
)

func (b *behaviour) Name() string { return b.name }

func (b *behaviour) Watches() []reconcile.Watch {
	switch b.name {
	case partOperators, partNodes, partPods:
		return append(slices.Clone(b.watches), b.watchNotices())
	}
	return b.watches
}

func (b *behaviour) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return b.look(internal(ctx), r)
}

// watch is an interest in all objects of a kind.
func (p *process) watch(gvk schema.GroupVersionKind, changed func(old, new *clusterapi.Object) []reconcile.Wake) reconcile.Watch {
	return reconcile.Watch{GVK: gvk, Objects: p.objectsOf(gvk), Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake {
		return changed(old, new)
	}}
}

// objectsOf returns the cache of a kind, nil for kinds that have none.
func (p *process) objectsOf(gvk schema.GroupVersionKind) *reconcile.Objects {
	switch gvk {
	case kindPod:
		return p.pods
	case kindNode:
		return p.nodes
	case kindBudget:
		return p.budgetsKnown
	}
	return nil
}

// unless wakes as wake does, but not for a change between two states of an object
// that are the same for the behaviour.
func unless(same func(old, new *clusterapi.Object) bool, wake func(old, new *clusterapi.Object) []reconcile.Wake) func(old, new *clusterapi.Object) []reconcile.Wake {
	return func(old, new *clusterapi.Object) []reconcile.Wake {
		if old != nil && new != nil && same(old, new) {
			return nil
		}
		return wake(old, new)
	}
}

// alike compares two states of an object by its type. States that do not have the
// type are not alike.
func alike[T any](same func(a, b *T) bool) func(old, new *clusterapi.Object) bool {
	return func(old, new *clusterapi.Object) bool {
		a, errA := clusterapi.As[T](old)
		b, errB := clusterapi.As[T](new)
		return errA == nil && errB == nil && same(a, b)
	}
}

// find returns the first element of a list that is wanted, nil if none is.
func find[E any](all []E, wanted func(*E) bool) *E {
	for i := range all {
		if wanted(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// wakeChanged wakes the key of the object that changed.
func wakeChanged(after time.Duration) func(old, new *clusterapi.Object) []reconcile.Wake {
	return func(old, new *clusterapi.Object) []reconcile.Wake {
		return []reconcile.Wake{{Key: keyOf(either(old, new)), After: after}}
	}
}

// itsController wakes for the controller of the object that changed, if it is
// of a kind.
func itsController(kind string) func(old, new *clusterapi.Object) []reconcile.Wake {
	return func(old, new *clusterapi.Object) []reconcile.Wake {
		o := either(old, new)
		if owner := controllerOf(o); owner != nil && owner.Kind == kind {
			return []reconcile.Wake{{Key: reconcile.Key{Namespace: o.Key().Namespace, Name: owner.Name}}}
		}
		return nil
	}
}

// either is the newer of two states of an object.
func either(old, new *clusterapi.Object) *clusterapi.Object {
	if new != nil {
		return new
	}
	return old
}

func keyOf(o *clusterapi.Object) reconcile.Key {
	key := o.Key()
	return reconcile.Key{Namespace: key.Namespace, Name: key.Name}
}

// named is the object that a key is about.
func named(k reconcile.Key) types.NamespacedName { return clusterapi.Key(k.Namespace, k.Name) }

// later is a result that looks again after a while; zero means not by itself.
func later(r reconcile.Request, after time.Duration) reconcile.Result {
	if after <= 0 {
		return reconcile.Result{}
	}
	return reconcile.Result{At: r.Now.Add(after)}
}

// controllerOf returns the controller that owns an object, nil without one.
func controllerOf(o *clusterapi.Object) *metav1.OwnerReference {
	if o.Kind() == kindPod {
		if pod, err := clusterapi.As[corev1.Pod](o); err == nil {
			return metav1.GetControllerOfNoCopy(pod)
		}
	}
	return metav1.GetControllerOf(o.Unstructured())
}

// since remembers when waits began that no object records.
type since map[string]time.Time

// remaining returns how much of d is left since key was first asked for; when
// nothing is left, key is forgotten.
func (s since) remaining(key string, d time.Duration, now time.Time) time.Duration {
	began, ok := s[key]
	if !ok {
		began = now
		s[key] = now
	}
	if left := began.Add(d).Sub(now); left > 0 {
		return left
	}
	delete(s, key)
	return 0
}
