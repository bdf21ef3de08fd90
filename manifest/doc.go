// Package manifest reads OpenShift release payloads: which objects a release
// image has, which of them apply to a cluster and why the others do not, and
// in which order an update applies them.
//
// A release image has two directories of manifests and two files about itself:
//
//	manifests/                           the version operator's own, as templates
//	release-manifests/                   those of all other components
//	release-manifests/image-references   an ImageStream: the component images
//	release-manifests/release-metadata   version, previous versions, metadata
//
// [Load] reads a [Payload] from any [io/fs.FS]: first manifests/, then
// release-manifests/, the files of each in the byte order of their names. A file has
// one or more objects, in YAML 1.1 or JSON. Each becomes a [Manifest], which remembers
// its file, its place there, and the JSON form that the payload's hash is made of. One
// object that cannot be read fails the whole payload: an [Error] has all faults, each
// with its file and document. Only a template that the program does not understand is
// skipped, with a [Warning].
//
// Annotations decide where a manifest applies: in which cluster profile, feature set,
// with which feature gates, major version and capabilities. A [LoadFilter] decides when
// a payload is loaded, a [Filter] in each pass over it, since capabilities and overrides
// change without another load. Each gives a [Verdict]: included, or excluded by which
// [Rule] and why. [Payload.Inclusion] has all verdicts, and shows them as a table.
// [ResolveCapabilities] and [ImplicitlyEnabled] compute a cluster's capabilities: an
// enabled one is never disabled again, and an update enables those that managed
// resources have moved into.
//
// File names, 0000_<runlevel>_<component>_<rest>, give the order of an update. Lower
// runlevels come first; within one, components run in parallel, and the manifests of
// each one after another. [UpdateGraph] makes a directed graph of that, whose nodes are
// lists of [Task]; [FlatGraph] and [AttemptGraph] are the graphs of an installation and
// of reconciliation. Package runlevel executes them.
//
// [Diff] compares two releases as a cluster sees them: which objects come, go, change,
// move, are excluded from now on and why, and which stay behind as orphans. [Lint] finds
// probable mistakes of a payload, such as a custom resource before its definition.
//
// Loaded payloads and everything computed from them are read-only and safe for
// concurrent use; options and filters are plain data. docs/limits.md lists the limits.
//
// The rules and the texts of errors are those of
// https://github.com/openshift/cluster-version-operator/tree/main/docs and of package
// manifest of https://github.com/openshift/library-go; OpenShift's enhancements
// "cluster-profiles", "featureset" and "component-selection" describe the annotations.
package manifest
