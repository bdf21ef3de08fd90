package memory

import "github.com/clusterupdate/clusterupdate/clusterapi"

// cursor is what Follow returns: the changes that it has not handed on yet.
type cursor struct {
	c       *Cluster
	waiting []clusterapi.Change
}

// Follow implements [clusterapi.Follower]. Changes wait in the cursor until
// they are taken or it is closed; there is no goroutine.
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
	if x.waiting = x.waiting[1:]; len(x.waiting) == 0 {
		x.waiting = nil
	}
	return first, true
}

// Close implements [clusterapi.Cursor].
func (x *cursor) Close() {
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.waiting = nil
	for i, o := range x.c.cursors {
		if o == x {
			x.c.cursors = append(x.c.cursors[:i:i], x.c.cursors[i+1:]...)
			break
		}
	}
}

// record hands a change to the cursors. The lock is held.
func (c *Cluster) record(old, new *clusterapi.Object) {
	for _, x := range c.cursors {
		x.waiting = append(x.waiting, clusterapi.Change{Old: old, New: new})
	}
}

// object returns what an entry holds, shared. The lock is held.
func (e *entry) object() *clusterapi.Object {
	if e == nil {
		return nil
	}
	if e.shared == nil {
		e.shared = clusterapi.NewObject(e.obj)
	}
	return e.shared
}
