package reconcile

import (
	"container/heap"
	"time"
)

// queue holds what is due, the first at its front. It is not safe for concurrent use.
type queue struct {
	items items
	order uint64
	// draw draws the order of items of the same time; nil keeps the order of put.
	draw func() uint64
	// depth is the depth of the item that runs; see [item].
	depth int
	// changed is called after each put. nil is not called.
	changed func()
}

// item is something to run at a time. The zero value is in no queue.
type item struct {
	at    time.Time
	order uint64 // among the items of one time
	place int    // 1 + the index in the heap; 0 outside
	// depth counts the items of one time of which each made the next one due.
	depth int
	run   func()
}

// put makes i due at a time, or now if that has passed.
func (q *queue) put(i *item, at, now time.Time) {
	q.remove(i)
	i.at, i.depth = at, 0
	if !at.After(now) {
		i.at, i.depth = now, q.depth+1
	}
	q.order++
	i.order = q.order
	if q.draw != nil {
		i.order = q.draw()
	}
	heap.Push(&q.items, i)
	if q.changed != nil {
		q.changed()
	}
}

func (q *queue) remove(i *item) {
	if i.place > 0 {
		heap.Remove(&q.items, i.place-1)
	}
}

// next returns the time of the first item; false: the queue is empty.
func (q *queue) next() (time.Time, bool) {
	if len(q.items) == 0 {
		return time.Time{}, false
	}
	return q.items[0].at, true
}

// take removes the first item.
func (q *queue) take() *item { return heap.Pop(&q.items).(*item) }

// setBack makes all items due earlier by d.
func (q *queue) setBack(d time.Duration) {
	for _, i := range q.items {
		i.at = i.at.Add(-d)
	}
}

// items is a heap.
type items []*item

func (s items) Len() int { return len(s) }

func (s items) Less(i, j int) bool {
	if a, b := s[i].at, s[j].at; !a.Equal(b) {
		return a.Before(b)
	}
	return s[i].order < s[j].order
}

func (s items) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i+1, j+1
}

func (s *items) Push(x any) {
	i := x.(*item)
	*s = append(*s, i)
	i.place = len(*s)
}

func (s *items) Pop() any {
	last := len(*s) - 1
	i := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	i.place = 0
	return i
}
