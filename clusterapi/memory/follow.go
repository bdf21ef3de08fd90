package memory

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// cursor is what Follow returns: the changes that it has not handed on yet.
type cursor struct {
	c       *Cluster
	waiting []clusterapi.Change
}

// Follow implements [clusterapi.Follower]. Every change of every kind arrives, in
// the order in which they took place; each Old is the New of the change before, so
// what was converted stays so. Changes wait in the cursor until they are taken or
// it is closed. It uses no goroutine, and the cluster keeps changes only for open
// cursors.
//
// Objects have the version in which they are stored, without defaults that their
// definition got later; the versions of a kind differ in nothing but apiVersion. Of
// a deleted object, Old is its last state with its own resourceVersion, as in the
// Deleted event of a Watch.
func (c *Cluster) Follow() clusterapi.Cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &cursor{c: c}
	c.cursors = append(c.cursors, x)
	return x
}

// Next implements [clusterapi.Cursor].
func (x *cursor) Next() (clusterapi.Change, bool) {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if len(x.waiting) == 0 {
		return clusterapi.Change{}, false
	}
	first := x.waiting[0]
	x.waiting[0] = clusterapi.Change{}
	x.waiting = x.waiting[1:]
	if len(x.waiting) == 0 {
		x.waiting = nil
	}
	return first, true
}

// Close implements [clusterapi.Cursor].
func (x *cursor) Close() {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.waiting = nil
	x.c.cursors = slices.DeleteFunc(x.c.cursors, func(o *cursor) bool { return o == x })
}

// tell hands a change to the cursors: see notify. The lock is held.
func (c *Cluster) tell(old, e *entry, last *unstructured.Unstructured) {
	if len(c.cursors) == 0 {
		return
	}
	change := clusterapi.Change{Old: old.object(), New: e.object()}
	if e == nil {
		change.Old = c.checked(clusterapi.NewObject(last))
	}
	for _, x := range c.cursors {
		x.waiting = append(x.waiting, change)
	}
}
