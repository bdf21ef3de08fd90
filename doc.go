// Package clusterupdate updates OpenShift clusters: it does what the
// cluster-version operator does, as a library.
//
// A cluster reports what it wants in its ClusterVersion object. An [Updater] makes it true
// and writes down how far it is. Whenever something has changed, or is due, it reads the
// object and checks it ([clusterversion.Validate]; a faulty field is reported and counts as
// unset), decides, writes the status unless somebody else has since, and does what was
// decided. A decision is a pure function of what was read; [Updater.Explain] returns the
// last one, with what the update waits for and what failed. In the sources, read.go has the
// reads, decision.go the decision and write.go the writes; the steps, each in its own file,
// are:
//
//   - fetch: ask the update service which updates there are, if that is due
//     (package graph).
//   - evaluate: judge their risks; with the feature gate
//     ClusterUpdateAcceptRisks also those that the cluster itself is to updates,
//     such as an alert that fires ([Options].Alerts).
//   - resolve: find the release that spec.desiredUpdate means ([clusterversion.Resolve]); in
//     automatic mode, ask for one.
//   - preflight: if spec.desiredUpdate has the mode Preflight, load that release and
//     check it, as for an update, by all checks and [Options].PreflightPreview. It is
//     neither accepted nor applied. What an update would meet becomes risks of the
//     conditional updates ([clusterversion.Preflights]), which stay until an update is
//     accepted; with the feature gate ClusterUpdateAcceptRisks they block the update to
//     that release unless they are accepted. As long as it is requested the check runs
//     again: once an hour, and ten minutes after the last one if something has changed.
//   - load: if that release is new, verify the signature of its image (package
//     signature), fetch its contents and read them (package manifest), and ask
//     whether this cluster may start this update (package preconditions).
//     Signatures that verified a release are kept in the cluster. A release
//     that is refused leaves the cluster as it is, with the reason in the
//     condition ReleaseAccepted.
//   - accept: it becomes status.desired and a Partial entry of the history
//     ([clusterversion.MergeHistory]), before anything of it is applied. Nothing else adds an
//     entry.
//   - apply: apply its manifests, runlevel by runlevel, and wait at each for the
//     ClusterOperators to be available, not degraded and at the new version
//     (package runlevel). While it waits, the pass stays, and continues there; every
//     ten minutes it starts at the first manifest again, so that what somebody has
//     changed or deleted meanwhile returns. A pass that is called off, for
//     another release say, is followed by the next one when the last of its
//     calls has ended.
//   - complete: when all are, the history entry is Completed. From then on
//     passes keep the cluster so. If it can be watched, they make no call for an
//     object that a watch shows to be as it was applied; what somebody has changed or
//     deleted returns at the next pass, two to four minutes later, and a Task event
//     of type Drifted and [Updater.Drifts] name who did it. Once an hour a pass applies
//     everything all the same ([Options].ApplyAlways: each does).
//
// What an Updater remembers is a cache: where the newest entry of the history, the
// object or the request is another than it was about, it is dropped. So one that
// was away while another updated the cluster finds the new release to be the
// cluster's own, and keeps it. The times since when an operator is awaited start
// again with a new process unless it is given them ([Updater.Tracker]), and so does
// the time since when a release is refused.
//
// # Hosting
//
// [Updater.Run] does this until its context ends, and reacts to changes at once
// where the cluster can be watched. [Updater.Sync] does what is due and returns,
// for programs with a loop of their own. [Updater.Process] is the same for any
// driver: together with others in one reconcile.Run, in virtual time
// (reconcile.NewVirtual), or on a Manager of controller-runtime. Nodes are updated
// at the same time by the machine-config operator, or by package mcp/rollout.
//
// An Updater is safe for concurrent use. All other types are plain data: safe
// to read from many goroutines at a time, not to change while others read.
//
// # Hooks
//
// What else is to be done around an update, such as to pause health checks of
// machines, is a [clusterversion.Hook] ([Options].Hooks): it is asked before anything is
// applied, and after the update is complete, until it is done.
//
// # Requests and status
//
// What an administrator asks of a cluster, whoever updates it, is a request of
// package clusterversion: an update, the check of one ([clusterversion.PreflightRequest]), a
// channel, a rollback, in the words of oc adm upgrade. Package preconditions/preflight carries one out if checks allow it.
//
// Package view has the status of the update of any cluster, live or recorded, and
// what it waits on, read once or followed.
//
// # What is different from the operator
//
// The operator is itself part of the release: in the middle of an update its
// Deployment is replaced, and its successor calls the new release its own. A
// library stays. Its own release is what the history says was completed last
// (or [Options.Own]), and a started update is the newest Partial entry. So an
// update continues after a crash with the same target, and neither a request
// that is removed, nor a fault in it, nor a version that is not offered any more
// turns it around: going back is a request for the older release with its
// image, and must pass the precondition for rollbacks.
//
// The operator merges manifests into objects and updates these; here they are
// applied by the server, so that what others have added to a list stays
// ([Options].ApplyMode: as the operator does it).
//
// An error of the API never changes the condition Available, and never adds a
// history entry. An entry keeps its text about accepted risks. A release that
// was refused is tried again with growing waits, not every few seconds.
//
// # Limits
//
// What is read from outside is bounded by the packages that read it, and what preflights
// found by package clusterversion. This package bounds what it writes to the
// ClusterVersion.
//
// docs/limits.md lists the limits of this package.
//
// # Sources
//
// The object is described in the OpenShift API, config.openshift.io/v1; the
// process in "Understanding OpenShift updates" of the OpenShift documentation.
// Conditions, reasons and messages are those of the operator, so that what
// users search for is found.
package clusterupdate
