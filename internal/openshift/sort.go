package openshift

import (
	"cmp"
	"slices"

	"github.com/Masterminds/semver/v3"
)

// NewestFirst sorts what has a version: valid versions by precedence, higher
// first, then the others by their text, greater first. Equal ones keep their
// order. The result is a copy.
func NewestFirst[T any](items []T, version func(T) string) []T {
	type parsed struct {
		item T
		text string
		v    *semver.Version
	}
	all := make([]parsed, len(items))
	for i, item := range items {
		text := version(item)
		v, err := ParseVersion(text)
		if err != nil {
			v = nil
		}
		all[i] = parsed{item, text, v}
	}
	slices.SortStableFunc(all, func(a, b parsed) int {
		switch {
		case a.v != nil && b.v != nil:
			return b.v.Compare(a.v)
		case a.v != nil:
			return -1
		case b.v != nil:
			return 1
		}
		return cmp.Compare(b.text, a.text)
	})
	sorted := make([]T, len(all))
	for i := range all {
		sorted[i] = all[i].item
	}
	return sorted
}
