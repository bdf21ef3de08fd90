// Package clusterupdate updates OpenShift clusters: it does what the
// cluster-version operator does, as a library.
//
// A cluster says what it wants in its ClusterVersion object. An [Updater] makes
// it true and writes down how far it is. One pass of it, [Updater.Sync], goes
// through these steps:
//
//  1. Read the ClusterVersion and check it ([Validate]); a faulty field is
//     reported and counts as unset.
//  2. Ask the update service which updates there are, where that is due, and
//     judge their risks (package graph); with the feature gate
//     ClusterUpdateAcceptRisks also those that the cluster itself is to
//     updates, such as an alert that fires ([Options.Alerts]).
//  3. Resolve spec.desiredUpdate to a release ([Resolve]).
//  4. If that release is new: verify the signature of its image (package
//     signature), fetch its contents and read them (package manifest), and ask
//     whether this cluster may start this update (package preconditions).
//     Signatures that verified a release are kept in the cluster. A release
//     that is refused leaves the cluster as it is, with the reason in the
//     condition ReleaseAccepted.
//  5. Accept it: it becomes status.desired and a Partial entry of the history
//     ([MergeHistory]), before anything of it is applied.
//  6. Apply its manifests, runlevel by runlevel, and wait at each for the
//     ClusterOperators to be available, not degraded and at the new version
//     (package runlevel).
//  7. When all are: the history entry is Completed. From then on passes keep
//     the cluster so.
//
// [Updater.Run] repeats this, and reacts to changes at once where the cluster
// can be watched. While a release is fetched the passes over the old one go on,
// and the status stays live. Nodes are updated beside all this, by the
// machine-config operator or by package mcp.
//
// # What is different from the operator
//
// The operator is itself part of the release: in the middle of an update its
// Deployment is replaced, and its successor calls the new release its own. A
// library stays. Its own release is what the history says was completed last
// (or [Options.Own]), and a started update is the newest Partial entry. So an
// update continues after a crash with the same target, and neither a request
// that is removed, nor a fault in it, nor a version that leaves the lists turns
// it around: going back is a request for the older release with its image, and
// must pass the precondition for rollbacks.
//
// An error of the API never changes the condition Available, and never adds a
// history entry. An entry keeps its text about accepted risks. A release that
// was refused is tried again with growing waits, not every few seconds.
//
// # Limits
//
// What is read from outside is bounded by the packages that read it. What of
// it is written to the ClusterVersion is bounded here:
//
//	limit                           default  field  past it
//	entries of the history          100      -      the least telling one goes
//	message of a condition          32 KiB   -      says how many bytes are left out
//	accepted risks in the history   32 KiB   -      says how many bytes are left out
//
// # Sources
//
// The object is described in the OpenShift API, config.openshift.io/v1; the
// process in "Understanding OpenShift updates" of the OpenShift documentation.
// Conditions, reasons and messages are those of the operator, so that what
// users search for is found.
package clusterupdate
