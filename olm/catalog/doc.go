// Package catalog reads, checks and draws catalogs of operators.
//
// [Load] and [Read] read file-based catalogs, the format of operator-framework's
// opm: a tree of files, or one stream, each of JSON objects or YAML documents.
// An object has one of these schemas:
//
//   - olm.package: the name of a package and its default channel
//   - olm.channel: entries, each of which names what it replaces and skips
//   - olm.bundle: an image and properties, such as the APIs that it provides
//   - olm.deprecations: messages about a package, its channels or bundles
//
// Objects of other schemas are kept as they are: see [Catalog.Others]. [New] makes
// a catalog of objects that a program has already.
//
// A [Catalog] is the contents, which package olm resolves from, and a list of their
// problems. A fault hides nothing else: [Catalog.Problems] are what the catalog
// tools refuse, in their words and with file, document and line; [Catalog.Warnings]
// are what only a resolution stumbles over; and [Catalog.Validate] is the answer of
// "opm validate". [Options.Strict] makes the first problem the error. A [Problem]
// names the rule that is broken.
//
// [NewPicture] draws the update graph of a package, for Graphviz or Mermaid. Paths
// through channels are methods of [olm.Contents].
//
// A catalog is immutable and safe for concurrent use. All else is plain data: safe
// for concurrent use while nobody changes it. docs/limits.md lists the
// limits of this package.
//
// Source: operator-framework/operator-registry, alpha/declcfg.
package catalog
