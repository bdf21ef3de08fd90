// Package upgradeconfig keeps the UpgradeConfig of a cluster in step with the
// upgrade policies of a provider.
//
// The managed-upgrade operator of managed OpenShift clusters obeys one object, the
// [UpgradeConfig] managed-upgrade-config. Its spec says to which release to upgrade
// and when. Its status has a history with the phase of each upgrade (New, Pending,
// Upgrading, then Upgraded or Failed) and its steps as conditions.
//
// Users give their policies to a [Provider]: OpenShift Cluster Manager (package ocm), a
// Git repository with policies in files ([GitDir]), or anything else with its two
// methods. A policy counts unless it is pending, completed or cancelled
// ([Policy.Counts]); the counting policy that is due first becomes the UpgradeConfig
// ([Policy.Compare]). With [Local] the object is its own policy, for clusters whose
// administrators write it.
//
// [Diff] compares the two: without a policy it deletes the object, it keeps an equal
// one and replaces a different one. Replacing deletes the object, waits until it is
// gone, and creates another, which has no history: a policy always starts from its
// beginning. Two options soften that. Update changes in place what is not about the
// release, and KeepWhileUpgrading keeps an object whose upgrade is in progress.
//
// An incomplete answer of a provider is an error, never "no policy", and nothing is
// written after an error.
//
// [Manager] does all that a minute after its start, then once an hour, and after
// failures with a back-off of 1, 2, 4 … 60 minutes ([Backoff]), spread by a tenth so
// that clusters of a fleet do not call at the same moment. Each write has the
// object of its decision as precondition, and all state is on the cluster: a
// sync may be interrupted anywhere, even between delete and create, and the next one
// completes it. An observer gets an event for each step, with [EventData].
//
// [Validate] reports whether a cluster can do what an UpgradeConfig asks for, and
// package upgrade does it.
//
// The rules are those of
// https://github.com/openshift/managed-upgrade-operator/tree/master/docs; see also
// https://docs.openshift.com/dedicated/upgrading/osd-upgrades.html.
//
// Plain data of this package (objects, policies, options, events, errors) is safe
// for concurrent use as long as nobody changes it. docs/limits.md lists the limits.
package upgradeconfig
