package preconditions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

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

// memoReader sends each read at most once and gives every caller a copy of the
// answer. A read lives as long as the run, not as long as the check that was
// first to ask: otherwise one check's time-out would decide what others see.
type memoReader struct {
	ctx      context.Context // the run's
	reader   clusterapi.Reader
	maxItems int

	mu    sync.Mutex
	reads map[readKey]*read
}

type readKey struct {
	verb                          string
	gvk                           schema.GroupVersionKind
	namespace, name, labels, node string
	limit                         int
}

type read struct {
	done   chan struct{}
	object *unstructured.Unstructured
	list   *unstructured.UnstructuredList
	err    error
}

func newMemoReader(ctx context.Context, reader clusterapi.Reader, maxItems int) *memoReader {
	return &memoReader{ctx: ctx, reader: reader, maxItems: maxItems, reads: make(map[readKey]*read)}
}

func (m *memoReader) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	r, err := m.wait(ctx, readKey{verb: "get", gvk: gvk, namespace: key.Namespace, name: key.Name}, func(r *read) error {
		var err error
		r.object, err = m.reader.Get(m.ctx, gvk, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.object.DeepCopy(), nil
}

func (m *memoReader) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	if opts.Limit <= 0 || opts.Limit > m.maxItems {
		opts.Limit = m.maxItems
	}
	key := readKey{verb: "list", gvk: gvk, namespace: opts.Namespace, node: opts.NodeName, limit: opts.Limit}
	if opts.Labels != nil {
		key.labels = opts.Labels.String()
	}
	r, err := m.wait(ctx, key, func(r *read) error {
		list, err := m.reader.List(m.ctx, gvk, opts)
		if err != nil {
			return err
		}
		if len(list.Items) > opts.Limit {
			return &clusterapi.LimitError{GVK: gvk, Limit: opts.Limit}
		}
		r.list = list
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.list.DeepCopy(), nil
}

// wait returns the answer to key, and asks for it if it is the first.
func (m *memoReader) wait(ctx context.Context, key readKey, ask func(*read) error) (*read, error) {
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
	if !ok { // the read goes on where this caller's time is over
		_, _ = reconcile.Await(ctx, func() (_ struct{}, _ error) {
			m.ask(key, r, ask)
			return
		})
	}
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errReadEnded = errors.New("the reader ended its goroutine")

func (m *memoReader) ask(key readKey, r *read, ask func(*read) error) {
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil {
			r.err = &readError{verb: key.verb, gvk: key.gvk, err: newPanicError("reading "+key.gvk.Kind, v)}
		}
	}()
	r.err = errReadEnded // stays where the reader ends its goroutine
	if err := ask(r); err != nil {
		r.err = &readError{verb: key.verb, gvk: key.gvk, err: err}
		return
	}
	r.err = nil
}

// seen returns the objects that were read, each once, in order.
func (m *memoReader) seen() []ObjectVersion {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []ObjectVersion
	add := func(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
		all = append(all, ObjectVersion{
			GVK: gvk, Namespace: u.GetNamespace(), Name: u.GetName(), ResourceVersion: u.GetResourceVersion(),
		})
	}
	for key, r := range m.reads {
		select {
		case <-r.done:
		default:
			continue // given up on; still under way
		}
		if r.object != nil {
			add(key.gvk, r.object)
		}
		if r.list != nil {
			for i := range r.list.Items {
				add(key.gvk, &r.list.Items[i])
			}
		}
	}
	slices.SortFunc(all, ObjectVersion.compare)
	return slices.Compact(all)
}

func (v ObjectVersion) compare(w ObjectVersion) int {
	for _, pair := range [][2]string{
		{v.GVK.Group, w.GVK.Group}, {v.GVK.Version, w.GVK.Version}, {v.GVK.Kind, w.GVK.Kind},
		{v.Namespace, w.Namespace}, {v.Name, w.Name}, {v.ResourceVersion, w.ResourceVersion},
	} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}
