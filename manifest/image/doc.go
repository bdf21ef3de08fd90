// Package image reads release payloads out of container images, without a
// cluster: from OCI image layouts and archives as mirroring tools write them, and
// from whatever else holds manifests and layers. A [Source] is a
// manifest.PayloadSource, so that everything which takes payloads takes a mirrored
// release:
//
//	src, err := image.Open("mirror/release.tar", image.Options{Platform: image.Platform{Architecture: "amd64"}})
//	...
//	defer src.Close()
//	fsys, err := src.Payload(ctx, configv1.Release{Image: "quay.io/openshift-release-dev/ocp-release@sha256:..."})
//	...
//	p, err := manifest.Load(ctx, fsys, manifest.LoadOptions{})
//
// # What is read
//
// [Open] and [FromFS] read an OCI image layout, a directory with oci-layout,
// index.json and blobs. [Open] and [FromTar] read a tar file of one, in place and
// without unpacking it. Both also read what docker save and podman save write.
// [FromStore] reads from a [Store] of the caller's; the module
// github.com/clusterupdate/clusterupdate/manifest/image/registry makes one of a
// registry.
//
// # What is believed
//
// The digest in the pull spec of the wanted release, and nothing else. It is that
// of an index, from which Options.Platform chooses, or that of an image. What has
// another digest is refused. The index names its images by digest and size, the
// image its layers, and each is compared with its name before anything is made of
// it; what came of layers that turn out to be others is dropped. Names of
// repositories and tags do not matter: a mirror has others.
//
// The archives of docker save keep no manifests. An image in one is known by its
// id, the digest of its configuration, or by its digest where Options.Manifests
// has its manifest. The same option helps where a mirror kept an image, but not
// the index by whose digest a release is known.
//
// # What comes of it
//
// A file system in memory with the directories manifests and release-manifests,
// as the layers make it together: later layers replace, and whiteouts remove, what
// earlier ones made. Symbolic links are followed within the tree. Refused, by
// their names, are: a name or link that leads out of the tree, a hard link to what
// is not kept, a device among the manifests, a file below what is no directory.
// Layers may be compressed by gzip; those of other media types, such as zstd, are
// refused by their type.
//
// # Limits
//
// A passed limit is a [*LimitError] with the name of the field:
//
//	limit                                    default    field                 past it
//	bytes of an index or manifest            4 MiB      Limits.ManifestSize   error
//	bytes of all indexes and manifests       64 MiB     Limits.ManifestsSize  error
//	entries of indexes                       10,000     Limits.Manifests      error
//	depth of indexes                         8          Limits.Depth          error
//	layers of an image                       256        Limits.Layers         error
//	bytes of a layer                         4 GiB      Limits.LayerSize      error
//	bytes of all layers, uncompressed        16 GiB     Limits.TotalSize      error
//	entries of layers, and of an archive     1,000,000  Limits.Entries        error
//	bytes of a file                          16 MiB     Limits.FileSize       error
//	bytes of what is held in memory          512 MiB    Limits.KeptSize       error
//	bytes of the name of a file              4096       -                     error
//	objects and members of an index          131072     -                     error
//
// # Formats
//
// https://github.com/opencontainers/image-spec and
// https://github.com/moby/docker-image-spec.
//
// Types without hidden fields are plain data: safe to read from many goroutines at
// a time, not to change while others read.
package image
