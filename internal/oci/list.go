package oci

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// List returns all indexes and images that a layout names, and those in the
// indexes, each index before what it holds. An index that cannot be read is listed
// without what it holds: mirrors may hold parts. Errors are [*limit.LimitError],
// the context's, and those of the layout's own index.
func List(ctx context.Context, l *Layout, limits Limits) ([]Descriptor, error) {
	b, err := NewBudget(limits)
	if err != nil {
		return nil, err
	}
	return newFinder(ctx, Repository{Store: l}, b).layout(l)
}

// layout lists what a layout names.
func (f *finder) layout(l *Layout) ([]Descriptor, error) {
	entries, err := l.Entries()
	if err != nil {
		return nil, err
	}
	for i, d := range entries {
		if !d.unsized {
			continue
		}
		m, err := f.read(d)
		if f.stops(err) {
			return nil, err
		}
		entries[i].MediaType = cmp.Or(m.MediaType, TypeManifest)
	}
	slices.SortStableFunc(entries, func(a, b Descriptor) int { return cmp.Compare(rank(a), rank(b)) })
	return (&lister{finder: f, listed: map[string]bool{}}).list(nil, entries, 1)
}

// rank puts indexes first that only their own text shows to be some: the images in
// them are entries, too.
func rank(d Descriptor) int {
	if d.unsized && !d.IsIndex() {
		return 1
	}
	return 0
}

// lister is one list of images.
type lister struct {
	finder *finder
	listed map[string]bool // digests
}

// list appends entries and what the indexes among them hold.
func (l *lister) list(out, entries []Descriptor, depth int) ([]Descriptor, error) {
	if err := l.finder.budget.see(entries, depth); err != nil {
		return nil, err
	}
	for _, d := range entries {
		known := l.listed[d.Digest]
		if isArtifact(d) || !d.IsManifest() || d.unsized && known && !strings.Contains(d.Annotations[RefName], ":") {
			continue
		}
		out = append(out, d)
		l.listed[d.Digest] = true
		if known || !d.IsIndex() {
			continue
		}
		m, err := l.finder.read(d)
		if l.finder.stops(err) {
			return nil, err
		}
		out, err = l.list(out, m.Manifests, depth+1)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// stops reports whether an error ends a search.
func (f *finder) stops(err error) bool { return err != nil && (ends(err) || f.ctx.Err() != nil) }
