package oci

import (
	"context"
	"errors"
	"fmt"
)

// Want says which image is wanted.
type Want struct {
	// Digest is that of an index or of an image.
	Digest string
	// Platform chooses from an index. It does not matter for an image that is
	// found by its own digest.
	Platform Platform
}

// Image is one image that was found.
type Image struct {
	Descriptor Descriptor // of its manifest; the platform may be missing
	Config     *Descriptor
	Layers     []Descriptor
}

// Find returns the image that is wanted, from the entries of a layout's index or
// any others; the indexes among them are entered. Everything below the digest that
// is wanted is verified. Errors are [*NotFoundError], [*PlatformError],
// [*DigestError], [*LimitError], and those of reading.
func Find(ctx context.Context, src Source, entries []Descriptor, w Want, l Limits) (*Image, error) {
	f, err := newFinder(ctx, src, l)
	if err != nil {
		return nil, err
	}
	return f.find(entries, w)
}

func (f *finder) find(entries []Descriptor, w Want) (*Image, error) {
	if err := CheckDigest(w.Digest); err != nil {
		return nil, err
	}
	d, err := f.search(entries, w.Digest, 1)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, &NotFoundError{Want: w.Digest, Available: f.available, Err: errors.Join(f.unread...)}
	}
	m, err := f.read(*d)
	if err != nil {
		return nil, err
	}
	if m.isIndex() {
		return f.choose(m.Manifests, w.Platform)
	}
	return f.image(*d, m)
}

type finder struct {
	ctx       context.Context
	src       Source
	budget    *Budget
	manifests map[string]Manifest // that have been read, by digest
	available []string
	unread    []error
}

func newFinder(ctx context.Context, src Source, l Limits) (*finder, error) {
	b, err := NewBudget(l)
	if err != nil {
		return nil, err
	}
	return &finder{ctx: ctx, src: src, budget: b, manifests: map[string]Manifest{}}, nil
}

// search returns the descriptor with a digest, nil if there is none. An index
// that cannot be read does not end the search: mirrors may hold parts.
func (f *finder) search(entries []Descriptor, digest string, depth int) (*Descriptor, error) {
	if err := f.budget.see(entries, depth); err != nil {
		return nil, err
	}
	for _, d := range entries {
		if d.Digest == digest {
			return &d, nil
		}
		f.available = append(f.available, describe(d))
	}
	for _, d := range entries {
		if _, known := f.manifests[d.Digest]; known || !isIndex(d.MediaType) {
			continue
		}
		m, err := f.read(d)
		if passed := (*LimitError)(nil); errors.As(err, &passed) || f.ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			f.unread = append(f.unread, err)
			continue
		}
		if found, err := f.search(m.Manifests, digest, depth+1); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// read returns an index or manifest.
func (f *finder) read(d Descriptor) (Manifest, error) {
	if m, ok := f.manifests[d.Digest]; ok && m.MediaType == d.MediaType {
		return m, nil
	}
	fail := func(err error) (Manifest, error) {
		return Manifest{}, fmt.Errorf("unable to read manifest %s: %w", printable(d.Digest), err)
	}
	data, err := f.budget.readBlob(f.ctx, f.src, d)
	if err != nil {
		return fail(err)
	}
	m, err := parseManifest(data, d)
	if err != nil {
		return fail(err)
	}
	f.manifests[d.Digest] = m
	return m, nil
}

// image returns the image with a manifest.
func (f *finder) image(d Descriptor, m Manifest) (*Image, error) {
	if m.isIndex() {
		return nil, fmt.Errorf("manifest %s is an index, which its entry does not say", d.Digest)
	}
	if err := f.budget.checkLayers(d.Digest, len(m.Layers)); err != nil {
		return nil, err
	}
	return &Image{Descriptor: d, Config: m.Config, Layers: m.Layers}, nil
}
