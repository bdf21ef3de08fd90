package image

import (
	"cmp"
	"context"
	"io"
	"io/fs"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
	"github.com/clusterupdate/clusterupdate/manifest"
)

// Source reads payloads out of images. It implements manifest.PayloadSource, keeps
// nothing that it has read, and is safe for concurrent use if what it reads from
// is. Make one with [Open], [FromFS] or [FromStore].
type Source struct {
	name  string
	o     Options
	store Store
	place io.Closer // may be nil
}

var _ manifest.PayloadSource = (*Source)(nil)

// payloadDirs are the directories of an image that make its payload.
var payloadDirs = []string{"manifests", "release-manifests"}

// Open opens a directory or a tar file in one of the forms that the package's doc
// lists. Close it after the last read. Links that lead out of the directory are
// not followed. A place that holds none of the forms is an error, and so are a
// compressed tar file and a negative option.
func Open(place string, o Options) (*Source, error) {
	o.Name = cmp.Or(o.Name, place)
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	layout, closer, err := oci.Open(place, o.Name, o.Limits)
	if err != nil {
		return nil, err
	}
	return &Source{name: o.Name, o: o, store: layout, place: closer}, nil
}

// FromFS reads a file system in one of the forms that the package's doc lists. The
// errors are those of [Open].
func FromFS(fsys fs.FS, o Options) (*Source, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	layout, err := oci.OpenLayout(fsys, nameOf(o), o.Limits)
	if err != nil {
		return nil, err
	}
	return FromStore(layout, o)
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
	i, _, err := s.find(ctx, r.Image)
	if err != nil {
		return nil, err
	}
	return i.Files(ctx, payloadDirs...)
}
