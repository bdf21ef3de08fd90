package manifest

import (
	"context"
	"io/fs"

	configv1 "github.com/openshift/api/config/v1"
)

// PayloadSource supplies the contents of release images. It must be safe for
// concurrent use.
//
// A source may also have the optional abilities [Discarder] and
// [InitialReleaser]; users of a source look for them by type assertion.
type PayloadSource interface {
	// Payload returns the contents of the release's image: a file system with
	// the directories manifests and release-manifests at its root. The release
	// has at least an image. Files must not change while they are read. A
	// source that returned another image's contents would have them applied,
	// since signatures are verified for the image's digest only.
	//
	// An error explains why the contents cannot be had; the update waits and tries
	// again. When ctx ends, Payload returns its error soon.
	Payload(ctx context.Context, r configv1.Release) (fs.FS, error)
}

// PayloadSourceFunc is a function as a [PayloadSource]. It must be safe for
// concurrent use and returns the errors of [PayloadSource].
type PayloadSourceFunc func(ctx context.Context, r configv1.Release) (fs.FS, error)

// Payload calls f and returns its error.
func (f PayloadSourceFunc) Payload(ctx context.Context, r configv1.Release) (fs.FS, error) {
	return f(ctx, r)
}

// Discarder is an optional ability of a [PayloadSource] that keeps copies. It
// must be safe for concurrent use.
type Discarder interface {
	// Discard drops the copy of a payload that was found to be invalid, so that
	// the next call of Payload retrieves it again. A release without a copy is
	// not an error; one whose copy cannot be dropped is.
	Discard(ctx context.Context, r configv1.Release) error
}

// InitialReleaser is an optional ability of a [PayloadSource]. It must be safe
// for concurrent use.
type InitialReleaser interface {
	// InitialRelease names the release that a cluster without any history runs. An
	// error explains why it is not known.
	InitialRelease(ctx context.Context) (configv1.Release, error)
}
