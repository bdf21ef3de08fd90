package simulation

import (
	"container/heap"
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// A reaction is one behaviour of the cluster: what to look at after an event,
// and what to do about it. It keeps no state that it could not derive again
// from the objects, apart from when a wait began.
type reaction struct {
	name string
	// kinds are the kinds whose events matter; asked again whenever the
	// expected releases change.
	kinds func() []schema.GroupVersionKind
	// keys says what to look at after an event of an object.
	keys func(obj *unstructured.Unstructured) []string
	// delay is how long after an event to look.
	delay time.Duration
	// react does what is due for a key, and returns after how long to look
	// again if nothing happens before; zero means never.
	react func(ctx context.Context, key string) (time.Duration, error)
}

// A loop runs one reaction, one key at a time.
type loop struct {
	reaction
	clock  clock.WithTicker
	logger *slog.Logger

	mu       sync.Mutex
	wanted   map[schema.GroupVersionKind]bool
	due      map[string]time.Time
	order    dueHeap
	sequence int
	wake     chan struct{}
	failures map[string]int // of the goroutine that runs the loop
}

func newLoop(r reaction, c clock.WithTicker, logger *slog.Logger) *loop {
	return &loop{reaction: r, clock: c, logger: logger,
		due: make(map[string]time.Time), wake: make(chan struct{}, 1), failures: make(map[string]int)}
}

// want sets the kinds whose events matter to the loop.
func (l *loop) want(kinds []schema.GroupVersionKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = make(map[schema.GroupVersionKind]bool, len(kinds))
	for _, gvk := range kinds {
		l.wanted[gvk] = true
	}
}

func (l *loop) wants(gvk schema.GroupVersionKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wanted[gvk]
}

// event puts what an object's event concerns into the queue.
func (l *loop) event(obj *unstructured.Unstructured) {
	at := l.clock.Now().Add(l.delay)
	for _, key := range l.keys(obj) {
		l.add(key, at)
	}
}

// add makes the loop look at key at a time, or earlier if it was to already.
func (l *loop) add(key string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.due[key]; ok && !at.Before(old) {
		return
	}
	l.due[key] = at
	l.sequence++
	heap.Push(&l.order, dueItem{at: at, sequence: l.sequence, key: key})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// next takes the key that is due. Without one it returns how long until the
// first is, zero if there is none at all.
func (l *loop) next() (key string, ok bool, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for len(l.order) > 0 {
		first := l.order[0]
		if at, ok := l.due[first.key]; !ok || !at.Equal(first.at) {
			heap.Pop(&l.order) // superseded by an earlier time
			continue
		}
		if first.at.After(now) {
			return "", false, first.at.Sub(now)
		}
		heap.Pop(&l.order)
		delete(l.due, first.key)
		return first.key, true, 0
	}
	return "", false, 0
}

// run reacts until ctx ends.
func (l *loop) run(ctx context.Context) {
	for ctx.Err() == nil {
		key, ok, wait := l.next()
		if ok {
			l.handle(ctx, key)
			continue
		}
		if wait == 0 {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		timer := l.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (l *loop) handle(ctx context.Context, key string) {
	again, err := l.react(ctx, key)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.failures[key]++
		again = retryDelay(l.failures[key])
		if !apierrors.IsConflict(err) {
			l.logger.Warn("a simulated behaviour failed and is tried again",
				"behaviour", l.name, "object", key, "error", err, "after", again)
		}
	} else {
		delete(l.failures, key)
	}
	if again > 0 {
		l.add(key, l.clock.Now().Add(again))
	}
}

// retryDelay is 10 ms after the first failure, doubled each time, at most
// 30 s.
func retryDelay(failures int) time.Duration {
	return min(10*time.Millisecond<<min(failures-1, 12), 30*time.Second)
}

type dueItem struct {
	at       time.Time
	sequence int
	key      string
}

// dueHeap orders by time, then by when an item came.
type dueHeap []dueItem

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].sequence < h[j].sequence
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(dueItem)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
