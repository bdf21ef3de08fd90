// Package image reads release payloads out of container images, without a
// cluster: from OCI image layouts and mirrors on disk as mirroring tools write them,
// and from whatever else holds manifests and layers. A [Source] is a
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
// [Source.Image] finds any image, such as a catalog or a bundle of operators, and has its
// labels and files.
//
// # What is read
//
// [Open] and [FromFS] read, in place and without unpacking it, what lies in a
// directory in a form of this list:
//
//	oci-layout, index.json, blobs           an OCI image layout
//	v2/<repository>/{manifests,blobs}       oc adm release mirror --to-dir, oc image mirror file://
//	mirror_000001.tar, mirror_000002.tar    archives of oc-mirror, which are read as one
//	docker/registry/v2                      the cache of oc-mirror, and the storage of registries
//
// Open also reads a tar file of one of them. Archives of oc-mirror are incremental: the
// error for what only an earlier archive holds says so. [FromStore] reads from a
// [Store]; the module github.com/clusterupdate/clusterupdate/manifest/image/registry
// makes one of a registry.
//
// # What is believed
//
// The digest in the pull spec of the wanted release, and nothing else. It is an
// index's, from which Options.Platform chooses, or an image's. What has another
// digest is refused. The index names its images by digest and size, the image its
// layers, and each is compared with its name before anything is made of it; the
// result of layers that turn out to be others is dropped. Names of repositories and
// tags do not matter: a mirror has others.
//
// # What comes of it
//
// A file system in memory with the directories manifests and release-manifests, as
// the layers make it together: later layers replace, and whiteouts remove, what
// earlier ones made. Symbolic links are followed within the tree. Refused, by their
// names, are: a name or link that leads out of the tree, a hard link to what is not
// kept, a device among the manifests, a file below something that is not a
// directory. Layers may be compressed by gzip; those of other media types, such as
// zstd, are refused by their type.
//
// # Limits
//
// A passed limit is a [*LimitError] with the name of the field.
//
// docs/limits.md lists the limits of this package.
//
// # Formats
//
// https://github.com/opencontainers/image-spec and
// https://github.com/distribution/distribution.
//
// Types without hidden fields are plain data: safe to read from many goroutines at
// a time, not to change while others read.
package image
