package reconcile

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// Objects is a cache of the objects of a kind: what watches show, and what calls
// of the process's own read and wrote, whichever is newer. So it runs ahead of
// Cache and Changed by one's own calls, but never shows a write whose answer was
// lost. What it hands out is shared. The zero value is an empty cache; it is safe
// for concurrent use.
type Objects struct {
	mu      sync.RWMutex
	known   map[types.NamespacedName]stored
	indexes []*Index
	// shown is the latest resourceVersion that a watch has shown.
	shown string
}

// Index finds objects by keys that they have.
type Index struct {
	objects *Objects
	of      func(*clusterapi.Object) []string
	found   map[string]*bucket
}

// bucket is the objects that have one key of an index, in order.
type bucket struct {
	objects []*clusterapi.Object
	lent    bool // a reader has the slice: the next change makes a copy
}

// Index returns an index by the keys that the function of returns for an object. It
// must be made before the first object is seen; of must not change its argument.
func (c *Objects) Index(of func(*clusterapi.Object) []string) *Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &Index{objects: c, of: of, found: make(map[string]*bucket)}
	c.indexes = append(c.indexes, x)
	return x
}

// Get returns an object, nil if absent.
func (c *Objects) Get(key types.NamespacedName) *clusterapi.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[key].object
}

// At returns the objects that have a key, by namespace and name. The slice must
// not be changed.
func (x *Index) At(key string) []*clusterapi.Object {
	x.objects.mu.Lock()
	defer x.objects.mu.Unlock()
	b := x.found[key]
	if b == nil {
		return nil
	}
	b.lent = true
	return b.objects
}

// Count returns how many objects have a key.
func (x *Index) Count(key string) int {
	x.objects.mu.RLock()
	defer x.objects.mu.RUnlock()
	if b := x.found[key]; b != nil {
		return len(b.objects)
	}
	return 0
}

// show takes in what a watch shows of an object; without an object: it was deleted,
// in its state old.
func (c *Objects) show(key types.NamespacedName, old, state stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown == "" || newer(state.version, c.shown) {
		c.shown = state.version
	}
	known := c.known[key]
	if state.object == nil && known.uid != old.uid && newer(known.version, old.version) {
		return // one of the same name followed it
	}
	c.set(key, known, state)
}

// has reports whether the cache has a version of an object.
func (c *Objects) has(key types.NamespacedName, version string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.known[key].version == version
}

// put takes in a state that a call returned. One that no watch has shown, though
// watches are past it, belongs to an object that was deleted.
func (c *Objects) put(key types.NamespacedName, state stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.known[key]
	if known.object == nil && c.shown != "" && !newer(state.version, c.shown) {
		return
	}
	c.set(key, known, state)
}

// set replaces one state of an object by a newer one. The lock is held.
func (c *Objects) set(key types.NamespacedName, known, state stored) {
	if state.object == known.object || state.object != nil && known.object != nil && newer(known.version, state.version) {
		return
	}
	if c.known == nil {
		c.known = make(map[types.NamespacedName]stored)
	}
	if state.object == nil {
		delete(c.known, key)
	} else {
		c.known[key] = state
	}
	for _, x := range c.indexes {
		x.replace(known.object, state.object)
	}
}

// replace replaces one state of an object by another; nil: there was or is none.
func (x *Index) replace(old, new *clusterapi.Object) {
	var had, has []string
	if old != nil {
		had = x.of(old)
	}
	if new != nil {
		has = x.of(new)
	}
	for _, key := range had {
		if !slices.Contains(has, key) {
			x.remove(key, old)
		}
	}
	for _, key := range has {
		x.insert(key, new)
	}
}

func (x *Index) insert(key string, o *clusterapi.Object) {
	b := x.found[key]
	if b == nil {
		b = new(bucket)
		x.found[key] = b
	}
	i, found := b.place(o)
	b.own()
	if found {
		b.objects[i] = o
	} else {
		b.objects = slices.Insert(b.objects, i, o)
	}
}

func (x *Index) remove(key string, o *clusterapi.Object) {
	b := x.found[key]
	if b == nil {
		return
	}
	if i, found := b.place(o); found {
		b.own()
		b.objects = slices.Delete(b.objects, i, i+1)
	}
	if len(b.objects) == 0 {
		delete(x.found, key)
	}
}

// own makes the slice one that no reader has.
func (b *bucket) own() {
	if b.lent {
		b.objects, b.lent = slices.Clone(b.objects), false
	}
}

// place is where an object is or would be.
func (b *bucket) place(o *clusterapi.Object) (int, bool) {
	return slices.BinarySearchFunc(b.objects, o.Key(), func(e *clusterapi.Object, key types.NamespacedName) int {
		return compareNames(e.Key(), key)
	})
}
