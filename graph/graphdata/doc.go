// Package graphdata builds update graphs from releases and a tree of files such as
// https://github.com/openshift/cincinnati-graph-data.
//
// A release names the versions that may update to it. The tree has what people
// decide by review:
//
//	version                    the schema version, e.g. 1.1.0
//	channels/NAME.yaml         which releases are in a channel
//	blocked-edges/NAME.yaml    updates to a release that are removed, or conditional
//	raw/metadata.json          metadata for old releases
//	internal-channels/*.yaml   channels that feed the public ones (LoadOptions.InternalChannels)
//	build-suggestions/*.yaml   what a build names as predecessors of a release
//
// [Load] reads a [Tree] from any file system: a checkout, an archive
// ([OpenArchive]), files in memory. It is strict, since a file that it ignored would
// leave updates open that somebody meant to block. A [*LoadError] has all faults, each
// with its file, line and field; [Tree.Problems] has what is legal and still odd.
//
// [Collect] reads a list of [Release] from sources: [Lines] of JSON, extracted
// [Payloads], a [Layout] of images, the [Stored] graph of a builder.
//
// [Build] is a pure function of both, in this order:
//
//  1. each release, and each version that a release names, becomes a node;
//  2. raw metadata are added, blocked edges find their targets, channels go into the
//     metadata;
//  3. predecessors and successors of releases become edges, and metadata add more;
//  4. edges that a blocked edge or metadata remove are removed; those left that a
//     risk matches become conditional, under all risks that match.
//
// Its result is a [Snapshot] of all channels and architectures. [Snapshot.Graph]
// returns the graph of one channel and architecture, [Snapshot.Why] says for one
// update who declares it and which file and line removes it or makes it conditional,
// and [Snapshot.Report] lists what names no release. Equal input gives equal bytes.
//
// The update service of https://github.com/openshift/cincinnati differs in points that
// compat.go and buildcompat.go list; the options named Compat do what it does, for
// comparisons. docs/paths.md shows the files of a tree. Package maintain compares
// snapshots and checks trees.
//
// A [Snapshot] is safe for concurrent use. Other types are plain data.
// docs/limits.md lists the limits.
package graphdata
