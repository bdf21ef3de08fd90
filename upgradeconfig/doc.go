// Package upgradeconfig keeps the UpgradeConfig of a cluster in step with the
// upgrade policies of a provider.
//
// # The object
//
// Managed OpenShift clusters are upgraded by an operator, the managed-upgrade
// operator, that obeys one object: the UpgradeConfig managed-upgrade-config.
// Its spec says to which release and when; its status has a history with the
// phase of each upgrade (New, Pending, Upgrading, then Upgraded or Failed) and
// the steps of it as conditions. [UpgradeConfig] is that object.
//
// # Policies
//
// Users do not write that object. They tell a [Provider] when to upgrade, and the
// cluster asks the provider: OpenShift Cluster Manager (package ocm), or anything
// else that implements two methods, for instance a Git repository with policies in
// files ([GitDir]). A policy counts unless it is pending, completed or cancelled
// ([Policy.Counts]); the counting policy that is due next becomes the UpgradeConfig
// ([Policy.Compare]). With [Local] the object is its own policy, for clusters where
// an administrator does write it.
//
// # In step
//
// The provider is the source of truth. [Diff] decides what that means for the
// object: no policy deletes it, an equal one leaves it, and a different one
// replaces it. Replacing deletes, waits until the object has gone, and creates:
// the new object has no history and another UID, so a policy is always started
// from its beginning. Two options soften that. Update changes in place what is
// not about the release, and KeepWhileUpgrading leaves an object alone whose
// upgrade is in progress.
//
// A provider that does not answer has not said "no policy". So anything but a
// complete answer is an error, and after an error nothing is written.
//
// [Manager] does all that again and again: a minute after its start, then once
// an hour, and after failures with a back-off of 1, 2, 4 … 60 minutes
// ([Backoff]), all of them spread by a tenth so that the clusters of a fleet do
// not call at the same moment. Each write is on condition that the
// object is still the one that the decision was about, and all that a sync
// needs to know is on the cluster: it may be interrupted anywhere, even
// between delete and create, and the next one completes what it began. An
// observer gets an event for all that happens, with [EventData].
//
// [Validate] reports whether a cluster can do what an UpgradeConfig asks for, and
// package upgrade does it.
//
// Plain data of this package (objects, policies, options, events, errors) is
// safe for concurrent use as long as nobody changes it.
//
// docs/limits.md lists the limits of this package.
//
// # Names
//
// go doc -short lists more than a page, since a third of the names are the types
// of the object and of policies, as they are stored and sent, and the types of
// events that programs compare with.
//
// # Sources
//
// The managed-upgrade operator, its design and its custom resource:
// https://github.com/openshift/managed-upgrade-operator/tree/master/docs. How
// clusters are upgraded by policy:
// https://docs.openshift.com/dedicated/upgrading/osd-upgrades.html.
package upgradeconfig
