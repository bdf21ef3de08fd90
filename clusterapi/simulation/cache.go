package simulation

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// cache is what a process knows of the objects of one kind: what its watches
// told and what its own writes returned, whichever is newer. What it hands out
// is shared and in order of namespace and name. It is safe for concurrent use.
type cache struct {
	mu      sync.RWMutex
	objects map[types.NamespacedName]*clusterapi.Object
	indexes []*index
}

// index finds objects by something that they have.
type index struct {
	cache *cache
	of    func(*clusterapi.Object) []string
	found map[string]*bucket
}

// bucket is the objects that have one key of an index, in order.
type bucket struct {
	objects []*clusterapi.Object
	lent    bool // a reader has the slice: the next change makes another one
}

func newCache() *cache { return &cache{objects: make(map[types.NamespacedName]*clusterapi.Object)} }

// index makes an index. Make all before the first object comes.
func (c *cache) index(of func(*clusterapi.Object) []string) *index {
	x := &index{cache: c, of: of, found: make(map[string]*bucket)}
	c.indexes = append(c.indexes, x)
	return x
}

// update takes a change in. One that is older than what is known is dropped.
func (c *cache) update(_ time.Time, old, new *clusterapi.Object) {
	if new != nil {
		c.put(new)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.objects[old.Key()]
	if known == nil || known.UID() != old.UID() && newer(known, old) {
		return
	}
	c.set(known, nil)
}

// put takes in an object as it is stored.
func (c *cache) put(o *clusterapi.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.objects[o.Key()]
	if known == o || known != nil && newer(known, o) {
		return
	}
	c.set(known, o)
}

// set replaces one state of an object by another. The lock is held.
func (c *cache) set(old, new *clusterapi.Object) {
	if new == nil {
		delete(c.objects, old.Key())
	} else {
		c.objects[new.Key()] = new
	}
	for _, x := range c.indexes {
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
}

func (x *index) insert(key string, o *clusterapi.Object) {
	b := x.found[key]
	if b == nil {
		b = new(bucket)
		x.found[key] = b
	}
	i, found := place(b.objects, o)
	b.own()
	if found {
		b.objects[i] = o
	} else {
		b.objects = slices.Insert(b.objects, i, o)
	}
}

func (x *index) remove(key string, o *clusterapi.Object) {
	b := x.found[key]
	if b == nil {
		return
	}
	if i, found := place(b.objects, o); found {
		b.own()
		b.objects = slices.Delete(b.objects, i, i+1)
	}
	if len(b.objects) == 0 {
		delete(x.found, key)
	}
}

// own makes the slice one that nobody reads.
func (b *bucket) own() {
	if b.lent {
		b.objects, b.lent = slices.Clone(b.objects), false
	}
}

// place is where an object stands or would stand.
func place(all []*clusterapi.Object, o *clusterapi.Object) (int, bool) {
	return slices.BinarySearchFunc(all, o.Key(), func(e *clusterapi.Object, key types.NamespacedName) int {
		k := e.Key()
		return cmp.Or(cmp.Compare(k.Namespace, key.Namespace), cmp.Compare(k.Name, key.Name))
	})
}

// get returns an object, nil if there is none.
func (c *cache) get(key types.NamespacedName) *clusterapi.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.objects[key]
}

// at returns the objects that have key. The slice must not be changed.
func (x *index) at(key string) []*clusterapi.Object {
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	b := x.found[key]
	if b == nil {
		return nil
	}
	b.lent = true
	return b.objects
}

// count returns how many objects have key.
func (x *index) count(key string) int {
	x.cache.mu.RLock()
	defer x.cache.mu.RUnlock()
	if b := x.found[key]; b != nil {
		return len(b.objects)
	}
	return 0
}

// newer says whether a is a later state than b, of an object or of its successor
// of the same name.
func newer(a, b *clusterapi.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion(), b.ResourceVersion())
	return err == nil && order > 0
}
