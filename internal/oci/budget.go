package oci

import (
	"context"
	"fmt"
	"io/fs"
)

// Budget is what several searches and images together may take of [Limits]: bytes
// and entries of indexes and manifests, bytes and entries of layers. What is read
// counts, whether it proves good or not. It is not safe for concurrent use.
type Budget struct {
	limits    Limits
	manifests int64 // bytes of indexes, manifests and configurations
	seen      int   // entries of indexes
	layers    int64 // bytes of layers, uncompressed
	entries   int   // of layers
}

// NewBudget returns a budget that nothing was taken of. The error names a limit
// that is negative.
func NewBudget(l Limits) (*Budget, error) {
	l, err := l.complete()
	if err != nil {
		return nil, err
	}
	return &Budget{limits: l}, nil
}

// Find is the function [Find] within the budget.
func (b *Budget) Find(ctx context.Context, src Source, entries []Descriptor, w Want) (*Image, error) {
	return (&finder{ctx: ctx, src: src, budget: b, manifests: map[string]Manifest{}}).find(entries, w)
}

// Unpack is the function [Unpack] within the budget.
func (b *Budget) Unpack(ctx context.Context, src Source, i *Image, paths []string) (fs.FS, error) {
	return unpack(ctx, src, i.layers(), paths, b)
}

// ReadJSON reads an index, manifest or configuration that is the one which d
// names, as [Decode] does.
func (b *Budget) ReadJSON(ctx context.Context, src Source, d Descriptor, to any) error {
	data, err := b.readBlob(ctx, src, d)
	if err != nil {
		return err
	}
	return Decode(data, to)
}

// Exhausted reports whether an error says that nothing is left: further images
// cannot be read either.
func (b *Budget) Exhausted() bool {
	l := &b.limits
	return b.manifests > l.ManifestsSize || b.seen > l.Manifests || b.layers > l.TotalSize || b.entries > l.Entries
}

// readBlob returns what d names.
func (b *Budget) readBlob(ctx context.Context, src Source, d Descriptor) ([]byte, error) {
	if d.Size > b.limits.ManifestSize {
		return nil, manifestSizeError(b.limits.ManifestSize)
	}
	left := b.limits.ManifestsSize - b.manifests
	if max(d.Size, 0) > left {
		b.manifests = b.limits.ManifestsSize + 1
		return nil, manifestsSizeError(b.limits.ManifestsSize)
	}
	data, n, err := readBlob(ctx, src, d, b.limits.ManifestSize)
	b.manifests += n
	return data, err
}

// see counts the entries of an index.
func (b *Budget) see(entries []Descriptor, depth int) error {
	if depth > b.limits.Depth {
		return &LimitError{Limit: "Depth", Max: int64(b.limits.Depth), What: "levels of indexes"}
	}
	if b.seen += len(entries); b.seen > b.limits.Manifests {
		return &LimitError{Limit: "Manifests", Max: int64(b.limits.Manifests), What: "entries of indexes"}
	}
	return nil
}

// checkLayers refuses an image with too many layers.
func (b *Budget) checkLayers(digest string, n int) error {
	if n > b.limits.Layers {
		return fmt.Errorf("image %s: %w", digest, layersError(b.limits))
	}
	return nil
}
