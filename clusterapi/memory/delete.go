package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Delete implements [clusterapi.Writer]. What a garbage collector would do
// afterwards is done when Delete returns: dependents go with their last owner,
// the contents of a namespace with it, and the objects of a custom kind with
// its definition.
func (c *Cluster) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	return c.call(ctx, Call{Verb: "Delete", GVK: gvk, Key: key}, func(ctx context.Context) error {
		k, err := c.touch(ctx, gvk)
		if err != nil {
			return err
		}
		switch opts.Propagation {
		case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		default:
			return apierrors.NewBadRequest("unknown propagation policy " + string(opts.Propagation))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		e := c.find(k.ref(key))
		if e == nil {
			return c.notFound(k, key)
		}
		if err := preconditions(k, e, opts.UID, opts.ResourceVersion); err != nil {
			return err
		}
		c.delete(k.ref(key), opts.Propagation, c.grace(e, opts.GracePeriodSeconds))
		return nil
	})
}

// Remove ends an object at once, whatever finalizers or grace it has: what a
// kubelet does with a pod whose containers have stopped. Dependents go as in
// Delete. An API server has no such verb, so it is not intercepted. An object
// that does not exist is an error that apierrors.IsNotFound recognises; further
// errors are those of [Options].Base.
func (c *Cluster) Remove(gvk schema.GroupVersionKind, key types.NamespacedName) error {
	k, err := c.touch(context.Background(), gvk)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(k.ref(key))
	if e == nil {
		return c.notFound(k, key)
	}
	c.remove(k.ref(key), e)
	return nil
}

// grace is the time in seconds that a pod gets to end; zero for all else.
func (c *Cluster) grace(e *entry, override *int64) int64 {
	if !c.o.GracefulPods || e.obj.GetKind() != "Pod" || e.obj.GetAPIVersion() != "v1" {
		return 0
	}
	if node, _, _ := unstructured.NestedString(e.obj.Object, "spec", "nodeName"); node == "" {
		return 0
	}
	if phase, _, _ := unstructured.NestedString(e.obj.Object, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if override != nil {
		return *override
	}
	if own, ok, _ := unstructured.NestedInt64(e.obj.Object, "spec", "terminationGracePeriodSeconds"); ok {
		return own
	}
	return 30
}

// delete removes an object, or marks it as being deleted while something holds
// it. The lock is held.
func (c *Cluster) delete(r ref, propagation metav1.DeletionPropagation, grace int64) {
	e := c.find(r)
	if e == nil {
		return
	}
	c.fork.begins(r, e, propagation)
	hold := ""
	switch propagation {
	case metav1.DeletePropagationOrphan:
		c.orphan(e.obj.GetUID())
		e = c.find(r)
	case metav1.DeletePropagationForeground:
		hold = metav1.FinalizerDeleteDependents
	}
	ends := (r.kind == namespaceKind || r.kind == definitionKind) && !c.ending[r]
	if ends {
		c.ending[r] = true
	}
	waited := c.waits(r)
	e = c.mark(r, e, hold, grace)
	if hold != "" && !waited { // else this has been done, or a circle is closed
		for _, d := range c.dependentsOf(e.obj.GetUID()) {
			c.deleteDependent(d, e.obj.GetUID())
		}
	}
	if ends {
		for _, content := range c.contents(r, e) {
			c.delete(content, metav1.DeletePropagationBackground, c.graceOf(content))
		}
	}
	c.settle(r)
}

// deleteDependent is what becomes of a dependent when its owner is deleted in
// the foreground: it goes in the foreground, too, unless it has another owner
// that stays.
func (c *Cluster) deleteDependent(d ref, owner types.UID) {
	e := c.find(d)
	if e == nil {
		return
	}
	for _, uid := range ownerUIDs(e.obj) {
		if o, exists := c.uidIndex[uid]; exists && uid != owner && !c.waits(o) || c.fork.mayOwn(e.obj, owner) {
			c.release(d, owner, false)
			return
		}
	}
	if slices.ContainsFunc(c.dependentsOf(e.obj.GetUID()), c.waits) {
		c.unblock(d) // owners in a circle would wait for one another
	}
	c.delete(d, metav1.DeletePropagationForeground, c.graceOf(d))
}

// waits reports whether an object that is being deleted waits for its dependents.
func (c *Cluster) waits(r ref) bool {
	e := c.find(r)
	return e != nil && metadata(e.obj)["deletionTimestamp"] != nil &&
		slices.Contains(e.obj.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// unblock lets the owners of a dependent go before it.
func (c *Cluster) unblock(d ref) {
	c.changeOwners(d, func(owners []any) []any {
		for i, o := range owners {
			if m, ok := o.(map[string]any); ok && m["blockOwnerDeletion"] == true {
				m = maps.Clone(m)
				m["blockOwnerDeletion"] = false
				owners[i] = m
			}
		}
		return owners
	})
}

func (c *Cluster) graceOf(r ref) int64 {
	if e := c.find(r); e != nil {
		return c.grace(e, nil)
	}
	return 0
}

// mark sets the deletionTimestamp, once, and a finalizer.
func (c *Cluster) mark(r ref, e *entry, finalizer string, grace int64) *entry {
	m := metadata(e.obj)
	finalizers := e.obj.GetFinalizers()
	marked := m["deletionTimestamp"] != nil
	held := finalizer == "" || slices.Contains(finalizers, finalizer)
	oldGrace, _ := m["deletionGracePeriodSeconds"].(int64)
	if marked && held && grace >= oldGrace {
		return e
	}
	if !marked && held && len(finalizers) == 0 && grace == 0 && !c.ending[r] {
		// Nothing holds it, so no watcher needs to see it marked.
		c.remove(r, e)
		return e
	}
	obj := withMetadata(e.obj, func(m map[string]any) {
		if !marked {
			m["deletionTimestamp"] = c.clock.Now().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
			if generation, ok := m["generation"].(int64); ok {
				m["generation"] = generation + 1
			}
		}
		if !marked || grace < oldGrace {
			m["deletionGracePeriodSeconds"] = grace
		}
		if !held {
			old, _ := m["finalizers"].([]any)
			m["finalizers"] = append(slices.Clip(old), finalizer)
		}
		m["resourceVersion"] = c.nextRevision()
	})
	if r.kind == namespaceKind {
		obj.Object["status"] = map[string]any{"phase": "Terminating"}
	}
	next := e.with(obj)
	c.put(r, e, next)
	return next
}

// settle removes an object that is being deleted once nothing holds it: no
// dependent that blocks a foreground deletion, no content, no finalizer.
func (c *Cluster) settle(r ref) {
	e := c.find(r)
	if e == nil || metadata(e.obj)["deletionTimestamp"] == nil {
		return
	}
	if slices.Contains(e.obj.GetFinalizers(), metav1.FinalizerDeleteDependents) && !c.blocked(e.obj.GetUID()) {
		obj := withMetadata(e.obj, func(m map[string]any) {
			var rest []any
			for _, f := range e.obj.GetFinalizers() {
				if f != metav1.FinalizerDeleteDependents {
					rest = append(rest, f)
				}
			}
			m["finalizers"] = rest
			if len(rest) == 0 {
				delete(m, "finalizers")
			}
			m["resourceVersion"] = c.nextRevision()
		})
		next := e.with(obj)
		if finished(obj) && !c.ending[r] {
			c.remove(r, e)
			return
		}
		c.put(r, e, next)
		e = next
	}
	if finished(e.obj) && (!c.ending[r] || !c.hasContents(r, e)) {
		c.remove(r, e)
	}
}

// blocked reports whether a dependent keeps its owner from going.
func (c *Cluster) blocked(owner types.UID) bool {
	for d := range c.dependents[owner] { // in any order: one is enough
		owners, _ := metadata(c.find(d).obj)["ownerReferences"].([]any)
		for _, o := range owners {
			if m, ok := o.(map[string]any); ok && m["uid"] == string(owner) && m["blockOwnerDeletion"] == true {
				return true
			}
		}
	}
	return false
}

// hasContents reports whether a namespace, or a defined kind, has any. It does not
// visit them: it is asked for each that goes.
func (c *Cluster) hasContents(r ref, e *entry) bool {
	if r.kind == definitionKind {
		d := readDefinition(e.obj)
		if d == nil || c.tables[d.gk] == nil {
			return false
		}
		own := 0
		if d.gk == definitionKind {
			own = 1
		}
		return c.tables[d.gk].count > own
	}
	for _, t := range c.tables {
		if t.spaces[r.key.Name] != nil {
			return true
		}
	}
	return false
}

// contents are the objects in a namespace, or of a defined kind.
func (c *Cluster) contents(r ref, e *entry) []ref {
	var out []ref
	collect := func(gk schema.GroupKind, namespace string) {
		c.tables[gk].each(namespace, func(key types.NamespacedName, _ *entry) bool {
			if content := (ref{gk, key}); content != r {
				out = append(out, content)
			}
			return true
		})
	}
	if r.kind == definitionKind {
		if d := readDefinition(e.obj); d != nil {
			collect(d.gk, "")
		}
		return out
	}
	for _, gk := range slices.SortedFunc(maps.Keys(c.tables), compareKinds) {
		collect(gk, r.key.Name)
	}
	return out
}

// remove takes an object away, and what goes with it. The lock is held.
func (c *Cluster) remove(r ref, e *entry) {
	delete(c.ending, r)
	def := c.crds[r.kind]
	c.drop(r, e)
	c.fork.ends(r, e)
	uid := e.obj.GetUID()
	for _, d := range c.dependentsOf(uid) {
		c.release(d, uid, true)
	}
	for _, owner := range ownerUIDs(e.obj) {
		if o, ok := c.uidIndex[owner]; ok {
			c.settle(o)
		}
	}
	// Only what held it may be waiting for it.
	if ns := (ref{namespaceKind, types.NamespacedName{Name: r.key.Namespace}}); r.key.Namespace != "" && c.ending[ns] {
		c.settle(ns)
	}
	if def != nil {
		if d := (ref{definitionKind, types.NamespacedName{Name: def.obj.GetName()}}); c.ending[d] {
			c.settle(d)
		}
	}
}

// orphan makes the dependents of an object independent of it.
func (c *Cluster) orphan(uid types.UID) {
	for _, d := range c.dependentsOf(uid) {
		c.release(d, uid, false)
	}
}

// release takes an owner from a dependent. Where collect is set, and it was
// the last owner that exists, the dependent goes too.
func (c *Cluster) release(d ref, owner types.UID, collect bool) {
	e := c.find(d)
	if e == nil {
		return
	}
	if collect && !slices.ContainsFunc(ownerUIDs(e.obj), func(uid types.UID) bool {
		_, exists := c.uidIndex[uid]
		return exists && uid != owner
	}) && !c.fork.mayOwn(e.obj, owner) {
		c.delete(d, metav1.DeletePropagationBackground, c.graceOf(d))
		return
	}
	c.changeOwners(d, func(owners []any) []any {
		return slices.DeleteFunc(owners, func(o any) bool {
			ref, _ := o.(map[string]any)
			return ref["uid"] == string(owner)
		})
	})
}

// changeOwners stores an object with other owner references. change gets its own
// list.
func (c *Cluster) changeOwners(r ref, change func([]any) []any) {
	e := c.find(r)
	obj := withMetadata(e.obj, func(m map[string]any) {
		owners, _ := m["ownerReferences"].([]any)
		owners = change(slices.Clone(owners))
		if len(owners) > 0 {
			m["ownerReferences"] = owners
		} else {
			delete(m, "ownerReferences")
		}
		m["resourceVersion"] = c.nextRevision()
	})
	c.put(r, e, e.with(obj))
}

// dependentsOf lists them in a fixed order.
func (c *Cluster) dependentsOf(uid types.UID) []ref {
	return slices.SortedFunc(maps.Keys(c.dependents[uid]), compareRefs)
}

func compareRefs(a, b ref) int {
	return cmp.Or(compareKinds(a.kind, b.kind), compareKeys(a.key, b.key))
}
