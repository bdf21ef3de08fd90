package image

import (
	"context"
	"io"

	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Store is where manifests and blobs are had by their digests, such as a registry.
// What it returns is verified, so that an implementation need not do so. It must be
// safe for concurrent use.
//
// repository is the name in the pull spec of the wanted release, such as
// quay.io/openshift-release-dev/ocp-release; a store may look elsewhere, such as in
// a mirror. Errors say why something cannot be had; the readers are closed, and may
// be closed before their end. When ctx ends, calls and reads return its error soon.
type Store interface {
	// Manifest opens the index or manifest with a digest. Errors are those of
	// Store.
	Manifest(ctx context.Context, repository, digest string) (io.ReadCloser, error)
	// Blob opens the layer with a digest. Errors are those of Store.
	Blob(ctx context.Context, repository, digest string) (io.ReadCloser, error)
}

// FromStore reads images from a store. A negative option is an error.
func FromStore(s Store, o Options) (*Source, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	return &Source{name: nameOf(o), o: o, store: s}, nil
}

// storeReader reads from one repository of a store.
type storeReader struct {
	store      Store
	repository string
}

// Open implements [oci.Source].
func (r *storeReader) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.IsManifest() {
		return r.store.Manifest(ctx, r.repository, d.Digest)
	}
	return r.store.Blob(ctx, r.repository, d.Digest)
}

// root returns what the wanted digest names, whose size is not known before.
func (r *storeReader) root(ctx context.Context, digest string, l oci.Limits) ([]byte, error) {
	f, err := r.store.Manifest(ctx, r.repository, digest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return oci.ReadManifest(ctx, f, digest, l)
}
