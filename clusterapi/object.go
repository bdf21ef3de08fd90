package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterupdate/clusterupdate/internal/objects"
)

// Object is one stored state of an object, shared by all who look at it: it
// must not be changed, nor anything that it leads to. It is safe for concurrent
// use. [As] converts it to a typed object once, however many ask.
type Object struct {
	u *unstructured.Unstructured

	mu    sync.Mutex
	typed any   // a *T, of the first T that was asked for
	more  []any // of others
	prior prior
}

// prior is an earlier state of an object that was converted.
type prior struct {
	content map[string]any
	typed   any
}

// NewObject returns u as a shared object. From then on u must not be changed.
// It returns nil for nil.
func NewObject(u *unstructured.Unstructured) *Object {
	if u == nil {
		return nil
	}
	return &Object{u: u}
}

// Next returns u, a later state of the object, as [NewObject] does. Top-level
// fields that lead to the same map in both states are not converted again.
func (o *Object) Next(u *unstructured.Unstructured) *Object {
	next := NewObject(u)
	if o == nil || next == nil {
		return next
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next.prior = o.prior
	if o.typed != nil {
		next.prior = prior{o.u.Object, o.typed}
	}
	return next
}

// Unstructured returns the object itself, which must not be changed: change a
// DeepCopy. It is nil for a nil Object.
func (o *Object) Unstructured() *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	return o.u
}

// Key returns namespace and name.
func (o *Object) Key() types.NamespacedName { return KeyOf(o.u) }

// Kind returns the group, version and kind.
func (o *Object) Kind() schema.GroupVersionKind { return o.u.GroupVersionKind() }

// Name returns the name.
func (o *Object) Name() string { return o.u.GetName() }

// UID returns the identity.
func (o *Object) UID() types.UID { return o.u.GetUID() }

// ResourceVersion returns the version of this state.
func (o *Object) ResourceVersion() string { return o.u.GetResourceVersion() }

// As converts a shared object to T, once per state and type: the result is
// shared too and must not be changed. It is strict as [FromUnstructured] is,
// and leaves out managedFields, which cost more to convert than all the rest.
// A nil o is an error.
func As[T any](o *Object) (*T, error) {
	if o == nil {
		return nil, errors.New("clusterapi: no object to convert")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.typed.(*T); ok {
		return t, nil
	}
	for _, other := range o.more {
		if t, ok := other.(*T); ok {
			return t, nil
		}
	}
	t := new(T)
	if err := convertAfter(o.u, o.prior, t); err != nil {
		return nil, err
	}
	if o.typed == nil {
		o.typed, o.prior = t, prior{}
	} else {
		o.more = append(o.more, t)
	}
	return t, nil
}

// convertAfter is convertShared that takes what did not change from an earlier
// state.
func convertAfter[T any](u *unstructured.Unstructured, before prior, out *T) error {
	earlier, ok := before.typed.(*T)
	if !ok {
		return convertShared(u, out)
	}
	v, t := reflect.ValueOf(earlier).Elem(), reflect.TypeFor[T]()
	if _, own := before.typed.(json.Unmarshaler); own || t.Kind() != reflect.Struct {
		return convertShared(u, out)
	}
	rest := u.Object
	var kept []int
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || !f.IsExported() {
			continue
		}
		now, _ := u.Object[name].(map[string]any)
		then, _ := before.content[name].(map[string]any)
		if now == nil || !objects.SameMap(now, then) {
			continue
		}
		if kept == nil {
			rest = maps.Clone(rest)
		}
		delete(rest, name)
		kept = append(kept, i)
	}
	if err := convertShared(&unstructured.Unstructured{Object: rest}, out); err != nil {
		return err
	}
	for _, i := range kept {
		reflect.ValueOf(out).Elem().Field(i).Set(v.Field(i))
	}
	return nil
}

// convertShared is convert without managedFields. It does not change u.
func convertShared[T any](u *unstructured.Unstructured, out *T) error {
	if u == nil {
		return errors.New("clusterapi: no object to convert")
	}
	return objects.Convert(withoutManagedFields(u), out)
}

// withoutManagedFields shares all else with u.
func withoutManagedFields(u *unstructured.Unstructured) *unstructured.Unstructured {
	meta, ok := u.Object["metadata"].(map[string]any)
	if !ok || meta["managedFields"] == nil {
		return u
	}
	meta = maps.Clone(meta)
	delete(meta, "managedFields")
	content := maps.Clone(u.Object)
	content["metadata"] = meta
	return &unstructured.Unstructured{Object: content}
}

// Shared is optional: a [Reader] that has it hands out what it stores, without
// copying. Use [GetShared] and [ListShared], which work with every Reader. The
// rules and errors are those of Get and List. It is safe for concurrent use.
//
// A type that is made to be embedded has a method Shares(Reader) bool, which
// reports whether its argument is the value itself. In a wrapper that embeds it the
// answer is no, and the wrapper's Get and List are called, which it may have
// overridden. One that has not, or that has a GetShared and ListShared of its own,
// says yes by its own Shares.
type Shared interface {
	GetShared(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*Object, error)
	ListShared(ctx context.Context, gvk schema.GroupVersionKind, opts ListOptions) ([]*Object, error)
}

// sharedOf returns r as a reader that shares what it stores. One that is embedded
// in r, and so has its methods, is not r.
func sharedOf(r Reader) (Shared, bool) {
	s, ok := r.(Shared)
	if embeddable, is := r.(interface{ Shares(Reader) bool }); is && ok {
		ok = embeddable.Shares(r)
	}
	return s, ok
}

// ShareResult is for the verbs of a [Writer] that stores objects and shares
// them: where the caller only looks at the result, as with [WriteShared], it hands
// over o and returns true, and the verb returns o's object without copying it. Wrappers
// of the writer need not know: they pass the context on.
func (o *Object) ShareResult(ctx context.Context) bool {
	s, ok := ctx.Value(resultKey{}).(*result)
	if ok {
		s.object = o
	}
	return ok
}

type resultKey struct{}

// result is where a writer puts what it shares.
type result struct{ object *Object }

// WriteShared calls write, which makes one call of a [Writer] with the context
// that it is given, and returns the object as stored: shared where the writer
// hands that out, as with [GetShared]. Its errors are those of write.
func WriteShared(ctx context.Context, write func(context.Context) (*unstructured.Unstructured, error)) (*Object, error) {
	shared, ok := ctx.Value(resultKey{}).(*result) // of a caller that calls WriteShared too
	if !ok {
		shared = &result{}
		ctx = context.WithValue(ctx, resultKey{}, shared)
	}
	u, err := write(ctx)
	if err == nil && shared.object != nil && shared.object.u == u {
		return shared.object, nil
	}
	return NewObject(u), err
}

// update writes an object, or its status.
func update(ctx context.Context, w Writer, obj *unstructured.Unstructured, status bool, opts UpdateOptions) (*unstructured.Unstructured, error) {
	if status {
		return w.UpdateStatus(ctx, obj, opts)
	}
	return w.Update(ctx, obj, opts)
}

// GetShared reads one object that is shared where r is [Shared], else the
// caller's own. Its errors are those of [Reader].
func GetShared(ctx context.Context, r Reader, gvk schema.GroupVersionKind, key types.NamespacedName) (*Object, error) {
	if s, ok := sharedOf(r); ok {
		return s.GetShared(ctx, gvk, key)
	}
	u, err := r.Get(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return NewObject(u), nil
}

// ListShared reads all matching objects, sorted by namespace, then name; they
// are shared where r is [Shared]. Where the reader returns objects together
// with [ErrNotCollected], so does ListShared.
func ListShared(ctx context.Context, r Reader, gvk schema.GroupVersionKind, opts ListOptions) ([]*Object, error) {
	if s, ok := sharedOf(r); ok {
		return s.ListShared(ctx, gvk, opts)
	}
	list, err := r.List(ctx, gvk, opts)
	if list == nil {
		return nil, err
	}
	out := make([]*Object, len(list.Items))
	for i := range list.Items {
		out[i] = NewObject(&list.Items[i])
	}
	return out, err
}

// Read reads one object as a T that must not be changed, without copying where
// r is [Shared]. [Get] returns one that belongs to the caller.
func Read[T any](ctx context.Context, r Reader, key types.NamespacedName) (*T, error) {
	gvk, err := KindOf[T]()
	if err != nil {
		return nil, err
	}
	o, err := GetShared(ctx, r, gvk, key)
	if err != nil {
		return nil, err
	}
	return As[T](o)
}

// ReadAll reads all matching objects as Ts that must not be changed, without
// copying where r is [Shared]. Its errors are those of [List].
func ReadAll[T any](ctx context.Context, r Reader, opts ListOptions) ([]*T, error) {
	gvk, err := KindOf[T]()
	if err != nil {
		return nil, err
	}
	objects, err := ListShared(ctx, r, gvk, opts)
	if err != nil && !errors.Is(err, ErrNotCollected) {
		return nil, err
	}
	out := make([]*T, len(objects))
	for i, o := range objects {
		t, fault := As[T](o)
		if fault != nil {
			return nil, errors.Join(fault, err)
		}
		out[i] = t
	}
	return out, err
}

// owned returns a *T of the caller's own. Where T can be copied that costs less
// than a conversion of its own.
func owned[T any](o *Object) (*T, error) {
	shared, err := As[T](o)
	if err != nil {
		return nil, err
	}
	if c, ok := any(shared).(runtime.Object); ok {
		if t, ok := any(c.DeepCopyObject()).(*T); ok {
			return t, nil
		}
	}
	t := new(T)
	return t, convertShared(o.u, t)
}

// Change is one change of a stored object. Old is nil for a new one, New for a
// deleted one.
type Change struct {
	Old, New *Object
}

// Object returns New, or Old where the object was deleted.
func (c Change) Object() *Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// Cursor hands on the changes of a cluster, one after another, without waiting.
// It is not safe for concurrent use.
type Cursor interface {
	// Next returns the next change, or false if absent.
	Next() (Change, bool)
	// Close ends it; the cluster need not remember changes for it any more.
	Close()
}

// Follower is optional: a cluster that has it reports every change without a
// goroutine. The objects of a change are shared.
type Follower interface {
	// Follow returns a cursor that starts after the newest change.
	Follow() Cursor
}
