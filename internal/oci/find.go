package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Want determines which image is wanted.
type Want struct {
	// Digest is an index's or an image's.
	Digest string
	// Platform chooses from an index. It does not matter for an image that is
	// wanted by its own digest.
	Platform Platform
}

// Find returns the manifest of the image that is wanted. Everything below the
// wanted digest is verified. Errors are [*NotFoundError], [*PlatformError],
// [*DigestError], [*limit.LimitError], and those of reading.
func Find(ctx context.Context, r Repository, w Want, l Limits) (Manifest, error) {
	b, err := NewBudget(l)
	if err != nil {
		return Manifest{}, err
	}
	if err := CheckDigest(w.Digest); err != nil {
		return Manifest{}, err
	}
	f := newFinder(ctx, r, b)
	m, err := f.read(Unsized(w.Digest))
	if layout, ok := r.Store.(*Layout); ok && errors.Is(err, fs.ErrNotExist) {
		return m, f.missing(layout, w.Digest, err)
	}
	if err != nil || !m.IsIndex() {
		return m, err
	}
	return f.choose(m.Manifests, w.Platform)
}

// finder is one search.
type finder struct {
	ctx       context.Context
	in        Repository
	budget    *Budget
	manifests map[string]Manifest // by digest
}

func newFinder(ctx context.Context, r Repository, b *Budget) *finder {
	return &finder{ctx: ctx, in: r, budget: b, manifests: map[string]Manifest{}}
}

// read returns an index or manifest.
func (f *finder) read(d Descriptor) (Manifest, error) {
	if m, ok := f.manifests[d.Digest]; ok && (d.MediaType == "" || m.MediaType == d.MediaType) {
		return m, nil
	}
	m, err := f.budget.Manifest(f.ctx, f.in, d)
	if err != nil {
		return m, err
	}
	f.manifests[d.Digest] = m
	return m, nil
}

// missing returns the error for a digest whose manifest is not in the layout: err
// if the layout names it nevertheless.
func (f *finder) missing(l *Layout, digest string, err error) error {
	found, listErr := f.layout(l)
	missing := &NotFoundError{Want: digest, Err: listErr}
	for _, d := range found {
		if d.Digest == digest {
			return err
		}
		missing.Available = append(missing.Available, describe(d))
	}
	if f.ctx.Err() != nil {
		return f.ctx.Err()
	}
	return missing
}

// choose returns the only image for a platform among entries and the indexes in
// them.
func (f *finder) choose(entries []Descriptor, p Platform) (Manifest, error) {
	images, err := f.images(nil, entries, 1)
	if err != nil {
		return Manifest{}, err
	}
	digests := map[string]bool{} // one image may be named for several platforms
	for _, d := range images {
		digests[d.Digest] = true
	}
	refused := &PlatformError{Platform: p}
	var matching []Descriptor
	for _, d := range images {
		refused.Available = append(refused.Available, describe(d))
		sole := d.Platform == nil && len(digests) == 1
		fits := d.Platform != nil && p.accepts(*d.Platform)
		if (p == (Platform{}) || sole || fits) && digests[d.Digest] {
			matching = append(matching, d)
			digests[d.Digest] = false // once is enough
		}
	}
	refused.Matching = len(matching)
	if refused.Matching != 1 {
		return Manifest{}, refused
	}
	m, err := f.read(matching[0])
	if err == nil && m.IsIndex() {
		err = fmt.Errorf("manifest %s is an index, which its entry does not say", m.Digest)
	}
	return m, err
}

// images appends the images among entries and the indexes in them.
func (f *finder) images(images, entries []Descriptor, depth int) ([]Descriptor, error) {
	if err := f.budget.see(entries, depth); err != nil {
		return nil, err
	}
	for _, d := range entries {
		switch {
		case isArtifact(d):
		case isIndex(d.MediaType):
			m, err := f.read(d)
			if err == nil {
				images, err = f.images(images, m.Manifests, depth+1)
			}
			if err != nil {
				return nil, err
			}
		case isImage(d.MediaType) || d.MediaType == "":
			images = append(images, d)
		}
	}
	return images, nil
}

// isArtifact reports whether an entry is about another, such as an attestation, and
// no image.
func isArtifact(d Descriptor) bool {
	switch d.ArtifactType {
	case "", "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json":
	default:
		return true
	}
	return d.Annotations["vnd.docker.reference.type"] == "attestation-manifest" ||
		d.Platform != nil && d.Platform.OS == "unknown" && d.Platform.Architecture == "unknown"
}
