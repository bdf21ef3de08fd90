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
// A [Catalog] is the contents, which package olm resolves from, and a list of
// what is wrong with them. A fault hides nothing else: [Catalog.Problems] are
// what the catalog tools refuse, in their words and with file, document and line;
// [Catalog.Warnings] are what only a resolution stumbles over; and
// [Catalog.Validate] is the answer of "opm validate". [Options.Strict] makes the
// first problem the error.
//
//	c, err := catalog.Load(ctx, os.DirFS("catalog"), catalog.Options{})
//	snapshot.Catalogs = []olm.SnapshotCatalog{{Key: key, Contents: c.Contents}}
//
// [NewPicture] draws the update graph of a package, for Graphviz or Mermaid. Ways
// through channels are methods of [olm.Contents].
//
// # Concurrent use
//
// A catalog is immutable and safe for concurrent use. The other types are plain
// data: safe for concurrent use while nobody changes them.
//
// # Limits
//
//	limit                              default  field                         past it
//	bytes of a file or stream          1 GiB    Options.MaxFileBytes      error
//	bytes of an object                 64 MiB   Options.MaxDocumentBytes  error
//	memory of an object                256 MiB  -                             error
//	memory of all objects              4 GiB    Options.MaxMemory             error
//	files                              100,000  Options.MaxFiles          error
//	objects                            1000000  Options.MaxDocuments      error
//	levels of nesting                  200      Options.MaxDepth          error
//	YAML aliases in an object          1,000    Options.MaxAliases        error
//	problems of a catalog              10,000   Options.MaxProblems       error
//	message of a problem               32 KiB   -                             says how many bytes are left out
//
// Source: operator-framework/operator-registry, alpha/declcfg.
package catalog
