// Package clusterupdate updates OpenShift clusters: it does what the
// cluster-version operator does, as a library.
//
// A cluster reports what it wants in its ClusterVersion object. An [Updater] makes it true
// and writes down how far it is. Whenever something has changed, or is due, it reads the
// object, decides, writes the status unless somebody else has since, and does what was
// decided. A decision is a pure function of what was read; [Updater.Explain] returns the
// last one. In the sources, read.go has the reads, decision.go the decision and write.go
// the writes; the steps, each in its own file, are:
//
//   - fetch: ask the update service which updates there are (package graph).
//   - evaluate: judge their risks ([Options].Risks, [Options].Alerts).
//   - resolve: find the release that spec.desiredUpdate means ([clusterversion.Resolve]);
//     in automatic mode, ask for one.
//   - preflight: check the release of a request with mode Preflight, without an update.
//   - load: verify the signature of a new release (package signature), fetch and read its
//     contents (package manifest), and ask whether this cluster may start this update
//     (package preconditions). A release that is refused leaves the cluster as it is, with
//     the reason in the condition ReleaseAccepted.
//   - accept: it becomes status.desired and a Partial entry of the history, before anything
//     of it is applied. Nothing else adds an entry.
//   - apply: apply its manifests, runlevel by runlevel, and wait at each for the
//     ClusterOperators (package runlevel).
//   - complete: the history entry is Completed. From then on passes keep the cluster so,
//     and [Updater.Drifts] names who has changed what.
//
// What an Updater remembers is a cache. One that was away while another updated the
// cluster finds the new release to be the cluster's own, and keeps it. Its own release is
// what the history says was completed last (or [Options.Own]); an update that has started
// continues after a crash, and only a request for the older release turns it around.
//
// [Updater.Run] does this until its context ends; [Updater.Sync] does what is due and
// returns, for programs with a loop of their own; [Updater.Process] is the same for any
// host of package reconcile. A [clusterversion.Hook] does what else is to be done around
// an update. What an administrator asks of a cluster, in the words of oc adm upgrade, is a
// request of package clusterversion; package view has what the administrator sees.
//
// An Updater is safe for concurrent use. All other types are plain data: safe
// to read from many goroutines at a time, not to change while others read. docs/updates.md
// has the rules in full, docs/limits.md the limits.
//
// The object is described in the OpenShift API, config.openshift.io/v1; the process in
// "Understanding OpenShift updates" of the OpenShift documentation. Conditions, reasons
// and messages are those of the operator, so that what users search for is found.
package clusterupdate
