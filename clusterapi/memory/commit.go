package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// write stores what compute makes of the stored object (nil: none). compute runs
// without the lock, so that it delays no writer, and again if another writer was faster. A state that differs in nothing is not stored; compute
// may return nil for it.
func (c *Cluster) write(k *kind, in *unstructured.Unstructured, compute func(live *entry) (*record, error)) (*entry, error) {
	r := k.ref(clusterapi.KeyOf(in))
	for {
		c.mu.RLock()
		live := c.find(r)
		c.mu.RUnlock()
		next, err := compute(live)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return live, nil
		}
		e, err := c.finish(k, live, next)
		if err != nil {
			return nil, err
		}
		if e == live {
			return live, nil
		}
		var old *unstructured.Unstructured
		if live != nil {
			old = live.obj
		}
		if err := c.o.Validate(old, e.obj); err != nil {
			return nil, err
		}
		if done, err := c.commit(r, live, e); done || err != nil {
			return e, err
		}
	}
}

// systemFields are the metadata that only the cluster itself changes.
var systemFields = []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"}

// keepSystemFields makes them those of the stored object, none without one.
func keepSystemFields(m map[string]any, live *entry) {
	for _, name := range systemFields {
		delete(m, name)
		if live != nil {
			if v, ok := metadata(live.obj)[name]; ok {
				m[name] = v
			}
		}
	}
}

// finish completes a new state. It returns live itself when the two differ in
// nothing but the times in managedFields. All but resourceVersion and uid is
// then final.
func (c *Cluster) finish(k *kind, live *entry, next *record) (*entry, error) {
	obj := withMetadata(next.Unstructured, func(m map[string]any) {
		keepSystemFields(m, live)
		delete(m, "selfLink")
		delete(m, "managedFields")
		if live != nil {
			return
		}
		m["creationTimestamp"] = c.clock.Now().UTC().Format(time.RFC3339)
		if k.counts {
			m["generation"] = int64(1)
		}
	})
	m, _ := dropNulls(metadata(obj)).(map[string]any)
	obj.Object["metadata"] = m
	obj.SetGroupVersionKind(k.gvk)

	unmoved := live != nil && sameManagers(live.managed, next.managed)
	if live != nil {
		stored := inVersion(live.obj, k.gvk.GroupVersion())
		if unmoved {
			setOrDelete(m, "managedFields", metadata(stored))
		}
		contentSame, specSame := compare(k, stored.Object, obj.Object)
		if contentSame && unmoved {
			if live.kind != k {
				live.fits.Store(k)
			}
			return live, nil
		}
		if generation, ok := m["generation"].(int64); ok && k.counts && !specSame && !next.statusOnly {
			m["generation"] = generation + 1
		}
		if err := noNewFinalizers(k, live.obj, obj); err != nil {
			return nil, err
		}
		if !c.o.Lenient {
			if err := k.judge(stored, obj, next.statusOnly); err != nil {
				return nil, err
			}
		}
		if k.gvk.GroupKind() == definitionKind && !specSame {
			obj.Object["status"] = definitionStatus(obj, c.clock.Now(), hasCondition(obj, "Established"))
		}
	} else if k.gvk.GroupKind() == definitionKind {
		obj.Object["status"] = definitionStatus(obj, c.clock.Now(), c.o.EstablishAfter <= 0)
	}
	if live == nil && !c.o.Lenient {
		if err := k.judge(nil, obj, false); err != nil {
			return nil, err
		}
	}
	e := &entry{obj: obj, managed: next.managed, kind: k}
	if next.statusOnly && live.isOf(k) {
		e.applied.Store(live.applied.Load())
	}
	if unmoved {
		e.managed, e.owned = live.managed, live.owned
		return e, nil
	}
	encoded, err := encodeManaged(e, live, next)
	if err != nil {
		return nil, err
	}
	if len(encoded) > 0 {
		m["managedFields"] = encoded
	}
	return e, nil
}

var deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// compare reports whether two states are the same, managedFields apart, and whether
// they are so in what the generation counts.
func compare(k *kind, old, new map[string]any) (content, counted bool) {
	content, counted = true, true
	for _, fields := range []map[string]any{old, new} {
		for name := range fields {
			if name == "metadata" || objects.Equal(old[name], new[name]) {
				if _, in := old[name]; in == has(new, name) {
					continue
				}
			}
			content = false
			if name != "metadata" && (name != "status" || !k.status) {
				counted = false
			}
		}
	}
	om, _ := old["metadata"].(map[string]any)
	nm, _ := new["metadata"].(map[string]any)
	for _, fields := range []map[string]any{om, nm} {
		for name := range fields {
			if name != "managedFields" && !objects.Equal(om[name], nm[name]) {
				content = false
				if name == "annotations" && k.gvk.GroupKind() == deploymentKind {
					counted = false // the API server counts these for Deployments alone
				}
			}
		}
	}
	return content, counted
}

func has(m map[string]any, name string) bool {
	_, ok := m[name]
	return ok
}

func noNewFinalizers(k *kind, old, new *unstructured.Unstructured) error {
	if old.GetDeletionTimestamp() == nil {
		return nil
	}
	for _, f := range new.GetFinalizers() {
		if !slices.Contains(old.GetFinalizers(), f) {
			return invalid(k, old.GetName(), field.Forbidden(field.NewPath("metadata", "finalizers"),
				fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers []string{%q}", f)))
		}
	}
	return nil
}

// commit stores e if the stored object is still live. The entry gets its uid
// and resourceVersion here, before anybody else sees it.
func (c *Cluster) commit(r ref, live, e *entry) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(r) != live {
		return false, nil
	}
	m := metadata(e.obj)
	if live == nil {
		if err := c.namespaceTakes(r); err != nil {
			return false, err
		}
		if _, ok := m["uid"]; !ok {
			m["uid"] = c.newUID()
		}
	}
	if live != nil && finished(e.obj) && !c.ending[r] {
		c.remove(r, live)
		return true, nil
	}
	m["resourceVersion"] = c.nextRevision()
	c.put(r, live, e)
	c.settle(r)
	return true, nil
}

// finished reports whether nothing holds an object that is being deleted.
func finished(obj *unstructured.Unstructured) bool {
	m := metadata(obj)
	if m["deletionTimestamp"] == nil {
		return false
	}
	finalizers, _ := m["finalizers"].([]any)
	grace, _ := m["deletionGracePeriodSeconds"].(int64)
	return len(finalizers) == 0 && grace == 0
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// namespaceTakes explains why a namespace takes no new object. The lock is held.
func (c *Cluster) namespaceTakes(r ref) error {
	if r.key.Namespace == "" {
		return nil
	}
	ns := c.find(ref{namespaceKind, types.NamespacedName{Name: r.key.Namespace}})
	resource := schema.GroupResource{Resource: "namespaces"}
	switch {
	case ns == nil && c.o.CheckNamespaces && c.unknown(ref{namespaceKind, types.NamespacedName{Name: r.key.Namespace}}) == nil:
		return apierrors.NewNotFound(resource, r.key.Namespace)
	case ns != nil && metadata(ns.obj)["deletionTimestamp"] != nil:
		return apierrors.NewForbidden(schema.GroupResource{Group: r.kind.Group, Resource: strings.ToLower(r.kind.Kind)}, r.key.Name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.key.Namespace))
	}
	return nil
}

// newUID returns the next UID; they are numbered, so that runs are alike. The
// lock is held.
func (c *Cluster) newUID() string {
	variant := int64(uidVariant)
	if c.fork != nil {
		variant += c.fork.generation
	}
	for {
		c.uids++
		uid := fmt.Sprintf("%s%04x-%012x", uidPrefix, variant, c.uids)
		if _, taken := c.uidIndex[types.UID(uid)]; !taken { // by an object that was loaded
			return uid
		}
	}
}

// A UID starts with these: a fork counts the latter up, so that its UIDs are not
// those of objects that it has not read yet.
const (
	uidPrefix  = "00000000-0000-4000-"
	uidVariant = 0x8000
)

// suffix completes a generateName.
func (c *Cluster) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // without vowels, as on an API server
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uids++
	out := []byte("bbbbb")
	for i, n := len(out)-1, c.uids; i >= 0; i-- {
		out[i] = letters[n%int64(len(letters))]
		n /= int64(len(letters))
	}
	return string(out)
}

// place checks and settles the namespace of an object for its kind.
func (c *Cluster) place(k *kind, in *unstructured.Unstructured) error {
	m := metadata(in)
	if m == nil {
		return apierrors.NewBadRequest(k.gvk.Kind + " has no metadata")
	}
	switch {
	case k.scope == scopeCluster:
		delete(m, "namespace")
	case k.scope == scopeNamespaced && in.GetNamespace() == "" && c.o.CheckNamespaces:
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q: a namespace is required", k.gvk.Kind, in.GetName()))
	}
	return nil
}

// actor is who writes, as managedFields name it.
type actor struct {
	manager     string
	operation   metav1.ManagedFieldsOperationType
	subresource string
}

// replace passes a replacement through a field manager, which finds out what
// fields it changed. live is nil for a new object.
func (c *Cluster) replace(k *kind, subresource string, live *entry, next *unstructured.Unstructured, manager string) (*record, error) {
	manager = cmp.Or(manager, clusterapi.ManagerDefault)
	from := newRecord(k.gvk)
	if live != nil {
		from = k.record(live)
	}
	to := &record{Unstructured: next}
	if given, ok := metadata(next)["managedFields"].([]any); ok {
		if live != nil && objects.Equal(given, metadata(live.obj)["managedFields"]) {
			to.managed = live.managed
		} else {
			to.given = true
			to.managed = next.GetManagedFields()
			if to.managed == nil {
				to.managed = []metav1.ManagedFieldsEntry{} // asks to forget who owns what
			}
		}
	}
	keepSystemFields(metadata(next), live) // or the writer would own what it has no say in
	who := actor{manager, metav1.ManagedFieldsOperationUpdate, subresource}
	if !to.given {
		if managed, owned, ok := k.owners(live, from.Object, next.Object, who); ok {
			to.managed, to.owned, to.statusOnly = managed, owned, subresource != ""
			stamp(to, live, c.clock.Now(), who)
			return to, nil
		}
	}
	fm := k.main
	if subresource != "" {
		fm = k.sub
	}
	updated, err := fm.Update(from, to, manager)
	if err != nil && k.custom != nil && !c.o.Lenient {
		var old *unstructured.Unstructured
		if live != nil {
			old = from.Unstructured
		}
		if invalid := k.judge(old, next, subresource != ""); invalid != nil {
			return nil, invalid // as a server says it, which validates first
		}
	}
	if err != nil {
		return nil, badRequest(err)
	}
	r, ok := updated.(*record)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", updated)
	}
	r.statusOnly, r.given = subresource != "", to.given
	stamp(r, live, c.clock.Now(), who)
	return r, nil
}

// stamp corrects the times in managed fields, which the field managers take
// from the machine's clock: the entry of the writer has the present time, and the rest
// keep theirs.
func stamp(r *record, live *entry, now time.Time, who actor) {
	at := metav1.NewTime(now.UTC().Truncate(time.Second))
	for i := range r.managed {
		e := &r.managed[i]
		if r.given && (actor{e.Manager, e.Operation, e.Subresource}) != who {
			continue // as the writer has it
		}
		e.Time = &at
		if live == nil || (actor{e.Manager, e.Operation, e.Subresource}) == who {
			continue
		}
		for j := range live.managed {
			old := &live.managed[j]
			if old.Manager == e.Manager && old.Operation == e.Operation && old.Subresource == e.Subresource && old.APIVersion == e.APIVersion {
				e.Time = old.Time
			}
		}
	}
	slices.SortStableFunc(r.managed, func(a, b metav1.ManagedFieldsEntry) int {
		if c := strings.Compare(string(a.Operation), string(b.Operation)); c != 0 {
			return c
		}
		if a.Time != nil && b.Time != nil && !a.Time.Equal(b.Time) {
			return a.Time.Compare(b.Time.Time)
		}
		return strings.Compare(a.Manager+"\x00"+a.APIVersion+"\x00"+a.Subresource, b.Manager+"\x00"+b.APIVersion+"\x00"+b.Subresource)
	})
}
