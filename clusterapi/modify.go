package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterupdate/clusterupdate/internal/objects"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// ReadWriter is what [Modify] needs. It is safe for concurrent use.
type ReadWriter interface {
	Reader
	Writer
}

// ModifyOptions are the options of [Modify].
type ModifyOptions struct {
	// Status writes the status and nothing else, by UpdateStatus. Changes that
	// the function makes elsewhere are then not written.
	Status bool
	// Retries is how often to start again after a conflict. Zero means
	// [DefaultRetries]; a negative number is an error.
	Retries int
	// Once returns the first conflict, as if Retries could be none.
	Once bool
	// FieldManager owns the changed fields; empty means [ManagerDefault].
	FieldManager string
	// Definitions cuts a status to what the cluster accepts; nil writes it as it is.
	Definitions *Definitions
}

// Modify changes an existing object: the one way to do so. It reads the object,
// calls f with a typed copy, and writes the differences that f made, provided that
// nobody else wrote in the meantime. After a conflict it starts again after a short
// random delay, and calls f again with what is stored then, so f must be a function
// of its argument.
//
// Only differences are laid onto the object as read, so fields that T does not
// have survive, in elements of lists too. Elements are recognised by the
// list-map keys of their API ("name", "type", ...); in lists without keys
// unchanged elements are recognised by their value, and the others by
// position. A nil slice or pointer that T always writes (a field without
// omitempty, such as availableUpdates of ClusterVersion) is written as null.
//
// No difference, no write. An error of f is returned as it is, and nothing is
// written. The result is the object as stored; like the argument of f it has no
// managedFields, which no Modify changes. The errors are those of
// [Reader] and [Writer]; when all retries met a conflict, apierrors.IsConflict
// recognises it.
func Modify[T any](ctx context.Context, api ReadWriter, key types.NamespacedName, o ModifyOptions, f func(*T) error) (*T, error) {
	return ModifyWhole(ctx, api, key, o, func(t *T) ([]string, error) { return nil, f(t) })
}

// ModifyWhole is [Modify] for fields that are one value, such as spec.desiredUpdate
// of ClusterVersion: f returns the paths of the fields that it has set. They are
// written as f leaves them, without the parts that T does not know. The errors are
// those of Modify; a path that leads through a list is one too.
func ModifyWhole[T any](ctx context.Context, api ReadWriter, key types.NamespacedName, o ModifyOptions, f func(*T) (whole []string, err error)) (*T, error) {
	gvk, err := KindOf[T]()
	if err != nil {
		return nil, err
	}
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	retries := cmp.Or(o.Retries, DefaultRetries)
	if o.Once || options.IsOnce(ctx) {
		retries = 0
	}
	// Up to as much again is added, so that writers in conflict fall out of step.
	pauses := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6}.Timer()
	defer pauses.Stop()
	for attempt := 0; ; attempt++ {
		read, err := GetShared(ctx, api, gvk, key)
		if err != nil {
			return nil, err
		}
		before, err := As[T](read)
		if err != nil {
			return nil, err
		}
		after, err := owned[T](read)
		if err != nil {
			return nil, err
		}
		whole, err := f(after)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: read.u.Object}
		changed, err := objects.Overlay(u, before, after, o.Status)
		if err != nil {
			return nil, err
		}
		pruned, err := prune(u, after, whole)
		if err != nil {
			return nil, err
		}
		fits := o.Status && o.Definitions != nil
		if changed && fits {
			o.Definitions.fit(ctx, api, u)
			changed = !objects.Equal(u.Object["status"], read.u.Object["status"])
		}
		if !changed && !pruned {
			return owned[T](read)
		}
		stored, err := WriteShared(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return update(ctx, api, u, o.Status, UpdateOptions{FieldManager: o.FieldManager})
		})
		switch {
		case err == nil:
			return owned[T](stored)
		case fits && apierrors.IsInvalid(err) && o.Definitions.changed(ctx, api, gvk):
			attempt-- // what was fitting is not any more
			continue
		case !apierrors.IsConflict(err):
			return nil, err
		case attempt >= retries:
			return nil, fmt.Errorf("giving up after %d attempts: %w", attempt+1, err)
		}
		if attempt > 0 {
			pauses.Next()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pauses.C():
		}
	}
}

// prune drops what fields of u have and those of a typed object do not, and
// reports whether there was any. Overlay has laid all else onto u before.
func prune(u *unstructured.Unstructured, typed any, paths []string) (bool, error) {
	if len(paths) == 0 {
		return false, nil
	}
	from, err := ToUnstructured(typed)
	if err != nil {
		return false, err
	}
	pruned := false
	for _, path := range paths {
		fields := strings.Split(path, ".")
		known, _, err := unstructured.NestedFieldNoCopy(from.Object, fields...)
		if err != nil {
			return false, fmt.Errorf("field %s: %w", path, err)
		}
		stored, there, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
		if err != nil {
			return false, fmt.Errorf("field %s: %w", path, err)
		}
		left, less := within(stored, known)
		if !there || !less {
			continue
		}
		if !pruned { // what was read is shared
			u.Object = runtime.DeepCopyJSON(u.Object)
			pruned = true
		}
		if err := unstructured.SetNestedField(u.Object, left, fields...); err != nil {
			return false, fmt.Errorf("field %s: %w", path, err)
		}
	}
	return pruned, nil
}

// within returns the part of a value that a typed one knows, and whether that is
// less than all of it.
func within(stored, known any) (left any, less bool) {
	switch s := stored.(type) {
	case map[string]any:
		k, ok := known.(map[string]any)
		if !ok {
			return runtime.DeepCopyJSONValue(known), true
		}
		out := make(map[string]any, len(s))
		for name, v := range s {
			if kv, ok := k[name]; ok {
				var part bool
				out[name], part = within(v, kv)
				less = less || part
			} else {
				less = true
			}
		}
		return out, less
	case []any:
		k, ok := known.([]any)
		if !ok || len(k) != len(s) {
			return runtime.DeepCopyJSONValue(known), true
		}
		out := make([]any, len(s))
		for i := range s {
			var part bool
			out[i], part = within(s[i], k[i])
			less = less || part
		}
		return out, less
	}
	return runtime.DeepCopyJSONValue(stored), false
}
