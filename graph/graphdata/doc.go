// Package graphdata makes update graphs: it reads the data that an OpenShift
// update graph is made of, a tree of files as
// github.com/openshift/cincinnati-graph-data holds it, and puts them together with
// releases.
//
// # The tree
//
// Releases say by themselves which versions may update to them. The tree says the
// rest, and people change it by review:
//
//	version                    the schema version, e.g. 1.1.0
//	channels/NAME.yaml         which releases are in a channel
//	blocked-edges/NAME.yaml    updates to a release that are removed, or conditional
//	raw/metadata.json          metadata for old releases
//	internal-channels/*.yaml   channels that feed the public ones (LoadOptions.InternalChannels)
//	build-suggestions/*.yaml   what a build names as predecessors of a release
//
// A channel is a list of versions, and says for the maintainers' tools how
// releases get into it:
//
//	name: fast-4.30
//	feeder: {name: fast, delay: PT0H, filter: '4[.](28|29|30)[.][0-9].*'}
//	tombstones: [4.29.7]
//	versions: [4.28.40, 4.29.7, 4.29.8, 4.30.0]
//
// A blocked edge with to and from alone removes the updates to a version, from
// those that match a regular expression. With a risk it makes them conditional:
//
//	to: 4.30.3
//	from: 4[.]29[.].*
//	fixedIn: 4.30.4
//	url: https://example.com/kb/1
//	name: SlowDisks
//	message: Clusters on platform X may lose disks.
//	matchingRules:
//	- type: PromQL
//	  promql:
//	    promql: group(platform{type="X"}) or 0 * group(platform)
//
// The expression is searched for in the version of a source with its
// architecture: 4[.]29[.]1 matches 4.29.1+amd64 and 4.29.10+amd64 and 14.29.1+amd64,
// and ^4[.]29[.]1$ matches nothing at all. The usual form for one version is
// ^4[.]29[.]1[+].*$.
//
// # Reading
//
// [Load] reads a tree from any file system: a checkout by os.DirFS, an archive by
// [OpenArchive], files in memory. It is strict: a file that is not understood
// would otherwise leave updates open that somebody meant to block. All faults are
// found at once, each with its file, line and field, in a [*LoadError]:
//
//	blocked-edges/4.30.3-SlowDisks.yaml:2:7: from: error parsing 4[.29 as Regex: …
//
// What is legal and still odd is among [Tree.Problems]. YAML scalars are texts whatever they look like: 4.20 is never a
// number.
//
// The existing update service continues without a file that it does not understand.
// LoadOptions.Compat does that too, for comparisons; the file compat.go lists the
// points.
//
// # Building
//
// [Build] is a pure function of a tree and a list of [Release]. In this order,
//
//  1. each release becomes a node, named by its version and architecture, and so
//     does each version that a release names (an abstract node, never served);
//  2. raw metadata are added, blocked edges find their targets, channels are
//     written into the metadata;
//  3. releases' predecessors and successors become edges, and metadata add more;
//  4. edges that a drop, or metadata, remove are removed; those left that a risk
//     matches become conditional, under all the risks that match.
//
// To remove beats a risk. The existing update service leaves such an update open
// under the risk, lets the last of two drops for one release win, and applies a
// risk for one architecture to the edges of all. This package does what the tree
// says; BuildOptions.Compat does what the service does. What names no release is in
// the [Report], and what had to be left out.
//
// Releases come from sources: a [List], [Lines] of JSON, extracted [Payloads], a
// [Layout] of images, the [Stored] graph of a builder. [Collect] reads several.
//
// A [Snapshot] is the result for all channels and architectures; [Snapshot.Graph]
// returns one channel's for one architecture, as package graph knows it, and
// [Snapshot.Why] says for one update who declares it and which file and line
// removes it or makes it conditional. Equal input gives equal bytes: nodes are in
// the order of versions, edges in the order of nodes, risks in the order of their
// names.
//
// Package maintain compares snapshots and checks trees.
//
// # Limits
//
// Errors of limits are a [*LimitError], which Load wraps in its [*LoadError]. Of
// the images in a [Layout], manifests may have 4 MiB, the metadata of a release 256
// KiB, layers 4 GiB compressed; past that an image is an error of it alone. All of
// its images together may have 512 MiB of manifests and configurations, and 64 GiB
// of layers (Layout.MaxBytes); past that reading ends.
//
// Nothing in this package waits or starts a goroutine. A [Snapshot] is safe for
// concurrent use. The other types are plain data: safe to read from many
// goroutines at a time, not to change while others read.
//
// docs/limits.md lists the limits of this package.
package graphdata
