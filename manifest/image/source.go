package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/bounded"
	"github.com/clusterupdate/clusterupdate/internal/imageref"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Source reads payloads out of images. It implements manifest.PayloadSource, keeps
// nothing that it has read, and is safe for concurrent use if what it reads from
// is. Make one with [Open], [FromFS], [FromTar] or [FromStore].
type Source struct {
	name   string
	o      Options
	layout *oci.Layout        // may be nil
	docker *oci.DockerArchive // may be nil
	store  Store              // may be nil
	place  io.Closer          // may be nil
}

var _ manifest.PayloadSource = (*Source)(nil)

// payloadDirs are the directories of an image that make its payload.
var payloadDirs = []string{"manifests", "release-manifests"}

// Open opens a directory or a tar file with an OCI image layout or an archive of
// docker save. Close it when it is no longer read. Links that lead out of the
// directory are not followed. A place that holds neither is an error, and so are a
// compressed tar file and a negative option.
func Open(place string, o Options) (*Source, error) {
	o.Name = cmp.Or(o.Name, place)
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		root, err := os.OpenRoot(place)
		if err != nil {
			return nil, err
		}
		s, err := FromFS(root.FS(), o)
		return s.closing(root, err)
	case info.Mode().IsRegular():
		f, err := os.Open(place)
		if err != nil {
			return nil, err
		}
		s, err := FromTar(f, info.Size(), o)
		return s.closing(f, err)
	}
	return nil, fmt.Errorf("%s is neither a directory nor a regular file", place)
}

// closing returns a source that closes what it has been opened from, or closes
// that at once if it could not be opened.
func (s *Source) closing(place io.Closer, err error) (*Source, error) {
	if err != nil {
		return nil, errors.Join(err, place.Close())
	}
	s.place = place
	return s, nil
}

// FromTar reads a tar file with an OCI image layout or an archive of docker save.
// size is in bytes. The errors are those of [Open].
func FromTar(r io.ReaderAt, size int64, o Options) (*Source, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	fsys, err := oci.OpenTar(r, size, oci.Limits(o.Limits))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(o), err)
	}
	return FromFS(fsys, o)
}

// FromFS reads a file system with an OCI image layout or an archive of docker save
// at its root. The errors are those of [Open].
func FromFS(fsys fs.FS, o Options) (*Source, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	s := &Source{name: nameOf(o), o: o}
	if oci.HasLayout(fsys) {
		s.layout = &oci.Layout{FS: fsys, Name: "the layout"}
	}
	if oci.HasDockerArchive(fsys) {
		s.docker = &oci.DockerArchive{FS: fsys, Name: "the archive"}
	}
	if s.layout == nil && s.docker == nil {
		return nil, fmt.Errorf("%s has neither oci-layout nor manifest.json: it is neither an image layout nor an archive of docker save", s.name)
	}
	return s, nil
}

func nameOf(o Options) string { return cmp.Or(o.Name, "image source") }

// String returns the source's name.
func (s *Source) String() string { return s.name }

// Close closes the directory or file that [Open] opened, and does nothing for other sources. The
// payloads that have been read stay.
func (s *Source) Close() error {
	if s.place == nil {
		return nil
	}
	return s.place.Close()
}

// Payload implements manifest.PayloadSource: it returns the payload of the image
// whose digest the release's pull spec has. A pull spec without a digest is an
// error, since what is had by a name alone cannot be verified. Further errors are
// [*NotFoundError], [*PlatformError], [*DigestError] and [*LimitError], and those
// of reading. Each call reads the image again.
func (s *Source) Payload(ctx context.Context, r configv1.Release) (fs.FS, error) {
	ref, err := imageref.Parse(r.Image)
	if err == nil && ref.Digest == "" {
		err = errors.New("it has no digest by which the image could be verified")
	}
	if err != nil {
		return nil, fmt.Errorf("pull spec %s: %w", bounded.Quote(r.Image), err)
	}
	fsys, err := s.payload(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.name, ref.Digest, err)
	}
	return fsys, nil
}

func (s *Source) payload(ctx context.Context, ref imageref.Reference) (fs.FS, error) {
	want := oci.Want{Digest: ref.Digest, Platform: s.o.Platform}
	if s.layout == nil && s.docker != nil {
		return s.docker.Unpack(ctx, want, s.o.Manifests, payloadDirs, oci.Limits(s.o.Limits))
	}
	fsys, err := s.unpack(ctx, ref, want)
	if missing := (*NotFoundError)(nil); s.docker == nil || !errors.As(err, &missing) && !errors.Is(err, fs.ErrNotExist) {
		return fsys, err
	}
	// New versions of docker save write both, the layout with other manifests
	// and layers than those of the registry.
	fsys, dockerErr := s.docker.Unpack(ctx, want, s.o.Manifests, payloadDirs, oci.Limits(s.o.Limits))
	if missing := (*NotFoundError)(nil); errors.As(dockerErr, &missing) {
		return nil, err
	}
	return fsys, dockerErr
}

// unpack returns the payload of an image in a layout or store.
func (s *Source) unpack(ctx context.Context, ref imageref.Reference, want oci.Want) (fs.FS, error) {
	limits := oci.Limits(s.o.Limits)
	var below oci.Source
	var entries []oci.Descriptor
	manifests := s.o.Manifests
	if s.layout != nil {
		var err error
		if entries, err = s.layout.Entries(limits); err != nil {
			return nil, err
		}
		below = s.layout
	} else {
		from := &storeReader{store: s.store, repository: ref.Name}
		if _, known := oci.Overlay(nil, manifests, ref.Digest); len(known) == 0 {
			root, err := from.root(ctx, ref.Digest, limits)
			if err != nil {
				return nil, err
			}
			manifests = append(manifests[:len(manifests):len(manifests)], root)
		}
		below = from
	}
	src, own := oci.Overlay(below, manifests, ref.Digest)
	image, err := oci.Find(ctx, src, append(own, entries...), want, limits)
	if err != nil {
		return nil, err
	}
	return oci.Unpack(ctx, src, image, payloadDirs, limits)
}
