package mcp

import (
	"slices"
	"time"
)

// drainQueue orders the attempts to fulfil nodes' drain requests. A node that
// is queued while an attempt for it runs is attempted again at once after
// that: this is why attempts follow each other back to back at first, since
// cordoning a node is a change that queues it.
type drainQueue struct {
	due     dueQueue        // to be queued at a time
	waiting []string        // queued, in order
	dirty   map[string]bool // queued, or to be queued when the attempt ends
	running map[string]bool
	// began is when each node's drain began, as far as this run knows.
	began    map[string]time.Time
	failures map[string]int // errors in a row, other than of the drain itself
}

func newDrainQueue() drainQueue {
	return drainQueue{
		due:      dueQueue{},
		dirty:    map[string]bool{},
		running:  map[string]bool{},
		began:    map[string]time.Time{},
		failures: map[string]int{},
	}
}

// add queues a node at a time; an earlier time that it waits for stands.
func (q *drainQueue) add(node string, at time.Time) { q.due.add(node, at) }

// wake queues what is due.
func (q *drainQueue) wake(now time.Time) {
	for _, node := range q.due.take(now) {
		if q.dirty[node] {
			continue
		}
		q.dirty[node] = true
		if !q.running[node] {
			q.waiting = append(q.waiting, node)
		}
	}
}

// start takes the next node, unless so many run already.
func (q *drainQueue) start(workers int) (node string, ok bool) {
	if len(q.waiting) == 0 || len(q.running) >= workers {
		return "", false
	}
	node, q.waiting = q.waiting[0], q.waiting[1:]
	delete(q.dirty, node)
	q.running[node] = true
	return node, true
}

// over ends the attempt for a node.
func (q *drainQueue) over(node string) {
	delete(q.running, node)
	if q.dirty[node] {
		q.waiting = append(q.waiting, node)
	}
}

// forget drops a node that is gone.
func (q *drainQueue) forget(node string) {
	delete(q.due, node)
	delete(q.began, node)
	delete(q.failures, node)
	delete(q.dirty, node)
	q.waiting = slices.DeleteFunc(q.waiting, func(n string) bool { return n == node })
}
