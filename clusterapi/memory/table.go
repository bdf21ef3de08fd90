package memory

import (
	"maps"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// entry is one stored state of an object. It is never changed; only what
// was found out about it is added.
type entry struct {
	obj *unstructured.Unstructured
	// managed is what obj says in metadata.managedFields, in the form that the
	// field managers need.
	managed []metav1.ManagedFieldsEntry
	// kind is what was known about the kind when the entry was stored; nil when
	// it was loaded, and may have fields that the kind does not.
	kind *kind
	// applied remembers what an Apply would leave as it is.
	applied atomic.Pointer[[]application]
	// shared is obj for those who only look, and view what those get who ask
	// for a kind. Both are made when first asked for.
	shared atomic.Pointer[clusterapi.Object]
	view   atomic.Pointer[view]
}

// view is an entry as a version of its kind shows it.
type view struct {
	kind   *kind
	object *clusterapi.Object
}

// object returns what is stored, shared; nil for no entry.
func (e *entry) object() *clusterapi.Object {
	if e == nil {
		return nil
	}
	if o := e.shared.Load(); o != nil {
		return o
	}
	e.shared.CompareAndSwap(nil, clusterapi.NewObject(e.obj))
	return e.shared.Load()
}

// shared returns an entry in the version of k, with the defaults that its
// definition has got meanwhile. Where neither changes it, that is the stored
// object itself.
func (k *kind) shared(e *entry) *clusterapi.Object {
	if v := e.view.Load(); v != nil && v.kind == k {
		return v.object
	}
	v := &view{k, e.object()}
	if u := k.shown(e.obj); u != e.obj {
		v.object = clusterapi.NewObject(u)
	}
	e.view.Store(v)
	return v.object
}

// application is an Apply whose result is the entry that holds it: to apply
// the same again in the same name changes nothing.
type application struct {
	manager string
	content map[string]any
}

func (e *entry) remember(a application) {
	list := []application{a}
	if old := e.applied.Load(); old != nil {
		list = append(list, slices.DeleteFunc(slices.Clone(*old), func(o application) bool { return o.manager == a.manager })...)
	}
	e.applied.Store(&list)
}

func (e *entry) isResultOf(a application) bool {
	list := e.applied.Load()
	return list != nil && slices.ContainsFunc(*list, func(o application) bool {
		return o.manager == a.manager && equal(o.content, a.content)
	})
}

// ref names an object in any table.
type ref struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// table holds the objects of one kind, of whichever version.
type table struct {
	namespaces map[string]map[string]*entry
	count      int
	watchers   map[*watcher]bool
}

func (c *Cluster) table(gk schema.GroupKind) *table {
	t := c.tables[gk]
	if t == nil {
		t = &table{namespaces: make(map[string]map[string]*entry), watchers: make(map[*watcher]bool)}
		c.tables[gk] = t
	}
	return t
}

// find returns an object, nil where there is none. The lock is held.
func (c *Cluster) find(r ref) *entry {
	t := c.tables[r.kind]
	if t == nil {
		return nil
	}
	return t.namespaces[r.key.Namespace][r.key.Name]
}

// each visits the objects of a namespace (all, when empty) in the order of
// their keys, until visit returns false.
func (t *table) each(namespace string, visit func(types.NamespacedName, *entry) bool) {
	if t == nil {
		return
	}
	names := []string{namespace}
	if namespace == "" {
		names = slices.Sorted(maps.Keys(t.namespaces))
	}
	for _, ns := range names {
		objects := t.namespaces[ns]
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !visit(types.NamespacedName{Namespace: ns, Name: name}, objects[name]) {
				return
			}
		}
	}
}

// put stores an entry in place of old (nil for none), keeps the indexes and
// tells the watchers. The lock is held.
func (c *Cluster) put(r ref, old, e *entry) {
	t := c.table(r.kind)
	if t.namespaces[r.key.Namespace] == nil {
		t.namespaces[r.key.Namespace] = make(map[string]*entry)
	}
	t.namespaces[r.key.Namespace][r.key.Name] = e
	if old == nil {
		t.count++
		c.uidIndex[e.obj.GetUID()] = r
	} else {
		c.unlinkOwners(r, old.obj)
	}
	for _, uid := range ownerUIDs(e.obj) {
		if c.dependents[uid] == nil {
			c.dependents[uid] = make(map[ref]bool)
		}
		c.dependents[uid][r] = true
	}
	if r.kind == definitionKind {
		c.indexDefinition(old, e)
	}
	t.notify(old, e, nil)
	c.tell(old.object(), e.object())
}

// drop forgets an entry, keeps the indexes and tells the watchers, who see the
// last state that was stored. The lock is held.
func (c *Cluster) drop(r ref, old *entry) {
	t := c.tables[r.kind]
	delete(t.namespaces[r.key.Namespace], r.key.Name)
	if len(t.namespaces[r.key.Namespace]) == 0 {
		delete(t.namespaces, r.key.Namespace)
	}
	t.count--
	delete(c.uidIndex, old.obj.GetUID())
	c.unlinkOwners(r, old.obj)
	if r.kind == definitionKind {
		c.indexDefinition(old, nil)
	}
	last := withMetadata(old.obj, func(m map[string]any) { m["resourceVersion"] = c.nextRevision() })
	t.notify(old, nil, last)
	c.tell(clusterapi.NewObject(last), nil)
}

func (c *Cluster) unlinkOwners(r ref, obj *unstructured.Unstructured) {
	for _, uid := range ownerUIDs(obj) {
		delete(c.dependents[uid], r)
		if len(c.dependents[uid]) == 0 {
			delete(c.dependents, uid)
		}
	}
}

// ownerUIDs reads metadata.ownerReferences without converting them.
func ownerUIDs(obj *unstructured.Unstructured) []types.UID {
	refs, _ := metadata(obj)["ownerReferences"].([]any)
	var uids []types.UID
	for _, o := range refs {
		if m, ok := o.(map[string]any); ok {
			if uid, ok := m["uid"].(string); ok && uid != "" {
				uids = append(uids, types.UID(uid))
			}
		}
	}
	return uids
}

// metadata returns the object's metadata as it is, nil where it has none.
func metadata(obj *unstructured.Unstructured) map[string]any {
	m, _ := obj.Object["metadata"].(map[string]any)
	return m
}

// withMetadata returns a copy that shares all but the metadata, changed by f.
func withMetadata(obj *unstructured.Unstructured, f func(map[string]any)) *unstructured.Unstructured {
	content := maps.Clone(obj.Object)
	m := maps.Clone(metadata(obj))
	if m == nil {
		m = make(map[string]any)
	}
	f(m)
	content["metadata"] = m
	return &unstructured.Unstructured{Object: content}
}
