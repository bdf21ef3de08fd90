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
// People do not write it. They tell a [Provider] when to upgrade, and the
// cluster pulls that from there: OpenShift Cluster Manager (package ocm), or
// anything else that implements two methods, for instance a Git repository with
// policies in files. A policy counts unless it is pending, completed or
// cancelled ([Policy.Counts]); of those that count the one that is due next
// becomes the UpgradeConfig ([Select]). With [Local] the object is its own
// policy, for clusters where an administrator does write it.
//
// # In step
//
// The provider is the source of truth. [Diff] decides what that means for the
// object: no policy deletes it, an equal one leaves it, and a different one
// replaces it. Replacing deletes, waits until the object has gone, and creates:
// the new object has no history and another UID, so a policy is always started
// from its beginning. Two options soften that. Update changes in place what is
// not about the release, and KeepWhileUpgrading leaves an object alone whose
// upgrade is in progress ([InProgress]).
//
// A provider that gives no answer has not said "no policy". So whatever is not
// a complete answer is an error, and after an error nothing is written.
//
// [Manager] does all that again and again: a minute after its start, then once
// an hour, and after failures with a back-off of 1, 2, 4 … 60 minutes
// ([Backoff]), everything spread by a tenth ([Jitter]) so that the clusters of
// a fleet do not call at the same moment. Each write is on condition that the
// object is still the one that the decision was about, and all that a sync
// needs to know is on the cluster: it may be broken off anywhere, by a crash
// between delete and create too, and the next one completes what it began. What
// happens is told as [Event] values, and [Explain] tells in sentences what is going to happen.
//
// What carries an UpgradeConfig out is package upgrade.
//
// # Limits
//
//	limit                            default  field  past it
//	configuration                    1 MiB    -      error
//	configuration, aliases expanded  1 MiB    -      error
//	entries of a history             100      -      the oldest go
//	message of a condition           32 KiB   -      says how many bytes are left out
//
// # Sources
//
// The managed-upgrade operator, its design and its custom resource:
// https://github.com/openshift/managed-upgrade-operator/tree/master/docs. How
// clusters are upgraded by policy:
// https://docs.openshift.com/dedicated/upgrading/osd-upgrades.html.
package upgradeconfig
