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
// "opm validate". [Options.Strict] makes the first problem the error.
//
//	c, err := catalog.Load(ctx, os.DirFS("catalog"), catalog.Options{})
//	snapshot.Catalogs = []olm.SnapshotCatalog{{Key: key, Contents: c.Contents}}
//
// [NewPicture] draws the update graph of a package, for Graphviz or Mermaid. Ways
// through channels are methods of [olm.Contents].
//
// # Rules
//
// A [Problem] names the rule that is broken. Each of the first group makes the
// catalog tools refuse a catalog at once, and they collect those of the second into
// one message; only [Catalog.Warnings] have those of the third:
//
//	Syntax              no JSON or YAML object, or a field of the wrong type
//	Schema              object without a schema
//	Keys                keys that differ by case only
//	PackageName         none, twice, or no DNS label
//	ChannelName         none, twice, or of an unknown package
//	EntryName           none or twice in a channel
//	BundleName          twice, or of no or an unknown package
//	Properties          malformed, or not exactly one olm.package that fits
//	Image               no image reference
//	Version             no strict semantic version, or a bad release
//	UnusedBundle        in no channel
//	MissingBundle       entries without a bundle
//	Deprecation         malformed, or of something that does not exist
//
//	DefaultChannel      none, or one that does not exist
//	NoChannel           package without a channel
//	NoEntry             channel without an entry
//	Heads               not exactly one head
//	Cycle               in the chain of replacements
//	Stranded            entries that the chain does not reach
//	Skips               an empty one
//	SkipRange           no range of versions
//	NoImage             neither an image nor objects
//	Release             name or version do not fit the release
//	SameVersion         several bundles of one version
//	DeprecationMessage  deprecation without one
//
//	Requirement         cannot be read: who reaches the bundle is stuck
//	IgnoredKeys         a constraint's element has several keys; one counts
//	Number              olm.maxOpenShiftVersion is a number: 4.10 becomes 4.1
//
// # Concurrent use
//
// A catalog is immutable and safe for concurrent use. The other types are plain
// data: safe for concurrent use while nobody changes them.
//
// docs/limits.md lists the limits of this package.
//
// Source: operator-framework/operator-registry, alpha/declcfg.
package catalog
