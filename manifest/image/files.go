package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/internal/oci"
)

// Image is an image that a [Source] has found. Its manifest and configuration are
// verified; [Image.Files] reads its layers. It is immutable and safe for concurrent use
// if what the source reads from is.
type Image struct {
	// Digest is the image's, not the digest of an index that has it.
	Digest string
	// Labels are those of its configuration.
	Labels map[string]string

	source *Source
	in     oci.Repository
	layers []oci.Descriptor
}

// Resolve returns a pull spec with the digest that the source has for the tag of
// another; one that has a digest stays as it is. Nothing verifies which digest a tag
// has. Errors are those of reading, [*LimitError], and of a pull spec that has
// neither.
func (s *Source) Resolve(ctx context.Context, pullSpec string) (string, error) {
	ref, err := imageref.Parse(pullSpec)
	if err == nil && ref.Digest == "" && ref.Tag == "" {
		err = errors.New("it has neither a digest nor a tag")
	}
	if err != nil {
		return "", fmt.Errorf("pull spec %s: %w", bounded.Quote(pullSpec), err)
	}
	if ref.Digest != "" {
		return pullSpec, nil
	}
	b, err := oci.NewBudget(s.o.Limits)
	if err != nil {
		return "", err
	}
	digest, err := b.Resolve(ctx, oci.Repository{Store: s.store, Name: ref.Name}, ref.Tag)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", s.name, bounded.Quote(pullSpec), err)
	}
	return ref.Name + "@" + digest, nil
}

// Image finds the image whose digest a pull spec has, or the one that an index of this
// digest has for Options.Platform. The errors are those of [Source.Payload].
func (s *Source) Image(ctx context.Context, pullSpec string) (*Image, error) {
	i, m, err := s.find(ctx, pullSpec)
	if err != nil {
		return nil, err
	}
	i.Labels, err = labels(ctx, i.in, m, s.o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.name, i.Digest, err)
	}
	return i, nil
}

// find finds an image, without its labels.
func (s *Source) find(ctx context.Context, pullSpec string) (*Image, oci.Manifest, error) {
	ref, err := imageref.Parse(pullSpec)
	if err == nil && ref.Digest == "" {
		err = errors.New("it has no digest by which the image could be verified")
	}
	if err != nil {
		return nil, oci.Manifest{}, fmt.Errorf("pull spec %s: %w", bounded.Quote(pullSpec), err)
	}
	in := oci.Repository{Store: s.store, Name: ref.Name}
	m, err := oci.Find(ctx, in, oci.Want{Digest: ref.Digest, Platform: s.o.Platform}, s.o.Limits)
	if err != nil {
		return nil, m, fmt.Errorf("%s: %s: %w", s.name, ref.Digest, err)
	}
	return &Image{Digest: m.Digest, source: s, in: in, layers: m.Layers}, m, nil
}

// labels reads those of an image's configuration; an image without one has none.
func labels(ctx context.Context, in oci.Repository, m oci.Manifest, l Limits) (map[string]string, error) {
	if m.Config == nil {
		return nil, nil
	}
	b, err := oci.NewBudget(l)
	if err != nil {
		return nil, err
	}
	var config struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	if err := b.Config(ctx, in, *m.Config, &config); err != nil {
		return nil, fmt.Errorf("unable to read the configuration %s: %w", m.Config.Digest, err)
	}
	return config.Config.Labels, nil
}

// Files reads all layers, and returns what the image has at and below some paths, such as
// "manifests". It is held in memory, and safe for concurrent use. Paths that the image
// lacks are not there. Errors are [*DigestError], [*LimitError] and those of reading.
func (i *Image) Files(ctx context.Context, paths ...string) (fs.FS, error) {
	fsys, err := oci.Unpack(ctx, i.in, i.layers, paths, i.source.o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", i.source.name, i.Digest, err)
	}
	return fsys, nil
}
