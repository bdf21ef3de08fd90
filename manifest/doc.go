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
// release-manifests/, the files of each in the byte order of their names. A
// file holds one or more objects, in YAML 1.1 or JSON. Each becomes a
// [Manifest], which remembers its file, its place in it, and the JSON form that
// the payload's hash is made from. One object that cannot be read fails the
// whole payload; all such faults are reported together, as an [Error] that
// says which file and document each is in. Only a template that the program
// does not understand is skipped, with a [Warning].
//
// # Inclusion
//
// Annotations say where a manifest applies: in which cluster profile, feature
// set, with which feature gates, major version and capabilities. A [Filter]
// holds the cluster's side, and [Filter.Excluded] returns the reason for which
// a manifest does not apply, or nothing if it does. Some checks decide when a
// payload is loaded ([Filter.ForLoad]), others anew in each pass over it
// ([Filter.ForTask]), since capabilities and overrides change without another
// load. Nothing is left out silently: [Payload.Excluded] has every manifest
// that does not apply, with its reason.
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
// each component's manifests one after another. [NewGraph], [Graph.SplitJobs]
// and [Graph.Parallelize] make that order into a directed graph, whose nodes
// are lists of [Task]. [ByNumberAndComponent] is the grouping of an update;
// [FlattenByNumberAndComponent] is the one of an installation and of
// reconciliation, which have no order between components. Grouping looks at
// neighbours in the list and compares levels as text: the order of the list is
// the truth, not the number. Package runlevel executes such graphs.
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
