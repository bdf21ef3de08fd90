// Package runlevel applies the manifests of a release to a cluster in the order
// that their file names ask for, waits for what they start, and reports how far it
// is and what is wrong.
//
// # The order
//
// A release is a list of manifests named 0000_<runlevel>_<component>_<rest>.
// A pass applies all of them once. Its [State] decides the graph:
//
//   - Updating runs the levels one after another; within a level the
//     components run side by side, within a component one manifest after
//     another. A level is over when each of its ClusterOperators is
//     available, not degraded and at the versions of the release, because the
//     task of a ClusterOperator fails until then.
//   - Initializing runs all components at once: what misses something fails
//     and is tried again.
//   - Reconciling runs all components, two at a time, in an order that changes
//     while passes fail.
//
// Jobs are barriers in every state: all before them is done, nothing behind
// them has started. Package manifest builds the graph.
//
// # Driving a pass
//
// A [Pass] is a reconciler (package reconcile) whose keys are the nodes of the
// graph: each look works on one node until it ends or has to wait. A node that
// waits continues at the task where it waited. [Run] drives a pass to its end,
// within one call, by the live driver of package reconcile.
//
// A pass ends with the failures of its nodes, and the next one starts at the first
// task again. With [Options].Stay it does not end: a task that has used up its
// attempts stalls its node, [Pass.Result] reports what is wrong so far, and the
// node continues when the ClusterOperator that it awaits has changed, or by
// [Pass.Resume], at the time at which the next pass would start. So an update that
// waits for an operator for an hour applies nothing twice.
//
// # A task
//
// Manifests that the cluster's capabilities, gates or overrides exclude are skipped.
// All others are written by one forced server-side apply, in the name of
// [clusterapi.ManagerPayload]: fields of others stay, keyed list elements of others
// too, and what an earlier release set and this one does not name goes. An apply that
// changes nothing writes nothing. Three annotations change that:
// release.openshift.io/create-only, where an existing object is left alone;
// release.openshift.io/delete, if it is to be gone (see [Tracker]); and
// config.openshift.io/inject-proxy or inject-tls, which add settings of the cluster.
// Fields that the kind's schema in Kubernetes, or the definition of a custom resource,
// does not have are left out, with an [EventWarning], since an API server would refuse
// the whole object. The definition is the payload's; if the payload does not apply
// one, the cluster's.
//
// Where several manifests make statements about one object, as feature sets
// bring them, they are merged and applied once a pass, at the first of them:
// maps key by key, keyed lists element by element. Of two
// values the later manifest's counts, and an [EventWarning] names the files and
// fields. Manifests that only create or delete are not merged: each acts when
// its turn comes.
//
// With [Options].Mode [ApplyMerge] an object that exists is brought in line as the
// cluster-version operator does it: it is read, merged with its manifest (package
// runlevel/merge), and updated if that changes it, on condition that nobody has
// written it since. A conflict is an error of the API, so the task is tried again.
// What somebody has added to keyed lists goes then; what a manifest no longer names
// stays where a merge only adds, such as labels. All else is the same in both
// modes.
//
// Server-side apply removes only what its own manager has set. In a cluster that
// another operator or ApplyMerge has written, it therefore adopts the fields of the
// managers in [Options].Adopt: before the first apply of an object, one update at the
// resourceVersion that was read moves their fields to our manager, in
// metadata.managedFields alone. Then what the manifest does not name goes, as if we
// had always applied it. Objects that a manifest only creates are not adopted, and of
// ClusterOperators the spec is not.
//
// Then the object is judged as the server returned it. A Deployment must not be
// failing, a Job must not have failed, a CustomResourceDefinition must be served; a
// roll-out under way is good enough, for the ClusterOperator of the component
// carries the real wait. While Initializing only ClusterOperators are judged.
//
// # Drift
//
// A pass over a cluster that is at its release need not apply what nobody has changed.
// [Tracker.Watch] names the kinds to watch; what the watches show goes to
// [Tracker.Observe]. Of each object that it applies the Tracker keeps what was sent,
// the UID and resourceVersion, and a digest of all but the status and the metadata
// that only a server sets. While a watch shows the same digest, in the state that was
// written or a later one, and the same is to be applied, a pass in state Reconciling
// makes no call for the object, and judges it by the status that the watch showed.
// Anything else is applied. An apply changes nothing if others have only added to the
// object; what it changes is drift, and so is a field of ours that others have taken
// over: an [EventDrifted] reports these fields and who owns them ([Drift]). Once an
// hour a pass applies everything anyway, for a watch may break unnoticed. A kind that
// is not watched, or cannot be listed, is applied in every pass.
//
// With ApplyMerge a pass reads the object instead, and writes it only if a merge
// changes it. What the operator would write in every pass, because the server words it
// in its own way, is written when the object is read, and is not drift.
//
// # Errors
//
// Errors of the API are tried again, a few times per pass ([Backoff]); findings
// about an object, which are [*TaskError], are not: waiting is done by passes, one
// after another, or by a pass that stays. An error stops what depends on it and
// nothing else. [Result].Failure puts the errors of a pass together, and [Judge]
// reports whether that is trouble or progress: a degraded operator has 40 minutes,
// and one without its versions 30 (machine-config 90) before that is called slow;
// the [Tracker] holds these clocks.
//
// The end of the context is not an error of a task: a pass that it interrupts
// has no Failure, and the next one continues from what is in the cluster.
// context.Cause is found in its error.
//
// A panic in an [Applier], an API, an observer or a logger ends neither the
// program nor the pass: it becomes a [*TaskError], in which errors.As finds the
// [clusterapi.PanicError] with the stack.
//
// # Concurrency
//
// Options, results, events and errors are plain data, safe for concurrent use as long
// as nobody changes them. A [Pass] and a [Tracker] are safe for concurrent use.
//
// # Limits
//
// Texts of a cluster and of a payload may be of any length. What is made of
// them is bounded.
//
// docs/limits.md lists the limits of this package.
//
// # Source
//
// The rules are those of OpenShift's cluster-version operator
// (https://github.com/openshift/cluster-version-operator, its documents
// reconciliation.md and clusteroperator.md in docs/user and docs/dev). Where this
// package differs: objects are written by server-side apply, unless [ApplyMerge] is
// asked for; several manifests of one object are one; a task that has no attempt
// left ends without a last wait; a worker takes the lowest ready node without a
// queue in front of it; an end of the context is kept apart from a failure
// everywhere; what a watch shows to be as it was applied is not applied again; and
// there is no global state.
package runlevel
