// Package oci reads container images from where they lie in files: OCI image
// layouts, as a directory or a tar file, and the archives of docker save. It
// finds the image that is wanted ([Find]), and merges its layers to a file
// system in memory ([Unpack]).
//
// Nothing that is read is believed before it has been compared with the digest
// and size by which something believed names it: the caller's digest names an
// index or a manifest, an index names manifests, a manifest names layers. Layers
// are streamed, and what became of them is dropped where the end shows that they
// are not what was named. Nothing is written to disk.
//
// A [Source] is where manifests and layers are had; registries can be sources
// as well.
//
// Formats: https://github.com/opencontainers/image-spec (image-layout.md,
// image-index.md, manifest.md, layer.md) and, for the archives of docker save,
// https://github.com/moby/docker-image-spec.
package oci
