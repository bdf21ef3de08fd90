package simulation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
			p.statefulSets(), p.jobs(), p.scheduler(), p.kubelets(), p.budgets(), p.catalogs(), p.installations(),
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

	pods, nodes, budgetsKnown *cache

	podsOn    *index // by node; "" has those that wait for one
	podsOf    *index // by the UID of their controller
	podsIn    *index // by namespace, and by namespace and label
	load      *index // pods that take room, by node
	allNodes  *index // by ""
	budgetsIn *index // by namespace
}

func newProcess(c *Cluster, api clusterapi.ClusterAPI) *process {
	p := &process{c: c, api: api, pods: newCache(), nodes: newCache(), budgetsKnown: newCache()}
	one := func(s string) []string { return []string{s} }
	p.podsOn = p.pods.index(func(o *clusterapi.Object) []string { return one(nodeOf(o)) })
	p.podsOf = p.pods.index(func(o *clusterapi.Object) []string {
		if owner := controllerOf(o); owner != nil {
			return one(string(owner.UID))
		}
		return nil
	})
	p.podsIn = p.pods.index(placesOfPod)
	p.load = p.pods.index(func(o *clusterapi.Object) []string {
		if node := nodeOf(o); node != "" && takesRoom(o) {
			return one(node)
		}
		return nil
	})
	p.allNodes = p.nodes.index(func(*clusterapi.Object) []string { return one("") })
	p.budgetsIn = p.budgetsKnown.index(func(o *clusterapi.Object) []string { return one(o.Key().Namespace) })
	return p
}

// behaviour is one part of the cluster as a reconciler. None keeps what it
// could not find out again from the objects, apart from when a wait began.
type behaviour struct {
	name    string
	watches []reconcile.Watch
	// told says what to look at when the program told something of a part; nil:
	// the part.
	told func(part reconcile.Key) []reconcile.Wake
	// look does what is due for a key.
	look func(ctx context.Context, r reconcile.Request) (reconcile.Result, error)
}

// The names of the behaviours that the program can tell something.
const (
	partOperators     = "operators"
	partNodes         = "nodes"
	partPods          = "pods"
	partInstallations = "installations"
)

func (b *behaviour) Name() string { return b.name }

func (b *behaviour) Watches() []reconcile.Watch {
	switch b.name {
	case partOperators, partNodes, partPods, partInstallations:
		return append(slices.Clone(b.watches), b.watchTellings())
	}
	return b.watches
}

func (b *behaviour) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	return b.look(internal(ctx), r)
}

// watch is an interest in all objects of a kind.
func (p *process) watch(gvk schema.GroupVersionKind, changed func(old, new *clusterapi.Object) []reconcile.Wake) reconcile.Watch {
	w := reconcile.Watch{GVK: gvk, Changed: func(_ time.Time, old, new *clusterapi.Object) []reconcile.Wake { return changed(old, new) }}
	if c := p.cacheOf(gvk); c != nil {
		w.Fold = c.fold
	}
	return w
}

// itself wakes for the object that changed.
func itself(after time.Duration) func(old, new *clusterapi.Object) []reconcile.Wake {
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

// read returns an object that must not be changed, as stored and as a T; nil
// if there is none, or if it is being deleted.
func read[T any](ctx context.Context, p *process, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, *T, error) {
	o, err := clusterapi.GetShared(ctx, p.api, gvk, key)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil || o.Unstructured().GetDeletionTimestamp() != nil {
		return nil, nil, err
	}
	t, err := clusterapi.As[T](o)
	return o, t, err
}

// change writes the differences that f makes to an object, on condition that
// it is still as it was read; one that is gone is left at that. It returns the
// object as stored.
func change[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, p *process, o *clusterapi.Object, status bool, f func(P)) (*clusterapi.Object, error) {
	before, err := clusterapi.As[T](o)
	if err != nil {
		return nil, err
	}
	after := P(before).DeepCopyObject().(P)
	f(after)
	u := &unstructured.Unstructured{Object: o.Unstructured().Object}
	changed, err := clusterapi.Overlay(u, P(before), after, status)
	if err != nil || !changed {
		return o, err
	}
	return p.write(ctx, o, u, status)
}

// annotate sets annotations of an object, and deletes those without a value
// that keep does not name, as change does.
func (p *process) annotate(ctx context.Context, o *clusterapi.Object, values map[string]string, keep ...string) (*clusterapi.Object, error) {
	content := maps.Clone(o.Unstructured().Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = make(map[string]any)
	}
	for k, v := range values {
		if v == "" && !slices.Contains(keep, k) {
			delete(annotations, k)
		} else {
			annotations[k] = v
		}
	}
	metadata["annotations"], content["metadata"] = annotations, metadata
	return p.write(ctx, o, &unstructured.Unstructured{Object: content}, false)
}

// write stores u, the new form of o.
func (p *process) write(ctx context.Context, o *clusterapi.Object, u *unstructured.Unstructured, status bool) (*clusterapi.Object, error) {
	var stored *unstructured.Unstructured
	var err error
	if status {
		stored, err = p.api.UpdateStatus(ctx, u, update)
	} else {
		stored, err = p.api.Update(ctx, u, update)
	}
	switch {
	case apierrors.IsNotFound(err):
		return o, nil
	case apierrors.IsConflict(err):
		// What was decided from is old: the next attempt sees what is stored.
		if now, readErr := clusterapi.GetShared(ctx, p.api, o.Kind(), o.Key()); readErr == nil {
			p.know(now)
		}
		return nil, err
	case err != nil:
		return nil, err
	}
	return p.learn(ctx, stored), nil
}

// learn takes in what a write returned, and returns it as a shared object: the
// cluster's own where it has one, which others have converted or will.
func (p *process) learn(ctx context.Context, stored *unstructured.Unstructured) *clusterapi.Object {
	o := clusterapi.NewObject(stored)
	shared, err := clusterapi.GetShared(ctx, p.api, o.Kind(), o.Key())
	if err == nil && shared.ResourceVersion() == o.ResourceVersion() {
		o = shared
	}
	p.know(o)
	return o
}

// createTyped creates an object. One that is there already is no error.
func createTyped[T any](ctx context.Context, p *process, obj *T) error {
	u, err := clusterapi.ToUnstructured(obj)
	if err != nil {
		return err
	}
	return p.create(ctx, u)
}

func (p *process) create(ctx context.Context, u *unstructured.Unstructured) error {
	stored, err := p.api.Create(ctx, u, create)
	if apierrors.IsAlreadyExists(err) {
		if now, readErr := clusterapi.GetShared(ctx, p.api, u.GroupVersionKind(), clusterapi.KeyOf(u)); readErr == nil {
			p.know(now)
		}
		return nil
	}
	if err == nil {
		p.learn(ctx, stored)
	}
	return err
}

// remove asks for the deletion of an object.
func (p *process) remove(ctx context.Context, o *clusterapi.Object) error {
	err := p.api.Delete(ctx, o.Kind(), o.Key(), clusterapi.DeleteOptions{UID: o.UID()})
	if apierrors.IsConflict(err) {
		return nil // another one of its name, which was not meant
	}
	return ignoreNotFound(err)
}

// know takes an object in as it is stored.
func (p *process) know(o *clusterapi.Object) {
	if c := p.cacheOf(o.Kind()); c != nil {
		c.put(o)
	}
}

// cacheOf returns the cache of a kind, nil for kinds that have none.
func (p *process) cacheOf(gvk schema.GroupVersionKind) *cache {
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

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
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

// tellNamespace has the ConfigMaps by which the program tells the behaviours
// something of a part: that it has another fault, or that there is another
// release to expect.
const tellNamespace = "clusterupdate-simulation"

// tell makes a behaviour look at a part. Before the first behaviour begins there
// is nobody to be told.
func (c *Cluster) tell(behaviour string, part reconcile.Key) {
	if !c.begun.Load() {
		return
	}
	u := object(kindConfigMap, tellNamespace, strings.Join([]string{behaviour, part.Namespace, part.Name}, "."), map[string]any{
		"data": map[string]any{"behaviour": behaviour, "namespace": part.Namespace, "name": part.Name},
	})
	c.telling.Lock()
	defer c.telling.Unlock()
	// Both do what they do on any cluster: no fault of the API strikes them.
	_ = c.Remove(kindConfigMap, clusterapi.KeyOf(u))
	if err := c.Load(u); err != nil {
		c.logger.Warn("a behaviour of the simulated cluster could not be told", "behaviour", behaviour, "part", part, "error", err)
	}
}

// watchTellings wakes the behaviour for the parts that it is told of.
func (b *behaviour) watchTellings() reconcile.Watch {
	return reconcile.Watch{GVK: kindConfigMap, Options: clusterapi.ListOptions{Namespace: tellNamespace},
		Changed: func(_ time.Time, _, new *clusterapi.Object) []reconcile.Wake {
			if new == nil {
				return nil
			}
			data, _, _ := unstructured.NestedStringMap(new.Unstructured().Object, "data")
			if data["behaviour"] != b.name {
				return nil
			}
			part := reconcile.Key{Namespace: data["namespace"], Name: data["name"]}
			if b.told != nil {
				return b.told(part)
			}
			return []reconcile.Wake{{Key: part}}
		}}
}
