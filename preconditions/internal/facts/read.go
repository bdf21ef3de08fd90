// Package facts reads and judges what several checks ask of a cluster: its
// ClusterVersion, platform, gates and versions.
package facts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/clusterupdate/clusterupdate/clusterapi"
)

// List reads all objects of a kind as Ts that must not be changed, sorted by
// namespace and name. The error is for those that are not known: a check continues
// with what there is, and returns it with what it has found. A malformed object
// is not known; a kind that the cluster does not serve is an error that
// meta.IsNoMatchError recognises.
func List[T any](ctx context.Context, r clusterapi.Reader, opts clusterapi.ListOptions) ([]*T, error) {
	gvk, err := clusterapi.KindOf[T]()
	if err != nil {
		return nil, err
	}
	objects, err := clusterapi.ListShared(ctx, r, gvk, opts)
	out, malformed := DecodeAll(objects, clusterapi.As[T])
	return out, JoinErrors(err, malformed)
}

// DecodeAll decodes the objects that can be. The error is for the others.
func DecodeAll[T any](objects []*clusterapi.Object, decode func(*clusterapi.Object) (*T, error)) ([]*T, error) {
	var first error
	malformed := 0
	out := make([]*T, 0, len(objects))
	for _, o := range objects {
		typed, err := decode(o)
		if err == nil {
			out = append(out, typed)
			continue
		}
		if malformed++; first == nil {
			first = err
		}
	}
	if malformed > 1 {
		gvk, _ := clusterapi.KindOf[T]()
		first = fmt.Errorf("%d objects of kind %s are malformed, the first: %w", malformed, gvk.Kind, first)
	}
	return out, first
}

// ReadOrNil reads an object that must not be changed; nil if absent, or no such
// kind.
func ReadOrNil[T any](ctx context.Context, r clusterapi.Reader, namespace, name string) (*T, error) {
	o, err := clusterapi.Read[T](ctx, r, clusterapi.Key(namespace, name))
	return o, UnlessMissing(err)
}

// UnlessMissing is the error unless an object, or its kind, is not there.
func UnlessMissing(err error) error {
	if clusterapi.IsMissing(err) {
		return nil
	}
	return err
}

// JoinErrors is errors.Join without those whose text is there already.
func JoinErrors(errs ...error) error {
	seen := map[string]bool{}
	var out []error
	add := func(err error) {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			out = append(out, err)
		}
	}
	for _, err := range errs {
		if err == nil {
			continue
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
			add(err)
			continue
		}
		for _, one := range joined.Unwrap() {
			add(one)
		}
	}
	return errors.Join(out...)
}

// About adds to an error of which kind of objects it is, unless its text starts with it.
func About(kind string, err error) error {
	if strings.HasPrefix(err.Error(), kind) {
		return err
	}
	return fmt.Errorf("%s: %w", kind, err)
}
