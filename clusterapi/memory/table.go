package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// entry is one stored state of an object. It is never changed; only what
// was found out about it is added.
type entry struct {
	obj *unstructured.Unstructured
	// managed is what obj says in metadata.managedFields, in the form that the
	// field managers need.
	managed []metav1.ManagedFieldsEntry
	// owned is what managed says, in the forms that writes need; nil when it was
	// not the cluster that said so.
	owned ownership
	// kind is what was known about the kind when the entry was stored; nil when
	// it was loaded, and may have fields that the kind does not.
	kind *kind
	// fits is another kind under which a write left the entry as it is.
	fits atomic.Pointer[kind]
	// applied remembers what an Apply would leave as it is.
	applied atomic.Pointer[[]application]
	// shared is obj for those who only look, made when the entry is stored, and
	// view what those get who ask for a version of its kind.
	shared *clusterapi.Object
	view   atomic.Pointer[view]
}

// view is an entry as a version of its kind shows it.
type view struct {
	kind   *kind
	object *clusterapi.Object
}

// isOf reports whether the entry is what k stores: all in it is known to k.
func (e *entry) isOf(k *kind) bool { return e.kind == k || e.fits.Load() == k }

// object returns what is stored, shared; nil for no entry.
func (e *entry) object() *clusterapi.Object {
	if e == nil {
		return nil
	}
	return e.shared
}

// shared returns an entry in the version of k, with the defaults that its
// definition has got since. Where neither changes it, that is the stored object
// itself.
func (c *Cluster) shared(k *kind, e *entry) *clusterapi.Object {
	if e.kind == k && k.defaults == nil && e.shared != nil {
		return e.shared
	}
	if v := e.view.Load(); v != nil && v.kind == k {
		return v.object
	}
	v := &view{k, e.shared}
	if v.object == nil { // the write that made it ended the object
		v.object = clusterapi.NewObject(e.obj)
	}
	if u := k.shown(e.obj); u != e.obj {
		v.object = c.checked(clusterapi.NewObject(u))
	}
	e.view.Store(v)
	return v.object
}

// with is the entry with another object, of the same owners.
func (e *entry) with(obj *unstructured.Unstructured) *entry {
	return &entry{obj: obj, managed: e.managed, owned: e.owned, kind: e.kind}
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
		return o.manager == a.manager && objects.Equal(o.content, a.content)
	})
}

// ref names an object in any table.
type ref struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// table holds the objects of one kind, of whichever version.
type table struct {
	spaces   map[string]*space                 // by namespace
	names    []string                          // of the namespaces, in order
	nodes    map[string][]types.NamespacedName // of pods: by spec.nodeName, in order; nil for other kinds
	count    int
	watchers map[*watcher]bool
}

// space holds the objects of one namespace.
type space struct {
	entries map[string]*entry
	names   []string // in order
}

func (c *Cluster) table(gk schema.GroupKind) *table {
	t := c.tables[gk]
	if t == nil {
		t = &table{spaces: make(map[string]*space), watchers: make(map[*watcher]bool)}
		if gk == podKind.GroupKind() {
			t.nodes = make(map[string][]types.NamespacedName)
		}
		c.tables[gk] = t
	}
	return t
}

// find returns an object, nil if absent. The lock is held.
func (c *Cluster) find(r ref) *entry { return c.tables[r.kind].get(r.key) }

func (t *table) get(key types.NamespacedName) *entry {
	if t == nil || t.spaces[key.Namespace] == nil {
		return nil
	}
	return t.spaces[key.Namespace].entries[key.Name]
}

// each visits the objects of a namespace (all, when empty) in the order of
// their keys, until visit returns false.
func (t *table) each(namespace string, visit func(types.NamespacedName, *entry) bool) {
	if t == nil {
		return
	}
	names := t.names
	if namespace != "" {
		names = []string{namespace}
	}
	for _, ns := range names {
		s := t.spaces[ns]
		if s == nil {
			continue
		}
		for _, name := range s.names {
			if !visit(types.NamespacedName{Namespace: ns, Name: name}, s.entries[name]) {
				return
			}
		}
	}
}

// selected visits those that the options select, in the order of their keys,
// until visit returns false. Of pods it looks only at those of the selected node.
func (t *table) selected(opts clusterapi.ListOptions, visit func(*entry) bool) {
	if t != nil && t.nodes != nil && opts.NodeName != "" {
		for _, key := range t.nodes[opts.NodeName] {
			if e := t.get(key); opts.Selects(e.obj) && !visit(e) {
				return
			}
		}
		return
	}
	t.each(opts.Namespace, func(_ types.NamespacedName, e *entry) bool {
		return !opts.Selects(e.obj) || visit(e)
	})
}

// set makes e what is stored under a key, nil for nothing.
func (t *table) set(key types.NamespacedName, old, e *entry) {
	s := t.spaces[key.Namespace]
	switch {
	case old == nil:
		if s == nil {
			s = &space{entries: make(map[string]*entry)}
			t.spaces[key.Namespace] = s
			t.names = insert(t.names, key.Namespace, strings.Compare)
		}
		s.entries[key.Name] = e
		s.names = insert(s.names, key.Name, strings.Compare)
		t.count++
	case e == nil:
		delete(s.entries, key.Name)
		s.names = remove(s.names, key.Name, strings.Compare)
		if len(s.names) == 0 {
			delete(t.spaces, key.Namespace)
			t.names = remove(t.names, key.Namespace, strings.Compare)
		}
		t.count--
	default:
		s.entries[key.Name] = e
	}
	if t.nodes == nil {
		return
	}
	before, after := nodeOf(old), nodeOf(e)
	if before == after {
		return
	}
	if before != "" {
		t.nodes[before] = remove(t.nodes[before], key, compareKeys)
		if len(t.nodes[before]) == 0 {
			delete(t.nodes, before)
		}
	}
	if after != "" {
		t.nodes[after] = insert(t.nodes[after], key, compareKeys)
	}
}

// nodeOf is the node that a pod is on, empty for none.
func nodeOf(e *entry) string {
	if e == nil {
		return ""
	}
	spec, _ := e.obj.Object["spec"].(map[string]any)
	name, _ := spec["nodeName"].(string)
	return name
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// insert adds v, which is not there, to a list in order.
func insert[T any](list []T, v T, compare func(a, b T) int) []T {
	i, _ := slices.BinarySearchFunc(list, v, compare)
	return slices.Insert(list, i, v)
}

// remove takes v, which is there, from a list in order.
func remove[T any](list []T, v T, compare func(a, b T) int) []T {
	i, _ := slices.BinarySearchFunc(list, v, compare)
	return slices.Delete(list, i, i+1)
}

// put stores an entry in place of old (nil for none), updates the indexes and
// notifies the watchers. The lock is held.
func (c *Cluster) put(r ref, old, e *entry) {
	c.store(r, old, e)
	c.tables[r.kind].notify(old, e, nil)
	c.tell(old, e, nil)
}

// store is put without telling anybody. The lock is held.
func (c *Cluster) store(r ref, old, e *entry) {
	e.shared = c.checked(old.object().Next(e.obj))
	t := c.table(r.kind)
	t.set(r.key, old, e)
	if old != nil {
		c.unlinkOwners(r, old.obj)
	} else if _, taken := c.uidIndex[e.obj.GetUID()]; !taken { // by the same object in another group, of a base
		c.uidIndex[e.obj.GetUID()] = r
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
}

// drop forgets an entry, updates the indexes and notifies the watchers, who see the
// last state that was stored. The lock is held.
func (c *Cluster) drop(r ref, old *entry) {
	t := c.tables[r.kind]
	t.set(r.key, old, nil)
	if uid := old.obj.GetUID(); c.uidIndex[uid] == r {
		delete(c.uidIndex, uid)
	}
	c.unlinkOwners(r, old.obj)
	if r.kind == definitionKind {
		c.indexDefinition(old, nil)
	}
	last := withMetadata(old.obj, func(m map[string]any) { m["resourceVersion"] = c.nextRevision() })
	t.notify(old, nil, last)
	c.tell(old, nil, last)
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

// metadata returns the object's metadata as it is, nil if it has none.
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
