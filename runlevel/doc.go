// Package runlevel applies the manifests of a release to a cluster in the order
// that their file names ask for, waits for what they start, and reports how far it
// is and what is wrong.
//
// A release is a list of manifests named 0000_<runlevel>_<component>_<rest>. A [Pass]
// applies all of them once. Its [State] decides the graph, which package manifest builds:
//
//   - Updating runs the levels one after another; within a level the components run side
//     by side, within a component one manifest after another. A level is over when each
//     of its ClusterOperators is available, not degraded and at the versions of the
//     release, because the task of a ClusterOperator fails until then.
//   - Initializing runs all components at once: what misses something fails and is tried
//     again.
//   - Reconciling runs all components, two at a time, in an order that changes while
//     passes fail.
//
// Jobs are barriers in every state: all before them is done, nothing behind them has
// started.
//
// A Pass is a reconciler (package reconcile) whose keys are the nodes of the graph. A
// node that waits continues at the task where it waited. [Run] drives a pass to its end.
// With [Options].Stay a pass does not end with the failures of its nodes: they stall, and
// continue when the ClusterOperator that they await has changed, or by [Pass.Resume].
//
// An object is written by server-side apply ([Options].Mode: as the operator merges it),
// and judged as the server returned it. What passes remember is in a [Tracker]: since
// when operators are awaited, which deletions are pending, and, where watches show the
// cluster, what was applied: a pass in state Reconciling then makes no call for an object
// that nobody has changed, and reports a [Drift] of those that somebody has.
//
// Errors of the API are tried again, a few times per pass ([Backoff]); findings about an
// object, which are [*TaskError], are not: the next pass comes to them. An error stops
// what depends on it and nothing else. [Result].Failure puts the errors of a pass
// together, and [Judge] reports whether that is trouble or progress. The end of the
// context is not a failure. A panic of what the caller supplies becomes a [*TaskError]
// with a [clusterapi.PanicError] in it.
//
// Options, results, events and errors are plain data, safe for concurrent use as long
// as nobody changes them; a [Pass] and a [Tracker] are safe for concurrent use.
// docs/passes.md has the rules in full, docs/limits.md the limits.
//
// The rules are those of OpenShift's cluster-version operator
// (https://github.com/openshift/cluster-version-operator, its documents
// reconciliation.md and clusteroperator.md in docs/user and docs/dev).
package runlevel
