// Package catalog reads, checks and draws catalogs of operators.
//
// [Load] and [Read] read file-based catalogs, the format of
// operator-framework's opm: a tree of files, each a stream of JSON or YAML with
// objects of the schemas olm.package, olm.channel, olm.bundle and
// olm.deprecations. [olm.Contents] are ordered and indexed once, immutable, and
// shared by all resolutions. Its faults do not hide the rest: see
// [Catalog.Problems].
//
// # Limits
//
//	limit                              default  field                         past it
//	bytes of a file or stream          1 GiB    Options.MaxFileBytes      error
//	bytes of an object                 64 MiB   Options.MaxDocumentBytes  error
//	files                              100,000  Options.MaxFiles          error
//	objects                            1000000  Options.MaxDocuments      error
//	levels of nesting                  200      Options.MaxDepth          error
//	YAML aliases in an object          1,000    Options.MaxAliases        error
//	problems of a catalog              10,000   Options.MaxProblems       error
//	message of a problem               32 KiB   -                             says how many bytes are left out
//
// Source: operator-framework/operator-registry, alpha/declcfg.
package catalog
