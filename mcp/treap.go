package mcp

import "iter"

// treap is an ordered set: a binary search tree that stays balanced because
// its nodes are also a heap by pseudo-random priorities. Insert and Delete
// take O(log n). The zero value is not usable: see newTreap.
type treap[T any] struct {
	root    *treapNode[T]
	compare func(a, b T) int
	size    int
	seed    uint64
}

type treapNode[T any] struct {
	item        T
	priority    uint64
	left, right *treapNode[T]
}

func newTreap[T any](compare func(a, b T) int) *treap[T] {
	return &treap[T]{compare: compare, seed: 0x9e3779b97f4a7c15}
}

func (t *treap[T]) Len() int { return t.size }

// Insert adds item; an equal one must not be in the set.
func (t *treap[T]) Insert(item T) {
	t.seed ^= t.seed << 13 // xorshift: the same shape for the same history
	t.seed ^= t.seed >> 7
	t.seed ^= t.seed << 17
	t.root = t.insert(t.root, &treapNode[T]{item: item, priority: t.seed})
	t.size++
}

func (t *treap[T]) insert(at, n *treapNode[T]) *treapNode[T] {
	if at == nil {
		return n
	}
	if t.compare(n.item, at.item) < 0 {
		at.left = t.insert(at.left, n)
		if at.left.priority > at.priority {
			l := at.left
			at.left, l.right = l.right, at
			return l
		}
		return at
	}
	at.right = t.insert(at.right, n)
	if at.right.priority > at.priority {
		r := at.right
		at.right, r.left = r.left, at
		return r
	}
	return at
}

// Delete removes the item that compares equal, if there is one.
func (t *treap[T]) Delete(item T) {
	link := &t.root
	for *link != nil {
		c := t.compare(item, (*link).item)
		switch {
		case c < 0:
			link = &(*link).left
		case c > 0:
			link = &(*link).right
		default:
			*link = merge((*link).left, (*link).right)
			t.size--
			return
		}
	}
}

// merge joins two trees of which all of a stands before all of b.
func merge[T any](a, b *treapNode[T]) *treapNode[T] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.priority > b.priority:
		a.right = merge(a.right, b)
		return a
	default:
		b.left = merge(a, b.left)
		return b
	}
}

// All yields the items in order. The set must not change meanwhile.
func (t *treap[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) { t.root.walk(yield) }
}

func (n *treapNode[T]) walk(yield func(T) bool) bool {
	if n == nil {
		return true
	}
	return n.left.walk(yield) && yield(n.item) && n.right.walk(yield)
}
