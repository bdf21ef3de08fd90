package image

import (
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/options"
)

// Store holds manifests and blobs by their digests, such as a registry: its methods
// Manifest and Blob open one of a repository, which is the name in the pull spec of the
// wanted release. What they return is verified, so that an implementation need not do
// so. It must be safe for concurrent use.
type Store = oci.Store

// FromStore reads images from a store. A negative option is an error.
func FromStore(s Store, o Options) (*Source, error) {
	if err := options.NonNegative(o); err != nil {
		return nil, err
	}
	return &Source{name: nameOf(o), o: o, store: s}, nil
}
