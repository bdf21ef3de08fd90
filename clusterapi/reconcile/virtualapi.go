package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// ErrCrashed is what every call of a process returns that has crashed.
var ErrCrashed = errors.New("reconcile: the process has crashed")

// The errors of simulated faults.
var (
	errAway   error = apierrors.NewServiceUnavailable("the server is currently unable to handle the request (simulated)")
	errServer error = apierrors.NewInternalError(errors.New("simulated fault"))
	errSlow   error = fmt.Errorf("simulated: the call took too long: %w", context.DeadlineExceeded)
)

// virtualAPI is the cluster as a process of a virtual run sees it.
type virtualAPI struct{ life *life }

var (
	_ clusterapi.ClusterAPI = (*virtualAPI)(nil)
	_ clusterapi.Shared     = (*virtualAPI)(nil)
)

// do makes one call, with the faults that strike it.
func (a *virtualAPI) do(ctx context.Context, verb string, gvk schema.GroupVersionKind, key types.NamespacedName, write bool, f func() error) error {
	if a.life.core.ended {
		return ErrCrashed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	v := a.life.v
	fs := v.faults
	if !fs.strikes(a.life.p.Name, v.Now()) {
		return f()
	}
	if fs.away(v.Now()) {
		return errAway
	}
	d := fs.of(call{a.life.p.Name, verb, gvk.Kind, key})
	late := d.number("after effect") < 0.5
	switch {
	case d.hit("crash", fs.Crash):
		if late && write {
			_ = f()
		}
		a.life.p.crash()
		return ErrCrashed
	case d.hit("fails before", fs.Before):
		return errServer
	case write && d.hit("fails after", fs.After):
		_ = f()
		return errServer
	case (verb == "Update" || verb == "UpdateStatus") && d.hit("conflict", fs.Conflict):
		return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name, errors.New("simulated"))
	case d.hit("slow", fs.Slow):
		if late && write {
			_ = f()
		}
		return a.slow(ctx)
	}
	return f()
}

// slow lets the time of a call pass, if it is a job's.
func (a *virtualAPI) slow(ctx context.Context) error {
	timeout := a.life.v.o.CallTimeout
	if d, ok := ctx.Value(callTimeoutKey{}).(time.Duration); ok {
		timeout = d
	}
	if timeout <= 0 || timeout == Never {
		return errSlow
	}
	if err := a.life.v.sleep(ctx, timeout); err != nil && err != errNotJob {
		return err
	}
	return errSlow
}

// stale reports whether a read shows what was true a moment ago.
func (a *virtualAPI) stale(verb string, gvk schema.GroupVersionKind, key types.NamespacedName) bool {
	fs := a.life.v.faults
	if !fs.strikes(a.life.p.Name, a.life.v.Now()) || fs.Stale == 0 {
		return false
	}
	return fs.of(call{a.life.p.Name, verb + " of the past", gvk.Kind, key}).hit("stale", fs.Stale)
}

func (a *virtualAPI) GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, error) {
	var out *clusterapi.Object
	err := a.do(ctx, "Get", gvk, key, false, func() (err error) {
		out, err = clusterapi.GetShared(ctx, a.life.v.o.Cluster, gvk, key)
		if (err == nil || apierrors.IsNotFound(err)) && a.stale("Get", gvk, key) {
			if old, ok := a.life.v.past.of(a.life.v, gvk, key); !ok || a.life.knows(gvk, key, out) {
				return err
			} else if old == nil {
				return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
			} else {
				out, err = inVersion(old, gvk), nil
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	a.life.core.sources.read(out)
	return out, nil
}

func (a *virtualAPI) ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) ([]*clusterapi.Object, error) {
	var out []*clusterapi.Object
	key := types.NamespacedName{Namespace: opts.Namespace, Name: opts.NodeName}
	err := a.do(ctx, "List", gvk, key, false, func() (err error) {
		out, err = clusterapi.ListShared(ctx, a.life.v.o.Cluster, gvk, opts)
		if err == nil && a.stale("List", gvk, key) {
			out = a.life.v.past.list(a.life, gvk, opts, out)
		}
		return err
	})
	return out, err
}

func (a *virtualAPI) Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o, err := a.GetShared(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return o.Unstructured().DeepCopy(), nil
}

func (a *virtualAPI) List(ctx context.Context, gvk schema.GroupVersionKind, opts clusterapi.ListOptions) (*unstructured.UnstructuredList, error) {
	objects, err := a.ListShared(ctx, gvk, opts)
	if err != nil && !errors.Is(err, clusterapi.ErrNotCollected) {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	list.Items = make([]unstructured.Unstructured, len(objects))
	for i, o := range objects {
		list.Items[i] = *o.Unstructured().DeepCopy()
	}
	return list, err
}

// writeVirtual makes a call that returns an object.
func writeVirtual[O any](
	ctx context.Context, a *virtualAPI, verb string, obj *unstructured.Unstructured, opts O, write writing[O],
) (*unstructured.Unstructured, error) {
	gvk := obj.GroupVersionKind()
	return a.life.core.sources.write(ctx, gvk, func(ctx context.Context) (*unstructured.Unstructured, error) {
		var out *unstructured.Unstructured
		err := a.do(ctx, verb, gvk, clusterapi.KeyOf(obj), true, func() (err error) {
			out, err = write(ctx, obj, opts)
			return err
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	})
}

func (a *virtualAPI) Create(ctx context.Context, obj *unstructured.Unstructured,
	opts clusterapi.CreateOptions) (*unstructured.Unstructured, error) {
	return writeVirtual(ctx, a, "Create", obj, opts, a.life.v.o.Cluster.Create)
}

func (a *virtualAPI) Apply(ctx context.Context, obj *unstructured.Unstructured,
	opts clusterapi.ApplyOptions) (*unstructured.Unstructured, error) {
	return writeVirtual(ctx, a, "Apply", obj, opts, a.life.v.o.Cluster.Apply)
}

func (a *virtualAPI) Update(ctx context.Context, obj *unstructured.Unstructured,
	opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return writeVirtual(ctx, a, "Update", obj, opts, a.life.v.o.Cluster.Update)
}

func (a *virtualAPI) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured,
	opts clusterapi.UpdateOptions) (*unstructured.Unstructured, error) {
	return writeVirtual(ctx, a, "UpdateStatus", obj, opts, a.life.v.o.Cluster.UpdateStatus)
}

func (a *virtualAPI) Delete(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName, opts clusterapi.DeleteOptions) error {
	return a.do(ctx, "Delete", gvk, key, true, func() error { return a.life.v.o.Cluster.Delete(ctx, gvk, key, opts) })
}

func (a *virtualAPI) Evict(ctx context.Context, pod types.NamespacedName, opts clusterapi.EvictOptions) error {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return a.do(ctx, "Evict", gvk, pod, true, func() error { return a.life.v.o.Cluster.Evict(ctx, pod, opts) })
}

// past remembers for a while how objects were before they changed.
type past struct {
	before map[pastKey]pastState
	order  []pastChange // of all changes, also of objects that changed again
}

type pastChange struct {
	key pastKey
	at  time.Time
}

type pastKey struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

type pastState struct {
	old *clusterapi.Object // nil if absent
	at  time.Time          // when it ended
}

func (s *past) add(c clusterapi.Change, now time.Time) {
	if s.before == nil {
		s.before = make(map[pastKey]pastState)
	}
	k := pastKey{c.Object().Kind().GroupKind(), c.Object().Key()}
	s.before[k] = pastState{c.Old, now}
	s.order = append(s.order, pastChange{k, now})
}

// prune forgets what is too long ago to be read.
func (s *past) prune(v *Virtual) {
	limit := v.Now().Add(-staleBy)
	for len(s.order) > 0 && s.order[0].at.Before(limit) {
		key := s.order[0].key
		if s.before[key].at.Before(limit) {
			delete(s.before, key)
		}
		s.order = s.order[1:]
	}
}

// of returns what an object was, nil for none, if it changed not long ago.
func (s *past) of(v *Virtual, gvk schema.GroupVersionKind, key types.NamespacedName) (*clusterapi.Object, bool) {
	v.pull()
	s.prune(v)
	state, ok := s.before[pastKey{gvk.GroupKind(), key}]
	return state.old, ok
}

// list is a list as it was, but for what the process knows.
func (s *past) list(h *life, gvk schema.GroupVersionKind, opts clusterapi.ListOptions, now []*clusterapi.Object) []*clusterapi.Object {
	h.v.pull()
	s.prune(h.v)
	current := make(map[types.NamespacedName]*clusterapi.Object, len(now))
	for _, o := range now {
		current[o.Key()] = o
	}
	for k, state := range s.before {
		if k.kind != gvk.GroupKind() || h.knows(gvk, k.key, current[k.key]) {
			continue
		}
		delete(current, k.key)
		if state.old != nil && opts.Selects(state.old.Unstructured()) {
			current[k.key] = inVersion(state.old, gvk)
		}
	}
	out := slices.Collect(maps.Values(current))
	slices.SortFunc(out, func(a, b *clusterapi.Object) int { return compareNames(a.Key(), b.Key()) })
	return out
}

// knows reports whether a watch of the process has shown the present state of an
// object: no read is older than that, or it would never be made good.
func (h *life) knows(gvk schema.GroupVersionKind, key types.NamespacedName, current *clusterapi.Object) bool {
	for _, w := range h.streams[gvk.GroupKind()] {
		if listed, _ := w.source.state(); !listed {
			continue
		}
		version := w.source.version(key)
		if current != nil && version != "" && version == current.ResourceVersion() {
			return true
		}
		all := w.source.id == (watchID{gvk: w.source.id.gvk})
		if current == nil && version == "" && all {
			return true
		}
	}
	return false
}
