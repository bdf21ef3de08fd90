package oci

import (
	"context"
	"errors"
)

// List returns all indexes and images among entries, and those in the indexes,
// each index before what it holds. An index that cannot be read is listed without
// what it holds: mirrors may hold parts. Errors are [*LimitError] and that of the
// context.
func List(ctx context.Context, src Source, entries []Descriptor, l Limits) ([]Descriptor, error) {
	f, err := newFinder(ctx, src, l)
	if err != nil {
		return nil, err
	}
	return f.list(nil, entries, 1)
}

func (f *finder) list(out, entries []Descriptor, depth int) ([]Descriptor, error) {
	if err := f.budget.see(entries, depth); err != nil {
		return nil, err
	}
	for _, d := range entries {
		if isArtifact(d) || !d.IsManifest() {
			continue
		}
		out = append(out, d)
		if _, known := f.manifests[d.Digest]; known || !isIndex(d.MediaType) {
			continue
		}
		m, err := f.read(d)
		if passed := (*LimitError)(nil); errors.As(err, &passed) || f.ctx.Err() != nil {
			return nil, err
		}
		if out, err = f.list(out, m.Manifests, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
