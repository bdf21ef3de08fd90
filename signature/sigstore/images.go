package sigstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/signature"
)

// Store holds signatures as images: its methods Manifest and Blob open one of a
// repository, by digest or, a manifest, by tag. The stores of
// github.com/clusterupdate/clusterupdate/manifest/image/registry are such. One that
// also has a method Referrers, of the signature of Blob, is asked for the index of the
// manifests that refer to an image. It must be safe for concurrent use.
type Store = oci.Store

// FromStore returns the signatures that lie in a repository of a store, such as
// quay.io/openshift-release-dev/ocp-release, without tag and digest. The repository of
// an image in use may be a mirror; the policy compares the name that was signed.
// Signatures that newer versions of cosign attach as referrers are reported as
// [*OtherError]: container runtimes do not read them. A repository that is not one, and
// a negative limit, are errors.
func FromStore(s Store, repository string, l Limits) (Source, error) {
	ref, err := parseReference(repository)
	if err == nil && (ref.tag != "" || ref.digest != "") {
		err = errors.New("a repository has neither tag nor digest")
	}
	if err != nil {
		return nil, fmt.Errorf("repository %q: %w", repository, err)
	}
	if err := options.NonNegative(l); err != nil {
		return nil, err
	}
	return &images{oci.Repository{Store: s, Name: ref.name}, "repository " + ref.name, ref.name + ":", l}, nil
}

// OpenSource opens signatures in a directory or tar file with images: an OCI image
// layout, or a mirror of oc or oc-mirror. The image of the signatures is the one whose
// tag, or reference name, is sha256-<hash>.sig. A place that holds no images, a URL and a
// negative limit are errors.
func OpenSource(place string, l Limits) (Source, error) {
	if strings.Contains(place, "://") {
		return nil, fmt.Errorf("store %s: cosign signatures are read from files in an OCI image layout or mirror", place)
	}
	if err := options.NonNegative(l); err != nil {
		return nil, err
	}
	layout, _, err := oci.Open(place, place, oci.Limits{}) // what it has opened closes when it is no longer used
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return ofLayout(layout, place, l), nil
}

// OpenFS is [OpenSource] for a file system, which errors and results call by a name.
func OpenFS(fsys fs.FS, name string, l Limits) (Source, error) {
	if err := options.NonNegative(l); err != nil {
		return nil, err
	}
	layout, err := oci.OpenLayout(fsys, name, oci.Limits{})
	if err != nil {
		return nil, err
	}
	return ofLayout(layout, name, l), nil
}

func ofLayout(l *oci.Layout, name string, limits Limits) Source {
	return &images{oci.Repository{Store: l}, "images in " + name, name + " ", limits}
}

// images is signatures that lie in images.
type images struct {
	from   oci.Repository
	name   string
	place  string // begins locations
	limits Limits
}

// String implements [Source].
func (s *images) String() string { return s.name }

// Attachments implements [Source]. Signatures come before what else is attached
// to the image.
func (s *images) Attachments(ctx context.Context, digest string) iter.Seq2[Attachment, error] {
	return func(yield func(Attachment, error) bool) {
		tag, err := signatureTag(digest)
		if err != nil {
			yield(Attachment{}, err)
			return
		}
		in := &search{images: s, digest: digest, tag: tag, yield: yield}
		in.meter.Budget = s.limits.budget(s.name)
		visit := in.store
		if layout, ok := s.from.Store.(*oci.Layout); ok {
			visit = func(ctx context.Context) bool { return in.layout(ctx, layout) }
		}
		if visit(ctx) && in.signatures == 0 {
			yield(Attachment{}, fmt.Errorf("%s has no signatures under %s: %w", s, tag, signature.ErrNotFound))
		}
	}
}

// search is one search for the signatures of an image. Its methods return false if
// nothing more is wanted.
type search struct {
	images     *images
	digest     string // of the image that is signed
	tag        string
	yield      func(Attachment, error) bool
	meter      limit.Meter
	signatures int
}

// fail yields the failure to read something; it returns false if it ends the search.
func (s *search) fail(ctx context.Context, location string, err error) bool {
	if ctx.Err() != nil {
		s.yield(Attachment{}, ctx.Err())
		return false
	}
	return s.yield(Attachment{Location: location}, err) && !spent(err)
}

// candidate counts one more manifest that may be a signature.
func (s *search) candidate(ctx context.Context) bool {
	err := ctx.Err()
	if err == nil {
		err = s.meter.Spend(limit.Usage{Entries: 1})
	}
	return err == nil || s.fail(ctx, "", err)
}

// layout takes the signatures of images in files.
func (s *search) layout(ctx context.Context, l *oci.Layout) bool {
	entries, err := l.Entries()
	if err != nil {
		s.fail(ctx, "", err)
		return false
	}
	var bundles []oci.Descriptor
	for _, d := range entries {
		name := d.Annotations[oci.RefName]
		switch {
		case isBundle(d):
			bundles = append(bundles, d)
			continue
		case name != s.tag && !strings.HasSuffix(name, ":"+s.tag):
			continue
		case !s.candidate(ctx):
			return false
		}
		location := s.images.place + short(name)
		m, err := s.manifest(ctx, d)
		if err == nil && !s.layers(ctx, location, m) || err != nil && !s.fail(ctx, location, err) {
			return false
		}
	}
	for _, d := range bundles {
		if !s.candidate(ctx) {
			return false
		}
		m, err := s.manifest(ctx, d)
		if spent(err) {
			return s.fail(ctx, "", err)
		}
		about := err == nil && m.Subject != nil && m.Subject.Digest == s.digest
		if about && !s.other(ctx, s.images.place+short(d.Digest), d.ArtifactType) {
			return false
		}
	}
	return true
}

// store takes the signatures in a repository.
func (s *search) store(ctx context.Context) bool {
	location := s.images.place + s.tag
	data, err := s.images.from.Tagged(ctx, s.tag, manifestLimit, &s.meter)
	m, parseErr := parseManifest(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil: // a registry that does not answer is not asked for more
		s.fail(ctx, location, fmt.Errorf("unable to read %s: %w", location, err))
		return false
	case parseErr != nil:
		s.fail(ctx, location, fmt.Errorf("unable to read %s: %w", location, parseErr))
		return false
	case m.MediaType != "" && m.MediaType != oci.TypeManifest:
		if !s.other(ctx, location, m.MediaType) {
			return false
		}
	case !s.layers(ctx, location, m):
		return false
	}
	found, err := s.referrers(ctx)
	if spent(err) {
		return s.fail(ctx, "", err)
	}
	for _, d := range found {
		if !isBundle(d) {
			continue
		}
		if !s.candidate(ctx) || !s.other(ctx, s.images.from.Name+"@"+short(d.Digest), d.ArtifactType) {
			return false
		}
	}
	return true
}

// referrers lists what has been attached to the image: by the registry's API, or under the
// tag that takes its place in older registries. That is only reported, so that most
// failures do not matter.
func (s *search) referrers(ctx context.Context) ([]oci.Descriptor, error) {
	from := s.images.from
	if api, ok := from.Store.(interface {
		Referrers(ctx context.Context, repository, digest string) (io.ReadCloser, error)
	}); ok {
		if f, err := api.Referrers(ctx, from.Name, s.digest); err == nil {
			data, err := oci.Read(ctx, f, manifestLimit, &s.meter)
			_ = f.Close() // all has been read
			if m, parseErr := parseManifest(data); err != nil || parseErr == nil {
				return m.Manifests, err
			}
		}
	}
	data, err := from.Tagged(ctx, strings.TrimSuffix(s.tag, ".sig"), manifestLimit, &s.meter)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(data)
	return m.Manifests, err
}

// manifest reads a manifest that an entry of a layout names.
func (s *search) manifest(ctx context.Context, d oci.Descriptor) (oci.Manifest, error) {
	if d.MediaType != "" && d.MediaType != oci.TypeManifest {
		return oci.Manifest{}, &OtherError{Location: s.images.place + short(d.Digest), MediaType: short(d.MediaType)}
	}
	data, err := s.images.from.Manifest(ctx, d, manifestLimit, &s.meter)
	var m oci.Manifest
	if err == nil {
		m, err = parseManifest(data)
	}
	if err != nil {
		return m, fmt.Errorf("unable to read manifest %s: %w", short(d.Digest), err)
	}
	return m, nil
}

// layers takes the signatures in the layers of an image.
func (s *search) layers(ctx context.Context, image string, m oci.Manifest) bool {
	for i, layer := range m.Layers {
		location := fmt.Sprintf("%s layer %d", image, i+1)
		if ctx.Err() != nil || s.signatures == maxLayers || i == maxLayers {
			what := fmt.Sprintf("layers for %s in %s", s.digest, short(s.images.name))
			s.fail(ctx, location, &limit.LimitError{Max: maxLayers, What: what})
			return false
		}
		if layer.MediaType != layerType {
			if !s.other(ctx, location, layer.MediaType) {
				return false
			}
			continue
		}
		s.signatures++
		a := Attachment{Annotations: layer.Annotations, Location: location, Number: s.signatures}
		err := limit.Limit{Max: maxAnnotations, What: "annotations"}.Check(int64(len(layer.Annotations)))
		if err != nil {
			a.Annotations = nil
		} else {
			a.Payload, err = s.images.from.Blob(ctx, layer, payloadLimit, &s.meter)
		}
		if err != nil {
			a.Payload = nil
			err = fmt.Errorf("unable to read %s: %w", location, err)
		}
		if !s.yield(a, err) || spent(err) {
			return false
		}
	}
	return true
}

// other reports something that is not a signature of a kind read here.
func (s *search) other(ctx context.Context, location, mediaType string) bool {
	return s.fail(ctx, location, &OtherError{Location: location, MediaType: short(mediaType)})
}

// isBundle reports whether this is a bundle of newer versions of cosign.
func isBundle(d oci.Descriptor) bool {
	return strings.HasPrefix(d.ArtifactType, "application/vnd.dev.sigstore.bundle")
}
