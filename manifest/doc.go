// Package manifest reads OpenShift release payloads: which objects a release
// image holds, which of them apply to a cluster and why the others do not, and
// in which order an update applies them.
//
// # The payload
//
// A release image has two directories of manifests and two files about itself:
//
//	manifests/                           the version operator's own, as templates
//	release-manifests/                   those of all other components
//	release-manifests/image-references   an ImageStream: the component images
//	release-manifests/release-metadata   version, previous versions, metadata
//
// [Load] reads them from any [io/fs.FS]: first manifests/ as a whole, then
// release-manifests/, the files of each in the byte order of their names. A file holds
// one or more objects, in YAML 1.1 or JSON. Each becomes a [Manifest], which remembers
// its file, its place in it, and the JSON form that the payload's hash is made from.
// Its object is checked while it is loaded, and decoded when [Manifest.Object] asks
// for it. One object that cannot be read fails the whole payload; all such faults are
// reported together, as an [Error] that reports which file and document each is in.
// Only a template that the program does not understand is skipped, with a [Warning];
// one that might not end is a fault.
//
// # Inclusion
//
// Annotations say where a manifest applies: in which cluster profile, feature
// set, with which feature gates, major version and capabilities. A [LoadFilter]
// holds what decides when a payload is loaded, a [Filter] what decides in each
// pass over it, since capabilities and overrides change without another load.
// Each gives a [Verdict]: included, or excluded by which [Rule] and why. Nothing
// is left out silently: [Payload.Excluded] has every manifest that the load
// excluded, and [Payload.Included] those that a pass includes and excludes.
// [Payload.Inclusion] has all of them, and shows them as a table.
//
// [ResolveCapabilities] and [ImplicitlyEnabled] compute a cluster's
// capabilities: once enabled, one is never switched off again, and an update
// enables those that resources which are managed already have moved into.
//
// # Order
//
// File names tell the order of an update:
//
//	0000_<runlevel>_<component>_<rest>
//
// Lower runlevels come first; within one, components run side by side, and
// each component's manifests one after another. [UpdateGraph] makes that order
// into a directed graph, whose nodes are lists of [Task]; [FlatGraph] and
// [AttemptGraph] are the graphs of an installation and of reconciliation, which
// have no order between components. Grouping looks at
// neighbours in the list and compares levels as text: the order of the list is
// the truth, not the number. Package runlevel executes such graphs.
//
// # Comparing and checking
//
// [Diff] compares two releases as a cluster sees them: which objects come, go,
// change, move to another runlevel or component, are excluded from now on and
// why, and which stay behind as orphans, because the new release neither applies
// nor deletes them. [PayloadDiff] is data, and [PayloadDiff.WriteText] shows it to
// people. Credentials are digests in both.
//
// [Lint] finds what the makers of a payload hardly meant, such as a custom
// resource before its definition, or an image that the release does not have;
// [LintRules] lists the rules. Not every finding keeps an update from working:
// what fails since something else is not there yet is tried again.
//
// # Limits
//
// What is read is bounded, and so is what is kept of it: the JSON of the objects
// with a copy of their annotations, and of each object that was decoded as much
// again and some 400 bytes a value. A limit that is passed is an error that
// names its field and the file. A negative field is an error too.
//
// The file release-metadata has its own limits: 256 KiB, and metadata nested at
// most 100 levels deep.
//
// docs/limits.md lists the limits of this package.
//
// # Concurrency
//
// What is loaded is read-only and safe for concurrent use: payloads, manifests,
// their objects, tasks, graphs, verdicts, diffs, findings and errors. Options and filters are too
// as long as nobody changes them.
//
// # Sources
//
// The rules are those of the cluster-version operator and of the library that
// it shares with other operators (github.com/openshift/cluster-version-operator
// and github.com/openshift/library-go, package manifest), as documented in
// https://github.com/openshift/cluster-version-operator/tree/main/docs; the
// annotations for profiles, feature sets and capabilities are described in the
// OpenShift enhancements "cluster-profiles", "featureset" and
// "component-selection". Texts of errors and reasons are the operator's, since
// users search for them.
package manifest
