// Package image reads release payloads from container images, without a cluster: from
// OCI image layouts and mirrors on disk, and from any other store of manifests and
// layers. A [Source] is a manifest.PayloadSource, so whatever takes payloads takes a
// mirrored release. [Source.Image] has the labels and files of any image, such as a
// catalog or a bundle of operators.
//
// [Open] and [FromFS] read, in place and without unpacking it, what lies in a
// directory in one of these forms:
//
//	oci-layout, index.json, blobs           an OCI image layout
//	v2/<repository>/{manifests,blobs}       oc adm release mirror --to-dir, oc image mirror file://
//	mirror_000001.tar, mirror_000002.tar    archives of oc-mirror, which are read as one
//	docker/registry/v2                      the cache of oc-mirror, and the storage of registries
//
// Open also reads a tar file of one of them. Archives of oc-mirror are incremental: the
// error for what only an earlier archive has says so. [FromStore] reads from a [Store];
// the module github.com/clusterupdate/clusterupdate/manifest/image/registry makes one of
// a registry.
//
// The only thing that is trusted is the digest in the pull spec of the wanted release,
// which is that of an image, or of an index from which Options.Platform chooses. The
// index names its images by digest and size, the image its layers, and each is compared
// with its name before it is used. Names of repositories and tags do not matter, since a
// mirror has others.
//
// A payload is a file system in memory with the directories manifests and
// release-manifests, as the layers make it together: later layers replace, and
// whiteouts remove, files of earlier ones. Symbolic links are followed within the tree.
// A name or link that leads out of the tree, a hard link to a file that is not kept, a
// device among the manifests, and a file below something that is not a directory are
// refused by name. Layers may be compressed by gzip; those of other media types, such as
// zstd, are refused by type.
//
// An error of a limit is a [*LimitError] with the name of the field. docs/limits.md
// lists them.
//
// Formats: https://github.com/opencontainers/image-spec and
// https://github.com/distribution/distribution.
//
// Types without hidden fields are plain data, safe for concurrent use as long as nobody
// changes them.
package image
