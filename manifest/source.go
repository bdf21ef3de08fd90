package manifest

import (
	"context"
	"io/fs"

	configv1 "github.com/openshift/api/config/v1"
)

// PayloadSource supplies the contents of release images.
//
// A source may also have the optional abilities [Discarder] and
// [InitialReleaser]; users of a source look for them by type assertion.
type PayloadSource interface {
	// Payload returns the contents of the release's image: a file system with
	// the directories manifests and release-manifests at its root. The release
	// has at least an image. Files must not change while they are read; a
	// source that returned another image's contents would have them applied,
	// since signatures are verified for the image's digest only. It must be
	// safe for concurrent use.
	Payload(ctx context.Context, r configv1.Release) (fs.FS, error)
}

// PayloadSourceFunc is a function as a [PayloadSource].
type PayloadSourceFunc func(ctx context.Context, r configv1.Release) (fs.FS, error)

// Payload calls f.
func (f PayloadSourceFunc) Payload(ctx context.Context, r configv1.Release) (fs.FS, error) {
	return f(ctx, r)
}

// Discarder is an optional ability of a [PayloadSource] that keeps copies: it
// drops the copy of a payload that was found to be invalid, so that the next
// call of Payload retrieves it anew.
type Discarder interface {
	Discard(ctx context.Context, r configv1.Release) error
}

// InitialReleaser is an optional ability of a [PayloadSource]: it names the
// release that a cluster without any history runs.
type InitialReleaser interface {
	InitialRelease(ctx context.Context) (configv1.Release, error)
}
