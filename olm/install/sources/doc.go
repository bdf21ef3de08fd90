// Package sources reads what package install installs: catalogs out of gRPC registries
// and images, and bundles out of images.
//
// [NewRegistry] asks the registry of a CatalogSource, as OLM does. [NewImage] reads a
// file-based catalog out of its image, so that no registry has to run. Both return a
// [Catalog], which is an olm.Catalog. An [Unpacker] reads bundle images, in the place of
// OLM's unpack jobs.
//
// Images come from an image.Source: registries, image layouts, mirrors on disk.
// The example of the package puts all three together.
//
// # What is believed
//
// Manifests, configurations and layers are compared with their digests. Which digest a tag
// has is what the registry says: catalogs are named by tags, bundles are only if
// UnpackerOptions.Tags allows it. A gRPC registry is believed as it is: by its address, or
// by its certificate with RegistryOptions.TLS.
//
// # Bundles
//
// A bundle is of the format registry+v1, as labels of the image or
// metadata/annotations.yaml say, and the two must not differ. Its objects are the files of
// one directory, manifests unless the labels name another; of a file the first document, as
// OLM has it. A file that is not called .yaml, .yml or .json and holds no object, such as a
// README, is left out. The only ClusterServiceVersion is the one that the catalog names.
//
// Limits of images are those of package image, limits of catalogs in images those of
// package catalog. docs/limits.md lists the limits of this package.
//
// A [Catalog] and an [Unpacker] are safe for concurrent use. Options are plain data: safe
// for concurrent use while nobody changes them.
//
// Source: operator-framework/operator-registry, pkg/api and pkg/lib/bundle;
// operator-framework/operator-lifecycle-manager, pkg/controller/registry.
package sources
