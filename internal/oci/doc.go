// Package oci reads container images from files, without unpacking them: OCI image
// layouts, the trees that oc adm release mirror and oc image mirror write, and the
// archives and caches of oc-mirror. [OpenLayout] opens them, [Find] finds an image
// by its digest, and [Unpack] merges its layers to a file system in memory. A
// [Store] is anything else that holds images, such as a registry.
//
// Everything that is read is compared with the digest and size by which something
// verified names it: the caller's digest names an index or a manifest, an index
// names manifests, a manifest names layers. Layers are streamed, and what they made
// is dropped if the end shows that they differ from their names. Nothing is written
// to disk.
//
// Formats: https://github.com/opencontainers/image-spec (image-layout.md,
// image-index.md, manifest.md, layer.md) and
// https://github.com/distribution/distribution.
package oci
