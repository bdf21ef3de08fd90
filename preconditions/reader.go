package preconditions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
	"github.com/clusterupdate/clusterupdate/clusterapi/reconcile"
)

// readError adds to a failed read what was read, without changing its text.
type readError struct {
	verb string
	gvk  schema.GroupVersionKind
	err  error
}

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// memoReader sends each read at most once and gives every caller the same
// answer. A read lives as long as the run, not as long as the check that was
// first to ask: otherwise one check's time-out would decide what others see.
//
// Its objects are shared: a kind that several checks read as Go structs is
// decoded once.
type memoReader struct {
	ctx      context.Context // the run's
	reader   clusterapi.Reader
	maxItems int

	mu          sync.Mutex
	reads       map[readKey]*read
	decodedPods func() ([]*corev1.Pod, error) // nil: nobody has asked
}

type readKey struct {
	verb                          string
	gvk                           schema.GroupVersionKind
	namespace, name, labels, node string
	limit                         int
}

type read struct {
	done    chan struct{}
	objects []*clusterapi.Object // with an error too, where only some are known
	err     error
}

func newMemoReader(ctx context.Context, reader clusterapi.Reader, maxItems int) *memoReader {
	return &memoReader{ctx: ctx, reader: reader, maxItems: maxItems, reads: make(map[readKey]*read)}
}

func (m *memoReader) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := m.GetShared(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.Unstructured().DeepCopy(), nil
}

// GetShared implements [clusterapi.Shared].
func (m *memoReader) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	objects, err := m.wait(ctx, readKey{verb: "get", gvk: gvk, namespace: key.Namespace, name: key.Name}, func() ([]*clusterapi.Object, error) {
		o, err := clusterapi.GetShared(m.ctx, m.reader, gvk, key)
		return []*clusterapi.Object{o}, err
	})
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}

func (m *memoReader) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	objects, err := m.ListShared(ctx, gvk, opts)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(objects))}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	for i, o := range objects {
		list.Items[i] = *o.Unstructured().DeepCopy()
	}
	return list, err
}

// ListShared implements [clusterapi.Shared].
func (m *memoReader) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	if opts.Limit <= 0 || opts.Limit > m.maxItems {
		opts.Limit = m.maxItems
	}
	key := readKey{verb: "list", gvk: gvk, namespace: opts.Namespace, node: opts.NodeName, limit: opts.Limit}
	if opts.Labels != nil {
		key.labels = opts.Labels.String()
	}
	return m.wait(ctx, key, func() ([]*clusterapi.Object, error) {
		objects, err := clusterapi.ListShared(m.ctx, m.reader, gvk, opts)
		if len(objects) > opts.Limit {
			return nil, opts.Exceeded(gvk)
		}
		return objects, err
	})
}

// Shares implements the condition of [clusterapi.Shared].
func (m *memoReader) Shares(r clusterapi.Reader) bool { return r == clusterapi.Reader(m) }

// SharePods returns the decode function of the first caller, which runs once: the pods
// of a run all are from one list. Package rules finds it by type assertion.
func (m *memoReader) SharePods(decode func() ([]*corev1.Pod, error)) func() ([]*corev1.Pod, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.decodedPods == nil {
		m.decodedPods = sync.OnceValues(decode)
	}
	return m.decodedPods
}

// wait returns the answer to key, and asks for it if it is the first.
func (m *memoReader) wait(ctx context.Context, key readKey, ask func() ([]*clusterapi.Object, error)) ([]*clusterapi.Object, error) {
	if m.reader == nil {
		return nil, &NoSourceError{Source: "Reader"}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	r, ok := m.reads[key]
	if !ok {
		r = &read{done: make(chan struct{})}
		m.reads[key] = r
	}
	m.mu.Unlock()
	if !ok { // the read continues if this caller's time is over
		_, _ = reconcile.Await(ctx, func() (_ struct{}, _ error) {
			m.ask(key, r, ask)
			return
		})
	}
	select {
	case <-r.done:
		return r.objects, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errReadEnded = errors.New("the reader ended its goroutine")

func (m *memoReader) ask(key readKey, r *read, ask func() ([]*clusterapi.Object, error)) {
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil {
			r.objects, r.err = nil, &readError{verb: key.verb, gvk: key.gvk, err: newPanicError("reading "+key.gvk.Kind, v)}
		}
	}()
	r.err = errReadEnded // stays where the reader ends its goroutine
	objects, err := ask()
	switch {
	case err == nil:
		r.objects, r.err = objects, nil
	case key.verb == "list" && errors.Is(err, clusterapi.ErrNotCollected):
		r.objects, r.err = objects, &readError{verb: key.verb, gvk: key.gvk, err: err}
	default:
		r.err = &readError{verb: key.verb, gvk: key.gvk, err: err}
	}
}

// answered yields the reads that have an answer: others were given up on.
func (m *memoReader) answered(yield func(readKey, *read) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, r := range m.reads {
		select {
		case <-r.done:
		default:
			continue
		}
		if !yield(key, r) {
			return
		}
	}
}

// assumed returns the kinds of which the results depend on what is not there, as
// far as the reader assumes that: sorted.
func (m *memoReader) assumed() []string {
	kinds := make(map[string]bool)
	for key, r := range m.answered {
		if (key.verb == "list" && r.err == nil || apierrors.IsNotFound(r.err)) && clusterapi.Assumed(m.reader, key.gvk) {
			kinds[key.gvk.GroupKind().String()] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// seen returns the objects that were read, each once, in order.
func (m *memoReader) seen() []Object {
	var all []Object
	for key, r := range m.answered {
		for _, o := range r.objects {
			at := o.Key()
			all = append(all, Object{GVK: key.gvk, Namespace: at.Namespace, Name: at.Name, ResourceVersion: o.ResourceVersion()})
		}
	}
	slices.SortFunc(all, func(a, b Object) int {
		return slices.Compare(
			[]string{a.GVK.Group, a.GVK.Version, a.GVK.Kind, a.Namespace, a.Name, a.ResourceVersion},
			[]string{b.GVK.Group, b.GVK.Version, b.GVK.Kind, b.Namespace, b.Name, b.ResourceVersion})
	})
	return slices.Compact(all)
}
